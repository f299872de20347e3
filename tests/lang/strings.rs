//! The natives for text, names, regexes, formats, printing and reading. Expected values are those of Clojure 1.11 on
//! the JVM, except for positions in strings with characters beyond the basic plane.

use super::calls::call;

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(call(text), *expected, "{text}");
    }
}

#[test]
fn str_and_subs() {
    check(&[
        ("(str)", r#""""#),
        ("(str nil)", r#""""#),
        (
            r#"(str "a" 1 :b nil \c 'd 1.5 2N 1.0M)"#,
            r#""a1:bcd1.521.0""#,
        ),
        (r#"(str ["a" \b nil])"#, r#""[\"a\" \\b nil]""#),
        ("(str ##Inf [##Inf])", r#""Infinity[##Inf]""#),
        (r#"(subs "héllo" 1 3)"#, r#""él""#),
        (r#"(subs "hello" 5)"#, r#""""#),
        (
            r#"(subs "hello" 6)"#,
            "E0381 there is no position 6 in a string of 5 characters",
        ),
        (
            r#"(subs "hello" -1)"#,
            "E0381 there is no position -1 in a string of 5 characters",
        ),
        (
            r#"(subs "hello" 3 2)"#,
            "E0381 the end 2 lies before the start 3",
        ),
        (
            "(subs nil 1)",
            "E0301 subs needs a string, got nil as argument 1",
        ),
        (
            r#"(subs "a" :b)"#,
            "E0301 subs needs an integer, got :b (a keyword) as argument 2",
        ),
    ]);
}

#[test]
fn names() {
    check(&[
        ("(name :a/b)", r#""b""#),
        ("(name 'a)", r#""a""#),
        (r#"(name "x")"#, r#""x""#),
        (
            "(name 1)",
            "E0301 name needs a keyword, symbol or string, got 1 (an integer) as argument 1",
        ),
        ("(namespace :a.b/c)", r#""a.b""#),
        ("(namespace 'c)", "nil"),
        (r#"(keyword "a" "b")"#, ":a/b"),
        (r#"(keyword nil "b")"#, ":b"),
        ("(keyword 1)", "nil"),
        (r#"(symbol "a/b")"#, "a/b"),
        ("(symbol :a)", "a"),
        ("(qualified-keyword? :a/b)", "true"),
        ("(simple-symbol? 'a)", "true"),
        ("(simple-symbol? :a)", "false"),
        ("(ident? 1)", "false"),
    ]);
}

#[test]
fn formats() {
    check(&[
        (
            r#"(format "%s %s %s" nil :a [1 "b"])"#,
            r#""null :a [1 \"b\"]""#,
        ),
        (
            r#"(format "%5s|%-5s|%.2s" "ab" "cd" "efg")"#,
            r#""   ab|cd   |ef""#,
        ),
        (
            r#"(format "%d %5d %-5d| %05d %+d % d" 1 -2 3 -4 5 6)"#,
            r#""1    -2 3    | -0004 +5  6""#,
        ),
        (
            r#"(format "%,d %(d %,d" 1234567 -5 -123)"#,
            r#""1,234,567 (5) -123""#,
        ),
        (
            r#"(format "%x %X %#x %o %x" 255 255 255 8 -1)"#,
            r#""ff FF 0xff 10 ffffffffffffffff""#,
        ),
        (
            r#"(format "%f %.2f %.0f %8.3f|%-8.1f|" 1.5 2.345 2.5 3.14159 1.25)"#,
            r#""1.500000 2.35 3    3.142|1.3     |""#,
        ),
        (
            r#"(format "%.2f %.1f %.3f" 0.125 0.15 1e10)"#,
            r#""0.13 0.2 10000000000.000""#,
        ),
        (
            r#"(format "%e %.2e %E" 12345.678 0.00012 0.0)"#,
            r#""1.234568e+04 1.20e-04 0.000000E+00""#,
        ),
        (
            r#"(format "%g %g %.3g" 0.0001 123456.789 1234567.0)"#,
            r#""0.000100000 123457 1.23e+06""#,
        ),
        (
            r#"(format "%f %5.1f %f" ##Inf ##NaN ##-Inf)"#,
            r#""Infinity   NaN -Infinity""#,
        ),
        (
            r#"(format "%b %b %B %c %c %%|%5%|%n" nil 1 true \a 66)"#,
            r#""false true TRUE a B %|    %|\n""#,
        ),
        (r#"(format "%2$s %1$s %<s %s" "a" "b")"#, r#""b a a a""#),
        (r#"(format "%,.2f" 1234567.891)"#, r#""1,234,567.89""#),
        (r#"(format "%.3f %s" 1.0005M 1.0005M)"#, r#""1.001 1.0005""#),
        (r#"(format "%S" "abc")"#, r#""ABC""#),
        (
            r#"(format "%d" 1.5)"#,
            "E0382 `%d` needs an integer, got 1.5 (a double)",
        ),
        (
            r#"(format "%f" 1)"#,
            "E0382 `%f` needs a double or decimal, got 1 (an integer)",
        ),
        (
            r#"(format "%d")"#,
            "E0382 `%d` is directive 1, but there are only 0 values",
        ),
        (r#"(format "%q" 1)"#, "E0382 `%q` is not a directive"),
        (
            r#"(format "100%")"#,
            "E0382 the directive `%` is not complete",
        ),
        (
            r#"(format "%-d" 1)"#,
            "E0382 `%-d` needs a width after its flag",
        ),
        (
            r#"(format :a)"#,
            "E0301 format needs a string, got :a (a keyword) as argument 1",
        ),
    ]);
}

#[test]
fn regexes() {
    check(&[
        (r##"(re-find #"\d+" "a12b3")"##, r#""12""#),
        (
            r##"(re-find #"(\w)(x)?(\d)" "-a1")"##,
            r#"["a1" "a" nil "1"]"#,
        ),
        (r##"(re-find #"z" "abc")"##, "nil"),
        (r##"(re-matches #"a|ab" "ab")"##, r#""ab""#),
        (r##"(re-matches #"a" "ab")"##, "nil"),
        (r##"(re-seq #"a*" "baab")"##, r#"("" "aa" "" "")"#),
        (
            r##"(re-seq #"(.)(\d)" "a1b2")"##,
            r#"(["a1" "a" "1"] ["b2" "b" "2"])"#,
        ),
        (r##"(re-seq #"z" "a")"##, "nil"),
        (r##"(re-find #"(?<=a)b(?=c)" "bab abc")"##, r#""b""#),
        (r##"(re-find #"(.)\1" "abccd")"##, r#"["cc" "c"]"#),
        (r##"(re-find #"(?i)HELLO" "say hello")"##, r#""hello""#),
        (r##"(re-seq #"^\w+$" "a\nb\n")"##, "nil"),
        (r##"(re-seq #"(?m)^\w+$" "a\nb\n")"##, r#"("a" "b")"#),
        (r##"(re-find #"b$" "ab\n")"##, r#""b""#),
        (r##"(re-find #"\Qa.b\E+" "xa.bb")"##, r#""a.bb""#),
        (r##"(re-find #"[\w&&[^a]]+" "aabc")"##, r#""bc""#),
        (r##"(re-find #"\p{Alpha}+\p{Punct}" "ab!")"##, r#""ab!""#),
        (r##"(re-find #"\p{Lu}" "aÉ")"##, r#""É""#),
        (r##"(re-find #"\d" "٣")"##, "nil"),
        (r##"(re-find #"[^\s,]+" " ,ab ")"##, r#""ab""#),
        (r##"(re-find #"\u0041\x42\t?" "AB")"##, r#""AB""#),
        (r##"(re-find #"a{2,3}+b" "aaab")"##, r#""aaab""#),
        (r##"(re-find #"[\[\]-]+" "a[-]b")"##, r#""[-]""#),
        (r##"(re-find #"\"x\"" "a\"x\"")"##, r#""\"x\"""#),
        (r##"(re-find #"\/\-\ \#" "/- #")"##, r#""/- #""#),
        (
            r#"(re-find "a" "a")"#,
            r#"E0301 re-find needs a regex, got "a" (a string) as argument 1"#,
        ),
        (
            r##"(re-find #"a" nil)"##,
            "E0301 re-find needs a string, got nil as argument 2",
        ),
        (r#"(re-find (re-pattern "b+") "abb")"#, r#""bb""#),
        (
            r#"(re-pattern "a(")"#,
            "E0384 the regex `a(` is wrong: this `(` is never closed, at `(`",
        ),
        (
            r##"(re-matches #"(?:(x+)x)+\1y" "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")"##,
            "E0383 the regex took more than 5000000 steps",
        ),
        (
            r#"(let [nested (fn [n open close] (str (apply str (repeat n open)) "a" (apply str (repeat n close))))]
                 [(count (re-find (re-pattern (nested 190 "(" ")*")) "aa"))
                  (re-find (re-pattern (nested 190 "(?=" ")")) "aa")
                  (re-find (re-pattern (nested 190 "[" "]")) "aa")])"#,
            r#"[191 "" "a"]"#,
        ),
        (
            r#"(try (re-pattern (apply str (repeat 250 "(")))
                 (catch java.util.regex.PatternSyntaxException e
                   (clojure.string/includes? (ex-message e) "more than 200 groups")))"#,
            "true",
        ),
        (
            r##"(re-groups (re-matcher #"a" "a"))"##,
            "E0380 the matcher has no match",
        ),
    ]);
}

#[test]
fn splitting_and_joining() {
    check(&[
        (
            r#"(clojure.string/join ", " [1 :a "b" nil])"#,
            r#""1, :a, b, ""#,
        ),
        (r#"(clojure.string/join nil)"#, r#""""#),
        (r#"(clojure.string/join \- "abc")"#, r#""a-b-c""#),
        (
            r##"(clojure.string/split "a,b,,c,," #",")"##,
            r#"["a" "b" "" "c"]"#,
        ),
        (
            r##"(clojure.string/split "a,b,,c,," #"," -1)"##,
            r#"["a" "b" "" "c" "" ""]"#,
        ),
        (
            r##"(clojure.string/split "a,b,c" #"," 2)"##,
            r#"["a" "b,c"]"#,
        ),
        (r##"(clojure.string/split "" #",")"##, r#"[""]"#),
        (r##"(clojure.string/split ",," #",")"##, "[]"),
        (r##"(clojure.string/split "abc" #"")"##, r#"["a" "b" "c"]"#),
        (r##"(clojure.string/split ",a" #",")"##, r#"["" "a"]"#),
        (
            r##"(clojure.string/split "a1b22c" #"\d+")"##,
            r#"["a" "b" "c"]"#,
        ),
        (
            r#"(clojure.string/split "a,b" ",")"#,
            r#"E0301 split needs a regex, got "," (a string) as argument 2"#,
        ),
        (
            r#"(clojure.string/split-lines "a\r\nb\n\nc\n\n")"#,
            r#"["a" "b" "" "c"]"#,
        ),
        (r#"(clojure.string/split-lines "")"#, r#"[""]"#),
    ]);
}

#[test]
fn replacing() {
    check(&[
        (r#"(clojure.string/replace "a-b-c" "-" "+")"#, r#""a+b+c""#),
        (r#"(clojure.string/replace "aab" \a \x)"#, r#""xxb""#),
        (
            r##"(clojure.string/replace "x1y2" #"(\w)(\d)" "$2$1")"##,
            r#""1x2y""#,
        ),
        (
            r##"(clojure.string/replace "abc" #"" "-")"##,
            r#""-a-b-c-""#,
        ),
        (
            r##"(clojure.string/replace "abc" #"b" clojure.string/upper-case)"##,
            r#""aBc""#,
        ),
        (r##"(clojure.string/replace "a" #"a" "\\$1")"##, r#""$1""#),
        (
            r##"(clojure.string/replace "ab" #"(?<x>a)" "<${x}>")"##,
            r#""<a>b""#,
        ),
        (
            r##"(clojure.string/replace "ab" #"(a)" "$12")"##,
            r#""a2b""#,
        ),
        (
            r##"(clojure.string/replace "a" #"a" "$1")"##,
            "E0386 there is no group 1: the regex has 0",
        ),
        (
            r##"(clojure.string/replace "a" #"a" clojure.string/blank?)"##,
            "E0301 the replacing function must return a string, got false (a boolean)",
        ),
        (
            r#"(clojure.string/replace "a" "a" \b)"#,
            r"E0301 replace needs a string, because the match is a string, got \b (a character) as argument 3",
        ),
        (
            r#"(clojure.string/replace-first "a-b-c" "-" "+")"#,
            r#""a+b-c""#,
        ),
        (
            r##"(clojure.string/replace-first "a1b2" #"\d" "<$0>")"##,
            r#""a<1>b2""#,
        ),
        (
            r#"(clojure.string/re-quote-replacement "$1\\")"#,
            r#""\\$1\\\\""#,
        ),
    ]);
}

#[test]
fn cases_trimming_and_searching() {
    check(&[
        (r#"(clojure.string/upper-case "aß")"#, r#""ASS""#),
        (
            r#"(clojure.string/capitalize "hELLO wORLD")"#,
            r#""Hello world""#,
        ),
        (r#"(clojure.string/capitalize "")"#, r#""""#),
        (r#"(clojure.string/trim " \t a b \n")"#, r#""a b""#),
        ("(clojure.string/trim \"\u{a0}a\u{2003}\")", "\"\u{a0}a\""),
        (r#"(clojure.string/triml " a ")"#, r#""a ""#),
        (r#"(clojure.string/trimr " a ")"#, r#"" a""#),
        (r#"(clojure.string/trim-newline "a\n\r\n")"#, r#""a""#),
        (r#"(clojure.string/blank? " \n")"#, "true"),
        (r#"(clojure.string/blank? nil)"#, "true"),
        (r#"(clojure.string/blank? "x")"#, "false"),
        (r#"(clojure.string/index-of "héllo" "l")"#, "2"),
        (r#"(clojure.string/index-of "abcabc" \c 3)"#, "5"),
        (r#"(clojure.string/index-of "abc" "c" 9)"#, "nil"),
        (r#"(clojure.string/last-index-of "abcabc" "c")"#, "5"),
        (r#"(clojure.string/last-index-of "abcabc" \c 4)"#, "2"),
        (r#"(clojure.string/last-index-of "abc" "z")"#, "nil"),
        (r#"(clojure.string/reverse "añb")"#, r#""bña""#),
        (
            r#"(clojure.string/escape "a<b>" {\< "&lt;" \> 1})"#,
            r#""a&lt;b1""#,
        ),
        (r#"(clojure.string/starts-with? "abc" "")"#, "true"),
        (r#"(clojure.string/ends-with? "abc" "bc")"#, "true"),
        (r#"(clojure.string/includes? "abc" "x")"#, "false"),
        (
            r#"(clojure.string/upper-case nil)"#,
            "E0301 upper-case needs a string, got nil as argument 1",
        ),
    ]);
}

#[test]
fn printing() {
    check(&[
        (r#"(pr-str "a" [\b nil])"#, r#""\"a\" [\\b nil]""#),
        (r#"(print-str "a" [\b "c" nil])"#, r#""a [b c nil]""#),
        (r#"(prn-str "a")"#, r#""\"a\"\n""#),
        (r#"(println-str "a" 1)"#, r#""a 1\n""#),
        (
            "(with-out-str (newline) (print 1 \\a) (prn \"s\"))",
            r#""\n1 a\"s\"\n""#,
        ),
        (
            "[(with-out-str (print (with-out-str (print 1)) 2)) 3]",
            r#"["1 2" 3]"#,
        ),
        (
            "(with-out-str (binding [*print-length* 2 *print-level* 1] (prn [1 [2] 3])))",
            r#""[1 # ...]\n""#,
        ),
        (
            "(binding [*print-namespace-maps* true] (pr-str {:a/b 1}))",
            r##""#:a{:b 1}""##,
        ),
        (
            "(binding [*print-readably* false] (pr-str \"a\"))",
            r#""a""#,
        ),
        (
            "(try (with-out-str (throw (ex-info \"x\" {}))) (catch Exception e (with-out-str (print 2))))",
            r#""2""#,
        ),
        (
            "(binding [*out* 1] (print 2))",
            "E0385 cannot write to 1 (an integer), which is not a stream",
        ),
    ]);
}

#[test]
fn reading_data() {
    check(&[
        (
            r#"(clojure.edn/read-string "{:a [1 2.5]} x")"#,
            "{:a [1 2.5]}",
        ),
        (r#"(clojure.edn/read-string "")"#, "nil"),
        (r#"(clojure.edn/read-string nil)"#, "nil"),
        (r#"(clojure.edn/read-string {:eof :end} "; x")"#, ":end"),
        (
            r##"(clojure.edn/read-string {:default tagged-literal} "#a/b 1")"##,
            "#a/b 1",
        ),
        (
            r##"(clojure.edn/read-string {:default str} "#a/b 1")"##,
            r#""a/b1""#,
        ),
        (
            r#"(clojure.edn/read-string "'a")"#,
            "E0124 `'` (quote) is syntax of code, and this text is data",
        ),
        (
            r#"(clojure.edn/read-string {:oef 1} "")"#,
            "E0387 `:oef 1` is not an option here",
        ),
    ]);
}
