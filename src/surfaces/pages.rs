//! Pages for people who open a link: what a wait asks, and what a run gave.
//!
//! A page is HTML without scripts, drawn from values that the engine returned. All text passes through `maud`, which
//! escapes it, and through [`shown`], which makes characters visible that hide or reorder text. What a page may load is
//! its style and, on the page of a run, media of the project.

mod data;
pub(crate) mod kit;
mod markdown;
mod run;
mod view;
mod wait;

use std::borrow::Cow;

use flowstone_engine::codec;
use flowstone_lang::visible::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};

pub(crate) use data::Budget;
pub(crate) use markdown::expanded;
pub(crate) use run::RunPage;
pub(crate) use view::{Resolved, Resources};
pub(crate) use wait::{WaitPage, decided};

/// The style sheet of all pages.
pub(crate) const STYLE: &str = include_str!("pages/pages.css");
/// Where it is served.
pub(crate) const STYLE_PATH: &str = "/assets/pages.css";

/// What a page has around its contents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub title: &'a str,
    /// The way from the address of the page to the root of the server, such as `../`.
    pub root: &'a str,
    /// Whether it is for tables and other wide things.
    pub is_wide: bool,
}

/// Returns a whole page.
pub(crate) fn page(frame: Frame<'_>, body: &Markup) -> String {
    let style = format!("{}{}", frame.root, STYLE_PATH.trim_start_matches('/'));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (shown(frame.title)) }
                link rel="stylesheet" href=(style);
            }
            body {
                main.wide[frame.is_wide] { (body) }
            }
        }
    };
    page.into_string()
}

/// Returns the page of an error.
pub(crate) fn of_error(root: &str, title: &str, detail: &str, hint: Option<&str>) -> String {
    let body = html! {
        h1 { (shown(title)) }
        p.text { (shown(&capital(detail))) }
        @if let Some(hint) = hint {
            p.muted.text { (shown(&capital(hint))) }
        }
    };
    let frame = Frame {
        title,
        root,
        is_wide: false,
    };
    page(frame, &body)
}

/// Returns a text that begins as a sentence does.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Returns a text in which nothing hides.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// Returns a point in time to the second, with what it is from now.
fn instant(at_ms: i64, now_ms: i64) -> Markup {
    let text = codec::instant(at_ms);
    let date = text.get(..10).unwrap_or_default();
    let time = text.get(11..19).unwrap_or_default();
    let apart = match at_ms - now_ms {
        ahead if ahead >= 0 => format!("in {}", length(ahead)),
        past => format!("{} ago", length(-past)),
    };
    html! { time datetime=(text) { (date) " " (time) " UTC" } " (" (apart) ")" }
}

/// Returns a length of time in its largest unit.
fn length(millis: i64) -> String {
    let units = [
        (86_400_000, "day"),
        (3_600_000, "hour"),
        (60_000, "minute"),
        (1_000, "second"),
    ];
    let (count, name) = units
        .iter()
        .find(|(unit, _)| millis >= *unit)
        .map_or((0, "second"), |(unit, name)| {
            ((millis + unit / 2) / unit, name)
        });
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {name}{end}")
}

/// A part of a page that was drawn before.
fn drawn(html: String) -> Markup {
    PreEscaped(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_escaped_and_visible() {
        let evil = "<script>alert(1)</script> \u{1b}[31m \u{202e}";
        let page = of_error("../", evil, evil, Some(evil));
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains(['\u{1b}', '\u{202e}']), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; \\x1b[31m \\u202e"));
        assert!(page.contains("href=\"../assets/pages.css\""), "{page}");
    }

    #[test]
    fn lengths_of_time_have_one_unit() {
        for (millis, expected) in [
            (0, "0 seconds"),
            (1_400, "1 second"),
            (3 * 86_400_000 - 500, "3 days"),
            (120_000, "2 minutes"),
            (86_400_000, "1 day"),
        ] {
            assert_eq!(length(millis), expected);
        }
    }
}
