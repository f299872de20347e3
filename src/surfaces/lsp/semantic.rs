//! Semantic tokens: what only the server knows. Texts, numbers and comments are left to the editor's grammar.

use flowstone_lang::syntax::{NodeId, NodeKind};
use lsp_types::{
    SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens, SemanticTokensLegend,
};

use super::context::step_call;
use super::document::Document;
use super::library::Library;

/// The types of tokens, by their index.
const TYPES: &[SemanticTokenType] = &[
    SemanticTokenType::MACRO,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::TYPE,
    SemanticTokenType::EVENT,
];
const MACRO: u32 = 0;
const FUNCTION: u32 = 1;
const LOCAL: u32 = 2;
const BINDING: u32 = 3;
const STEP_TYPE: u32 = 4;
const STEP_ID: u32 = 5;

/// Names from the library have the one modifier.
const FROM_LIBRARY: u32 = 1;

pub(super) fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: TYPES.to_vec(),
        token_modifiers: vec![SemanticTokenModifier::DEFAULT_LIBRARY],
    }
}

/// Returns the tokens of a text.
pub(super) fn tokens(document: &Document, library: &Library) -> SemanticTokens {
    let core = library.core();
    let mut data = Vec::new();
    let (mut last_line, mut last_column) = (0, 0);
    for (id, node) in document.tree.all() {
        let found = match node.kind {
            NodeKind::Symbol => of_symbol(document, &core, id),
            NodeKind::Keyword => of_keyword(document, id).map(|kind| (kind, 0)),
            _ => None,
        };
        let Some((token_type, token_modifiers_bitset)) = found else {
            continue;
        };
        let start = document.lines.position(&document.text, node.start as usize);
        let delta_line = start.line - last_line;
        let delta_start = if delta_line == 0 {
            start.character - last_column
        } else {
            start.character
        };
        (last_line, last_column) = (start.line, start.character);
        data.push(SemanticToken {
            delta_line,
            delta_start,
            length: u32::try_from(document.lines.length(document.text_of(id))).unwrap_or(0),
            token_type,
            token_modifiers_bitset,
        });
    }
    SemanticTokens {
        result_id: None,
        data,
    }
}

fn of_symbol(document: &Document, core: &[String], id: NodeId) -> Option<(u32, u32)> {
    let name = document.text_of(id);
    let node = document.tree.node(id);
    let scopes = document.scopes();
    if let Some(local) = scopes.local(id, name, node.start as usize) {
        return Some((if local.token == id { BINDING } else { LOCAL }, 0));
    }
    let is_head = document.tree.parent(id).is_some_and(|list| {
        matches!(document.kind(list), NodeKind::List | NodeKind::Function)
            && document.tree.form(list, 0) == Some(id)
    });
    if scopes.definition(name).is_some() {
        return Some((FUNCTION, 0));
    }
    let is_core = core
        .binary_search_by(|known| known.as_str().cmp(name))
        .is_ok();
    match (is_core, is_head) {
        (true, true) if Library::is_syntax(name) => Some((MACRO, FROM_LIBRARY)),
        (true, _) => Some((FUNCTION, FROM_LIBRARY)),
        (false, true) => Some((FUNCTION, 0)),
        (false, false) => None,
    }
}

fn of_keyword(document: &Document, id: NodeId) -> Option<u32> {
    let call = step_call(document, document.tree.parent(id)?)?;
    match id {
        id if call.type_ == Some(id) => Some(STEP_TYPE),
        id if call.id == Some(id) => Some(STEP_ID),
        _ => None,
    }
}
