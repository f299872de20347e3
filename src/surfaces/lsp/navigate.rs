//! Definitions and references, in the open texts, in the files of the project and in the library.

use std::path::{Path, PathBuf};

use flowstone_lang::library as sources;
use flowstone_lang::syntax::{NodeId, NodeKind};
use lsp_types::{Location, Range as LspRange, Uri};

use super::document::Document;
use super::library::Library;
use super::links::{self, Link};
use super::place::uri_of;

/// What a token stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A local of the text, by the token that binds it.
    Local(NodeId),
    /// A top-level definition of the text, by the token that names it.
    Definition(NodeId),
    /// A name of the library.
    Library(String),
    Link(Link),
}

/// Returns what the token at an offset stands for, with the token.
pub(super) fn target(
    document: &Document,
    library: &Library,
    offset: usize,
) -> Option<(NodeId, Target)> {
    let token = document.token(offset)?;
    if document.kind(token) != NodeKind::Symbol {
        // The name of a key in `{:keys [:name]}` is a local.
        let name = document.text_of(token).trim_start_matches(':');
        let own = document
            .scopes()
            .locals
            .iter()
            .find(|local| local.token == token);
        return match own {
            Some(local) if local.name == name => Some((token, Target::Local(local.token))),
            _ => links::link(document, token).map(|link| (token, Target::Link(link))),
        };
    }
    let name = document.text_of(token);
    let scopes = document.scopes();
    let start = document.tree.node(token).start as usize;
    if let Some(local) = scopes.local(token, name, start) {
        return Some((token, Target::Local(local.token)));
    }
    if let Some(definition) = scopes.definition(name) {
        return Some((token, Target::Definition(definition.token)));
    }
    let full = scopes.qualified(name);
    let description = library.describe(&full)?;
    Some((token, Target::Library(description.name.to_string())))
}

/// Returns the place that defines what a target stands for. `find` looks for the flow of a slug, `library_file` returns
/// the path of a text of the library.
pub(super) fn definition(
    document: &Document,
    target: &Target,
    find: &dyn Fn(&str) -> Option<PathBuf>,
    library_file: &dyn Fn(&str, &str) -> Option<PathBuf>,
) -> Option<Location> {
    match target {
        Target::Local(token)
        | Target::Definition(token)
        | Target::Link(Link::Entry { token, .. }) => {
            Some(Location::new(document.uri.clone(), document.range(*token)))
        }
        Target::Link(Link::Slug(slug)) => top_of(&find(slug)?),
        Target::Link(Link::File(path)) => top_of(path),
        Target::Library(name) => {
            let (namespace, plain) = name.split_once('/')?;
            let form = sources::forms_of(namespace, plain).next()?;
            let path = library_file(form.source.file, form.source.text)?;
            let before = form.source.text.get(..form.start as usize)?;
            let line = u32::try_from(before.matches('\n').count()).ok()?;
            let start = lsp_types::Position::new(line, 0);
            Some(Location::new(uri_of(&path)?, LspRange::new(start, start)))
        }
    }
}

fn top_of(path: &Path) -> Option<Location> {
    path.is_file().then_some(())?;
    Some(Location::new(uri_of(path)?, LspRange::default()))
}

/// Returns the tokens of a text that stand for the same as one of its tokens, also the one that defines it.
pub(super) fn uses(document: &Document, target: &Target) -> Vec<NodeId> {
    match target {
        Target::Link(Link::Entry { token, section }) => links::uses(document, *token, *section),
        Target::Link(_) => Vec::new(),
        Target::Local(binding) => {
            let scopes = document.scopes();
            let name = scopes
                .locals
                .iter()
                .find(|local| local.token == *binding)
                .map(|local| &*local.name);
            let Some(name) = name else {
                return Vec::new();
            };
            let symbols = document.tree.all().filter(|(id, node)| {
                *id == *binding
                    || node.kind == NodeKind::Symbol
                        && document.text_of(*id) == name
                        && scopes
                            .local(*id, name, node.start as usize)
                            .is_some_and(|local| local.token == *binding)
            });
            symbols.map(|(id, _)| id).collect()
        }
        Target::Definition(defined) => {
            let name = document.text_of(*defined);
            free(document, |text, _| text == name)
        }
        Target::Library(full) => free(document, |text, document| {
            let qualified = document.scopes().qualified(text);
            qualified == *full || full.strip_prefix("clojure.core/") == Some(text)
        }),
    }
}

/// Returns the symbols of a text that are not local and for which `is_meant` holds.
fn free(document: &Document, is_meant: impl Fn(&str, &Document) -> bool) -> Vec<NodeId> {
    let scopes = document.scopes();
    let symbols = document.tree.all().filter(|(id, node)| {
        let text = document.text_of(*id);
        node.kind == NodeKind::Symbol
            && is_meant(text, document)
            && scopes.local(*id, text, node.start as usize).is_none()
    });
    symbols.map(|(id, _)| id).collect()
}

/// Returns the uses of a name of a namespace in another text of the project.
pub(super) fn uses_elsewhere(document: &Document, namespace: &str, name: &str) -> Vec<NodeId> {
    let full = format!("{namespace}/{name}");
    free(document, |text, document| {
        text.contains(name) && document.scopes().qualified(text) == full
    })
}

/// Returns the places of tokens.
pub(super) fn locations(document: &Document, tokens: &[NodeId]) -> Vec<Location> {
    let uri: &Uri = &document.uri;
    let tokens = tokens.iter();
    tokens
        .map(|token| Location::new(uri.clone(), document.range(*token)))
        .collect()
}
