//! A syntax tree of source text that loses nothing: every blank, comment and delimiter is in it, and broken text has a
//! tree, too. The formatter and the language server work on it. It knows the shape of forms and not their meaning:
//! whether a text can be read is the reader's to say.
//!
//! The nodes are kept in one list, in the order of the text, each with the index behind its descendants. So nothing here
//! recurses, however deeply a text is nested.

pub mod layout;
mod parse;

use std::ops::Range;

/// The tree of one text.
#[derive(Debug, Clone)]
pub struct Tree {
    nodes: Vec<Node>,
    flaws: Vec<Flaw>,
}

/// The index of a node in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// One node: a form, or what is between forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The kind of the node.
    pub kind: NodeKind,
    /// The byte offset of its first byte.
    pub start: u32,
    /// The byte offset behind its last byte.
    pub end: u32,
    /// The length of its opening delimiter or its prefix; 0 for a node without parts.
    pub open: u32,
    /// Whether a collection has its closing delimiter, or a prefix the form it belongs to.
    pub is_closed: bool,
    parent: Option<NodeId>,
    /// The index behind its last descendant.
    next: u32,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Whitespace and commas.
    Blank,
    /// A comment up to the end of its line, without the line break.
    Comment,
    /// `name`
    Symbol,
    /// `:name`
    Keyword,
    /// `12`
    Number,
    /// `"text"`
    Text,
    /// `#"regex"`
    Regex,
    /// `\a`
    Character,
    /// `(...)`
    List,
    /// `[...]`
    Vector,
    /// `{...}`
    Map,
    /// `#{...}`
    Set,
    /// `#(...)`
    Function,
    /// `'x`
    Quote,
    /// `` `x ``
    SyntaxQuote,
    /// `~x`
    Unquote,
    /// `~@x`
    UnquoteSplice,
    /// `@x`
    Deref,
    /// `#'x`
    VarQuote,
    /// `^meta form`: two forms.
    Meta,
    /// `#_x`, which the reader skips.
    Discard,
    /// `#tag form`
    Tag,
    /// `#:ns{...}`
    NamespacedMap,
    /// `#?(...)` and `#?@(...)`
    Conditional,
    /// A closing delimiter that closes nothing, or another byte that begins no form.
    Stray,
}

/// A place where the text is not balanced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The kind of the flaw.
    pub kind: FlawKind,
    /// The delimiter, prefix or quote at fault.
    pub range: Range<usize>,
}

/// What is wrong at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawKind {
    /// A closing delimiter without an opening one.
    Unopened,
    /// An opening delimiter or quote that is not closed.
    Unclosed,
    /// A prefix such as `'` or `#_` without its form.
    Lone,
    /// A character that begins no form.
    Unreadable,
}

impl NodeKind {
    /// Tells whether the reader skips the node.
    pub fn is_skipped(self) -> bool {
        matches!(
            self,
            NodeKind::Blank | NodeKind::Comment | NodeKind::Discard
        )
    }

    /// Tells whether the node is delimited by brackets.
    pub fn is_collection(self) -> bool {
        self.closer().is_some()
    }

    /// Tells whether the node is a prefix with the form that it applies to.
    pub fn is_prefix(self) -> bool {
        self.wants() > 0
    }

    /// Returns the closing delimiter of a collection.
    pub(crate) fn closer(self) -> Option<u8> {
        match self {
            NodeKind::List | NodeKind::Function => Some(b')'),
            NodeKind::Vector => Some(b']'),
            NodeKind::Map | NodeKind::Set => Some(b'}'),
            _ => None,
        }
    }

    /// Returns the number of forms that a prefix takes; 0 for other nodes.
    pub(crate) fn wants(self) -> u32 {
        match self {
            NodeKind::Meta => 2,
            NodeKind::Quote
            | NodeKind::SyntaxQuote
            | NodeKind::Unquote
            | NodeKind::UnquoteSplice
            | NodeKind::Deref
            | NodeKind::VarQuote
            | NodeKind::Discard
            | NodeKind::Tag
            | NodeKind::NamespacedMap
            | NodeKind::Conditional => 1,
            NodeKind::Blank
            | NodeKind::Comment
            | NodeKind::Symbol
            | NodeKind::Keyword
            | NodeKind::Number
            | NodeKind::Text
            | NodeKind::Regex
            | NodeKind::Character
            | NodeKind::List
            | NodeKind::Vector
            | NodeKind::Map
            | NodeKind::Set
            | NodeKind::Function
            | NodeKind::Stray => 0,
        }
    }
}

impl Node {
    /// Returns the range of the node in its text.
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Tells whether an offset is in the node or right behind it.
    pub fn touches(&self, offset: usize) -> bool {
        self.start as usize <= offset && offset <= self.end as usize
    }
}

impl Tree {
    /// Parses a text. Never fails: what is wrong with the text is in [`Tree::flaws`].
    pub fn parse(text: &str) -> Tree {
        parse::parse(text)
    }

    /// Returns the places where the text is not balanced, in the order of the text.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// Returns a node.
    ///
    /// # Panics
    /// If the id is of another tree.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Returns all nodes in the order of the text, each before its descendants.
    pub fn all(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let ids = (0..).map(NodeId);
        ids.zip(&self.nodes)
    }

    /// Returns the parent of a node; `None` at top level.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.node(id).parent
    }

    /// Returns the children of a node, or the nodes of the top level, also the blanks and comments.
    pub fn parts(&self, of: Option<NodeId>) -> impl Iterator<Item = NodeId> + Clone + use<'_> {
        let (mut at, end) = match of {
            None => (0, self.nodes.len() as u32),
            Some(id) => (id.0 + 1, self.node(id).next),
        };
        std::iter::from_fn(move || {
            let id = (at < end).then_some(NodeId(at))?;
            at = self.node(id).next;
            Some(id)
        })
    }

    /// Returns the forms in a node, or at top level, without what the reader skips.
    pub fn forms(&self, of: Option<NodeId>) -> impl Iterator<Item = NodeId> + Clone + use<'_> {
        self.parts(of).filter(|id| {
            let kind = self.node(*id).kind;
            !kind.is_skipped() && kind != NodeKind::Stray
        })
    }

    /// Returns the form in a node at an index.
    pub fn form(&self, of: NodeId, idx: usize) -> Option<NodeId> {
        self.forms(Some(of)).nth(idx)
    }

    /// Returns the index of a form among the forms of its parent.
    pub fn index(&self, id: NodeId) -> usize {
        let forms = self.forms(self.parent(id));
        forms.take_while(|other| *other < id).count()
    }

    /// Returns the text of a node.
    pub fn text<'t>(&self, text: &'t str, id: NodeId) -> &'t str {
        text.get(self.node(id).range()).unwrap_or_default()
    }

    /// Returns the form behind the prefixes of a form: `x` of `'x`, `^:a x` and `#tag x`.
    pub fn bare(&self, mut id: NodeId) -> NodeId {
        while self.node(id).kind.is_prefix() {
            match self.forms(Some(id)).last() {
                Some(inner) => id = inner,
                None => break,
            }
        }
        id
    }

    /// Returns the symbol at the head of a list.
    pub fn head<'t>(&self, text: &'t str, list: NodeId) -> Option<&'t str> {
        let kind = self.node(list).kind;
        if !matches!(kind, NodeKind::List | NodeKind::Function) {
            return None;
        }
        let head = self.form(list, 0)?;
        let is_symbol = self.node(head).kind == NodeKind::Symbol;
        is_symbol.then(|| self.text(text, head))
    }

    /// Returns the innermost node whose text is at an offset. Where two nodes meet, a name or another token is chosen
    /// before a delimiter or a blank.
    pub fn at(&self, offset: usize) -> Option<NodeId> {
        let mut best: Option<NodeId> = None;
        let mut of = None;
        loop {
            let mut inside = None;
            for id in self.parts(of) {
                let node = self.node(id);
                if node.start as usize > offset {
                    break;
                }
                if node.touches(offset) && self.is_better(id, inside, offset) {
                    inside = Some(id);
                }
            }
            let Some(id) = inside else {
                return best;
            };
            best = Some(id);
            of = inside;
        }
    }

    /// Tells whether a node is a better answer for an offset than one before it.
    fn is_better(&self, id: NodeId, other: Option<NodeId>, offset: usize) -> bool {
        let Some(other) = other.map(|other| self.node(other)) else {
            return true;
        };
        let node = self.node(id);
        let rank = |node: &Node| match node.kind {
            NodeKind::Blank => 0,
            NodeKind::Stray => 1,
            NodeKind::Comment => 2,
            // Behind a closing delimiter, the cursor is outside.
            kind if kind.is_collection() && node.is_closed && node.end as usize == offset => 1,
            _ => 3,
        };
        rank(node) > rank(other)
    }

    /// Returns the innermost collection that an offset is inside of: behind its opening delimiter and before its
    /// closing one.
    pub fn around(&self, offset: usize) -> Option<NodeId> {
        let mut found = None;
        let mut of = None;
        'deeper: loop {
            for id in self.parts(of) {
                let node = self.node(id);
                if node.start as usize > offset {
                    break;
                }
                if !node.touches(offset) || node.next == id.0 + 1 && !node.kind.is_collection() {
                    continue;
                }
                let is_inside = node.kind.is_prefix()
                    || (node.start + node.open) as usize <= offset
                        && (!node.is_closed || offset < node.end as usize);
                if is_inside {
                    if node.kind.is_collection() {
                        found = Some(id);
                    }
                    of = Some(id);
                    continue 'deeper;
                }
            }
            return found;
        }
    }

    /// Returns a node and what it is in, from the inside outwards.
    pub fn path(&self, id: NodeId) -> impl Iterator<Item = NodeId> + use<'_> {
        std::iter::successors(Some(id), |id| self.parent(*id))
    }
}
