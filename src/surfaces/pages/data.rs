//! Data as lists, tables and definitions.

use flowstone_engine::json::{items, name_text};
use flowstone_engine::text::printed;
use flowstone_lang::value::Value;
use maud::{Markup, html};

use super::shown;

/// Values within values that are drawn; deeper ones are printed.
const MAX_DEPTH: usize = 6;
/// Characters of a text that are shown.
const TEXT_MAX: usize = 50_000;

/// How much of a page's data is still drawn.
#[derive(Debug)]
pub(crate) struct Budget {
    parts: usize,
    /// Whether something was left out.
    pub is_cut: bool,
}

impl Budget {
    pub(crate) fn of(parts: usize) -> Budget {
        Budget {
            parts,
            is_cut: false,
        }
    }

    /// Takes one part; false if none is left.
    pub(super) fn take(&mut self) -> bool {
        match self.parts.checked_sub(1) {
            Some(left) => {
                self.parts = left;
                true
            }
            None => {
                self.is_cut = true;
                false
            }
        }
    }

    /// Returns the beginning of a text.
    pub(super) fn text<'t>(&mut self, text: &'t str) -> &'t str {
        match text.char_indices().nth(TEXT_MAX) {
            Some((end, _)) => {
                self.is_cut = true;
                &text[..end]
            }
            None => text,
        }
    }
}

/// Returns a value as people read it.
pub(super) fn value(value: &Value, budget: &mut Budget) -> Markup {
    at_depth(value, budget, 0)
}

fn at_depth(value: &Value, budget: &mut Budget, depth: usize) -> Markup {
    if !budget.take() {
        return html! { span.muted { "…" } };
    }
    if depth > MAX_DEPTH {
        return html! { code.text { (shown(budget.text(&printed(value)))) } };
    }
    match value {
        Value::Nil => html! { span.muted { "none" } },
        Value::Text(text) => {
            let text = budget.text(text.as_str());
            match text.is_empty() {
                true => html! { span.muted { "empty text" } },
                false => html! { span.text { (shown(text)) } },
            }
        }
        Value::Map(map) if !map.is_empty() => html! {
            dl {
                @for (key, inner) in map.iter() {
                    @if budget.take() {
                        dt { (shown(&name_text(key).unwrap_or_else(|| printed(key)))) }
                        dd { (at_depth(inner, budget, depth + 1)) }
                    }
                }
            }
        },
        Value::Vector(_) | Value::List(_) | Value::Set(_) => {
            let found = items(value).unwrap_or_default();
            if found.is_empty() {
                return html! { span.muted { "none" } };
            }
            html! {
                ul.plain {
                    @for inner in &found {
                        @if budget.take() {
                            li { (at_depth(inner, budget, depth + 1)) }
                        }
                    }
                }
            }
        }
        other => html! { span.text { (shown(budget.text(&printed(other)))) } },
    }
}
