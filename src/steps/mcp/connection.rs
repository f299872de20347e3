//! One connection to a server: its handshake, in the server's revision, its list of tools, calls, and its end.
//!
//! Lives on the thread of the pool. Only plain data is passed to it and back.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flowstone_flow::diagnostic::nearest;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, ListToolsRequest,
    PaginatedRequestParams, ProgressToken, ProtocolVersion, RequestParamsMeta as _, ServerResult,
    Tool,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RoleClient, RunningService,
    ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value as Json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::answer::Answer;
use super::arguments;
use super::client::{Asked, Client, Heard, Watcher};
use super::error::McpError;
use super::fault::{Why, of_handshake, of_service};
use super::process::{Output, Process};
use super::question::{Answers, Asks};
use super::server::{HttpServer, Server, Target};
use crate::http;

/// Maximum size of a message.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// Maximum time for the handshake of a server.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// The age after which a list of tools is requested again if it lacks the requested tool.
const FRESH: Duration = Duration::from_secs(60);

/// Maximum numbers of tools and pages of a server.
const MOST_TOOLS: usize = 2000;
pub(super) const MOST_PAGES: usize = 100;

/// Maximum time for closing a connection.
const CLOSING: Duration = Duration::from_secs(1);

/// An open connection.
pub(super) struct Connection {
    /// The name of the server in errors.
    name: String,
    peer: Peer<RoleClient>,
    service: RefCell<Option<RunningService<RoleClient, Client>>>,
    process: RefCell<Option<Process>>,
    output: Output,
    watchers: Watchers,
    /// Whether the server announced a change of its tools.
    changed: Arc<AtomicBool>,
    tools: RefCell<Option<(Instant, Rc<Vec<Tool>>)>>,
    is_broken: Cell<bool>,
    /// The questions of the server, if they are asked.
    pub(super) questions: Option<tokio::sync::Mutex<mpsc::Receiver<Asked>>>,
}

/// Maximum number of questions that wait to be received.
const MOST_ASKED: usize = 16;

/// The receivers of progress, by request.
pub(super) type Watchers = Arc<Mutex<HashMap<ProgressToken, Watcher>>>;

/// A tool call.
#[derive(Debug, Clone)]
pub(super) struct ToolCall {
    pub tool: String,
    pub arguments: Map<String, Json>,
    /// The schema of the arguments, if the flow has one; otherwise the server is asked.
    pub schema: Option<Json>,
    /// The span that the call belongs to.
    pub trace_parent: Option<Box<str>>,
    /// How long questions of the server stay open; `None` if they are declined.
    pub asks: Option<Duration>,
    /// The name under which the call waits for answers in this process.
    pub name: String,
    /// The state of the server and the answers to its questions, if the request is repeated with them.
    pub repeats: Option<(Option<String>, Answers)>,
}

/// The outcome of a call.
#[derive(Debug)]
pub(super) enum Called {
    Answer(Answer),
    Asks(Asks),
}

impl Connection {
    /// Opens a connection. If a server breaks off during the newer handshake, the older one is tried.
    pub(super) async fn open(target: &Target) -> Result<Connection, McpError> {
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        match Connection::shake(target, newest).await {
            Err(McpError::Handshake { .. }) => {
                Connection::shake(target, ClientLifecycleMode::Initialize).await
            }
            other => other,
        }
    }

    async fn shake(target: &Target, mode: ClientLifecycleMode) -> Result<Connection, McpError> {
        let output = Output::new(target.redactor.clone());
        let (asks, questions) = match target.asks {
            true => {
                let (asks, questions) = mpsc::channel(MOST_ASKED);
                (Some(asks), Some(tokio::sync::Mutex::new(questions)))
            }
            false => (None, None),
        };
        let client = Client::new(output.clone(), asks);
        let (watchers, changed) = (client.watchers.clone(), client.changed.clone());
        let late = |output: &Output| McpError::Handshake {
            server: target.name.clone(),
            cause: format!(
                "it did not answer within {}",
                http::error::seconds(HANDSHAKE)
            ),
            output: output.text(),
        };
        let mut process = None;
        let served = match &target.server {
            Server::Program(program) => {
                let started = program
                    .start(&output)
                    .map_err(|error| McpError::NotStarted {
                        server: target.name.clone(),
                        command: program.command.join(" "),
                        cause: error.to_string(),
                    })?;
                process = Some(started.process);
                let transport = AsyncRwTransport::new_client(started.output, started.input)
                    .with_max_line_length(MOST_BYTES);
                timeout(HANDSHAKE, client.serve_with_lifecycle(transport, mode)).await
            }
            Server::Http(server) => {
                let transport = transport(server).await?;
                timeout(HANDSHAKE, client.serve_with_lifecycle(transport, mode)).await
            }
        };
        let service = match served {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => {
                let ended = match &mut process {
                    Some(process) => process.ended().await,
                    None => None,
                };
                return Err(of_handshake(&error, &target.name, ended, &output));
            }
            Err(_) => return Err(late(&output)),
        };
        Ok(Connection {
            name: target.name.clone(),
            peer: service.peer().clone(),
            service: RefCell::new(Some(service)),
            process: RefCell::new(process),
            output,
            watchers,
            changed,
            tools: RefCell::default(),
            is_broken: Cell::new(false),
            questions,
        })
    }

    /// Tells whether the connection can still be used.
    pub(super) fn is_open(&self) -> bool {
        !self.is_broken.get() && !self.peer.is_transport_closed()
    }

    /// Marks the connection as broken.
    pub(super) fn broke(&self) {
        self.is_broken.set(true);
    }

    /// Closes the connection, and ends the process.
    pub(super) async fn close(&self) {
        self.broke();
        let service = self.service.borrow_mut().take();
        if let Some(mut service) = service {
            service.close_with_timeout(CLOSING).await.ok();
        }
        let process = self.process.borrow_mut().take();
        if let Some(process) = process {
            process.end().await;
        }
    }

    /// Calls a tool, after checking its arguments.
    pub(super) async fn call(&self, call: ToolCall, heard: Watcher) -> Result<Called, McpError> {
        let schema = match &call.schema {
            Some(schema) => schema.clone(),
            None => Json::Object((*self.tool(&call.tool).await?.input_schema).clone()),
        };
        arguments::fit(&call.tool, &schema, &Json::Object(call.arguments.clone()))?;
        match self.call_once(&call, heard.clone()).await {
            // The server requires arguments in headers, which are known from its list of tools.
            Err(McpError::Rpc { code, .. }) if code == ErrorCode::HEADER_MISMATCH.0 => {
                self.list().await?;
                self.call_once(&call, heard).await
            }
            other => other,
        }
    }

    async fn call_once(&self, call: &ToolCall, heard: Watcher) -> Result<Called, McpError> {
        let mut params = CallToolRequestParams::new(call.tool.clone());
        params.arguments = Some(call.arguments.clone());
        if let Some((state, answers)) = &call.repeats {
            params.request_state = state.clone();
            params.input_responses = (!answers.is_empty()).then(|| answers.clone());
        }
        if let Some(parent) = &call.trace_parent {
            params.set_traceparent(parent);
        }
        let request = CallToolRequest::new(params);
        self.output.take_asked();
        let answer = self
            .ask(ClientRequest::CallToolRequest(request), Some(heard))
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(self.fault(error, Some(&call.tool)).await),
        };
        let asks = |what: &str| McpError::AsksBack {
            server: self.name.clone(),
            tool: call.tool.clone(),
            what: what.to_owned(),
        };
        match answer {
            ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
                match self.output.take_asked() {
                    Some(what) => Err(asks(&what)),
                    None => Err(McpError::Tool {
                        tool: call.tool.clone(),
                        answer: Box::new(Answer::of(result)),
                    }),
                }
            }
            ServerResult::CallToolResult(result) => match Answer::of(result) {
                answer if answer.is_rounded() => Err(self.broken(
                    "`structuredContent` has an integer of more than 64 bits, and no text has the same data with its digits",
                )),
                answer => Ok(Called::Answer(answer)),
            },
            ServerResult::InputRequiredResult(result) if call.asks.is_some() => {
                let found = Asks::of(&result);
                found.map(Called::Asks).map_err(|what| asks(&what))
            }
            ServerResult::InputRequiredResult(_) => Err(asks("more input")),
            ServerResult::CreateTaskResult(_) => {
                Err(self.broken("it created a task that was not requested"))
            }
            _ => Err(self.broken("it did not answer with a tool's result")),
        }
    }

    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        heard: Option<Watcher>,
    ) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let handle = self.peer.send_request_with_option(request, options).await?;
        let _watch = heard.map(|heard| Watch::new(&self.watchers, &handle.progress_token, heard));
        let mut pending = Pending {
            peer: &self.peer,
            id: Some(handle.id.clone()),
        };
        let answer = handle.await_response().await;
        pending.id = None;
        answer
    }

    /// Returns all tools of the server, and lists them again after it announced a change.
    pub(super) async fn list(&self) -> Result<Rc<Vec<Tool>>, McpError> {
        self.changed.store(false, Ordering::Relaxed);
        let mut tools: Vec<Tool> = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListToolsRequest::with_param(params);
            let answer = self
                .ask(ClientRequest::ListToolsRequest(request), None)
                .await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) => return Err(self.fault(error, None).await),
            };
            let ServerResult::ListToolsResult(page) = answer else {
                return Err(self.broken("it sent an invalid list of tools"));
            };
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() {
                let tools = Rc::new(tools);
                *self.tools.borrow_mut() = Some((Instant::now(), tools.clone()));
                return Ok(tools);
            }
            if tools.len() > MOST_TOOLS {
                break;
            }
        }
        Err(self.broken("its list of tools has no end"))
    }

    fn known_tools(&self) -> Option<(Instant, Rc<Vec<Tool>>)> {
        self.tools
            .borrow()
            .clone()
            .filter(|_| !self.changed.load(Ordering::Relaxed))
    }

    async fn tool(&self, name: &str) -> Result<Tool, McpError> {
        let find = |tools: &[Tool]| tools.iter().find(|tool| tool.name == name).cloned();
        if let Some((since, tools)) = self.known_tools() {
            match find(&tools) {
                Some(tool) => return Ok(tool),
                None if since.elapsed() < FRESH => return Err(self.no_tool(name, &tools)),
                None => {}
            }
        }
        let tools = self.list().await?;
        find(&tools).ok_or_else(|| self.no_tool(name, &tools))
    }

    fn no_tool(&self, name: &str, tools: &[Tool]) -> McpError {
        let known: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        McpError::NoTool {
            server: self.name.clone(),
            tool: name.to_owned(),
            near: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
            known,
        }
    }

    pub(super) fn broken(&self, cause: &str) -> McpError {
        McpError::Protocol {
            server: self.name.clone(),
            cause: cause.to_owned(),
            output: self.output.text(),
        }
    }

    pub(super) async fn fault(&self, error: ServiceError, tool: Option<&str>) -> McpError {
        if matches!(
            error,
            ServiceError::TransportClosed | ServiceError::TransportSend(_)
        ) {
            // Its last output is part of the reason.
            let process = self.process.borrow_mut().take();
            if let Some(mut process) = process {
                process.ended().await;
                self.process.borrow_mut().replace(process);
            }
        }
        of_service(
            error,
            &Why {
                server: &self.name,
                tool,
                output: &self.output,
            },
        )
    }

    /// Returns the name of the server in errors.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the error for a call that took too long.
    pub(super) fn late(&self, limit: Duration, tool: Option<String>) -> McpError {
        McpError::TimedOut {
            server: self.name.clone(),
            tool,
            limit,
            output: self.output.text(),
        }
    }
}

async fn transport(
    server: &HttpServer,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, McpError> {
    let client = http::client::for_address(&server.url, &server.route)
        .await
        .map_err(McpError::Http)?;
    let headers = http::client::header_map(server.headers.iter()).map_err(McpError::Http)?;
    let named = headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    config.custom_headers = named.collect();
    config.max_sse_event_size = MOST_BYTES;
    // A stream that broke off is resumed once or twice; then the call fails.
    let mut again = FixedInterval::default();
    again.max_times = Some(2);
    again.duration = Duration::from_millis(250);
    config.retry_config = Arc::new(again);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// The registration of a receiver of progress, until the request is over.
struct Watch {
    watchers: Watchers,
    token: ProgressToken,
}

impl Watch {
    fn new(watchers: &Watchers, token: &ProgressToken, heard: Watcher) -> Watch {
        let mut map = watchers.lock().unwrap_or_else(PoisonError::into_inner);
        map.insert(token.clone(), heard);
        Watch {
            watchers: watchers.clone(),
            token: token.clone(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut map = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        map.remove(&self.token);
    }
}

/// A request whose cancellation is reported to the server when it is dropped.
struct Pending<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<rmcp::model::RequestId>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        let peer = self.peer.clone();
        // Without a runtime, the connection is closed too.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let reason = Some("the caller no longer waits for it".to_owned());
            let cancelled = rmcp::model::CancelledNotificationParam::new(Some(id), reason);
            peer.notify_cancelled(cancelled).await.ok();
        });
    }
}

/// Converts a progress notification.
impl From<rmcp::model::ProgressNotificationParam> for Heard {
    fn from(progress: rmcp::model::ProgressNotificationParam) -> Heard {
        Heard {
            done: progress.progress,
            total: progress.total,
            message: progress.message,
        }
    }
}
