//! The conversation with the client: handshake, changes of texts, requests, findings, and the end.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, Sender, select};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    Cancel, DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument,
    DidOpenTextDocument, DidSaveTextDocument, Exit, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{Initialize, Request as _, Shutdown};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CompletionOptions, Diagnostic,
    DiagnosticRelatedInformation, DiagnosticSeverity, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentOnTypeFormattingOptions,
    FoldingRangeProviderCapability, HoverProviderCapability, InitializeParams, InitializeResult,
    Location, NumberOrString, OneOf, PositionEncodingKind, PublishDiagnosticsParams, RenameOptions,
    SaveOptions, SelectionRangeProviderCapability, SemanticTokensFullOptions,
    SemanticTokensOptions, SemanticTokensServerCapabilities, ServerCapabilities, ServerInfo,
    SignatureHelpOptions, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, Uri, WorkDoneProgressOptions,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Backend;
use super::answers::{Desk, answer};
use super::document::{Document, Documents};
use super::findings::{Checked, Checker, Found, Job};
use super::library::Library;
use super::place::Encoding;
use super::semantic;

/// How the conversation ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client asked for the end first, as it should.
    Cleanly,
    /// The client left without asking.
    Abruptly,
    /// The system could not start a thread.
    Failed(String),
}

/// Serves one client on standard input and output until it leaves.
pub fn serve(backend: &'static dyn Backend) -> Ended {
    let (connection, threads) = Connection::stdio();
    let ended = talk(backend, &connection);
    // The writing thread ends when nothing can be sent any more.
    drop(connection);
    if ended == Ended::Cleanly {
        // The last answer is written before the process ends. A client that is gone makes this fail.
        let _ = threads.join();
    }
    ended
}

/// Talks with a client over any connection.
fn talk(backend: &'static dyn Backend, connection: &Connection) -> Ended {
    let Some(desk) = greet(backend, connection) else {
        return Ended::Abruptly;
    };
    let checker = match Checker::start(backend) {
        Ok(checker) => checker,
        Err(error) => return Ended::Failed(error.to_string()),
    };
    let mut server = Server {
        desk,
        checker,
        sender: connection.sender.clone(),
        is_ending: false,
    };
    server.serve(&connection.receiver)
}

/// Answers `initialize`, and everything before it with an error. `None` if the client leaves.
fn greet(backend: &dyn Backend, connection: &Connection) -> Option<Desk> {
    loop {
        let request = match connection.receiver.recv().ok()? {
            Message::Request(request) => request,
            Message::Notification(note) if note.method == Exit::METHOD => return None,
            Message::Notification(_) | Message::Response(_) => continue,
        };
        if request.method != Initialize::METHOD {
            let message = "the server waits for `initialize`".to_owned();
            let refusal =
                Response::new_err(request.id, ErrorCode::ServerNotInitialized as i32, message);
            connection.sender.send(refusal.into()).ok()?;
            continue;
        }
        let params: InitializeParams = match serde_json::from_value(request.params) {
            Ok(params) => params,
            Err(error) => {
                let refusal = Response::new_err(
                    request.id,
                    ErrorCode::InvalidParams as i32,
                    error.to_string(),
                );
                connection.sender.send(refusal.into()).ok()?;
                continue;
            }
        };
        let encoding = encoding(&params);
        let result = InitializeResult {
            capabilities: capabilities(encoding),
            server_info: Some(ServerInfo {
                name: "flowstone".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        };
        connection
            .sender
            .send(Response::new_ok(request.id, json!(result)).into())
            .ok()?;
        return Some(Desk {
            documents: Documents::default(),
            found: BTreeMap::new(),
            library: Library::new(backend),
            root: backend.root(),
            encoding,
            snippets: takes_snippets(&params),
        });
    }
}

fn encoding(params: &InitializeParams) -> Encoding {
    let general = params.capabilities.general.as_ref();
    let offered = general
        .and_then(|general| general.position_encodings.as_deref())
        .unwrap_or_default();
    match offered.contains(&PositionEncodingKind::UTF8) {
        true => Encoding::Utf8,
        false => Encoding::Utf16,
    }
}

fn takes_snippets(params: &InitializeParams) -> bool {
    let completion = params
        .capabilities
        .text_document
        .as_ref()
        .and_then(|text| text.completion.as_ref());
    let item = completion.and_then(|completion| completion.completion_item.as_ref());
    item.and_then(|item| item.snippet_support).unwrap_or(false)
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(
                    SaveOptions::default(),
                )),
                ..TextDocumentSyncOptions::default()
            },
        )),
        completion_provider: Some(CompletionOptions {
            resolve_provider: Some(true),
            trigger_characters: Some(vec![":".to_owned(), "/".to_owned()]),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(vec![" ".to_owned()]),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        document_symbol_provider: Some(OneOf::Left(true)),
        workspace_symbol_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::SOURCE_FIX_ALL,
            ]),
            ..CodeActionOptions::default()
        })),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        selection_range_provider: Some(SelectionRangeProviderCapability::Simple(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_range_formatting_provider: Some(OneOf::Left(true)),
        document_on_type_formatting_provider: Some(DocumentOnTypeFormattingOptions {
            first_trigger_character: "\n".to_owned(),
            more_trigger_character: None,
        }),
        semantic_tokens_provider: Some(SemanticTokensServerCapabilities::SemanticTokensOptions(
            SemanticTokensOptions {
                legend: semantic::legend(),
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            },
        )),
        ..ServerCapabilities::default()
    }
}

struct Server {
    desk: Desk,
    checker: Checker,
    sender: Sender<Message>,
    /// Whether the client has asked for the end.
    is_ending: bool,
}

impl Server {
    fn serve(&mut self, client: &Receiver<Message>) -> Ended {
        let results = self.checker.results.clone();
        loop {
            select! {
                recv(results) -> checked => {
                    if let Ok(checked) = checked {
                        self.publish(checked);
                    }
                }
                recv(client) -> message => {
                    let Ok(message) = message else {
                        return Ended::Abruptly;
                    };
                    // Cancelled requests are found before the requests that wait are answered.
                    let mut waiting: VecDeque<Message> = [message].into_iter().chain(client.try_iter()).collect();
                    let cancelled = cancelled(&waiting);
                    while let Some(message) = waiting.pop_front() {
                        match message {
                            Message::Request(request) => self.request(request, &cancelled),
                            Message::Notification(note) if note.method == Exit::METHOD => {
                                return if self.is_ending { Ended::Cleanly } else { Ended::Abruptly };
                            }
                            Message::Notification(note) => self.notification(note),
                            Message::Response(_) => {}
                        }
                    }
                }
            }
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // A client that is gone closes the other channel, too.
        let _ = self.sender.send(message.into());
    }

    fn request(&mut self, request: Request, cancelled: &HashSet<RequestId>) {
        let id = request.id.clone();
        if self.is_ending {
            let message = "the server is ending".to_owned();
            self.send(Response::new_err(
                id,
                ErrorCode::InvalidRequest as i32,
                message,
            ));
        } else if request.method == Shutdown::METHOD {
            self.is_ending = true;
            self.send(Response::new_ok(id, ()));
        } else if cancelled.contains(&id) {
            let message = "the client cancelled the request".to_owned();
            self.send(Response::new_err(
                id,
                ErrorCode::RequestCanceled as i32,
                message,
            ));
        } else {
            // A panic was reported where it happened; the next request may succeed.
            let answer = catch_unwind(AssertUnwindSafe(|| answer(&self.desk, request)));
            let failed = |_| {
                let message = "internal error: this is a mistake in Flowstone".to_owned();
                Response::new_err(id, ErrorCode::InternalError as i32, message)
            };
            self.send(answer.unwrap_or_else(failed));
        }
    }

    fn notification(&mut self, note: Notification) {
        match &*note.method {
            DidOpenTextDocument::METHOD => {
                if let Some(DidOpenTextDocumentParams {
                    text_document: opened,
                }) = read(note)
                {
                    let uri = opened.uri.clone();
                    let document =
                        Document::new(opened.uri, opened.version, opened.text, self.desk.encoding);
                    self.desk.documents.insert(document);
                    self.check(&uri);
                }
            }
            DidChangeTextDocument::METHOD => {
                let Some(DidChangeTextDocumentParams {
                    text_document: changed,
                    content_changes,
                }) = read(note)
                else {
                    return;
                };
                if let Some(document) = self.desk.documents.get_mut(&changed.uri) {
                    document.change(changed.version, content_changes);
                    self.check(&changed.uri);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(DidCloseTextDocumentParams {
                    text_document: closed,
                }) = read(note)
                {
                    self.desk.documents.remove(&closed.uri);
                    self.desk.found.remove(closed.uri.as_str());
                    self.show(closed.uri, None, Vec::new());
                }
            }
            // A file that others include, or the settings, may have changed.
            DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => {
                let open: Vec<Uri> = self
                    .desk
                    .documents
                    .all()
                    .map(|document| document.uri.clone())
                    .collect();
                open.iter().for_each(|uri| self.check(uri));
            }
            _ => {}
        }
    }

    fn check(&self, uri: &Uri) {
        let Some(document) = self.desk.documents.get(uri) else {
            return;
        };
        self.checker.check(Job {
            uri: uri.as_str().to_owned(),
            version: document.version,
            path: document.path.clone(),
            text: document.text.clone(),
            is_flow: document.is_flow(),
            others: self.desk.documents.texts(),
        });
    }

    /// Sends what a check found, unless the text has changed since.
    fn publish(&mut self, checked: Checked) {
        let Ok(uri) = checked.uri.parse::<Uri>() else {
            return;
        };
        let document = self.desk.documents.get(&uri);
        let Some(document) = document.filter(|document| document.version == checked.version) else {
            return;
        };
        let shown = checked.found.iter();
        let shown = shown.map(|found| diagnostic(document, found)).collect();
        self.desk
            .found
            .insert(checked.uri, (checked.version, checked.found));
        self.show(uri, Some(checked.version), shown);
    }

    fn show(&self, uri: Uri, version: Option<i32>, diagnostics: Vec<Diagnostic>) {
        let params = PublishDiagnosticsParams {
            uri,
            diagnostics,
            version,
        };
        self.send(Notification::new(
            PublishDiagnostics::METHOD.to_owned(),
            params,
        ));
    }
}

fn read<P: DeserializeOwned>(note: Notification) -> Option<P> {
    // A notification has no answer, so a malformed one cannot be refused.
    serde_json::from_value(note.params).ok()
}

/// Returns the requests that later messages cancel.
fn cancelled(messages: &VecDeque<Message>) -> HashSet<RequestId> {
    let notes = messages.iter().filter_map(|message| match message {
        Message::Notification(note) if note.method == Cancel::METHOD => Some(&note.params["id"]),
        _ => None,
    });
    notes
        .filter_map(|id| serde_json::from_value(id.clone()).ok())
        .collect()
}

pub(super) fn diagnostic(document: &Document, found: &Found) -> Diagnostic {
    let mut message = found.message.clone();
    for hint in &found.hints {
        message.push_str("\nhint: ");
        message.push_str(hint);
    }
    let related = found.related.as_ref().map(|(range, label)| {
        let range = document.lines.range(&document.text, range.clone());
        vec![DiagnosticRelatedInformation {
            location: Location::new(document.uri.clone(), range),
            message: label.clone(),
        }]
    });
    Diagnostic {
        range: document.lines.range(&document.text, found.at.clone()),
        severity: Some(match found.is_error {
            true => DiagnosticSeverity::ERROR,
            false => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(found.code.clone())),
        source: Some("flowstone".to_owned()),
        message,
        related_information: related,
        ..Diagnostic::default()
    }
}
