//! Views of a result: text, Markdown, tables, media and data.

use std::collections::BTreeMap;

use flowstone_engine::viewer::{MediaKind, MediaSource, MediaView, TableView, View};
use flowstone_lang::value::Value;
use maud::{Markup, html};

use super::{Budget, data, markdown, shown};

/// What is known of a resource that a view names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resolved {
    /// Where its contents are; relative to the page.
    pub href: String,
    pub content_type: Option<String>,
    pub name: Option<String>,
    pub size: Option<u64>,
    /// The rows of a table, and whether there are more.
    pub rows: Option<(TableView, bool)>,
}

/// The resources of a page by the names that views have for them. Those that are missing are not shown.
pub(crate) type Resources = BTreeMap<String, Resolved>;

/// Returns a view as HTML.
pub(super) fn view(view: &View, resources: &Resources, budget: &mut Budget) -> Markup {
    match view {
        View::Data(value) => data::value(value, budget),
        View::Group(views) => html! {
            @for inner in views { section { (self::view(inner, resources, budget)) } }
        },
        View::Markdown { text, is_guess } => html! {
            div.markdown { (markdown::markup(budget.text(text), *is_guess)) }
        },
        View::Media(media) => self::media(media, resources),
        View::Rows(uri) => match resources.get(uri) {
            Some(found) => rows(uri, found, budget),
            None => gone(uri),
        },
        View::Table(found) => table(found, budget),
        View::Text(text) => html! { pre { (shown(budget.text(text))) } },
        View::Titled(title, inner) => html! {
            h3 { (shown(title)) }
            (self::view(inner, resources, budget))
        },
    }
}

fn table(table: &TableView, budget: &mut Budget) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table" {
            table {
                thead { tr {
                    @for column in &table.columns { th scope="col" { (shown(column)) } }
                } }
                tbody {
                    @for row in &table.rows {
                        @if budget.take() {
                            tr { @for cell in row { td { (self::cell(cell, budget)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn cell(value: &Value, budget: &mut Budget) -> Markup {
    match value {
        Value::Nil => html! {},
        value => data::value(value, budget),
    }
}

fn rows(uri: &str, found: &Resolved, budget: &mut Budget) -> Markup {
    let Some((rows, has_more)) = &found.rows else {
        return download(uri, found, None);
    };
    html! {
        (table(rows, budget))
        @if *has_more {
            p.muted { "These are the first " (rows.rows.len()) " rows of " code { (shown(uri)) } "." }
        }
    }
}

fn media(media: &MediaView, resources: &Resources) -> Markup {
    let label = media.label.as_deref();
    let uri = match &media.source {
        MediaSource::Resource(uri) => uri,
        MediaSource::Elsewhere(address) if markdown::is_allowed(address) => {
            return html! {
                p { a href=(address) rel="noopener noreferrer nofollow" { (shown(label.unwrap_or(address))) } }
                p.muted { "It is on another server, so it is not loaded here." }
            };
        }
        MediaSource::Elsewhere(address) => return html! { code { (shown(address)) } },
    };
    let Some(found) = resources.get(uri) else {
        return gone(uri);
    };
    let kind = found.content_type.as_deref().map(MediaKind::of_type);
    // What the resource is decides, not what somebody calls it.
    let kind = match (media.kind, kind) {
        (wanted, Some(kind)) if wanted == kind && is_shown(found) => wanted,
        _ => MediaKind::Download,
    };
    let words = label.or(found.name.as_deref()).unwrap_or_default();
    match kind {
        MediaKind::Audio => html! { audio controls src=(found.href) aria-label=(shown(words)) {} },
        MediaKind::Video => html! { video controls src=(found.href) aria-label=(shown(words)) {} },
        MediaKind::Image => html! { img src=(found.href) alt=(shown(words)); },
        MediaKind::Download => download(uri, found, label),
    }
}

/// Types that a page shows. Drawings and pages can hold scripts, so they are only stored.
fn is_shown(found: &Resolved) -> bool {
    let kind = found.content_type.as_deref().unwrap_or_default();
    !kind.to_ascii_lowercase().contains("svg")
}

fn download(uri: &str, found: &Resolved, label: Option<&str>) -> Markup {
    let words = label.or(found.name.as_deref()).unwrap_or(uri);
    html! {
        p {
            a href=(found.href) { (shown(words)) }
            @if let Some(size) = found.size { span.muted { " (" (bytes(size)) ")" } }
        }
    }
}

fn gone(uri: &str) -> Markup {
    html! { p.muted { "Not available: " code { (shown(uri)) } } }
}

/// Returns a size as people read it.
pub(super) fn bytes(size: u64) -> String {
    match size {
        0..=1_023 => format!("{size} bytes"),
        1_024..=1_048_575 => format!("{:.1} KiB", size as f64 / 1_024.0),
        _ => format!("{:.1} MiB", size as f64 / 1_048_576.0),
    }
}
