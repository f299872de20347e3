//! The parameters of the call that the cursor is in.

use lsp_types::{
    Documentation, ParameterInformation, ParameterLabel, SignatureHelp, SignatureInformation,
};

use flowstone_lang::syntax::NodeKind;

use super::context::cursor;
use super::document::Document;
use super::hover;
use super::library::Library;

/// Returns the usages of the innermost call around an offset.
pub(super) fn signature(
    document: &Document,
    library: &Library,
    offset: usize,
) -> Option<SignatureHelp> {
    let (mut list, mut idx) = cursor(document, offset)?;
    // A vector or map is part of an argument.
    while document.tree.head(&document.text, list).is_none() {
        let outer = document.tree.parent(list)?;
        if !document.kind(outer).is_prefix() {
            idx = document.tree.index(list);
        }
        list = outer;
    }
    let head = document.tree.head(&document.text, list)?;
    let scopes = document.scopes();
    let (usages, doc) = match scopes.definition(head) {
        Some(definition) => (hover::usages(document, definition.form), String::new()),
        None => {
            let description = library.describe(&scopes.qualified(head))?;
            (description.usages.clone(), description.doc.clone())
        }
    };
    if usages.is_empty() {
        return None;
    }
    let argument = idx.saturating_sub(1);
    let signatures: Vec<SignatureInformation> = usages
        .iter()
        .map(|usage| information(usage, &doc))
        .collect();
    let takes = |signature: &SignatureInformation| {
        let parameters = signature.parameters.as_deref().unwrap_or_default();
        argument < parameters.len() || is_variadic(&signature.label)
    };
    let active = signatures
        .iter()
        .position(takes)
        .unwrap_or(signatures.len() - 1);
    let count = signatures[active].parameters.as_ref().map_or(0, Vec::len);
    let parameter = match is_variadic(&signatures[active].label) {
        true => argument.min(count.saturating_sub(1)),
        false => argument,
    };
    Some(SignatureHelp {
        active_signature: u32::try_from(active).ok(),
        active_parameter: u32::try_from(parameter).ok(),
        signatures,
    })
}

fn is_variadic(usage: &str) -> bool {
    usage
        .split_whitespace()
        .any(|word| word == "&" || word.ends_with("...") || word.ends_with("...)"))
}

/// Returns a signature with the places of its parameters.
fn information(usage: &str, doc: &str) -> SignatureInformation {
    let tree = flowstone_lang::syntax::Tree::parse(usage);
    let mut parameters = Vec::new();
    if let Some(list) = tree
        .forms(None)
        .next()
        .filter(|list| tree.node(*list).kind == NodeKind::List)
    {
        for form in tree.forms(Some(list)).skip(1) {
            let text = tree.text(usage, form);
            if text != "&" {
                parameters.push(ParameterInformation {
                    label: ParameterLabel::Simple(text.to_owned()),
                    documentation: None,
                });
            }
        }
    }
    let doc = doc.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    SignatureInformation {
        label: usage.to_owned(),
        documentation: (!doc.is_empty()).then_some(Documentation::String(doc)),
        parameters: Some(parameters),
        active_parameter: None,
    }
}
