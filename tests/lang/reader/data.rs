//! Data: strict EDN.

use flowstone_lang::reader::{read_all_data, read_data};

use super::show::{show, show_all};

fn check(text: &str, expected: &str) {
    let shown = match read_data(text) {
        Ok(form) => show(&form),
        Err(error) => {
            let (start, end) = (error.span.start as usize, error.span.end as usize);
            format!("{} `{}` {}", error.code, &text[start..end], error.message)
        }
    };
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn forms() {
    check(
        "{:a [1 2.5 \"s\" \\c sym #{:x}] \"k\" (nil true)}",
        "{:a [1 2.5f \"s\" 'c' sym #{:x}], \"k\" (nil true)}",
    );
    check("#my/tag {:a 1}", "#my/tag {:a 1}");
    check("#inst \"1970\" ", "#inst<0>");
    check(" ; comment\n 1 ; more", "1");
    check("#_ a #:n{:k #_ 0 1}", "{:n/k 1}");
    check("^:k []", "^{:k true} []");
}

#[test]
fn data_has_no_places() {
    let form = read_data("[a (b) {c d} #{e}]").unwrap();
    assert!(form.place().is_none());
    assert!(
        form.as_vector()
            .unwrap()
            .iter()
            .all(|item| item.place().is_none())
    );
}

#[test]
fn code_is_refused() {
    check(
        "'a",
        "E0124 `'` `'` (quote) is syntax of code, and this text is data",
    );
    check(
        "[`a]",
        "E0124 ```` `` ` `` (syntax-quote) is syntax of code, and this text is data"
            .replace("````", "```")
            .as_str(),
    );
    check(
        "~a",
        "E0124 `~` `~` (unquote) is syntax of code, and this text is data",
    );
    check(
        "@a",
        "E0124 `@` `@` (deref) is syntax of code, and this text is data",
    );
    check(
        "#(a)",
        "E0124 `#(` `#()` (function) is syntax of code, and this text is data",
    );
    check(
        "#'a",
        "E0124 `#'` `#'` (var) is syntax of code, and this text is data",
    );
    check(
        "#\"a\"",
        "E0124 `#\"` `#\"\"` (regex) is syntax of code, and this text is data",
    );
    check(
        "#?(:clj 1)",
        "E0124 `#?` `#?` (reader conditional) is syntax of code, and this text is data",
    );
    check(
        "::a",
        "E0124 `::a` `::` (the current namespace) is syntax of code, and this text is data",
    );
    check(
        "#::{:a 1}",
        "E0124 `#::` `#::` (the current namespace) is syntax of code, and this text is data",
    );
    check(
        "#=(+ 1 2)",
        "E0113 `#=` `#=` would run code while reading, which is not done here",
    );
}

#[test]
fn a_text_of_data_holds_exactly_one_form() {
    check("", "E0126 `` the text holds no form");
    check("; nothing", "E0126 `` the text holds no form");
    check("1 2", "E0126 `2` the text continues after its form");
    check("[1] ]", "E0102 `]` `]` closes nothing");
    assert_eq!(show_all(&read_all_data("1 [2] :c").unwrap()), "1 [2] :c");
}

#[test]
fn errors_in_data_have_places() {
    check("[1 {:a}]", "E0109 `:a` the key `:a` has no value");
    check(
        "[1 {:a 1 :b 2 :a 3}]",
        "E0110 `:a` the key `:a` occurs twice in this map",
    );
    check("#{1 2 1}", "E0111 `1` `1` occurs twice in this set");
    check(
        "[#inst \"x\"]",
        "E0119 `#inst \"x\"` the form after `#inst` cannot be read: a timestamp looks like `2026-01-31T12:30:00.000Z`",
    );
}

/// Compares with edn-rs on flat data only, because it reads keywords as map keys, nesting and escapes incorrectly.
#[test]
fn agrees_with_another_reader_on_simple_data() {
    for text in [
        "[1 -2 30000000000 4.5 -0.25 true false nil]",
        "[:a :b/c sym ns/sym \"text\" \"two words\"]",
        "(1 (2 (3 [4 [5]])))",
        "[[] () [[]] #{1}]",
        "[\"\" \"é😀\" \\a]",
    ] {
        let theirs: edn_rs::Edn = text.parse().unwrap();
        let ours = read_data(text).unwrap();
        assert_eq!(edn_show(&theirs), edn_like(&ours), "{text}");
    }
}

fn edn_show(edn: &edn_rs::Edn) -> String {
    use edn_rs::Edn;
    let all = |items: &[Edn]| items.iter().map(edn_show).collect::<Vec<_>>().join(" ");
    match edn {
        Edn::Vector(items) => format!("[{}]", all(&items.clone().to_vec())),
        Edn::List(items) => format!("({})", all(&items.clone().to_vec())),
        other => other.to_string(),
    }
}

fn edn_like(value: &flowstone_lang::value::Value) -> String {
    use flowstone_lang::value::Value;
    match value {
        Value::Vector(items) => {
            let items: Vec<String> = items.iter().map(edn_like).collect();
            format!("[{}]", items.join(" "))
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(edn_like).collect();
            format!("({})", items.join(" "))
        }
        Value::Float(float) => float.to_string(),
        Value::Char(char) => format!("\\{char}"),
        other => show(other),
    }
}
