//! An open text with its tree, and the texts that are open.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use flowstone_lang::syntax::{NodeId, NodeKind, Tree};
use lsp_types::{Position, Range as LspRange, TextDocumentContentChangeEvent, Uri};

use super::place::{Encoding, Lines, path_of};
use super::scope::Scopes;

/// A text that the client has open, or a file of the project.
pub(super) struct Document {
    pub(super) uri: Uri,
    pub(super) path: Option<PathBuf>,
    pub(super) version: i32,
    pub(super) text: String,
    pub(super) tree: Tree,
    pub(super) lines: Lines,
    encoding: Encoding,
    scopes: OnceCell<Scopes>,
}

impl Document {
    pub(super) fn new(uri: Uri, version: i32, text: String, encoding: Encoding) -> Document {
        Document {
            path: path_of(&uri),
            uri,
            version,
            tree: Tree::parse(&text),
            lines: Lines::new(&text, encoding),
            text,
            encoding,
            scopes: OnceCell::new(),
        }
    }

    /// Applies the changes of the client, one after another.
    pub(super) fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        for change in changes {
            match change.range {
                None => self.text = change.text,
                Some(range) => {
                    let start = self.lines.offset(&self.text, range.start);
                    let end = self.lines.offset(&self.text, range.end).max(start);
                    self.text.replace_range(start..end, &change.text);
                }
            }
            self.lines = Lines::new(&self.text, self.encoding);
        }
        self.version = version;
        self.tree = Tree::parse(&self.text);
        self.scopes = OnceCell::new();
    }

    /// Returns the names that the text defines and binds.
    pub(super) fn scopes(&self) -> &Scopes {
        self.scopes
            .get_or_init(|| Scopes::of(&self.text, &self.tree))
    }

    pub(super) fn offset(&self, position: Position) -> usize {
        self.lines.offset(&self.text, position)
    }

    pub(super) fn range(&self, id: NodeId) -> LspRange {
        self.lines.range(&self.text, self.tree.node(id).range())
    }

    pub(super) fn text_of(&self, id: NodeId) -> &str {
        self.tree.text(&self.text, id)
    }

    pub(super) fn kind(&self, id: NodeId) -> NodeKind {
        self.tree.node(id).kind
    }

    /// Returns the name, keyword or other token at an offset.
    pub(super) fn token(&self, offset: usize) -> Option<NodeId> {
        let id = self.tree.at(offset)?;
        let is_token = matches!(
            self.kind(id),
            NodeKind::Symbol | NodeKind::Keyword | NodeKind::Text | NodeKind::Number
        );
        is_token.then_some(id)
    }

    /// Returns the value of a key of a map literal, without prefixes such as quotes.
    pub(super) fn entry(&self, map: NodeId, key: &str) -> Option<NodeId> {
        let (_, value) = self
            .entries(map)
            .find(|(name, _)| self.text_of(*name) == key)?;
        Some(self.tree.bare(value))
    }

    /// Returns the keys and values of a map literal.
    pub(super) fn entries(&self, map: NodeId) -> impl Iterator<Item = (NodeId, NodeId)> + use<'_> {
        let is_map = self.kind(map) == NodeKind::Map;
        let mut forms = self.tree.forms(Some(map));
        std::iter::from_fn(move || {
            let key = forms.next().filter(|_| is_map)?;
            Some((key, forms.next()?))
        })
    }

    /// Returns the map of a flow's definition: the first map at top level.
    pub(super) fn definition(&self) -> Option<NodeId> {
        let mut forms = self.tree.forms(None).map(|id| self.tree.bare(id));
        forms.find(|id| self.kind(*id) == NodeKind::Map)
    }

    /// Tells whether the first map of the text is the definition of a flow, or will be one.
    pub(super) fn is_definition(&self) -> bool {
        let parts = self.path.iter().flat_map(|path| path.components());
        self.is_flow() || parts.rev().skip(1).any(|part| part.as_os_str() == "flows")
    }

    /// Tells whether the text looks like a flow, as `flowstone check` decides for the files of a folder.
    pub(super) fn is_flow(&self) -> bool {
        self.text.contains(":flow") || self.text.contains("(flow/step")
    }
}

/// The open texts by their addresses.
#[derive(Default)]
pub(super) struct Documents {
    open: BTreeMap<String, Document>,
}

impl Documents {
    pub(super) fn get(&self, uri: &Uri) -> Option<&Document> {
        self.open.get(uri.as_str())
    }

    pub(super) fn get_mut(&mut self, uri: &Uri) -> Option<&mut Document> {
        self.open.get_mut(uri.as_str())
    }

    pub(super) fn insert(&mut self, document: Document) {
        self.open.insert(document.uri.as_str().to_owned(), document);
    }

    pub(super) fn remove(&mut self, uri: &Uri) {
        self.open.remove(uri.as_str());
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Document> {
        self.open.values()
    }

    /// Returns the open texts that have a path.
    pub(super) fn texts(&self) -> Vec<(PathBuf, String)> {
        let with_path = self
            .all()
            .filter_map(|it| Some((it.path.clone()?, it.text.clone())));
        with_path.collect()
    }
}
