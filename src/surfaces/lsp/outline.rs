//! The parts of a text: symbols for an outline, symbols of the project, and ranges to fold.

use flowstone_lang::syntax::{NodeId, NodeKind};
use lsp_types::{
    DocumentSymbol, FoldingRange, FoldingRangeKind, Location, SelectionRange, SymbolInformation,
    SymbolKind,
};

use super::context::step_call;
use super::document::Document;

/// Forms around a place that can be selected, one after another.
const SELECTED: usize = 100;

/// A part of a text with a name.
struct Part {
    name: String,
    detail: Option<String>,
    kind: SymbolKind,
    whole: NodeId,
    token: NodeId,
    parts: Vec<Part>,
}

/// Returns the outline of a text.
pub(super) fn symbols(document: &Document) -> Vec<DocumentSymbol> {
    parts(document)
        .into_iter()
        .map(|part| symbol(document, part))
        .collect()
}

/// Returns the named parts of a text whose name contains a query.
pub(super) fn matching(document: &Document, query: &str) -> Vec<SymbolInformation> {
    let query = query.to_lowercase();
    let mut open = parts(document);
    let mut found = Vec::new();
    while let Some(part) = open.pop() {
        if part.name.to_lowercase().contains(&query) {
            found.push(information(document, &part));
        }
        open.extend(part.parts);
    }
    found
}

#[expect(deprecated, reason = "a field of the protocol that has no constructor")]
fn information(document: &Document, part: &Part) -> SymbolInformation {
    SymbolInformation {
        name: part.name.clone(),
        kind: part.kind,
        tags: None,
        deprecated: None,
        location: Location::new(document.uri.clone(), document.range(part.token)),
        container_name: part.detail.clone(),
    }
}

#[expect(deprecated, reason = "a field of the protocol that has no constructor")]
fn symbol(document: &Document, part: Part) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> = part
        .parts
        .into_iter()
        .map(|part| symbol(document, part))
        .collect();
    DocumentSymbol {
        name: part.name,
        detail: part.detail,
        kind: part.kind,
        tags: None,
        deprecated: None,
        range: document.range(part.whole),
        selection_range: document.range(part.token),
        children: (!children.is_empty()).then_some(children),
    }
}

fn parts(document: &Document) -> Vec<Part> {
    let mut found: Vec<Part> = Vec::new();
    if let Some(map) = document.definition().filter(|_| document.is_flow()) {
        found.extend(flow(document, map));
    }
    for definition in &document.scopes().definitions {
        let head = document
            .tree
            .form(definition.form, 0)
            .map(|head| document.text_of(head));
        let head = head.unwrap_or_default();
        found.push(Part {
            name: definition.name.clone(),
            detail: Some(head.to_owned()),
            kind: match head {
                "defprotocol" => SymbolKind::INTERFACE,
                "defrecord" | "deftype" => SymbolKind::CLASS,
                head if head.starts_with("defn") || head == "defmacro" || head == "defmulti" => {
                    SymbolKind::FUNCTION
                }
                _ => SymbolKind::VARIABLE,
            },
            whole: definition.form,
            token: definition.token,
            parts: Vec::new(),
        });
    }
    found
}

/// Returns the parts of a flow: its entries, and its steps in their order.
fn flow(document: &Document, map: NodeId) -> Option<Part> {
    let slug = document.entry(map, ":slug")?;
    let mut parts = Vec::new();
    for (section, id, kind) in [
        (":requires", ":slot", SymbolKind::INTERFACE),
        (":functions", ":id", SymbolKind::FUNCTION),
        (":templates", ":id", SymbolKind::STRING),
        (":steps", ":id", SymbolKind::METHOD),
        (":agents", ":id", SymbolKind::CLASS),
    ] {
        let Some(list) = document.entry(map, section) else {
            continue;
        };
        for entry in document
            .tree
            .forms(Some(list))
            .map(|id| document.tree.bare(id))
        {
            if let Some(token) = document.entry(entry, id) {
                parts.push(leaf(
                    document,
                    (entry, token),
                    kind,
                    section.trim_start_matches(':'),
                ));
            }
        }
    }
    for (id, _) in document.tree.all() {
        let call = step_call(document, id);
        if let Some((call, token)) = call.and_then(|call| Some((call, call.id?)))
            && document.kind(token) == NodeKind::Keyword
        {
            let type_ = call.type_.map_or("", |type_| document.text_of(type_));
            parts.push(leaf(document, (id, token), SymbolKind::EVENT, type_));
        }
    }
    Some(Part {
        parts,
        ..leaf(document, (map, slug), SymbolKind::MODULE, "flow")
    })
}

fn leaf(
    document: &Document,
    (whole, token): (NodeId, NodeId),
    kind: SymbolKind,
    detail: &str,
) -> Part {
    Part {
        name: document.text_of(token).to_owned(),
        detail: Some(detail.to_owned()),
        kind,
        whole,
        token,
        parts: Vec::new(),
    }
}

/// Returns what can be folded: collections and comments of several lines.
pub(super) fn folds(document: &Document) -> Vec<FoldingRange> {
    let line = |offset: u32| {
        document
            .lines
            .position(&document.text, offset as usize)
            .line
    };
    let mut found: Vec<FoldingRange> = Vec::new();
    let mut comment: Option<(u32, u32)> = None;
    let mut comments: Vec<(u32, u32)> = Vec::new();
    for (_, node) in document.tree.all() {
        let (start, end) = (line(node.start), line(node.end));
        match node.kind {
            NodeKind::Comment => match &mut comment {
                Some((_, last)) if *last + 1 == start => *last = end,
                _ => comments.extend(comment.replace((start, end))),
            },
            kind if kind.is_collection() && end > start => found.push(fold(start, end, None)),
            _ => {}
        }
    }
    comments.extend(comment);
    let several = comments.into_iter().filter(|(start, end)| end > start);
    found.extend(several.map(|(start, end)| fold(start, end, Some(FoldingRangeKind::Comment))));
    found
}

fn fold(start_line: u32, end_line: u32, kind: Option<FoldingRangeKind>) -> FoldingRange {
    FoldingRange {
        start_line,
        end_line,
        kind,
        ..FoldingRange::default()
    }
}

/// Returns the forms around an offset, from the inside outwards.
pub(super) fn selection(document: &Document, offset: usize) -> SelectionRange {
    let whole = document.lines.range(&document.text, 0..document.text.len());
    let mut selected = SelectionRange {
        range: whole,
        parent: None,
    };
    let path: Vec<NodeId> = document
        .tree
        .at(offset)
        .map(|id| document.tree.path(id).take(SELECTED).collect())
        .unwrap_or_default();
    for id in path.into_iter().rev() {
        selected = SelectionRange {
            range: document.range(id),
            parent: Some(Box::new(selected)),
        };
    }
    selected
}
