//! Requests of the client and their answers, by method.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flowstone_engine::disk;
use lsp_server::{ErrorCode, Request, Response};
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentHighlightRequest, DocumentSymbolRequest,
    FoldingRangeRequest, Formatting, GotoDefinition, HoverRequest, OnTypeFormatting,
    PrepareRenameRequest, RangeFormatting, References, Rename, Request as _, ResolveCompletionItem,
    SelectionRangeRequest, SemanticTokensFullRequest, SignatureHelpRequest, WorkspaceSymbolRequest,
};
use lsp_types::{
    CodeActionParams, CompletionItem, DocumentHighlight, DocumentSymbolParams, FoldingRangeParams,
    Position, RenameParams, SelectionRangeParams, SemanticTokensParams, TextDocumentIdentifier,
    TextDocumentPositionParams, Uri, WorkspaceSymbolParams,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::document::{Document, Documents};
use super::findings::Found;
use super::library::Library;
use super::navigate::{self, Target};
use super::place::{Encoding, uri_of};
use super::{actions, complete, edits, hover, outline, rename, semantic, signature};

/// Files of the project that are searched for names.
const FILES_MAX: usize = 1_000;
/// Larger files are not searched.
const TEXT_MAX: u64 = 2_000_000;
/// Symbols of the project that an answer has.
const SYMBOLS_MAX: usize = 500;

/// Everything that answers are made from.
pub(super) struct Desk {
    pub(super) documents: Documents,
    /// What the last check of a text found, with the version of the text, by its address.
    pub(super) found: BTreeMap<String, (i32, Vec<Found>)>,
    pub(super) library: Library,
    pub(super) root: PathBuf,
    pub(super) encoding: Encoding,
    /// Whether the client takes snippets in completions.
    pub(super) snippets: bool,
}

/// Why a request has no answer.
struct Refusal {
    code: ErrorCode,
    message: String,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
        }
    }
}

/// Answers a request.
pub(super) fn answer(desk: &Desk, request: Request) -> Response {
    match result(desk, &request.method, request.params) {
        Ok(result) => Response::new_ok(request.id, result),
        Err(refusal) => Response::new_err(request.id, refusal.code as i32, refusal.message),
    }
}

fn result(desk: &Desk, method: &str, params: Json) -> Result<Json, Refusal> {
    match method {
        Completion::METHOD => at(desk, params, |desk, document, offset| {
            let slugs = || disk::slugs(&desk.root);
            let completing = complete::Completing {
                document,
                library: &desk.library,
                slugs: &slugs,
                snippets: desk.snippets,
            };
            json(completing.at(offset))
        }),
        ResolveCompletionItem::METHOD => {
            let item: CompletionItem = read(params)?;
            json(complete::resolve(&desk.library, item))
        }
        HoverRequest::METHOD => at(desk, params, |desk, document, offset| {
            json(hover::hover(document, &desk.library, offset))
        }),
        SignatureHelpRequest::METHOD => at(desk, params, |desk, document, offset| {
            json(signature::signature(document, &desk.library, offset))
        }),
        GotoDefinition::METHOD => at(desk, params, definition),
        References::METHOD => {
            let declared = params["context"]["includeDeclaration"]
                .as_bool()
                .unwrap_or(true);
            at(desk, params, |desk, document, offset| {
                references(desk, document, offset, declared)
            })
        }
        DocumentHighlightRequest::METHOD => at(desk, params, |desk, document, offset| {
            let target = navigate::target(document, &desk.library, offset);
            let tokens = target
                .map(|(_, target)| navigate::uses(document, &target))
                .unwrap_or_default();
            let marks = tokens.into_iter().map(|token| DocumentHighlight {
                range: document.range(token),
                kind: None,
            });
            json(marks.collect::<Vec<_>>())
        }),
        PrepareRenameRequest::METHOD => at(desk, params, |desk, document, offset| {
            let range = rename::prepare(document, &desk.library, offset);
            json(range.map_err(|why| Refusal::new(ErrorCode::RequestFailed, why))?)
        }),
        Rename::METHOD => renamed(desk, params),
        CodeActionRequest::METHOD => actions_for(desk, params),
        _ => about_texts(desk, method, params),
    }
}

/// Answers requests about whole texts and the project.
fn about_texts(desk: &Desk, method: &str, params: Json) -> Result<Json, Refusal> {
    match method {
        DocumentSymbolRequest::METHOD => {
            let params: DocumentSymbolParams = read(params)?;
            of_document(desk, &params.text_document, |document| {
                json(outline::symbols(document))
            })
        }
        WorkspaceSymbolRequest::METHOD => {
            let params: WorkspaceSymbolParams = read(params)?;
            json(symbols(desk, &params.query))
        }
        FoldingRangeRequest::METHOD => {
            let params: FoldingRangeParams = read(params)?;
            of_document(desk, &params.text_document, |document| {
                json(outline::folds(document))
            })
        }
        SelectionRangeRequest::METHOD => {
            let params: SelectionRangeParams = read(params)?;
            of_document(desk, &params.text_document, |document| {
                let offsets = params
                    .positions
                    .iter()
                    .map(|position| document.offset(*position));
                json(
                    offsets
                        .map(|offset| outline::selection(document, offset))
                        .collect::<Vec<_>>(),
                )
            })
        }
        SemanticTokensFullRequest::METHOD => {
            let params: SemanticTokensParams = read(params)?;
            of_document(desk, &params.text_document, |document| {
                json(semantic::tokens(document, &desk.library))
            })
        }
        Formatting::METHOD | RangeFormatting::METHOD => formatted(desk, params),
        OnTypeFormatting::METHOD => at(desk, params, |_, document, offset| {
            json(edits::new_line(document, offset))
        }),
        _ => {
            let message = format!("`{method}` is not offered");
            Err(Refusal::new(ErrorCode::MethodNotFound, message))
        }
    }
}

fn read<P: DeserializeOwned>(params: Json) -> Result<P, Refusal> {
    serde_json::from_value(params)
        .map_err(|error| Refusal::new(ErrorCode::InvalidParams, error.to_string()))
}

fn json(result: impl Serialize) -> Result<Json, Refusal> {
    serde_json::to_value(result)
        .map_err(|error| Refusal::new(ErrorCode::InternalError, error.to_string()))
}

/// Answers a request about a place in an open text; null for a text that is not open.
fn at(
    desk: &Desk,
    params: Json,
    answer: impl FnOnce(&Desk, &Document, usize) -> Result<Json, Refusal>,
) -> Result<Json, Refusal> {
    let params: TextDocumentPositionParams = read(params)?;
    of_document(desk, &params.text_document, |document| {
        answer(desk, document, document.offset(params.position))
    })
}

fn of_document(
    desk: &Desk,
    document: &TextDocumentIdentifier,
    answer: impl FnOnce(&Document) -> Result<Json, Refusal>,
) -> Result<Json, Refusal> {
    desk.documents
        .get(&document.uri)
        .map_or(Ok(Json::Null), answer)
}

fn definition(desk: &Desk, document: &Document, offset: usize) -> Result<Json, Refusal> {
    let Some((_, target)) = navigate::target(document, &desk.library, offset) else {
        return Ok(Json::Null);
    };
    let beside = document.path.as_deref().and_then(Path::parent);
    let find = |slug: &str| {
        disk::find(&desk.root, beside, slug)
            .ok()
            .map(|found| found.path)
    };
    if let Target::Library(name) = &target
        && let Some((namespace, plain)) = name.split_once('/')
        && let Some(location) = in_project(desk, namespace, plain)
    {
        return json(location);
    }
    json(navigate::definition(
        document,
        &target,
        &find,
        &library_file,
    ))
}

/// Finds the definition of a name in the other texts of the project.
fn in_project(desk: &Desk, namespace: &str, name: &str) -> Option<lsp_types::Location> {
    let texts = texts(desk);
    let own = texts
        .iter()
        .find(|document| document.scopes().namespace.as_deref() == Some(namespace))?;
    let definition = own.scopes().definition(name)?;
    Some(lsp_types::Location::new(
        own.uri.clone(),
        own.range(definition.token),
    ))
}

fn references(
    desk: &Desk,
    document: &Document,
    offset: usize,
    declared: bool,
) -> Result<Json, Refusal> {
    let Some((_, target)) = navigate::target(document, &desk.library, offset) else {
        return Ok(Json::Null);
    };
    let mut tokens = navigate::uses(document, &target);
    let defining = match &target {
        Target::Local(token) | Target::Definition(token) => Some(*token),
        Target::Link(super::links::Link::Entry { token, .. }) => Some(*token),
        Target::Link(_) | Target::Library(_) => None,
    };
    if !declared {
        tokens.retain(|token| Some(*token) != defining);
    }
    let mut found = navigate::locations(document, &tokens);
    let named = match (&target, document.scopes().namespace.as_deref()) {
        (Target::Library(name), _) => name
            .split_once('/')
            .map(|(home, name)| (home.to_owned(), name.to_owned())),
        (Target::Definition(token), Some(home)) => {
            Some((home.to_owned(), document.text_of(*token).to_owned()))
        }
        _ => None,
    };
    if let Some((namespace, name)) = named.filter(|(namespace, _)| namespace != "clojure.core") {
        for other in texts(desk).iter().filter(|other| other.uri != document.uri) {
            let tokens = navigate::uses_elsewhere(other, &namespace, &name);
            found.extend(navigate::locations(other, &tokens));
        }
    }
    json(found)
}

fn renamed(desk: &Desk, params: Json) -> Result<Json, Refusal> {
    let params: RenameParams = read(params)?;
    let place = params.text_document_position;
    of_document(desk, &place.text_document, |document| {
        let texts = texts(desk);
        let offset = document.offset(place.position);
        let edit = rename::rename(
            document,
            &desk.library,
            (offset, &params.new_name),
            texts.iter(),
        );
        json(edit.map_err(|why| Refusal::new(ErrorCode::RequestFailed, why))?)
    })
}

fn actions_for(desk: &Desk, params: Json) -> Result<Json, Refusal> {
    let params: CodeActionParams = read(params)?;
    of_document(desk, &params.text_document, |document| {
        let found = desk.found.get(document.uri.as_str());
        // The places of older findings may be others now.
        let Some((_, found)) = found.filter(|(version, _)| *version == document.version) else {
            return Ok(Json::Null);
        };
        let part = document.offset(params.range.start)..document.offset(params.range.end);
        json(actions::actions(document, found, &part))
    })
}

fn formatted(desk: &Desk, params: Json) -> Result<Json, Refusal> {
    let range = params.get("range").cloned();
    let uri: Uri = read(params["textDocument"]["uri"].clone())?;
    of_document(desk, &TextDocumentIdentifier::new(uri), |document| {
        let Some(range) = range else {
            return json(edits::whole(document));
        };
        let range: lsp_types::Range = read(range)?;
        let offsets = |position: Position| document.offset(position);
        json(edits::range(
            document,
            &(offsets(range.start)..offsets(range.end)),
        ))
    })
}

fn symbols(desk: &Desk, query: &str) -> Vec<lsp_types::SymbolInformation> {
    let mut found = Vec::new();
    for document in desk.documents.all() {
        found.extend(outline::matching(document, query));
    }
    for document in texts(desk)
        .iter()
        .filter(|document| desk.documents.get(&document.uri).is_none())
    {
        found.extend(outline::matching(document, query));
        if found.len() >= SYMBOLS_MAX {
            break;
        }
    }
    found.truncate(SYMBOLS_MAX);
    found
}

/// Returns the texts of the project: what is open, and the files of flows and code.
fn texts(desk: &Desk) -> Vec<Document> {
    let open = desk.documents.all().map(|document| {
        Document::new(
            document.uri.clone(),
            document.version,
            document.text.clone(),
            desk.encoding,
        )
    });
    let mut found: Vec<Document> = open.collect();
    let files = disk::files_of(&desk.root).into_iter();
    let unopened =
        files.filter(|path| uri_of(path).is_none_or(|uri| desk.documents.get(&uri).is_none()));
    for path in unopened.take(FILES_MAX) {
        let is_small = std::fs::metadata(&path).is_ok_and(|facts| facts.len() <= TEXT_MAX);
        let text = std::fs::read_to_string(&path).ok().filter(|_| is_small);
        if let (Some(text), Some(uri)) = (text, uri_of(&path)) {
            found.push(Document::new(uri, 0, text, desk.encoding));
        }
    }
    found
}

/// Writes a text of the library to the user's cache, so that an editor can show it.
fn library_file(file: &str, text: &str) -> Option<PathBuf> {
    let folder = super::cache_folder()?.join(concat!("library-", env!("CARGO_PKG_VERSION")));
    let path = folder.join(file);
    if std::fs::read_to_string(&path).is_ok_and(|known| known == text) {
        return Some(path);
    }
    std::fs::create_dir_all(path.parent()?).ok()?;
    std::fs::write(&path, text).ok()?;
    Some(path)
}
