//! The form of each syntax.

use super::read_code;
use super::show::show_all;

fn check(text: &str, expected: &str) {
    match read_code(text) {
        Ok(forms) => assert_eq!(show_all(&forms), expected, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn blanks_and_comments() {
    check("", "");
    check(" ,\t\r\n ", "");
    check("1 ; one\n2;two", "1 2");
    check("#!/usr/bin/env flowstone\n1", "1");
    check("\u{feff}1", "1");
    check("1\u{2003}2", "1 2");
    check("#_ a b", "b");
    check("#_ #_ a b c", "c");
    check("[1 #_2 3 #_4]", "[1 3]");
    check("#_ #unknown 1 2", "2");
    check("#_ ::nope/k 2", "2");
}

#[test]
fn numbers() {
    check(
        "0 7 -7 +7 123456789012345678",
        "0 7 -7 7 123456789012345678",
    );
    check(
        "1.5 -1.5 1e3 1.5E-3 0.0 1.",
        "1.5f -1.5f 1000.0f 0.0015f 0.0f 1.0f",
    );
    check("1#_2 [1'a]", "1 [1 (quote a)]");
    check("##Inf ##-Inf", "inff -inff");
    check("##NaN", "NaNf");
    check("12N 0x1F -0xff 017 2r101 36rZ", "12N 31 -255 15 5 35");
    check(
        "9223372036854775807 9223372036854775808",
        "9223372036854775807 9223372036854775808N",
    );
    check("1/3 -2/4 4/2 1.50M 2M", "1/3 -1/2 2 1.50M 2M");
}

#[test]
fn names() {
    check(
        "a a/b + - -a .b a.b c' a#b ->> <=",
        "a a/b + - -a .b a.b c' a#b ->> <=",
    );
    check("/ clojure.core// & % %1 é λ", "/ clojure.core// & % %1 é λ");
    check("nil true false nils", "nil true false nils");
    check(
        ":a :a/b :1 :a.b/c :+ :é :a:b",
        ":a :a/b :1 :a.b/c :+ :é :a:b",
    );
    check("::a ::str/join", ":user/a :clojure.string/join");
    check("String/1", "String/1");
    check("a|b $x *y* =_!?<>", "a|b $x *y* =_!?<>");
}

#[test]
fn strings() {
    check(r#""" "a" "é" "a b""#, r#""" "a" "é" "a b""#);
    check(r#""\n\t\r\\\"\b\f""#, r#""\n\t\r\\\"\u{8}\u{c}""#);
    check(r#""\u00e9\u0041 \101\0x""#, "\"éA A\\0x\"");
    check(r#""\ud83d\ude00""#, "\"😀\"");
    check("\"two\nlines\"", r#""two\nlines""#);
    check(r#""a;b#_c""#, r#""a;b#_c""#);
}

#[test]
fn characters() {
    check(r"\a \é \( \) \\ \; \,", r"'a' 'é' '(' ')' '\\' ';' ','");
    check(r"\newline \space \tab \return", r"'\n' ' ' '\t' '\r'");
    check(r"\backspace \formfeed", r"'\u{8}' '\u{c}'");
    check(r"\u0041 \o101 \o7 \u \o \n", r"'A' 'A' '\u{7}' 'u' 'o' 'n'");
    check(r"[\a\b]", r"['a' 'b']");
    check(r#"\"x"#.split('x').next().unwrap(), r#"'"'"#);
}

#[test]
fn collections() {
    check("() [] {} #{}", "() [] {} #{}");
    check("(a (b [c {d #{e}}]))", "(a (b [c {d #{e}}]))");
    check("{:a 1, :b {:c 2}}", "{:a 1, :b {:c 2}}");
    check("(a)(b)[c]d", "(a) (b) [c] d");
    check(
        "#:p{:a 1 :q/b 2 :_/c 3 s 4 \"t\" 5}",
        "{:p/a 1, :q/b 2, :c 3, p/s 4, \"t\" 5}",
    );
    check(
        "#::{:a 1} #::str{:a 1}",
        "{:user/a 1} {:clojure.string/a 1}",
    );
    check("#:p {:a {:b 1}}", "{:p/a {:b 1}}");
}

#[test]
fn prefixes() {
    check("'a ''a '(a)", "(quote a) (quote (quote a)) (quote (a))");
    check(
        "@a @@a",
        "(clojure.core/deref a) (clojure.core/deref (clojure.core/deref a))",
    );
    check("#'a #'b/c", "(var a) (var b/c)");
    check(
        "~a ~@b ~ @c",
        "(clojure.core/unquote a) (clojure.core/unquote-splicing b) (clojure.core/unquote (clojure.core/deref c))",
    );
    check("' #_x a", "(quote a)");
}

#[test]
fn metadata() {
    check(
        "^:k x ^{:a 1} [] ^T y ^\"T\" z",
        "^{:k true} x ^{:a 1} [] ^{:tag T} y ^{:tag \"T\"} z",
    );
    check("^:a ^:b x", "^{:b true, :a true} x");
    check("^{:a 1} ^{:a 2} x", "^{:a 1} x");
    check("#^:k ()", "^{:k true} ()");
    check("^[long _] f", "^{:param-tags [long _]} f");
    check("(^:k a ^:k {})", "(^{:k true} a ^{:k true} {})");
}

#[test]
fn functions() {
    check("#(f)", "(fn* [] (f))");
    check("#(f %)", "(fn* [p1__1#] (f p1__1#))");
    check("#(f %2)", "(fn* [p1__1# p2__2#] (f p2__2#))");
    check(
        "#(f % %1 %&)",
        "(fn* [p1__1# & rest__2#] (f p1__1# p1__1# rest__2#))",
    );
    check("#(f [%] {:a %})", "(fn* [p1__1#] (f [p1__1#] {:a p1__1#}))");
    check(
        "[#(a %) #(b %)]",
        "[(fn* [p1__1#] (a p1__1#)) (fn* [p1__2#] (b p1__2#))]",
    );
}

#[test]
fn conditionals() {
    check("#?(:flowstone 1 :default 2)", "1");
    check("#?(:clj 1 :default 2)", "2");
    check("#?(:clj 1)", "");
    check("#?(:default 1 :flowstone 2)", "1");
    check("[#?@(:flowstone [1 2] :default [3])]", "[1 2]");
    check("[0 #?@(:clj [1 2]) 3]", "[0 3]");
    check("#?(:cljs #js {:a 1} :default 2)", "2");
    check("#?(:cljs ::nope/a :flowstone #?(:clj 1 :default 3))", "3");
    check("(a #?@(:default (b c)) d)", "(a b c d)");
    check("[1 #?(:flowstone 2 :cljs #unknown 3)]", "[1 2]");
}

#[test]
fn flow_files_take_branches_for_the_jvm_too() {
    let options = flowstone_lang::reader::ReadOptions::flow(super::SOURCE);
    let forms = super::read_all("#?(:cljs 1 :clj 2 :default 3)", options).unwrap();
    assert_eq!(show_all(&forms), "2");
}

#[test]
fn tags() {
    check(
        "#inst \"1970-01-01\" #inst \"1970-01-02T00:00:00.001Z\"",
        "#inst<0> #inst<86400001>",
    );
    check(
        "#inst \"1970-01-01T01:00+01:00\" #inst \"1969\"",
        "#inst<0> #inst<-31536000000>",
    );
    check(
        "#inst \"2024-02-29T23:59:59.999999999-00:30\"",
        "#inst<1709252999999>",
    );
    check("#inst \"2000-03-01T00:00:00.5Z\"", "#inst<951868800500>");
    check(
        "#uuid \"550e8400-e29b-41d4-a716-446655440000\"",
        "#uuid<550e8400e29b41d4a716446655440000>",
    );
    check("#twice x #twice #twice 1", "[x x] [[1 1] [1 1]]");
}

#[test]
fn regexes() {
    check(r##"#"a+\d\"[\]]" #"" "##, r##"#"a+\d\"[\]]" #"""##);
}

/// Random texts, with Clojure's results for them.
#[test]
fn random_texts_are_read_as_in_clojure() {
    use flowstone_lang::reader::{ReadOptions, Reader, read_all_data};
    use flowstone_lang::value::{PrintOptions, Unforced, print_value};
    let cases = read_all_data(include_str!("clojure.edn")).unwrap();
    for case in cases.chunks(2) {
        let (text, expected) = (case[0].as_str().unwrap(), case[1].as_str().unwrap());
        let mut reader = Reader::new(text, ReadOptions::code(super::SOURCE));
        let form = reader
            .next(&mut super::Fixture::default())
            .unwrap()
            .unwrap();
        let mut shown = String::new();
        print_value(&mut shown, &mut Unforced, &form, PrintOptions::READABLE).unwrap();
        assert_eq!(shown, expected, "{text}");
    }
}
