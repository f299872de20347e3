//! Resources: everything that has a `res://` name, and the parts of such a name.
//!
//! Readers are not strict about the path of a name: only its end matters. The names of other workspaces are read as
//! those of this one, because flows and their values move between projects.

mod limits;
pub mod media;
pub mod sign;

pub use limits::ResourceLimits;

/// The prefix of every resource name.
pub const PREFIX: &str = "res://v1/ws/local/";

/// The kind of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A result that `:persist` stored.
    #[default]
    Blob,
    Changeset,
    /// An uploaded file.
    File,
    /// The result of a run.
    FlowOutput,
    Kv,
    /// The result of a step.
    StepOutput,
    Table,
    /// A source tree.
    Tree,
}

impl ResourceKind {
    /// All kinds with their names, sorted.
    pub const NAMES: &[(ResourceKind, &'static str)] = &[
        (ResourceKind::Blob, "blob"),
        (ResourceKind::Changeset, "changeset"),
        (ResourceKind::File, "file"),
        (ResourceKind::FlowOutput, "flow-output"),
        (ResourceKind::Kv, "kv"),
        (ResourceKind::StepOutput, "step-output"),
        (ResourceKind::Table, "table"),
        (ResourceKind::Tree, "tree"),
    ];

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            ResourceKind::Blob => "blob",
            ResourceKind::Changeset => "changeset",
            ResourceKind::File => "file",
            ResourceKind::FlowOutput => "flow-output",
            ResourceKind::Kv => "kv",
            ResourceKind::StepOutput => "step-output",
            ResourceKind::Table => "table",
            ResourceKind::Tree => "tree",
        }
    }

    /// Returns the kind of a name.
    pub fn from_name(name: &str) -> Option<ResourceKind> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name)?;
        Some(found.0)
    }
}

/// The retention of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tier {
    /// The blob is kept as long as something mentions it.
    #[default]
    Retained,
    /// The blob is kept for a limited time.
    Ephemeral,
}

impl Tier {
    /// Returns the name of the tier.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Retained => "retained",
            Tier::Ephemeral => "ephemeral",
        }
    }

    /// Returns the tier of a name.
    pub fn from_name(name: &str) -> Option<Tier> {
        [Tier::Retained, Tier::Ephemeral]
            .into_iter()
            .find(|tier| tier.name() == name)
    }
}

/// The search entry of a resource, beside its name and its contents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchEntry {
    pub text: Option<String>,
    pub tags: Vec<String>,
    pub source_label: Option<String>,
    /// The contents are not indexed.
    pub without_contents: bool,
}

/// The parsed form of a resource name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceName {
    Changeset(String),
    File(String),
    /// The id of the run.
    FlowOutput(String),
    Kv(String),
    /// The id of the run, and the path of the step.
    StepOutput(String, String),
    /// The number or the name of the table.
    Table(String),
    Tree(String),
    /// A name that only the registry can resolve.
    Other,
}

impl ResourceName {
    /// Parses a resource name. Returns `None` if the text is not one.
    pub fn read(uri: &str) -> Option<ResourceName> {
        let path = uri.strip_prefix("res://")?;
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let after = |name: &str| {
            let at = parts.iter().position(|part| *part == name)?;
            let rest = parts.get(at + 1..)?;
            (!rest.is_empty()).then(|| rest.join("/"))
        };
        let last = || parts.last().map(|part| (*part).to_owned());
        if let Some(rest) = after("run") {
            return Some(of_run(&rest));
        }
        if let Some(table) = after("table") {
            return Some(ResourceName::Table(unescaped(&table)));
        }
        if let Some(key) = after("kv") {
            return Some(ResourceName::Kv(unescaped(&key)));
        }
        if after("source-tree").is_some() {
            return last().map(ResourceName::Tree);
        }
        if after("changeset").is_some() {
            return last().map(ResourceName::Changeset);
        }
        if let Some(id) = after("file") {
            return Some(ResourceName::File(id));
        }
        Some(ResourceName::Other)
    }
}

/// Parses `<run>/step/<path>/output` and `<run>/flow-output`.
fn of_run(rest: &str) -> ResourceName {
    let Some((run, rest)) = rest.split_once('/') else {
        return ResourceName::Other;
    };
    if rest == "flow-output" {
        return ResourceName::FlowOutput(run.to_owned());
    }
    let path = rest
        .strip_prefix("step/")
        .map(|path| path.strip_suffix("/output").unwrap_or(path));
    path.filter(|path| !path.is_empty())
        .map_or(ResourceName::Other, |path| {
            ResourceName::StepOutput(run.to_owned(), unescaped(path))
        })
}

/// Returns the resource name of a step's result.
pub fn step_output(run: &str, path: &str) -> String {
    format!("{PREFIX}result/run/{run}/step/{}/output", escaped(path))
}

/// Returns the resource name of a run's result.
pub fn flow_output(run: &str) -> String {
    format!("{PREFIX}result/run/{run}/flow-output")
}

/// Returns the resource name of a key.
pub fn kv(key: &str) -> String {
    format!("{PREFIX}result/kv/{}", escaped(key))
}

/// Returns the name in canonical form: in the local workspace, without the additions of a browser.
pub fn canonical(uri: &str) -> String {
    let uri = uri.split(['?', '#']).next().unwrap_or(uri);
    let rest = uri
        .strip_prefix("res://v1/ws/")
        .and_then(|rest| rest.split_once('/'));
    match rest {
        Some((_, rest)) => format!("{PREFIX}{}", rest.trim_end_matches('/')),
        None => uri.to_owned(),
    }
}

/// Escapes characters that a name may not contain, as in `%41`.
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, char| {
        if char.is_ascii_alphanumeric() || "-_./:".contains(char) {
            out.push(char);
        } else {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    })
}

/// Escapes one part of an address, such as a segment of its path or a value in its query.
pub fn segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let parts = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    parts.collect()
}

/// Reverses [`escaped`]; text that is not an escape stays unchanged.
pub fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut idx = 0;
    while let Some(byte) = bytes.get(idx) {
        let code = (*byte == b'%')
            .then(|| text.get(idx + 1..idx + 3))
            .flatten()
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(code) => {
                out.push(code);
                idx += 3;
            }
            None => {
                out.push(*byte);
                idx += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// Returns the resource names in EDN text: a name has no spaces, quotes or backslashes.
pub fn uris_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("res://").map(|(start, _)| {
        let rest = &text[start..];
        let end = rest.find(|char: char| char.is_whitespace() || "\"\\".contains(char));
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_name_matters() {
        use ResourceName::*;
        let text = |text: &str| text.to_owned();
        let cases = [
            (
                "res://v1/ws/acme/result/table/tbl_1",
                Some(Table(text("tbl_1"))),
            ),
            (
                "res://v1/ws/a/bundle/resource/table/incidents",
                Some(Table(text("incidents"))),
            ),
            ("res://v1/ws/local/result/kv/a:b", Some(Kv(text("a:b")))),
            (
                "res://v1/ws/local/bundle/source-tree/git/s1",
                Some(Tree(text("s1"))),
            ),
            (
                "res://v1/ws/local/bundle/changeset/files/c1",
                Some(Changeset(text("c1"))),
            ),
            ("res://v1/ws/local/file/f1", Some(File(text("f1")))),
            (
                "res://v1/ws/local/result/run/r1/flow-output",
                Some(FlowOutput(text("r1"))),
            ),
            (
                "res://v1/ws/local/result/run/r1/step/a/b%232/output",
                Some(StepOutput(text("r1"), text("a/b#2"))),
            ),
            (
                "res://v1/ws/local/result/run/r1/step/table/output",
                Some(StepOutput(text("r1"), text("table"))),
            ),
            ("res://v1/ws/local/result/blob/b1", Some(Other)),
            ("res://v1/ws/local/result/run/r1", Some(Other)),
            ("https://example.com/table/x", None),
            ("", None),
        ];
        for (uri, expected) in cases {
            assert_eq!(ResourceName::read(uri), expected, "{uri}");
        }
    }

    #[test]
    fn unescaping_reverses_escaping() {
        for path in ["a", "b1:x/y#3", "ä ö%41", "%", "100%zz", "%é"] {
            assert_eq!(unescaped(&escaped(path)), path);
        }
        assert_eq!(unescaped("%ff"), "%ff");
        assert_eq!(unescaped("%4"), "%4");
    }

    #[test]
    fn names_of_other_workspaces_are_read_as_local() {
        let cases = [
            ("res://v1/ws/acme/file/f1?x=1", "res://v1/ws/local/file/f1"),
            ("res://v1/ws/local/file/f1/", "res://v1/ws/local/file/f1"),
            ("res://odd", "res://odd"),
        ];
        for (uri, expected) in cases {
            assert_eq!(canonical(uri), expected);
        }
    }
}
