//! Requests to a server other than calls of tools: its resources and its prompts.
//!
//! The answers are JSON in the form that flows get, because only plain data is passed between threads. The messages of a
//! prompt are in the form that `:messages` of an `:llm` step takes.

use rmcp::model::{
    ClientRequest, ContentBlock, GetPromptRequest, GetPromptRequestParams, GetPromptResult,
    ListPromptsRequest, ListResourcesRequest, PaginatedRequestParams, Prompt, ReadResourceRequest,
    ReadResourceRequestParams, Resource, ResourceContents, Role, ServerResult,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value as Json, json};

use super::connection::{Connection, MOST_PAGES};
use super::error::McpError;

/// Maximum number of resources or prompts of a server.
const MOST_ENTRIES: usize = 2000;

/// A request.
#[derive(Debug, Clone)]
pub(super) enum Query {
    Resources,
    /// Reads the resource with this URI.
    Resource(String),
    Prompts,
    Prompt(String, Map<String, Json>),
}

impl Query {
    /// Returns what the request is for, in errors.
    pub(super) fn subject(&self) -> String {
        match self {
            Query::Resources => "its resources".to_owned(),
            Query::Resource(uri) => format!("the resource `{uri}`"),
            Query::Prompts => "its prompts".to_owned(),
            Query::Prompt(name, _) => format!("the prompt `{name}`"),
        }
    }
}

impl Connection {
    /// Performs a request.
    ///
    /// # Errors
    /// When the server does not answer, refuses, or has more entries than are read.
    pub(super) async fn query(&self, query: Query) -> Result<Json, McpError> {
        match &query {
            Query::Resources => self.resources(&query).await,
            Query::Prompts => self.prompts(&query).await,
            Query::Resource(uri) => {
                let params = ReadResourceRequestParams::new(uri.clone());
                let request = ReadResourceRequest::new(params);
                match self
                    .answer(ClientRequest::ReadResourceRequest(request), &query)
                    .await?
                {
                    ServerResult::ReadResourceResult(result) => {
                        let contents: Vec<Json> =
                            result.contents.iter().filter_map(content).collect();
                        Ok(json!({"contents": contents}))
                    }
                    other => Err(self.unfit(&query, &other)),
                }
            }
            Query::Prompt(name, arguments) => {
                let mut params = GetPromptRequestParams::new(name.clone());
                params.arguments = Some(arguments.clone());
                let request = GetPromptRequest::new(params);
                match self
                    .answer(ClientRequest::GetPromptRequest(request), &query)
                    .await?
                {
                    ServerResult::GetPromptResult(result) => Ok(prompt(&result)),
                    other => Err(self.unfit(&query, &other)),
                }
            }
        }
    }

    async fn answer(
        &self,
        request: ClientRequest,
        query: &Query,
    ) -> Result<ServerResult, McpError> {
        match self.ask(request, None).await {
            Ok(answer) => Ok(answer),
            Err(ServiceError::McpError(error)) => Err(McpError::Query {
                server: self.name().to_owned(),
                subject: query.subject(),
                code: error.code.0,
                message: error.message.into_owned(),
            }),
            Err(error) => Err(self.fault(error, None).await),
        }
    }

    async fn resources(&self, query: &Query) -> Result<Json, McpError> {
        let mut listed: Vec<Json> = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListResourcesRequest::with_param(params);
            let request = ClientRequest::ListResourcesRequest(request);
            let page = match self.answer(request, query).await? {
                ServerResult::ListResourcesResult(page) => page,
                other => return Err(self.unfit(query, &other)),
            };
            listed.extend(page.resources.iter().map(resource));
            cursor = page.next_cursor;
            match cursor {
                None => return Ok(json!({"resources": listed})),
                Some(_) if listed.len() > MOST_ENTRIES => break,
                Some(_) => {}
            }
        }
        Err(self.broken("its list of resources has no end"))
    }

    async fn prompts(&self, query: &Query) -> Result<Json, McpError> {
        let mut listed: Vec<Json> = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListPromptsRequest::with_param(params);
            let request = ClientRequest::ListPromptsRequest(request);
            let page = match self.answer(request, query).await? {
                ServerResult::ListPromptsResult(page) => page,
                other => return Err(self.unfit(query, &other)),
            };
            listed.extend(page.prompts.iter().map(described));
            cursor = page.next_cursor;
            match cursor {
                None => return Ok(json!({"prompts": listed})),
                Some(_) if listed.len() > MOST_ENTRIES => break,
                Some(_) => {}
            }
        }
        Err(self.broken("its list of prompts has no end"))
    }

    /// Returns the error for an answer of another kind.
    fn unfit(&self, query: &Query, answer: &ServerResult) -> McpError {
        let subject = query.subject();
        match answer {
            ServerResult::InputRequiredResult(_) => {
                self.broken(&format!("it asks for more input before it sends {subject}"))
            }
            _ => self.broken(&format!("its answer does not contain {subject}")),
        }
    }
}

/// Returns an object without the entries that are null.
fn object(entries: Json) -> Json {
    match entries {
        Json::Object(map) => Json::Object(map.into_iter().filter(|it| !it.1.is_null()).collect()),
        other => other,
    }
}

fn resource(it: &Resource) -> Json {
    object(json!({
        "uri": it.uri, "name": it.name, "title": it.title, "description": it.description,
        "mime-type": it.mime_type, "size": it.size,
    }))
}

/// Returns a content of a resource; `None` for kinds of a later revision.
fn content(it: &ResourceContents) -> Option<Json> {
    match it {
        ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            ..
        } => Some(object(
            json!({"uri": uri, "mime-type": mime_type, "text": text}),
        )),
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
            let url = format!("data:{kind};base64,{blob}");
            Some(object(
                json!({"uri": uri, "mime-type": mime_type, "url": url}),
            ))
        }
        _ => None,
    }
}

fn described(it: &Prompt) -> Json {
    let arguments = it.arguments.iter().flatten().map(|it| {
        object(json!({
            "name": it.name, "description": it.description, "required?": it.required.unwrap_or(false),
        }))
    });
    let arguments: Vec<Json> = arguments.collect();
    object(json!({
        "name": it.name, "title": it.title, "description": it.description, "arguments": arguments,
    }))
}

fn prompt(result: &GetPromptResult) -> Json {
    let messages = result.messages.iter().map(|message| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({"role": role, "content": spoken(&message.content)})
    });
    let messages: Vec<Json> = messages.collect();
    object(json!({"description": result.description, "messages": messages}))
}

/// Returns the content of a message: text, or parts.
fn spoken(block: &ContentBlock) -> Json {
    match block {
        ContentBlock::Text(text) => json!(text.text),
        ContentBlock::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            json!([{"type": "image", "url": url}])
        }
        ContentBlock::Resource(embedded) => match content(&embedded.resource) {
            Some(Json::Object(it)) => match (it.get("uri"), it.get("text")) {
                (Some(Json::String(uri)), Some(Json::String(text))) => {
                    json!(format!("{uri}:\n{text}"))
                }
                (uri, _) => json!(format!(
                    "[the resource {} is not text]",
                    uri.and_then(Json::as_str).unwrap_or_default()
                )),
            },
            Some(_) | None => json!("[a resource of an unknown kind]"),
        },
        ContentBlock::ResourceLink(link) => json!(format!("{}: {}", link.name, link.uri)),
        ContentBlock::Audio(audio) => json!(format!("[a sound of type {}]", audio.mime_type)),
        _ => json!("[contents of an unknown kind]"),
    }
}
