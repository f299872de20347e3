//! What a name, a step type, a key or a value means, as Markdown.

use std::fmt::Write as _;

use flowstone_flow::step::{Effect, Field, FieldType, Operation, StepSpec, shape};
use flowstone_lang::session::{DescribedKind, Description};
use flowstone_lang::syntax::{NodeId, NodeKind};
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};

use super::context::{Context, alternatives, context, name};
use super::document::Document;
use super::library::Library;
use super::scope::Local;

/// Examples that are shown of a name.
const EXAMPLES: usize = 4;

/// Returns the description of what is at an offset.
pub(super) fn hover(document: &Document, library: &Library, offset: usize) -> Option<Hover> {
    let token = document.token(offset)?;
    let text = match document.kind(token) {
        NodeKind::Symbol => of_symbol(document, library, token, offset)?,
        NodeKind::Keyword | NodeKind::Text => of_key(document, library, token, offset)?,
        _ => return None,
    };
    Some(Hover {
        contents: HoverContents::Markup(markdown(text)),
        range: Some(document.range(token)),
    })
}

pub(super) fn markdown(value: String) -> MarkupContent {
    MarkupContent {
        kind: MarkupKind::Markdown,
        value,
    }
}

fn of_symbol(
    document: &Document,
    library: &Library,
    token: NodeId,
    offset: usize,
) -> Option<String> {
    let name = document.text_of(token);
    let scopes = document.scopes();
    if let Some(local) = scopes.local(token, name, offset) {
        return Some(of_local(document, local));
    }
    if let Some(definition) = scopes.definition(name) {
        return Some(of_definition(document, definition.form));
    }
    let description = library.describe(&scopes.qualified(name))?;
    Some(of_description(&description))
}

/// Describes a local by the line that binds it.
fn of_local(document: &Document, local: &Local) -> String {
    let node = document.tree.node(local.token);
    let line = document
        .lines
        .position(&document.text, node.start as usize)
        .line;
    let text = document
        .text
        .lines()
        .nth(line as usize)
        .unwrap_or_default()
        .trim();
    format!(
        "```clojure\n{}\n```\nlocal, bound in line {}: `{}`",
        local.name,
        line + 1,
        text.replace('`', "'")
    )
}

/// Describes a definition of the text: its call forms and its documentation.
fn of_definition(document: &Document, form: NodeId) -> String {
    let mut out = String::from("```clojure\n");
    for usage in usages(document, form) {
        let _ = writeln!(out, "{usage}");
    }
    out.push_str("```\n");
    let doc = document
        .tree
        .forms(Some(form))
        .skip(2)
        .find(|id| document.kind(*id) == NodeKind::Text);
    // A text at the end is the value, not the documentation.
    let doc = doc.filter(|doc| document.tree.forms(Some(form)).last() != Some(*doc));
    if let Some(doc) = doc {
        let _ = writeln!(
            out,
            "{}",
            document
                .text_of(doc)
                .trim_matches('"')
                .replace("\\\"", "\"")
        );
    }
    out
}

/// Returns the forms in which a definition of a text is called, or its first words if it is not a function.
pub(super) fn usages(document: &Document, form: NodeId) -> Vec<String> {
    let forms: Vec<NodeId> = document.tree.forms(Some(form)).collect();
    let (head, name) = match forms.as_slice() {
        [head, name, ..] => (
            document.text_of(*head),
            document.text_of(document.tree.bare(*name)),
        ),
        _ => return Vec::new(),
    };
    let call = |vector: NodeId| {
        let args = document.text_of(vector).trim_matches(['[', ']']).trim();
        let args: Vec<&str> = args.split_whitespace().collect();
        match args.is_empty() {
            true => format!("({name})"),
            false => format!("({name} {})", args.join(" ")),
        }
    };
    let mut found = Vec::new();
    for part in forms.iter().skip(2).map(|id| document.tree.bare(*id)) {
        match document.kind(part) {
            NodeKind::Vector if head.starts_with("defn") || head == "defmacro" => {
                return vec![call(part)];
            }
            NodeKind::List => {
                let args = document.tree.form(part, 0).map(|id| document.tree.bare(id));
                found.extend(
                    args.filter(|id| document.kind(*id) == NodeKind::Vector)
                        .map(call),
                );
            }
            _ => {}
        }
    }
    if found.is_empty() {
        found.push(format!("({head} {name})"));
    }
    found
}

/// Describes a name of the library.
pub(super) fn of_description(description: &Description) -> String {
    let mut out = String::new();
    if !description.usages.is_empty() {
        let _ = writeln!(out, "```clojure\n{}\n```", description.usages.join("\n"));
    }
    let _ = writeln!(
        out,
        "**{}** · {}\n",
        description.name,
        description.kind.name()
    );
    if !description.doc.is_empty() {
        // Indentation of the source would be a code block.
        let lines: Vec<&str> = description.doc.lines().map(str::trim).collect();
        let _ = writeln!(out, "{}\n", lines.join("\n"));
    }
    if !description.examples.is_empty() && description.kind != DescribedKind::Namespace {
        out.push_str("```clojure\n");
        for (expression, value) in description.examples.iter().take(EXAMPLES) {
            let _ = writeln!(out, "{expression}\n;=> {value}");
        }
        out.push_str("```\n");
    }
    out
}

fn of_key(document: &Document, library: &Library, token: NodeId, offset: usize) -> Option<String> {
    let text = name(document, token);
    match context(document, &library.specs, offset) {
        Context::StepType => library.spec(&text).map(of_step),
        Context::Key(keys) => {
            let field = keys
                .fields
                .into_iter()
                .find(|field| field.is_called(&text))?;
            Some(of_field(field, &keys.owner))
        }
        Context::Value(found) => {
            let operation = found
                .operations
                .iter()
                .find(|operation| operation.name == text);
            match operation {
                Some(operation) => Some(of_operation(operation, &found.owner)),
                None => Some(of_field(found.field, &found.owner)),
            }
        }
        Context::Code => None,
    }
}

/// Describes a step type with its operations and required keys.
pub(super) fn of_step(spec: &StepSpec) -> String {
    let mut out = format!("**:{}** · step type\n\n{}\n", spec.kind, spec.doc);
    if let Some(operations) = spec.operations {
        let names: Vec<String> = operations
            .all
            .iter()
            .map(|operation| format!("`:{}`", operation.name))
            .collect();
        let _ = writeln!(
            out,
            "\n`:{}` is one of {}.",
            operations.key,
            names.join(" ")
        );
    }
    let required: Vec<&Field> = spec.fields.iter().filter(|field| field.required).collect();
    for field in required {
        let _ = writeln!(out, "\n`:{}` (required): {}", field.name, field.doc);
    }
    let _ = writeln!(out, "\n{}", effect(spec.effect));
    if let Some(example) = spec.examples.first() {
        let _ = writeln!(out, "\n```clojure\n{example}\n```");
    }
    out
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Pure => "It only computes.",
        Effect::Read => "It reads, and may be repeated after a crash.",
        Effect::OwnStore => "It changes Flowstone's own data, exactly once.",
        Effect::External => "It changes something outside; what a crash leaves open is *in doubt*.",
        Effect::Steps => "It performs other steps, each with its own entry in the journal.",
    }
}

/// Describes a key: its type, its default and its documentation.
pub(super) fn of_field(field: &Field, owner: &str) -> String {
    let mut out = format!("**:{}** · key of {owner}\n\n{}\n", field.name, field.doc);
    let mut types: Vec<String> = Vec::new();
    for type_ in alternatives(field.type_) {
        // The keys of a map are offered inside it.
        types.push(match type_ {
            FieldType::Keys(_) => "a map".to_owned(),
            FieldType::List(FieldType::Keys(_) | FieldType::Either(_)) => {
                "a vector of maps".to_owned()
            }
            other => shape::expected(other),
        });
    }
    types.dedup();
    let _ = writeln!(out, "\nTakes {}.", types.join(" or "));
    if field.required {
        out.push_str("\nRequired.\n");
    }
    if let Some(default) = field.default {
        let _ = writeln!(out, "\nDefault: `{default}`.");
    }
    if !field.aliases.is_empty() {
        let aliases: Vec<String> = field
            .aliases
            .iter()
            .map(|alias| format!("`:{alias}`"))
            .collect();
        let _ = writeln!(out, "\nAlso written {}.", aliases.join(", "));
    }
    out
}

/// Describes an operation of a step type.
pub(super) fn of_operation(operation: &Operation, owner: &str) -> String {
    let mut out = format!(
        "**:{}** · operation of {owner}\n\n{}\n",
        operation.name, operation.doc
    );
    let listed = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
        names.join(" ")
    };
    if !operation.needs.is_empty() {
        let _ = writeln!(out, "\nNeeds {}.", listed(operation.needs));
    }
    if !operation.takes.is_empty() {
        let _ = writeln!(out, "\nTakes {}.", listed(operation.takes));
    }
    let _ = writeln!(out, "\nReturns `{}`.", operation.gives);
    out
}
