//! How the result of a run is shown to people: by viewer envelopes, or by the value itself.
//!
//! A viewer envelope is a map with `:breyta.viewer/kind` and `:breyta.viewer/value`, also with string keys. The result
//! is a tree of views; this module knows nothing of the pages or terminals that draw it.

use flowstone_lang::value::Value;

use crate::form::read_data;
use crate::json::{items, name_text};
use crate::names::name_of;
use crate::resource::{media, unescaped};
use crate::text::printed;

/// Maximum depth of views within views; deeper ones are shown as data.
const MAX_DEPTH: usize = 8;
/// The namespace of the keys of an envelope.
const NAMESPACE: &str = "breyta.viewer";
/// The kind of an envelope of envelopes.
const GROUP: &str = "group";
/// The path of a link to a resource, up to the query with its name.
const CONTENT: &str = "/api/resources/content?";

/// The view of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum View {
    /// Plain text, as it is.
    Text(String),
    Markdown {
        text: String,
        /// Tells that the text was not declared as Markdown, so its line breaks count.
        is_guess: bool,
    },
    /// Data of any kind, printed.
    Data(Value),
    Table(TableView),
    /// The rows of a table or of a file with rows, by the name of the resource.
    Rows(String),
    Media(MediaView),
    /// Several views in sequence.
    Group(Vec<View>),
    Titled(String, Box<View>),
}

/// Rows with the same columns.
#[derive(Debug, Clone, PartialEq)]
pub struct TableView {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

/// An image, a sound, a video, or any other file.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaView {
    pub kind: MediaKind,
    pub source: MediaSource,
    /// The text that stands for it.
    pub label: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    Audio,
    Download,
    Image,
    Video,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MediaSource {
    /// The `res://` name of a resource of the project.
    Resource(String),
    /// An external address: never loaded, at most linked.
    Elsewhere(String),
}

impl MediaKind {
    fn named(name: &str) -> Option<MediaKind> {
        Some(match name {
            "audio" => MediaKind::Audio,
            "download" => MediaKind::Download,
            "image" => MediaKind::Image,
            "video" => MediaKind::Video,
            _ => return None,
        })
    }

    /// Returns how a content type is shown.
    pub fn of_type(content_type: &str) -> MediaKind {
        let essence = media::essence(content_type);
        let kind = essence.split('/').next().unwrap_or_default();
        MediaKind::named(kind).unwrap_or(MediaKind::Download)
    }
}

/// A part of a result that says how it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The kind that its envelope names; `None` for data without an envelope in a group.
    pub kind: Option<String>,
    pub value: Value,
}

/// Returns the parts of a viewer envelope in order, those of groups one by one; `None` if the value is not an envelope.
pub fn parts(value: &Value) -> Option<Vec<Part>> {
    envelope(value, "kind")?;
    let mut parts = Vec::new();
    add_parts(value, 0, &mut parts);
    Some(parts)
}

fn add_parts(value: &Value, depth: usize, parts: &mut Vec<Part>) {
    let Some(kind) = envelope(value, "kind").filter(|_| depth <= MAX_DEPTH) else {
        parts.push(Part {
            kind: None,
            value: value.clone(),
        });
        return;
    };
    match name_of(&kind).as_deref() {
        Some(GROUP) => {
            for item in members(value) {
                add_parts(&item, depth + 1, parts);
            }
        }
        kind => parts.push(Part {
            kind: kind.map(str::to_owned),
            value: envelope(value, "value").unwrap_or(Value::Nil),
        }),
    }
}

/// Returns the members of a group.
fn members(group: &Value) -> Vec<Value> {
    let listed = envelope(group, "items").or_else(|| envelope(group, "value"));
    listed.as_ref().and_then(items).unwrap_or_default()
}

impl View {
    /// Returns how the result of a run is shown.
    pub fn of(value: &Value) -> View {
        match value.as_str() {
            Some(text) if !text.starts_with("res://") => View::Markdown {
                text: text.to_owned(),
                is_guess: true,
            },
            _ => View::inner(value, 0),
        }
    }

    /// Returns the view of a `breyta-resource` block in a Markdown text: a map with `:uri` or a link, and `:view`.
    pub fn of_block(text: &str) -> Option<View> {
        let map = read_data(text.trim()).ok()?;
        map.as_map()?;
        let view = field(&map, "view").and_then(|view| name_of(&view));
        let source = source(&map)?;
        let title = text_at(&map, "title").or_else(|| text_at(&map, "label"));
        let view = match (view.as_deref(), &source) {
            (Some("audio" | "download" | "image" | "video"), _) => media_view(&map, &map, None)?,
            (Some("chart" | "json" | "rows" | "table"), MediaSource::Resource(uri)) => {
                View::Rows(uri.clone())
            }
            _ => View::inner(&map, 0),
        };
        Some(titled(title, view))
    }

    /// Returns the names of the resources that the view needs.
    pub fn resources(&self) -> Vec<&str> {
        match self {
            View::Rows(uri) => vec![uri],
            View::Media(MediaView {
                source: MediaSource::Resource(uri),
                ..
            }) => vec![uri],
            View::Group(views) => views.iter().flat_map(View::resources).collect(),
            View::Titled(_, view) => view.resources(),
            View::Data(_)
            | View::Markdown { .. }
            | View::Media(_)
            | View::Table(_)
            | View::Text(_) => Vec::new(),
        }
    }

    fn inner(value: &Value, depth: usize) -> View {
        if depth > MAX_DEPTH {
            return View::Data(value.clone());
        }
        if let Some(kind) = envelope(value, "kind") {
            return enveloped(value, &kind, depth);
        }
        let inferred = source(value).and_then(|source| match (&source, field(value, "type")) {
            (MediaSource::Resource(_), _) => media_view(value, value, None),
            (MediaSource::Elsewhere(_), _) if field(value, "content-type").is_some() => {
                media_view(value, value, None)
            }
            (MediaSource::Elsewhere(_), _) => None,
        });
        if let Some(view) = inferred {
            return view;
        }
        match table(value, &[]) {
            Some(table) => View::Table(table),
            None => View::Data(value.clone()),
        }
    }
}

/// Returns an entry of an envelope, by its keyword or its string.
fn envelope(value: &Value, name: &str) -> Option<Value> {
    field(value, &format!("{NAMESPACE}/{name}"))
}

/// Returns an entry of a map that is not nil, by its keyword or its string.
fn field(value: &Value, name: &str) -> Option<Value> {
    let map = value.as_map()?;
    let found = map
        .get(&Value::keyword(name))
        .or_else(|| map.get(&Value::from(name)));
    found.filter(|value| !value.is_nil()).cloned()
}

fn text_at(value: &Value, name: &str) -> Option<String> {
    field(value, name)?.as_str().map(str::to_owned)
}

fn titled(title: Option<String>, view: View) -> View {
    match title.filter(|title| !title.trim().is_empty()) {
        Some(title) => View::Titled(title, Box::new(view)),
        None => view,
    }
}

fn enveloped(map: &Value, kind: &Value, depth: usize) -> View {
    let kind = name_of(kind);
    let kind = kind.as_deref().unwrap_or_default();
    let value = envelope(map, "value").unwrap_or(Value::Nil);
    let options = envelope(map, "options").unwrap_or(Value::Nil);
    let title = text_at(&options, "title").or_else(|| text_at(&options, "label"));
    let text = || {
        value
            .as_str()
            .map_or_else(|| printed(&value), str::to_owned)
    };
    let view = match kind {
        GROUP => {
            let inner = members(map);
            let inner = inner.iter().map(|item| View::inner(item, depth + 1));
            View::Group(inner.collect())
        }
        "markdown" => View::Markdown {
            text: text(),
            is_guess: false,
        },
        "table" => table_view(&value, &options),
        "text" => View::Text(text()),
        kind => match MediaKind::named(kind) {
            Some(kind) => media_view(&value, &options, Some(kind))
                .unwrap_or_else(|| View::Data(value.clone())),
            // `:raw`, and kinds that this version does not know.
            None => match value.as_str() {
                Some(text) => View::Text(text.to_owned()),
                None => View::Data(value.clone()),
            },
        },
    };
    titled(title, view)
}

fn table_view(value: &Value, options: &Value) -> View {
    let wanted = field(options, "columns").or_else(|| field(value, "columns"));
    let wanted: Vec<String> = wanted
        .as_ref()
        .and_then(items)
        .unwrap_or_default()
        .iter()
        .filter_map(column)
        .collect();
    let rows = field(value, "rows").unwrap_or_else(|| value.clone());
    if let Some(table) = table(&rows, &wanted) {
        return View::Table(table);
    }
    match source(value) {
        Some(MediaSource::Resource(uri)) => View::Rows(uri),
        _ => View::Data(value.clone()),
    }
}

/// Returns the name of a column, given as a name or as a map with a name.
fn column(value: &Value) -> Option<String> {
    let own = ["key", "name", "field", "label"];
    let inner = || own.iter().find_map(|key| name_text(&field(value, key)?));
    name_text(value).or_else(inner)
}

/// Returns rows as a table: maps, or vectors if there are columns.
fn table(value: &Value, wanted: &[String]) -> Option<TableView> {
    let (Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_)) = value else {
        return None;
    };
    let found = items(value)?;
    if found.is_empty() && wanted.is_empty() {
        return None;
    }
    let mut columns = wanted.to_vec();
    for row in &found {
        match row {
            Value::Map(map) if envelope(row, "kind").is_none() => {
                for (key, _) in map.iter().filter(|_| wanted.is_empty()) {
                    let name = name_text(key)?;
                    if !columns.contains(&name) {
                        columns.push(name);
                    }
                }
            }
            Value::Vector(_) if !wanted.is_empty() => {}
            _ => return None,
        }
    }
    let cells = |row: &Value| match row {
        Value::Map(_) => {
            let cells = columns
                .iter()
                .map(|name| field(row, name).unwrap_or(Value::Nil));
            cells.collect()
        }
        row => items(row).unwrap_or_default(),
    };
    let rows = found.iter().map(cells).collect();
    Some(TableView { columns, rows })
}

/// Returns the source of media: a resource, or an address.
fn source(value: &Value) -> Option<MediaSource> {
    if let Some(text) = value.as_str() {
        return source_of(text);
    }
    let keys = [
        "uri",
        "resource-uri",
        "ref",
        "blob-ref",
        "signed-url",
        "url",
    ];
    keys.iter().find_map(|key| {
        let found = field(value, key)?;
        match &found {
            Value::Text(text) => source_of(text.as_str()),
            Value::Map(_) if *key == "ref" || *key == "blob-ref" => source(&found),
            _ => None,
        }
    })
}

fn source_of(text: &str) -> Option<MediaSource> {
    if text.starts_with("res://") {
        return Some(MediaSource::Resource(text.to_owned()));
    }
    // A link that was made for a resource is shown as the resource: the link may have expired.
    if let Some((_, query)) = text.split_once(CONTENT) {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let uri = pairs.find(|(name, _)| *name == "uri");
        let uri = uri.map(|(_, uri)| unescaped(uri));
        if let Some(uri) = uri.filter(|uri| uri.starts_with("res://")) {
            return Some(MediaSource::Resource(uri));
        }
    }
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    is_address.then(|| MediaSource::Elsewhere(text.to_owned()))
}

fn media_view(value: &Value, options: &Value, kind: Option<MediaKind>) -> Option<View> {
    let source = source(value)?;
    let label = ["alt", "filename", "name"];
    let label = label
        .iter()
        .find_map(|key| text_at(options, key).or_else(|| text_at(value, key)));
    let declared = field(options, "view").and_then(|view| name_of(&view));
    let content_type = text_at(value, "content-type");
    let kind = kind
        .or_else(|| declared.as_deref().and_then(MediaKind::named))
        .or_else(|| content_type.as_deref().map(MediaKind::of_type));
    Some(View::Media(MediaView {
        kind: kind.unwrap_or(MediaKind::Download),
        source,
        label,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    fn shown(view: &View) -> String {
        match view {
            View::Data(value) => format!("data {}", codec::encode(value).expect("data")),
            View::Group(views) => {
                let parts: Vec<String> = views.iter().map(shown).collect();
                format!("({})", parts.join(" "))
            }
            View::Markdown { text, is_guess } => format!("md{} {text}", u8::from(*is_guess)),
            View::Media(media) => {
                format!("{:?} {:?} {:?}", media.kind, media.source, media.label)
            }
            View::Rows(uri) => format!("rows {uri}"),
            View::Table(table) => {
                let rows: Vec<String> = table
                    .rows
                    .iter()
                    .map(|row| codec::encode(&Value::vector(row.clone())).expect("data"))
                    .collect();
                format!("{} / {}", table.columns.join(","), rows.join(" "))
            }
            View::Text(text) => format!("text {text}"),
            View::Titled(title, view) => format!("<{title}: {}>", shown(view)),
        }
    }

    fn check(text: &str, expected: &str) {
        let value = codec::decode(text).expect("EDN");
        assert_eq!(shown(&View::of(&value)), expected, "{text}");
    }

    #[test]
    fn parts_of_groups_are_listed_one_by_one() {
        let text = "{:breyta.viewer/kind :group :breyta.viewer/items
            [{:breyta.viewer/kind :image :breyta.viewer/value \"a\"} {:n 1}
             {\"breyta.viewer/kind\" \"group\" \"breyta.viewer/value\" [{:breyta.viewer/kind :text :breyta.viewer/value \"b\"}]}]}";
        let found = parts(&codec::decode(text).expect("EDN")).expect("an envelope");
        let kinds: Vec<Option<&str>> = found.iter().map(|part| part.kind.as_deref()).collect();
        assert_eq!(kinds, [Some("image"), None, Some("text")]);
        assert_eq!(found[2].value.as_str(), Some("b"));
        assert_eq!(parts(&codec::decode("{:n 1}").expect("EDN")), None);
    }

    #[test]
    fn envelopes_determine_how_a_value_is_shown() {
        check(
            "{:breyta.viewer/kind :markdown :breyta.viewer/options {:title \"T\"} :breyta.viewer/value \"# a\"}",
            "<T: md0 # a>",
        );
        check(
            "{\"breyta.viewer/kind\" \"text\" \"breyta.viewer/value\" {:a 1}}",
            "text {:a 1}",
        );
        check(
            "{:breyta.viewer/kind :group :breyta.viewer/items
              [{:breyta.viewer/kind :raw :breyta.viewer/value [1]} {:a 1} {:breyta.viewer/kind :later :breyta.viewer/value \"x\"}]}",
            "(data [1] data {:a 1} text x)",
        );
        check(
            "{:breyta.viewer/kind :table :breyta.viewer/value {:columns [:b {:key :a}] :rows [{:a 1 :b 2} [3 4]]}}",
            "b,a / [2 1] [3 4]",
        );
        check(
            "{:breyta.viewer/kind :table :breyta.viewer/value {:type :resource-ref :uri \"res://v1/ws/local/result/table/t\"}}",
            "rows res://v1/ws/local/result/table/t",
        );
    }

    #[test]
    fn project_resources_are_distinguished_from_external_addresses() {
        check(
            "{:breyta.viewer/kind :image :breyta.viewer/options {:alt \"A\"} :breyta.viewer/value \"https://x.test/a.png\"}",
            "Image Elsewhere(\"https://x.test/a.png\") Some(\"A\")",
        );
        check(
            "{:type :resource-ref :uri \"res://v1/ws/local/file/a\" :content-type \"image/png\" :filename \"a.png\"}",
            "Image Resource(\"res://v1/ws/local/file/a\") Some(\"a.png\")",
        );
        check(
            "{:signed-url \"http://localhost:7373/api/resources/content?uri=res%3A//v1/ws/local/file/b&expires=1&signature=2\" :content-type \"audio/wav; x=1\"}",
            "Audio Resource(\"res://v1/ws/local/file/b\") None",
        );
        check(
            "{:breyta.viewer/kind :image :breyta.viewer/value \"javascript:alert(1)\"}",
            "data \"javascript:alert(1)\"",
        );
        check(
            "{:url \"https://x.test/a\"}",
            "data {:url \"https://x.test/a\"}",
        );
        check(
            "\"res://v1/ws/local/file/a\"",
            "Download Resource(\"res://v1/ws/local/file/a\") None",
        );
    }

    #[test]
    fn other_values_are_text_tables_or_data() {
        check("\"**a**\"", "md1 **a**");
        check("[{:a 1} {:b 2 \"a\" 3}]", "a,b / [1 nil] [3 2]");
        check("[{:a 1} 2]", "data [{:a 1} 2]");
        check("[]", "data []");
        check("{:a 1}", "data {:a 1}");
    }

    #[test]
    fn blocks_in_markdown_name_resources() {
        let view = View::of_block(
            "{:uri \"res://v1/ws/local/result/table/t\" :view :chart :title \"Sales\"}",
        );
        let view = view.map(|view| shown(&view));
        assert_eq!(
            view.as_deref(),
            Some("<Sales: rows res://v1/ws/local/result/table/t>")
        );
        let view =
            View::of_block("{\"uri\": \"res://v1/ws/local/file/a\", \"view\": \"download\"}");
        let view = view.map(|view| shown(&view));
        assert_eq!(
            view.as_deref(),
            Some("Download Resource(\"res://v1/ws/local/file/a\") None")
        );
        assert_eq!(View::of_block("nothing"), None);
    }
}
