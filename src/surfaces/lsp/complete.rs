//! Completion: names, step types, keys, operations and values.

use std::collections::BTreeSet;

use flowstone_flow::step::{Field, FieldType};
use flowstone_lang::session::DescribedKind;
use flowstone_lang::syntax::{NodeId, NodeKind};
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionTextEdit, Documentation, InsertTextFormat,
    TextEdit,
};
use serde_json::json;

use super::context::{Context, FieldOf, Keys, alternatives, context, cursor};
use super::document::Document;
use super::hover;
use super::library::Library;

/// What may be completed at a place.
pub(super) struct Completing<'a> {
    pub(super) document: &'a Document,
    pub(super) library: &'a Library,
    /// The slugs of the project's flows.
    pub(super) slugs: &'a dyn Fn() -> Vec<String>,
    /// Whether the client takes snippets.
    pub(super) snippets: bool,
}

impl Completing<'_> {
    /// Returns what may be written at an offset.
    pub(super) fn at(&self, offset: usize) -> Vec<CompletionItem> {
        let document = self.document;
        let token = document
            .token(offset)
            .filter(|token| document.kind(*token) != NodeKind::Number);
        let at = document.tree.at(offset).map(|id| document.kind(id));
        if matches!(
            at,
            Some(NodeKind::Comment | NodeKind::Regex | NodeKind::Character)
        ) {
            return Vec::new();
        }
        let start = token.map_or(offset, |token| document.tree.node(token).start as usize);
        let word = document.text.get(start..offset).unwrap_or_default();
        let mut found = match context(document, &self.library.specs, offset) {
            Context::StepType => self.step_types(),
            Context::Key(keys) => self.keys(&keys, token),
            Context::Value(found) => self.values(&found, word),
            Context::Code => Vec::new(),
        };
        // A value may be computed: a name is always possible.
        let is_literal = word.is_empty() || word.starts_with([':', '"']);
        if !word.starts_with('"') && (found.is_empty() || !is_literal) {
            found.extend(self.code(offset, word));
        }
        let range = document.lines.range(&document.text, start..offset);
        let fits = |item: &CompletionItem| {
            item.label.starts_with(word) && (item.label != word || word.is_empty())
        };
        let fitting = found.into_iter().filter(fits).map(|mut item| {
            let new_text = item
                .insert_text
                .take()
                .unwrap_or_else(|| item.label.clone());
            item.text_edit = Some(CompletionTextEdit::Edit(TextEdit { range, new_text }));
            item
        });
        fitting.collect()
    }

    fn step_types(&self) -> Vec<CompletionItem> {
        let specs = self.library.specs.iter();
        let item = |spec: &&flowstone_flow::step::StepSpec| CompletionItem {
            label: format!(":{}", spec.kind),
            kind: Some(CompletionItemKind::MODULE),
            detail: spec.doc.lines().next().map(str::to_owned),
            data: Some(json!({ "step": spec.kind })),
            ..CompletionItem::default()
        };
        let mut found: Vec<CompletionItem> = specs.map(item).collect();
        // Steps that the flow packages have its own names.
        for (id, what) in super::links::packaged(self.document) {
            found.push(simple(&id, CompletionItemKind::MODULE, what));
        }
        found
    }

    /// Returns the keys that a map does not have yet, required ones first.
    fn keys(&self, keys: &Keys, token: Option<NodeId>) -> Vec<CompletionItem> {
        let document = self.document;
        let given: Vec<&str> = document
            .entries(keys.map)
            .filter(|(key, _)| Some(*key) != token)
            .map(|(key, _)| document.text_of(key).trim_start_matches(':'))
            .collect();
        let mut seen = BTreeSet::new();
        let free = keys.fields.iter().filter(|field| {
            let is_given = given.iter().any(|key| field.is_called(key));
            !is_given && seen.insert(field.name)
        });
        free.map(|field| self.key(field, &keys.owner)).collect()
    }

    fn key(&self, field: &Field, owner: &str) -> CompletionItem {
        let label = format!(":{}", field.name);
        let value = match alternatives(field.type_).first() {
            Some(FieldType::Keys(_) | FieldType::Map) => Some("{$0}"),
            Some(FieldType::List(_) | FieldType::Items) => Some("[$0]"),
            Some(FieldType::Text) => Some("\"$0\""),
            Some(FieldType::OneOf(_)) => Some(":$0"),
            _ => None,
        };
        let snippet = value
            .filter(|_| self.snippets)
            .map(|value| format!("{label} {value}"));
        CompletionItem {
            kind: Some(CompletionItemKind::FIELD),
            detail: Some(match field.required {
                true => format!("{} (required)", field.doc),
                false => field.doc.to_owned(),
            }),
            documentation: Some(Documentation::MarkupContent(hover::markdown(
                hover::of_field(field, owner),
            ))),
            // Required keys first.
            sort_text: Some(format!("{}{}", u8::from(!field.required), field.name)),
            insert_text_format: snippet.is_some().then_some(InsertTextFormat::SNIPPET),
            insert_text: snippet,
            label,
            ..CompletionItem::default()
        }
    }

    fn values(&self, found: &FieldOf, word: &str) -> Vec<CompletionItem> {
        if !found.operations.is_empty() {
            let item = |operation: &flowstone_flow::step::Operation| CompletionItem {
                label: format!(":{}", operation.name),
                kind: Some(CompletionItemKind::METHOD),
                detail: operation.doc.lines().next().map(str::to_owned),
                documentation: Some(Documentation::MarkupContent(hover::markdown(
                    hover::of_operation(operation, &found.owner),
                ))),
                ..CompletionItem::default()
            };
            return found.operations.iter().map(item).collect();
        }
        let sigil = if word.starts_with('"') { "" } else { ":" };
        let mut values = Vec::new();
        for choice in choices(found.field.type_) {
            let (label, kind) = match choice {
                "true" | "false" => (choice.to_owned(), CompletionItemKind::VALUE),
                name if sigil.is_empty() => {
                    (format!("\"{name}\""), CompletionItemKind::ENUM_MEMBER)
                }
                name => (format!(":{name}"), CompletionItemKind::ENUM_MEMBER),
            };
            values.push(CompletionItem {
                label,
                kind: Some(kind),
                detail: Some(found.field.doc.to_owned()),
                ..CompletionItem::default()
            });
        }
        values.extend(self.links(found.field.name));
        values
    }

    /// Returns the names in the definition that a key refers to: functions, templates, slots.
    fn links(&self, key: &str) -> Vec<CompletionItem> {
        let targets = super::links::targets(self.document, key).into_iter();
        let item = |(id, what): (String, &'static str)| CompletionItem {
            label: id,
            kind: Some(CompletionItemKind::REFERENCE),
            detail: Some(what.to_owned()),
            ..CompletionItem::default()
        };
        targets.map(item).collect()
    }

    /// Returns names of code: locals, definitions, aliases, the library; or the keywords of the text.
    fn code(&self, offset: usize, word: &str) -> Vec<CompletionItem> {
        if word.starts_with(':') {
            return match self.is_slug(offset) {
                true => self.slugs(),
                false => self.keywords(offset),
            };
        }
        if let Some((prefix, _)) = word
            .split_once('/')
            .filter(|(prefix, _)| !prefix.is_empty())
        {
            return self.of_namespace(prefix);
        }
        if word.is_empty() {
            return match self.is_slug(offset) {
                true => self.slugs(),
                false => self.locals(offset),
            };
        }
        let mut found = self.locals(offset);
        let scopes = self.document.scopes();
        for definition in &scopes.definitions {
            let usage = hover::usages(self.document, definition.form).join(" ");
            found.push(simple(
                &definition.name,
                CompletionItemKind::FUNCTION,
                &usage,
            ));
        }
        let referred = scopes.referred.iter();
        found.extend(referred.map(|(name, home)| self.named(name, &format!("{home}/{name}"))));
        let core = self.library.core();
        let fitting = core.iter().filter(|name| name.starts_with(word));
        found.extend(fitting.map(|name| self.named(name, name)));
        let aliases = scopes.aliases.iter();
        found.extend(
            aliases.map(|(alias, name)| {
                simple(&format!("{alias}/"), CompletionItemKind::MODULE, name)
            }),
        );
        let is_required = self.is_required(offset);
        let namespaces = self.library.namespaces().into_iter();
        for namespace in namespaces.filter(|name| name.starts_with(word)) {
            let label = match is_required {
                true => namespace,
                false => format!("{namespace}/"),
            };
            found.push(simple(&label, CompletionItemKind::MODULE, "namespace"));
        }
        let mut seen = BTreeSet::new();
        found.retain(|item| seen.insert(item.label.clone()));
        found
    }

    fn locals(&self, offset: usize) -> Vec<CompletionItem> {
        let mut seen = BTreeSet::new();
        let visible = self.document.scopes().visible(offset);
        let names = visible.filter(|local| seen.insert(local.name.clone()));
        names
            .map(|local| simple(&local.name, CompletionItemKind::VARIABLE, "local"))
            .collect()
    }

    fn of_namespace(&self, prefix: &str) -> Vec<CompletionItem> {
        let aliases = &self.document.scopes().aliases;
        let namespace = aliases.get(prefix).map_or(prefix, String::as_str);
        let names = self.library.names(namespace);
        let names = names.iter();
        names
            .map(|name| self.named(&format!("{prefix}/{name}"), &format!("{namespace}/{name}")))
            .collect()
    }

    /// Returns the item of a name of the library, which is described when the client asks for it.
    fn named(&self, label: &str, full: &str) -> CompletionItem {
        let is_syntax = label == full && Library::is_syntax(full);
        CompletionItem {
            label: label.to_owned(),
            kind: Some(match is_syntax {
                true => CompletionItemKind::KEYWORD,
                false => CompletionItemKind::FUNCTION,
            }),
            data: Some(json!({ "name": full })),
            ..CompletionItem::default()
        }
    }

    fn keywords(&self, offset: usize) -> Vec<CompletionItem> {
        let document = self.document;
        let nodes = document.tree.all();
        let others =
            nodes.filter(|(_, node)| node.kind == NodeKind::Keyword && node.end as usize != offset);
        let names: BTreeSet<&str> = others.map(|(id, _)| document.text_of(id)).collect();
        names
            .into_iter()
            .map(|name| simple(name, CompletionItemKind::CONSTANT, "keyword"))
            .collect()
    }

    /// Tells whether an offset is the name of a flow: the first argument of `flow/call-flow`.
    fn is_slug(&self, offset: usize) -> bool {
        let document = self.document;
        cursor(document, offset).is_some_and(|(list, idx)| {
            idx == 1 && document.tree.head(&document.text, list) == Some("flow/call-flow")
        })
    }

    fn slugs(&self) -> Vec<CompletionItem> {
        let slugs = (self.slugs)().into_iter();
        slugs
            .map(|slug| {
                simple(
                    &format!(":{slug}"),
                    CompletionItemKind::FILE,
                    "flow of the project",
                )
            })
            .collect()
    }

    /// Tells whether an offset is inside of a `require`.
    fn is_required(&self, offset: usize) -> bool {
        let document = self.document;
        let Some(inside) = document.tree.around(offset) else {
            return false;
        };
        document.tree.path(inside).any(|id| {
            let head = document.tree.form(id, 0).map(|head| document.text_of(head));
            matches!(head, Some("require" | ":require" | "use" | ":use"))
        })
    }
}

/// Adds the description of an item that the client has selected.
pub(super) fn resolve(library: &Library, mut item: CompletionItem) -> CompletionItem {
    let data = item.data.clone().unwrap_or_default();
    if let Some(name) = data["name"].as_str()
        && let Some(description) = library.describe(name)
    {
        item.detail = description.usages.first().cloned();
        if description.kind == DescribedKind::Value {
            item.kind = Some(CompletionItemKind::VARIABLE);
        }
        let text = hover::markdown(hover::of_description(&description));
        item.documentation = Some(Documentation::MarkupContent(text));
    }
    if let Some(spec) = data["step"].as_str().and_then(|name| library.spec(name)) {
        item.documentation = Some(Documentation::MarkupContent(hover::markdown(
            hover::of_step(spec),
        )));
    }
    item
}

/// Returns the names that a type accepts.
fn choices(type_: FieldType) -> Vec<&'static str> {
    let mut found = Vec::new();
    for type_ in alternatives(type_) {
        match type_ {
            FieldType::OneOf(names) => found.extend(names),
            FieldType::Bool => found.extend(["true", "false"]),
            FieldType::List(inner) => found.extend(choices(*inner)),
            _ => {}
        }
    }
    found
}

fn simple(label: &str, kind: CompletionItemKind, detail: &str) -> CompletionItem {
    CompletionItem {
        label: label.to_owned(),
        kind: Some(kind),
        detail: Some(detail.to_owned()),
        ..CompletionItem::default()
    }
}
