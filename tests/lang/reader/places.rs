//! The places of forms.

use flowstone_lang::value::{Span, Value};

use super::read_code;

fn slice(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

/// Reads one form and returns its text and those of its items.
fn check(text: &str, expected: &[&str]) {
    let form = read_code(text).unwrap().remove(0);
    let place = form.place().unwrap();
    let found: Vec<&str> = std::iter::once(place.span)
        .chain(place.items.iter().copied())
        .map(|span| slice(text, span))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn forms_and_their_items_have_places() {
    check("  abc ", &["abc"]);
    check(
        " (a 1 \"s\" [b])",
        &["(a 1 \"s\" [b])", "a", "1", "\"s\"", "[b]"],
    );
    check("[1,nil :k]", &["[1,nil :k]", "1", "nil", ":k"]);
    check("{:a 1 :b 2}", &["{:a 1 :b 2}", ":a", "1", ":b", "2"]);
    check("#{1 2}", &["#{1 2}", "1", "2"]);
    check("()", &["()"]);
    check("'abc", &["'abc", "'", "abc"]);
    check("@abc", &["@abc", "@", "abc"]);
    check("#'abc", &["#'abc", "#'", "abc"]);
    check("#(f %)", &["#(f %)", "#(", "#(", "(f %)"]);
    check(
        "(#_x ^:k y #?(:default z))",
        &["(#_x ^:k y #?(:default z))", "y", "z"],
    );
    check(
        "[#?@(:default [p q])]",
        &["[#?@(:default [p q])]", "p", "q"],
    );
    check("^:k abc", &["abc"]);
    check("(é b)", &["(é b)", "é", "b"]);
    check("#:n{:a 1}", &["#:n{:a 1}", ":a", "1"]);
}

#[test]
fn items_of_large_maps_and_sets_follow_their_order() {
    let text = "{k0 0 k1 1 k2 2 k3 3 k4 4 k5 5 k6 6 k7 7 k8 8 k9 9}";
    let form = read_code(text).unwrap().remove(0);
    let Value::Map(map) = &form else { panic!() };
    let items = &form.place().unwrap().items;
    assert_eq!(items.len(), 20);
    for ((key, value), spans) in map.iter().zip(items.chunks(2)) {
        assert_eq!(key.as_symbol().unwrap().to_string(), slice(text, spans[0]));
        assert_eq!(value.as_int().unwrap().to_string(), slice(text, spans[1]));
    }
    let text = "#{10 11 12 13 14 15 16 17 18 19}";
    let form = read_code(text).unwrap().remove(0);
    let Value::Set(set) = &form else { panic!() };
    for (item, span) in set.iter().zip(form.place().unwrap().items.iter()) {
        assert_eq!(item.as_int().unwrap().to_string(), slice(text, *span));
    }
}

#[test]
fn quoted_symbols_of_templates_keep_their_place() {
    let text = "`(abc)";
    let form = read_code(text).unwrap().remove(0);
    assert_eq!(slice(text, form.span()), "(abc)");
    let mut at = form;
    while let Value::List(list) = &at {
        at = list.iter().last().unwrap().clone();
    }
    assert_eq!(slice(text, at.span()), "abc");
}
