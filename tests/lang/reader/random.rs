//! For any text, the reader does not panic, and every place lies within the text.

use flowstone_lang::reader::{ReadOptions, read_all_data};
use flowstone_lang::value::{PrintOptions, Unforced, Value, print_value};
use proptest::prelude::*;

use super::{SOURCE, read_all, read_code};

/// Pieces of syntax whose random combinations cause every kind of error.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "#{",
    "#(",
    "#_",
    "#'",
    "#?(",
    "#?@(",
    "#:a{",
    "#::{",
    "#\"",
    "\"",
    "\\",
    "\\a",
    "\\newline",
    "\\u12",
    "'",
    "`",
    "~",
    "~@",
    "@",
    "^",
    "#^",
    "##Inf",
    "##",
    "#inst",
    "#uuid",
    "#a/b",
    "#=",
    "#!",
    "#<",
    ";",
    "\n",
    " ",
    ",",
    "%",
    "%&",
    "%2",
    "x#",
    "a",
    "b/c",
    ":k",
    "::k",
    "::str/k",
    ":default",
    ":clj",
    "nil",
    "1",
    "-1",
    "1.5",
    "1/2",
    "0x",
    "1N",
    "2r1",
    "é",
    "😀",
    "\u{2003}",
    "\u{a0}",
    "/",
    "//",
    "a/",
    ":",
    "+",
    "-",
    "\\ud83d",
    "\\ude00",
    "\\n",
    "\\q",
    "\\8",
    "quote",
    "&",
];

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

fn check(text: &str, read: Result<Vec<Value>, flowstone_lang::reader::ReadError>) {
    if let Err(error) = read {
        let places = [Some(error.span), error.related.map(|related| related.0)];
        for span in places.into_iter().flatten() {
            let range = span.start as usize..span.end as usize;
            assert!(text.get(range).is_some(), "{text:?} {span:?}");
        }
        assert!(error.code.starts_with("E01") && !error.message.is_empty());
    }
}

proptest! {
    #[test]
    fn random_syntax_causes_no_panic(text in texts()) {
        check(&text, read_code(&text));
        check(&text, read_all(&text, ReadOptions::data(SOURCE)));
    }

    #[test]
    fn random_characters_cause_no_panic(text in "\\PC*") {
        check(&text, read_code(&text));
        check(&text, read_all_data(&text));
    }

    #[test]
    fn random_forms_are_printed_and_read_back(text in texts()) {
        if let Ok(forms) = read_all_data(&text) {
            for form in forms {
                let mut printed = String::new();
                print_value(&mut printed, &mut Unforced, &form, PrintOptions::READABLE).unwrap();
                let again = read_all_data(&printed).unwrap();
                let mut twice = String::new();
                print_value(&mut twice, &mut Unforced, &again[0], PrintOptions::READABLE).unwrap();
                prop_assert_eq!(printed, twice);
            }
        }
    }
}
