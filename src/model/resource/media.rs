//! Content types: which one a file name has, and which of them hold data.

/// The content type of unknown bytes.
pub const OCTETS: &str = "application/octet-stream";

/// Returns the content type for the extension of a file name.
pub fn of_name(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    Some(match end.to_ascii_lowercase().as_str() {
        "clj" | "log" | "txt" => "text/plain; charset=utf-8",
        "css" => "text/css",
        "csv" => "text/csv",
        "edn" => "application/edn",
        "gif" => "image/gif",
        "gz" => "application/gzip",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "js" => "text/javascript",
        "json" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "md" => "text/markdown",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "tsv" => "text/tab-separated-values",
        "webp" => "image/webp",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "zip" => "application/zip",
        _ => return None,
    })
}

/// Returns a content type without its parameters, in lower case.
pub fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// The data format of a content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    Edn,
    Json,
    /// One JSON value on each line.
    JsonLines,
    /// Plain text of any kind.
    Text,
    Tsv,
    Yaml,
}

impl Format {
    /// Returns the file extension of this format; plain text has none.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Format::Csv => Some("csv"),
            Format::Edn => Some("edn"),
            Format::Json => Some("json"),
            Format::JsonLines => Some("ndjson"),
            Format::Tsv => Some("tsv"),
            Format::Yaml => Some("yaml"),
            Format::Text => None,
        }
    }

    /// Returns the format of a content type; `None` for one without data, such as an image.
    pub fn of(content_type: &str) -> Option<Format> {
        Some(match essence(content_type).as_str() {
            "application/edn" => Format::Edn,
            "application/json" | "text/json" => Format::Json,
            "application/jsonl"
            | "application/jsonlines"
            | "application/x-jsonlines"
            | "application/x-ndjson" => Format::JsonLines,
            "application/x-yaml" | "application/yaml" | "text/x-yaml" | "text/yaml" => Format::Yaml,
            "text/csv" => Format::Csv,
            "text/plain" => Format::Text,
            "text/tab-separated-values" => Format::Tsv,
            kind if kind.ends_with("+json") => Format::Json,
            kind if kind.ends_with("+yaml") => Format::Yaml,
            _ => return None,
        })
    }
}
