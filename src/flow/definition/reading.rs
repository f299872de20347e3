//! Reads the definition map and checks its keys, including the older ones.

use std::rc::Rc;

use flowstone_lang::value::{Sources, Span, Value};

use super::{
    Flow, FlowFunction, Template, agents, invocations, mcp, name_of, packaged, schedules, starts,
};
use crate::diagnostic::{Change, Diagnostic, Severity};
use crate::forms::{self, entry_spans, item_span};

/// Every key that a definition may have, sorted.
pub(crate) const KEYS: &[&str] = &[
    "agents",
    "concurrency",
    "deploy-key-required",
    "description",
    "discover",
    "flow",
    "functions",
    "icon",
    "interfaces",
    "invocations",
    "limits",
    "llm-providers",
    "marketplace",
    "mcp",
    "name",
    "namespaces",
    "publish-media",
    "requires",
    "schedules",
    "slug",
    "steps",
    "tags",
    "templates",
    "triggers",
];

const TEMPLATE_KINDS: &[&str] = &[
    "db-query",
    "http-request",
    "llm-prompt",
    "notification",
    "sql",
];

/// Collects findings while a definition is read.
pub struct Reading<'a> {
    pub sources: &'a Sources,
    pub findings: Vec<Diagnostic>,
}

impl Reading<'_> {
    pub fn error(&mut self, code: &'static str, message: impl Into<String>, at: Span) {
        self.push(Diagnostic::error(code, message).at(at));
    }

    pub fn push(&mut self, finding: Diagnostic) {
        // Several readers may read the same key.
        let is_known = |known: &Diagnostic| {
            (known.code, known.span, &known.message)
                == (finding.code, finding.span, &finding.message)
        };
        if !self.findings.iter().any(is_known) {
            self.findings.push(finding);
        }
    }

    /// Returns the place of a key.
    pub fn key_at(&self, map: &Value, key: &str) -> Span {
        entry_spans(self.sources, map, &format!(":{key}")).key
    }

    /// Returns the place of the value under a key.
    pub fn value_at(&self, map: &Value, key: &str) -> Span {
        entry_spans(self.sources, map, &format!(":{key}")).value
    }

    /// Returns a text under a key. Adds a finding if the value is not a text.
    pub fn text(&mut self, map: &Value, key: &str) -> Option<Rc<str>> {
        match map.get(key) {
            None | Some(Value::Nil) => None,
            Some(Value::Text(text)) => Some(Rc::from(&***text)),
            Some(other) => {
                let at = self.value_at(map, key);
                let kind = other.kind();
                self.error(
                    "E0404",
                    format!("`:{key}` must be a string, not {kind}"),
                    at,
                );
                None
            }
        }
    }

    /// Returns the items under a key that takes a vector of maps or nil.
    pub fn maps(&mut self, map: &Value, key: &str) -> Vec<(Value, Span)> {
        let Some(value) = map.get(key).filter(|value| !value.is_nil()) else {
            return Vec::new();
        };
        let at = self.value_at(map, key);
        let Value::Vector(items) = value else {
            let message = format!("`:{key}` must be a vector of maps, not {}", value.kind());
            self.error("E0404", message, at);
            return Vec::new();
        };
        let mut maps = Vec::new();
        for (idx, item) in items.iter().enumerate() {
            let span = item_span(value, idx).or(at);
            match item {
                Value::Map(_) => maps.push((item.clone(), span)),
                other => {
                    let message =
                        format!("an entry of `:{key}` must be a map, not {}", other.kind());
                    self.error("E0404", message, span);
                }
            }
        }
        maps
    }
}

/// Reads a definition map. Returns a flow whenever there is enough of it for further checks.
pub(crate) fn flow(sources: &Sources, map: &Value) -> (Option<Flow>, Vec<Diagnostic>) {
    let mut reading = Reading {
        sources,
        findings: Vec::new(),
    };
    known_keys(&mut reading, map);
    let slug = slug(&mut reading, map);
    let body = body(&mut reading, map);
    let functions = functions(&mut reading, map);
    let mut packaged = packaged::read(&mut reading, map, &functions);
    agents::read(&mut reading, map, &functions, &mut packaged);
    let templates = templates(&mut reading, map);
    let contracts = invocations::read(&mut reading, map);
    let setup = invocations::setup(&mut reading, map);
    invocations::check_callers(&mut reading, map, &contracts);
    let schedules = schedules::read(&mut reading, map);
    let starts = starts::read(&mut reading, map, &contracts);
    let name = reading.text(map, "name");
    let description = reading.text(map, "description");
    let requires = reading.maps(map, "requires");
    let llm_providers = reading.maps(map, "llm-providers");
    let mcp = mcp::read(&mut reading, map);
    let values =
        |entries: Vec<(Value, Span)>| Value::vector(entries.into_iter().map(|(map, _)| map));
    let flow = slug.zip(body).map(|(slug, body)| Flow {
        slug,
        name,
        description,
        body,
        functions,
        packaged,
        templates,
        invocations: contracts,
        setup,
        schedules,
        requires: values(requires),
        starts,
        llm_providers: values(llm_providers),
        mcp,
        libraries: Rc::default(),
        definition: map.clone(),
        digest: None,
    });
    let mut findings = reading.findings;
    if let Some(flow) = &flow {
        schedules::check_inputs(flow, &mut findings);
    }
    (flow, findings)
}

fn known_keys(reading: &mut Reading<'_>, map: &Value) {
    let Value::Map(entries) = map else {
        return;
    };
    for (key, _) in entries.iter() {
        let Value::Keyword(keyword) = key else {
            let text = key.as_str().unwrap_or_default();
            let shown = crate::text::printed(key);
            let spans = entry_spans(reading.sources, map, &shown);
            let message = format!("the key {shown} has no effect: it is not a keyword");
            let finding = Diagnostic::warning("E0402", message).at(spans.key);
            // It is probably a misspelt key, not a note of the author.
            let is_meant = KEYS.contains(&text);
            reading.push(match is_meant {
                true => Diagnostic {
                    severity: Severity::Error,
                    ..finding
                        .hint(format!("write it as `:{text}`"))
                        .change(Change::replace(spans.key, &*shown, format!(":{text}")).certain())
                },
                false => finding,
            });
            continue;
        };
        // Keys with a namespace belong to the user, and are kept.
        if keyword.namespace().is_some() {
            continue;
        }
        let name = &keyword.to_string()[1..];
        if !KEYS.contains(&name) {
            let at = entry_spans(reading.sources, map, &keyword.to_string()).key;
            reading.push(
                Diagnostic::error(
                    "E0402",
                    format!("unknown key `:{name}` in the flow definition"),
                )
                .at(at)
                .suggest(name, KEYS.iter().copied()),
            );
        }
    }
}

/// Tells whether a name may name a flow, an input, a function.
pub fn is_identifier(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|char: char| char.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn slug(reading: &mut Reading<'_>, map: &Value) -> Option<Rc<str>> {
    let Some(value) = map.get("slug").filter(|slug| !slug.is_nil()) else {
        reading.push(
            Diagnostic::error("E0403", "the flow has no `:slug`")
                .at(map.span())
                .hint("give it a short name that stays the same, such as `:slug :my-flow`"),
        );
        return None;
    };
    let at = reading.value_at(map, "slug");
    let name = match value {
        Value::Keyword(_) | Value::Text(_) => name_of(value),
        _ => None,
    };
    match name.filter(|name| is_identifier(name)) {
        Some(name) => Some(name),
        None => {
            reading.push(Diagnostic::error("E0405", "this cannot be a slug").at(at).hint(
                "a slug is a keyword or string of letters, digits, `-` and `_` that starts with a letter",
            ));
            None
        }
    }
}

fn body(reading: &mut Reading<'_>, map: &Value) -> Option<Value> {
    let Some(value) = map.get("flow") else {
        reading.push(
            Diagnostic::error("E0403", "the definition has no `:flow`")
                .at(map.span())
                .hint("add the form to run, quoted: `:flow '(let [input (flow/input)] ...)`"),
        );
        return None;
    };
    match forms::quoted(value) {
        Some(body) => Some(body),
        None => {
            let at = reading.value_at(map, "flow");
            reading.push(
                Diagnostic::error("E0406", "`:flow` must be a quoted form")
                    .at(at)
                    .hint("put a quote before it: `:flow '(...)`")
                    .change(Change::insert(at, "'").certain()),
            );
            None
        }
    }
}

/// Lists names as keywords.
pub(crate) fn keywords(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
    names.join(", ")
}

fn functions(reading: &mut Reading<'_>, map: &Value) -> Vec<FlowFunction> {
    let mut functions: Vec<FlowFunction> = Vec::new();
    for (entry, span) in reading.maps(map, "functions") {
        let Some(id) = entry.get("id").and_then(name_of) else {
            reading.error("E0410", "an entry of `:functions` needs an `:id`", span);
            continue;
        };
        if functions.iter().any(|known| known.id == id) {
            reading.error("E0414", format!("there are two functions `:{id}`"), span);
        }
        let language = entry.get("language").and_then(name_of);
        if language.is_some_and(|language| &*language != "clojure") {
            let at = reading.value_at(&entry, "language");
            reading.error("E0410", "`:language` can only be `:clojure`", at);
        }
        match entry.get("code") {
            Some(code @ (Value::Text(_) | Value::List(_))) => functions.push(FlowFunction {
                id,
                code: forms::unquoted(code),
                span: reading.value_at(&entry, "code"),
            }),
            _ => reading.push(
                Diagnostic::error("E0410", format!("the function `:{id}` needs `:code`"))
                    .at(span)
                    .hint("a quoted form, `'(fn [input] ...)`, or the same as a string"),
            ),
        }
    }
    functions
}

/// Maximum length in bytes of the texts of all templates of a flow together.
const MOST_TEMPLATES: usize = 1 << 20;

/// Returns the total length in bytes of the texts in a value.
fn text_size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Map(map) => map.iter().map(|(_, value)| text_size(value)).sum(),
        Value::Vector(vector) => vector.iter().map(text_size).sum(),
        _ => 0,
    }
}

fn templates(reading: &mut Reading<'_>, map: &Value) -> Vec<Template> {
    let mut templates: Vec<Template> = Vec::new();
    let mut size = 0;
    for (entry, span) in reading.maps(map, "templates") {
        let Some(id) = entry.get("id").and_then(name_of) else {
            reading.error("E0411", "an entry of `:templates` needs an `:id`", span);
            continue;
        };
        if templates.iter().any(|known| known.id == id) {
            reading.error("E0414", format!("there are two templates `:{id}`"), span);
        }
        let kind = entry
            .get("type")
            .and_then(name_of)
            .unwrap_or_else(|| Rc::from(""));
        if !TEMPLATE_KINDS.contains(&&*kind) {
            let message = format!(
                "the `:type` of a template is one of {}",
                keywords(TEMPLATE_KINDS)
            );
            reading.push(
                Diagnostic::error("E0411", message)
                    .at(reading.value_at(&entry, "type"))
                    .suggest(&kind, TEMPLATE_KINDS.iter().copied()),
            );
            continue;
        }
        let kind = if &*kind == "sql" {
            Rc::from("db-query")
        } else {
            kind
        };
        let before = size;
        size += text_size(&entry);
        if before <= MOST_TEMPLATES && size > MOST_TEMPLATES {
            let message = format!(
                "the templates of the flow are larger than {MOST_TEMPLATES} bytes together, from `:{id}` on"
            );
            reading.push(Diagnostic::error("E0756", message).at(span).hint(
                "move data out of the texts: into `:data`, or into a file that a step reads",
            ));
        }
        templates.push(Template {
            id,
            kind,
            body: entry,
            span,
        });
    }
    templates
}
