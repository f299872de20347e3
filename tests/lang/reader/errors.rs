//! Every error of the reader: its code, place, message, whether more text could help, and its hint.

use expect_test::{Expect, expect};
use flowstone_lang::reader::ReadOptions;

use super::{SOURCE, read_all, read_code};

fn check(text: &str, expected: Expect) {
    let found = match read_code(text) {
        Ok(forms) => format!("read: {}", super::show::show_all(&forms)),
        Err(error) => {
            let slice = |span: flowstone_lang::value::Span| {
                let (start, end) = (span.start as usize, span.end as usize);
                format!("{start}..{end} {:?}", &text[start..end])
            };
            let mut out = format!("{} {} {}", error.code, slice(error.span), error.message);
            if error.at_end {
                out.push_str("\nmore text may follow");
            }
            if let Some((span, what)) = &error.related {
                out.push_str(&format!("\nrelated: {} {what}", slice(*span)));
            }
            for hint in &error.hints {
                out.push_str(&format!("\nhint: {hint}"));
            }
            out
        }
    };
    expected.assert_eq(&found);
}

#[test]
fn delimiters() {
    check(
        "(a [b]",
        expect![[r#"
        E0101 0..1 "(" `(` is never closed
        more text may follow
        related: 6..6 "" the text ends here, without `)`
        hint: add `)` where the form should end"#]],
    );
    check(
        "{:a #{1",
        expect![[r##"
        E0101 4..6 "#{" `#{` is never closed
        more text may follow
        related: 7..7 "" the text ends here, without `}`
        hint: add `}` where the form should end"##]],
    );
    check(
        "a)",
        expect![[r#"
        E0102 1..2 ")" `)` closes nothing
        hint: delete it, or find the form before it that ended too early with a `)` too many"#]],
    );
    check(
        "(a [b)",
        expect![[r#"
        E0103 5..6 ")" expected `]`, got `)`
        related: 3..4 "[" `[` was opened here
        hint: close the inner form with `]` first, or delete this `)`"#]],
    );
    check(
        "#(a ]",
        expect![[r##"
        E0103 4..5 "]" expected `)`, got `]`
        related: 0..2 "#(" `#(` was opened here
        hint: close the inner form with `)` first, or delete this `]`"##]],
    );
    check(
        "#:n{:a 1",
        expect![[r##"
        E0101 0..4 "#:n{" `#:n{` is never closed
        more text may follow
        related: 8..8 "" the text ends here, without `}`
        hint: add `}` where the form should end"##]],
    );
}

#[test]
fn prefixes_without_a_form() {
    check(
        "'",
        expect![[r#"
        E0116 0..1 "'" the text ends where `'` needs a form
        more text may follow
        hint: a form must follow it"#]],
    );
    check(
        "(a ')",
        expect![[r#"
        E0116 4..5 ")" `'` needs a form, got `)`
        related: 3..4 "'" `'` is here
        hint: put a form after `'`, or delete it"#]],
    );
    check(
        "[1 #_]",
        expect![[r##"
        E0116 5..6 "]" `#_` needs a form, got `]`
        related: 3..5 "#_" `#_` is here
        hint: put a form after `#_`, or delete it"##]],
    );
    check(
        "#_",
        expect![[r##"
        E0116 0..2 "#_" the text ends where `#_` needs a form
        more text may follow
        hint: put the form to leave out after `#_`, or delete `#_`"##]],
    );
    check(
        "^:k",
        expect![[r#"
        E0116 0..1 "^" the text ends where `^` needs a form
        more text may follow
        hint: metadata is written before a form: `^:private name`"#]],
    );
    check(
        "#inst",
        expect![[r##"
        E0116 0..5 "#inst" the text ends where `#inst` needs a form
        more text may follow
        hint: a form must follow it"##]],
    );
}

#[test]
fn strings() {
    check(
        "(a \"b)",
        expect![[r#"
        E0104 3..4 "\"" this string is never closed
        more text may follow
        related: 6..6 "" the text ends here, without `"`
        hint: add the closing `"`"#]],
    );
    check(
        "(a \"b) \"c\" \"",
        expect![[r#"
        E0101 0..1 "(" `(` is never closed
        more text may follow
        related: 12..12 "" the text ends here, without `)`
        hint: add `)` where the form should end"#]],
    );
    check(
        r#""a\qb""#,
        expect![[r#"
        E0105 2..4 "\\q" `\q` is not an escape of a string
        hint: the escapes are \n \t \r \b \f \\ \" \uXXXX and \ooo; a backslash itself is `\\`"#]],
    );
    check(
        r#""\u12""#,
        expect![[r#"
        E0105 1..5 "\\u12" `\u12` is not an escape of a string
        hint: `\u` needs four hexadecimal digits: `\u00e9`"#]],
    );
    check(
        r#""\ud83d""#,
        expect![[r#"
        E0105 1..7 "\\ud83d" `\ud83d` is not an escape of a string
        hint: this is half of a surrogate pair: write both halves, `\ud83d\ude00`, or the character itself"#]],
    );
    check(
        r#""\477""#,
        expect![[r#"
        E0105 1..5 "\\477" `\477` is not an escape of a string
        hint: an octal escape goes up to `\377`"#]],
    );
    check(
        r#""a\"#,
        expect![[r#"
        E0104 0..1 "\"" this string is never closed
        more text may follow
        related: 3..3 "" the text ends here, without `"`
        hint: add the closing `"`"#]],
    );
    check(
        "#\"abc",
        expect![[r##"
        E0104 0..2 "#\"" this regex is never closed
        more text may follow
        related: 5..5 "" the text ends here, without `"`
        hint: add the closing `"`"##]],
    );
}

#[test]
fn characters() {
    check(
        r"\foo",
        expect![[r#"
        E0106 0..4 "\\foo" `\foo` is not a character
        hint: a character is `\a`, `\u0041`, `\o101` or a name: \newline \space \tab \backspace \formfeed \return"#]],
    );
    check(
        r"\newlin",
        expect![[r#"
        E0106 0..7 "\\newlin" `\newlin` is not a character
        hint: did you mean `\newline`?"#]],
    );
    check(
        r"\u12",
        expect![[r#"
        E0106 0..4 "\\u12" `\u12` is not a character
        hint: a character is `\a`, `\u0041`, `\o101` or a name: \newline \space \tab \backspace \formfeed \return"#]],
    );
    check(
        r"\o477",
        expect![[r#"
        E0106 0..5 "\\o477" `\o477` is not a character
        hint: a character is `\a`, `\u0041`, `\o101` or a name: \newline \space \tab \backspace \formfeed \return"#]],
    );
    check(
        r"\ud800",
        expect![[r#"
        E0106 0..6 "\\ud800" `\ud800` is not a character
        hint: a character is `\a`, `\u0041`, `\o101` or a name: \newline \space \tab \backspace \formfeed \return"#]],
    );
    check(
        r"\",
        expect![[r#"
        E0106 0..1 "\\" the text ends in a `\`
        more text may follow
        hint: a character is written `\a` or `\newline`"#]],
    );
}

#[test]
fn numbers() {
    check(
        "1a",
        expect![[r#"
        E0107 0..2 "1a" `1a` is not a number
        hint: a name cannot start with a digit; numbers look like `12`, `-1.5e3`, `1/3`, `0xFF`, `12N`, `1.5M`"#]],
    );
    check(
        "08",
        expect![[r#"
        E0107 0..2 "08" `08` is not a number
        hint: a number that starts with 0 is octal, which has no digits 8 and 9"#]],
    );
    check(
        "1.2.3",
        expect![[r#"
        E0107 0..5 "1.2.3" `1.2.3` is not a number
        hint: a name cannot start with a digit; numbers look like `12`, `-1.5e3`, `1/3`, `0xFF`, `12N`, `1.5M`"#]],
    );
    check(
        "+1x",
        expect![[r#"
        E0107 0..3 "+1x" `+1x` is not a number
        hint: a name cannot start with a digit; numbers look like `12`, `-1.5e3`, `1/3`, `0xFF`, `12N`, `1.5M`"#]],
    );
    check(
        "##Foo",
        expect![[r###"
        E0125 0..5 "##Foo" `##Foo` is not a number
        hint: there are `##Inf`, `##-Inf` and `##NaN`"###]],
    );
}

#[test]
fn names() {
    check(
        ":",
        expect![[r#"
        E0108 0..1 ":" `:` is not a keyword
        hint: a name must follow the colon directly: `:name`"#]],
    );
    check(
        "::",
        expect![[r#"
        E0108 0..2 "::" `::` is not a keyword
        hint: a name must follow the colon directly: `:name`"#]],
    );
    check(
        ":a/",
        expect![[r#"
        E0108 0..3 ":a/" `:a/` is not a keyword
        hint: a name must follow the slash: `:namespace/name`"#]],
    );
    check(
        "a/",
        expect![[r#"
        E0108 0..2 "a/" `a/` is not a symbol
        hint: a name must follow the slash: `namespace/name`"#]],
    );
    check(
        "/a",
        expect![[r#"
        E0108 0..2 "/a" `/a` is not a symbol
        hint: a name must come before the slash: `namespace/name`"#]],
    );
    check(
        "a:",
        expect![[r#"
        E0108 0..2 "a:" `a:` is not a symbol
        hint: a keyword has its colon in front: `:a`"#]],
    );
    check(
        "a::b",
        expect![[r#"
        E0108 0..4 "a::b" `a::b` is not a symbol
        hint: a symbol is `name` or `namespace/name`"#]],
    );
    check(
        "::nope/a",
        expect![[r#"
        E0120 2..6 "nope" no namespace has the alias `nope` here
        hint: add `[some.namespace :as nope]` to `:require`, or write the whole namespace: `:some.namespace/name`"#]],
    );
    check(
        "a/1b",
        expect![[r#"
        E0108 0..4 "a/1b" `a/1b` is not a symbol
        hint: a symbol is `name` or `namespace/name`"#]],
    );
}

#[test]
fn collections() {
    check(
        "{:a}",
        expect![[r#"
            E0109 1..3 ":a" the key `:a` has no value
            related: 0..1 "{" the map starts here
            hint: a map holds keys and values in turn: `{:key value}`"#]],
    );
    check(
        "{:a 1 :b}",
        expect![[r#"
            E0109 6..8 ":b" the key `:b` has no value
            related: 0..1 "{" the map starts here
            hint: a map holds keys and values in turn: count the forms, one is missing"#]],
    );
    check(
        "{:a 1 :b 2 :a 3}",
        expect![[r#"
            E0110 11..13 ":a" the key `:a` occurs twice in this map
            related: 1..3 ":a" it is here first
            hint: keep the intended entry and delete the other"#]],
    );
    check(
        "{1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9 3 0}",
        expect![[r#"
            E0110 37..38 "3" the key `3` occurs twice in this map
            related: 9..10 "3" it is here first
            hint: keep the intended entry and delete the other"#]],
    );
    check(
        "#{a b a}",
        expect![[r#"
            E0111 6..7 "a" `a` occurs twice in this set
            related: 2..3 "a" it is here first
            hint: a set holds each item once: delete one of the two"#]],
    );
    check(
        "#:n{:a 1 :n/a 2}",
        expect![[r#"
            E0110 9..13 ":n/a" the key `:n/a` occurs twice in this map
            related: 4..6 ":a" it is here first
            hint: keep the intended entry and delete the other"#]],
    );
    check(
        "#:{:a 1}",
        expect![[r##"
        E0121 0..2 "#:" `#:` needs a namespace and a map
        hint: write `#:name{:key value}`, which is `{:name/key value}`"##]],
    );
    check(
        "#:n[1]",
        expect![[r##"
        E0121 0..3 "#:n" `#:` needs a namespace and a map
        hint: write `#:name{:key value}`, which is `{:name/key value}`"##]],
    );
    check(
        "#::nope{:a 1}",
        expect![[r#"
        E0120 3..7 "nope" no namespace has the alias `nope` here
        hint: add `[some.namespace :as nope]` to `:require`, or write the whole namespace: `:some.namespace/name`"#]],
    );
}

#[test]
fn metadata() {
    check(
        "^1 a",
        expect![[r#"
            E0117 1..2 "1" `1` (an integer) cannot be metadata
            hint: metadata is a map, or `^:key`, `^Tag`, `^"Tag"`"#]],
    );
    check(
        "^:k 1",
        expect![[r#"
            E0117 4..5 "1" `1` (an integer) cannot carry metadata
            hint: metadata goes on symbols, lists, vectors, maps and sets"#]],
    );
    check(
        "^:k \"s\"",
        expect![[r#"
            E0117 4..7 "\"s\"" `"s"` (a string) cannot carry metadata
            hint: metadata goes on symbols, lists, vectors, maps and sets"#]],
    );
}

#[test]
fn dispatch() {
    check(
        "#<a>",
        expect![[r##"
        E0112 0..4 "#<a>" `#<a>` begins nothing
        hint: this was printed for people and cannot be read back"##]],
    );
    check(
        "#",
        expect![[r##"
        E0112 0..1 "#" `#` begins nothing
        more text may follow
        hint: a `#` begins a set, a function, a regex or a tag"##]],
    );
    check(
        "(# a)",
        expect![[r##"
        E0112 1..3 "# " `# ` begins nothing
        hint: `#` begins `#{` `#(` `#"` `#'` `#_` `#?` `#:` `##` or a tag such as `#inst`"##]],
    );
    check(
        "#=(a)",
        expect![[r##"
        E0113 0..2 "#=" `#=` would run code while reading, which is not done here
        hint: put the expression where it is evaluated, without `#=`"##]],
    );
    check(
        "#1",
        expect![[r##"
        E0112 0..2 "#1" `#1` begins nothing
        hint: `#` begins `#{` `#(` `#"` `#'` `#_` `#?` `#:` `##` or a tag such as `#inst`"##]],
    );
    check(
        "#(a #(b))",
        expect![[r##"
        E0122 4..6 "#(" a `#()` cannot be inside another
        related: 0..2 "#(" the outer one starts here
        hint: write one of the two as `(fn [x] ...)`"##]],
    );
    check(
        "#(a %21)",
        expect![[r#"
        E0122 4..7 "%21" `%21` is not a parameter of `#()`
        hint: there are `%`, `%1` to `%20`, and `%&` for the rest"#]],
    );
    check(
        "#(a %x)",
        expect![[r#"
        E0122 4..6 "%x" `%x` is not a parameter of `#()`
        hint: there are `%`, `%1` to `%20`, and `%&` for the rest"#]],
    );
    check(
        "#\"a(b\"",
        expect![[r#"
            E0114 3..4 "(" this regex is wrong: this `(` is never closed
            hint: close the group with `)`, or escape the parenthesis, `\(`, to match it literally"#]],
    );
    check(
        "#\"[a\"",
        expect![[r#"
            E0114 2..3 "[" this regex is wrong: this `[` is never closed
            hint: close the class with `]`, or escape the bracket, `\[`, to match it literally; a `]` right after `[` is a member"#]],
    );
    check(
        "#\"a\\i\"",
        expect![[r#"
            E0114 3..4 "\\" this regex is wrong: `\i` means nothing
            hint: a letter needs no `\`: `i`"#]],
    );
}

#[test]
fn regexes_that_java_refuses_or_has_alone() {
    check(
        "#\"(?P<n>x)\"",
        expect![[r#"
        E0114 2..3 "(" this regex is wrong: unknown kind of group after `(?`
        hint: a named group is written `(?<name>...)`"#]],
    );
    check(
        "#\"(?#c)\"",
        expect![[r#"
        E0114 2..3 "(" this regex is wrong: unknown kind of group after `(?`
        hint: comments are written `# ...` up to the line end, under `(?x)`"#]],
    );
    check(
        "#\"a{,3}\"",
        expect![[r#"
        E0114 3..4 "{" this regex is wrong: `{` begins a repetition such as `{2}` or `{2,5}`
        hint: escape it, `\{`, to match it literally; for `{,3}` write `{0,3}`"#]],
    );
    check(
        "#\"(?<=a*b*)c\"",
        expect![[r#"
        E0114 2..3 "(" this regex is wrong: this look-behind has no obvious maximum length
        hint: repeat with an upper bound inside of it, `{0,100}` for `*`, or take the text into the match"#]],
    );
    check(
        "#\"\\N{DIGIT ONE}\"",
        expect![[r#"
        E0114 2..3 "\\" this regex is wrong: characters by name, `\N{...}`, are not supported
        hint: write the character itself, or its code: `\x{1F600}`"#]],
    );
    check(
        "#\"(?c)a\"",
        expect![[r#"
        E0114 2..3 "(" this regex is wrong: the flag `c` (canonical equivalence) is not supported
        hint: write out each form of the letter that may occur"#]],
    );
    check(
        "#\"\\p{Greek}\"",
        expect![[r#"
        E0114 2..3 "\\" this regex is wrong: there is no character property `Greek`
        hint: write a category such as `\p{L}` or `\p{Lu}`, a script `\p{IsGreek}`, a block `\p{InGreek}`, `\p{Alpha}`, `\p{IsAlphabetic}` or `\p{javaLowerCase}`"#]],
    );
    check(
        "#\"[a-\\w]\"",
        expect![[r#"
        E0114 3..4 "a" this regex is wrong: this range of characters ends before it begins
        hint: to match `-` literally, write it first, last, or as `\-`"#]],
    );
    check(
        "#\"a**\"",
        expect![[r#"
        E0114 4..5 "*" this regex is wrong: there is nothing before `*` to repeat
        hint: escape it, `\*`, to match it literally"#]],
    );
    check(
        "#\"(?<n>a)(?<n>b)\"",
        expect![[r#"
        E0114 13..14 ">" this regex is wrong: there is already a group named `n`
        hint: give each group a different name"#]],
    );
    check(
        "#\"\\k<n>\"",
        expect![[r#"
        E0114 2..3 "\\" this regex is wrong: there is no group named `n` before this place
        hint: regexes have Java's syntax; a special character is taken literally after `\`"#]],
    );
    check(
        "#\"[\\b]\"",
        expect![[r#"
        E0114 3..4 "\\" this regex is wrong: `\b` means nothing in a class `[...]`
        hint: write it outside of the class: `(?:[...]|\b)`"#]],
    );
    check(
        "#\"x)\"",
        expect![[r#"
        E0114 3..4 ")" this regex is wrong: this `)` has no opening `(`
        hint: escape it, `\)`, to match it literally"#]],
    );
}

#[test]
fn tags() {
    check(
        "#unknown 1",
        expect![[r##"
        E0119 0..10 "#unknown 1" no reader is known for `#unknown`
        hint: bind `*data-readers*`; `clojure.edn/read-string` takes :readers and :default"##]],
    );
    check(
        "#isnt \"2020\"",
        expect![[r##"
        E0119 0..12 "#isnt \"2020\"" no reader is known for `#isnt`
        hint: did you mean `#inst`?"##]],
    );
    check(
        "#never 1",
        expect![[
            r##"E0119 0..8 "#never 1" the form after `#never` cannot be read: it never can"##
        ]],
    );
    check(
        "#inst 1",
        expect![[
            r##"E0119 0..7 "#inst 1" the form after `#inst` cannot be read: it needs a string, not an integer"##
        ]],
    );
    check(
        "#inst \"2023-02-29\"",
        expect![[
            r##"E0119 0..18 "#inst \"2023-02-29\"" the form after `#inst` cannot be read: day 29 is not between 1 and 28"##
        ]],
    );
    check(
        "#uuid \"1-2\"",
        expect![[
            r##"E0119 0..11 "#uuid \"1-2\"" the form after `#uuid` cannot be read: a uuid has the form 8-4-4-4-12 hexadecimal digits"##
        ]],
    );
}

#[test]
fn conditionals() {
    check(
        "#?a",
        expect![[r##"
        E0118 0..2 "#?" a reader conditional needs a list
        hint: write `#?(:flowstone form :default form)`"##]],
    );
    check(
        "#?(:clj)",
        expect![[r##"
        E0118 0..8 "#?(:clj)" the last feature of this reader conditional has no form
        hint: features and forms alternate: `#?(:flowstone form :default form)`"##]],
    );
    check(
        "#?(clj 1)",
        expect![[r#"
            E0118 3..6 "clj" `clj` is not a feature: features are keywords
            hint: features and forms alternate: `#?(:flowstone form :default form)`"#]],
    );
    check(
        "#?@(:default [1])",
        expect![[r##"
        E0118 0..3 "#?@" `#?@` needs a form around it that can take several items
        hint: use `#?` here, with one form for each feature"##]],
    );
    check(
        "[#?@(:default 1)]",
        expect![[r#"
        E0118 14..15 "1" `#?@` needs a list or vector, got an integer
        hint: put the items into brackets: `#?@(:flowstone [a b])`"#]],
    );
    check(
        "#?(:clj",
        expect![[r##"
        E0101 0..3 "#?(" `#?(` is never closed
        more text may follow
        related: 7..7 "" the text ends here, without `)`
        hint: add `)` where the form should end"##]],
    );
}

#[test]
fn templates() {
    check(
        "`~@a",
        expect![[r#"
        E0123 1..4 "~@a" `~@` has no collection around it to splice into
        hint: use `~` for a single form, or put `~@` inside a list, vector, map or set"#]],
    );
    check(
        "`",
        expect![[r#"
        E0116 0..1 "`" the text ends where ``` needs a form
        more text may follow
        hint: a form must follow it"#]],
    );
}

#[test]
fn deep_nesting_is_an_error_with_a_place() {
    for (open, close) in [
        ("[", "]"),
        ("(", ")"),
        ("{", "}"),
        ("#{", "}"),
        ("'", ""),
        ("#_", ""),
    ] {
        let text = format!("{}{}", open.repeat(200_000), close.repeat(200_000));
        let error = read_code(&text).unwrap_err();
        assert_eq!(error.code, "E0115", "{open}");
        assert_eq!(error.span.start as usize, 10_000 * open.len(), "{open}");
    }
    let mut options = ReadOptions::data(SOURCE);
    options.max_depth = 3;
    assert!(read_all("[[[]]]", options).is_ok());
    assert_eq!(read_all("[[[[]]]]", options).unwrap_err().code, "E0115");
}

#[test]
fn after_an_error_nothing_more_is_read() {
    use flowstone_lang::reader::{NoContext, Reader};
    let mut reader = Reader::new("(1 ] 2", ReadOptions::code(SOURCE));
    let mut cx = NoContext::default();
    assert!(reader.next(&mut cx).is_err());
    assert!(reader.next(&mut cx).unwrap().is_none());
}
