//! The special forms, one file for each group; they include forms that are macros in Clojure but compiled directly here
//! (`case`, `and`, `or`).

mod bind;
mod branch;
mod define;
pub(super) mod fields;
mod function;
mod interop;
mod name;
mod throw;

use super::analyze::Analyzer;
use super::node::Node;
use super::{error, fail};
use crate::value::{Result, Symbol, Value, Var};

/// Analyses a special form: the form, and its items with the name first.
pub(super) type Special = fn(&mut Analyzer<'_>, &Value, &[Value]) -> Result<Node>;

/// The special forms, sorted by name.
const FORMS: &[(&str, Special)] = &[
    (".", interop::member),
    ("and", branch::and),
    ("case", branch::case),
    ("catch", throw::stray_catch),
    ("def", define::def),
    ("do", branch::do_),
    ("fields*", fields::fields),
    ("finally", throw::stray_catch),
    ("fn*", function::fn_),
    ("if", branch::if_),
    ("let*", bind::let_),
    ("letfn*", bind::letfn),
    ("loop*", bind::loop_),
    ("new", interop::new),
    ("or", branch::or),
    ("quote", name::quote),
    ("recur", bind::recur),
    ("set!", define::set),
    ("throw", throw::throw),
    ("try", throw::try_),
    ("var", name::var),
];

/// The special forms that are visible as macros of `clojure.core`.
pub(super) const MACROS: &[&str] = &["and", "case", "or"];

/// Returns the special form of a name, also when written with `clojure.core/`.
pub(super) fn find(symbol: Symbol) -> Option<Special> {
    let parts = symbol.parts();
    let name = match parts.namespace.as_deref() {
        None => &*parts.name,
        Some("clojure.core") if MACROS.contains(&&*parts.name) => &*parts.name,
        Some(_) => return None,
    };
    let at = FORMS.binary_search_by_key(&name, |form| form.0).ok()?;
    Some(FORMS[at].1)
}

/// Returns the special form that a macro of the core is compiled to directly.
pub(super) fn of_macro(var: &Var) -> Option<Special> {
    let is_core = var.namespace.is("clojure.core");
    let name = var.name.name();
    (is_core && MACROS.contains(&&*name)).then(|| find(var.name))?
}

/// Returns all names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|form| form.0)
}

/// Rejects a form with a wrong number of items.
fn expect_items(
    cx: &Analyzer<'_>,
    items: &[Value],
    min: usize,
    max: usize,
    usage: &str,
) -> Result<()> {
    if (min..=max).contains(&items.len()) {
        return Ok(());
    }
    let few = items.len() < min;
    let (problem, clojure) = if few {
        ("too few", "Too few")
    } else {
        ("too many", "Too many")
    };
    let name = items[0].as_symbol();
    let name = name.map_or_else(String::new, |name| name.to_string());
    Err(
        error("E0209", cx.place, format!("{problem} forms in `{name}`"))
            .clojure(format!("{clojure} arguments to {name}"))
            .hint(format!("it is written {usage}"))
            .into(),
    )
}

/// Returns an item of a form that must be a plain symbol.
fn plain_name(
    cx: &Analyzer<'_>,
    (parent, idx): (&Value, usize),
    form: &Value,
    what: &str,
) -> Result<Symbol> {
    let place = form.span().or(parent.item_span(idx)).or(cx.place);
    match form.as_symbol() {
        Some(symbol) if symbol.namespace().is_none() => Ok(symbol),
        Some(symbol) => fail(
            "E0212",
            place,
            format!("{what} cannot have a namespace: `{symbol}`"),
        ),
        None => fail(
            "E0212",
            place,
            format!("{what} must be a symbol, and this is {}", form.kind()),
        ),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_of_special_forms_is_sorted() {
        assert!(super::FORMS.is_sorted_by_key(|form| form.0));
    }
}
