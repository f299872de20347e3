//! `:http`: requests to servers.
//!
//! This file reads the config, sends the request, and converts the answer to a value. Sending, limits and the guard are
//! in `client` and `guard`; bodies in `body` and `decode`: all on plain data.

pub mod body;
pub mod client;
mod content;
pub mod decode;
pub mod error;
mod google;
mod pool;
mod redirect;
pub(crate) mod request;
pub mod route;
pub(crate) mod settings;
mod shape;
pub mod shown;
pub mod sockets;
mod source;
pub(crate) mod store;
pub mod tls;
pub mod xml;
pub mod yaml;

pub(crate) use request::{build, joined, timeout};

use flowstone_flow::diagnostic::Diagnostic;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Progress, Retry, Step, StepContext, StepError,
    StepSpec,
};
use flowstone_lang::reader::read_data;
use flowstone_lang::value::{Object, Value};

use crate::connections::Auth;
use crate::fields::Fields;
use crate::guard::Why;
use crate::{json, literal};
use client::Incoming;
use decode::{Decoded, ResponseAs};
use error::{Again, Answer, HttpError};

/// The `:http` step.
#[derive(Default)]
pub struct Http;

const SPEC: StepSpec = StepSpec {
    kind: "http",
    operations: None,
    aliases: &[],
    doc: "Sends a request to a server and returns `{:status :headers :body}`.\n\n\
        A status of 400 or above is an error whose `:data` holds `:url`, `:method`, `:status`, `:body` and `:headers`. The body is read by its content \
        type, or as `:response-as` specifies; JSON keys become keywords of the same spelling. A body that is not text is \
        a byte array. With `:persist {:type :blob}` the body goes into storage as it comes, and `:body` says that it \
        is omitted.",
    fields: FIELDS,
    examples: &[
        "(flow/step :http :zen {:url \"https://api.github.com/zen\"})",
        "(flow/step :http :issue {:connection :github :method :post :path \"/repos/o/r/issues\" :json {:title \"Hi\"}})",
    ],
    effect: Effect::External,
};

const METHODS: &[&str] = &["delete", "get", "head", "options", "patch", "post", "put"];

const FIELDS: &[Field] = &[
    Field::optional(
        "accept",
        FieldType::Name,
        "The accepted type: `:json`, `:xml`, `:text` or a MIME type.",
    ),
    Field::optional(
        "auth",
        FieldType::Map,
        "`{:type :bearer :secret-ref :name}`; also `:api-key` (with `:header`, `:prefix` or `:query`), `:basic` (with \
         `:username`), `:google-service-account` (with `:scopes`) and `:none`; `:oauth` is for connections. Replaces the connection's.",
    ),
    Field::optional(
        "auto-search-index?",
        FieldType::Bool,
        "Whether the contents of the blob that `:persist` stores are indexed. Default true; with false, `:search` finds it \
         only by its name and `:search-index`.",
    ),
    Field::optional("body", FieldType::Any, "A raw body: text or bytes."),
    Field::optional(
        "body-from-ref",
        FieldType::Any,
        "A reference to stored content, as the body.",
    ),
    Field::optional(
        "client-opts",
        FieldType::Keys(CLIENT_OPTIONS),
        "Options of the request that override the project's settings.",
    ),
    Field::optional(
        "connection",
        FieldType::Name,
        "A slot of `:requires`, or a connection of `flowstone.edn`.",
    ),
    Field::optional(
        "content-type",
        FieldType::Text,
        "The media type of the body, if it does not follow from its key.",
    ),
    Field::optional("data", FieldType::Map, "The data of the `:template`."),
    Field::optional(
        "form",
        FieldType::Map,
        "A body in the format of a web form.",
    ),
    Field::optional("headers", FieldType::Map, "Headers to send."),
    Field::optional(
        "include-headers",
        FieldType::Either(&[FieldType::Bool, FieldType::Items]),
        "Whether to return the answer's headers, or a list of names to return. Default true.",
    ),
    Field::optional("json", FieldType::Any, "A body as JSON. Overrides `:body`."),
    Field::optional(
        "method",
        FieldType::OneOf(METHODS),
        "Default `:get`; with a body, `:post`.",
    ),
    Field::optional(
        "multipart",
        FieldType::List(&FieldType::Keys(PART)),
        "A body of parts: `{:name :content}` or `{:name :from-ref}`, with `:filename` and `:content-type`.",
    ),
    Field::optional(
        "parser-fn",
        FieldType::Function,
        "A function that makes the body from its text, or from the value of `:response-as`.",
    ),
    Field::optional(
        "path",
        FieldType::Text,
        "Appended to the connection's address.",
    ),
    Field::optional(
        "query",
        FieldType::Map,
        "The query parameters. A vector repeats its key.",
    ),
    Field::optional(
        "response-as",
        FieldType::OneOf(ResponseAs::NAMES),
        "How to read the body. `:auto` (default) goes by its content type; XML becomes `{:tag :attrs :content}`, the \
         events of `:sse` become `{:event :data :id}`.",
    ),
    Field::optional(
        "template",
        FieldType::Name,
        "A template of type `:http-request`. Options of the step override it.",
    ),
    Field::optional(
        "url",
        FieldType::Text,
        "The whole address, instead of `:path`.",
    ),
];

const CLIENT_OPTIONS: &[Field] = &[
    Field::optional(
        "allow-link-local",
        FieldType::Bool,
        "Whether link-local and metadata addresses are allowed.",
    ),
    Field::optional(
        "connect-timeout",
        FieldType::Duration,
        "Maximum time for connecting. Default 10 s.",
    ),
    Field::optional(
        "max-redirects",
        FieldType::IntIn(0, 50),
        "Maximum number of redirects to follow. Default 10.",
    ),
    Field::optional(
        "max-response-bytes",
        FieldType::IntIn(1, i64::MAX),
        "Maximum size of the answer in bytes; a larger one is an error. Default 50 MiB; 4 GiB if it is stored with `:tier :ephemeral`.",
    ),
    Field::optional(
        "proxy",
        FieldType::Either(&[FieldType::Text, FieldType::Bool]),
        "The address of a proxy, or false for none, independent of the environment.",
    ),
];

const PART: &[Field] = &[
    Field::optional("content", FieldType::Any, "Text, bytes, or data as JSON."),
    Field::optional(
        "content-type",
        FieldType::Text,
        "The media type of the part.",
    ),
    Field::optional("filename", FieldType::Text, "The file name of the part."),
    Field::optional(
        "from-ref",
        FieldType::Any,
        "A reference to stored content, instead of `:content`.",
    ),
    Field::required("name", FieldType::Name, "The name of the part."),
];

impl Step for Http {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        let fields = Fields::new(config);
        let method = fields.name("method").ok().flatten();
        let reads = match method.as_deref() {
            Some(method) => matches!(
                method.to_ascii_lowercase().as_str(),
                "get" | "head" | "options"
            ),
            // A template may set another method, so the request counts as a write.
            None => !fields.has("template") && !content::has_body(fields),
        };
        if reads {
            Effect::Read
        } else {
            Effect::External
        }
    }

    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        let mut remarks = crate::rendered::remarks(flow, config, "http-request", false);
        let known = literal::known(config);
        let fields = Fields::new(&known);
        literal::remark(&mut remarks, "response-as", response_as(fields));
        if let Some(auth @ Value::Map(_)) = known.get("auth") {
            literal::remark(&mut remarks, "auth", Auth::read(":auth", auth));
        }
        if fields.has("url") && fields.has("path") {
            literal::remark::<()>(&mut remarks, "path", Err(request::two_addresses()));
        } else if let Ok(Some(url)) = fields.text("url") {
            literal::remark(&mut remarks, "url", request::parsed(url));
        }
        remarks.extend(content::several(config));
        if !literal::has_any(config, &["connection", "template", "url"]) {
            literal::remark::<()>(&mut remarks, "", Err(request::no_address()));
        }
        remarks
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        crate::needs::of_request(flow, settings, config)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let config = shape::whole(cx, config)?;
            let fields = Fields::new(&config);
            let wanted = response_as(fields)?;
            if fields.bool("auto-search-index?")? == Some(true) && !fields.has("persist") {
                let message = "`:auto-search-index?` is for what `:persist` stores";
                return Err(
                    StepError::config("E0738", message).hint("add `:persist {:type :blob}`")
                );
            }
            let request = request::build(cx, fields).await?;
            let host = client::host(&request.url);
            cx.emit(Progress::Status(format!(
                "{} {host}{}",
                request.method,
                request.url.path()
            )));
            let asked = RequestLine::of(&request);
            let answered = answered(cx, fields, request, wanted).await;
            let (status, headers, body) = answered.map_err(|error| asked.note(error))?;
            let mut facts = vec![(Value::keyword("status"), Value::Int(i64::from(status)))];
            facts.extend(headers.map(|headers| (Value::keyword("headers"), headers)));
            facts.push((Value::keyword("body"), body));
            Ok(Outcome::Value(Value::map(facts)))
        })
    }
}

/// The request, for errors.
struct RequestLine {
    method: String,
    url: String,
}

impl RequestLine {
    fn of(request: &client::Request) -> RequestLine {
        RequestLine {
            method: request.method.to_string(),
            url: shown::url(&request.url),
        }
    }

    /// Adds the request to an error: after a redirect, the message names the target.
    fn note(&self, error: StepError) -> StepError {
        let data = error.data.clone();
        let mut noted = StepError {
            data: Value::Nil,
            ..error
        };
        // First, because the rest may be long.
        noted = noted
            .with("url", self.url.as_str())
            .with("method", self.method.as_str());
        let entries = data.as_map().into_iter().flat_map(|map| map.iter());
        for (key, value) in entries {
            if let Some(key) = name_of(key) {
                noted = noted.with(&key, value.clone());
            }
        }
        noted
    }
}

/// Sends a request, and returns the status, headers and body of its answer.
async fn answered(
    cx: &StepContext,
    fields: Fields<'_>,
    request: client::Request,
    wanted: ResponseAs,
) -> Result<(u16, Option<Value>, Value), StepError> {
    let asked = shown::url(&request.url);
    let opened = crate::oauth::open(cx, request).await?;
    let mut incoming = opened.map_err(|error| error.at(&asked))?;
    let place = incoming.place();
    incoming.host.clone_from(&place);
    if incoming.status >= 400 {
        return Err(refused(incoming).await.into());
    }
    let (status, headers) = (incoming.status, shown_headers(fields, &incoming.headers)?);
    let body = match store::Target::of(cx, fields)? {
        Some(target) if target.is_raw => target.store(cx, incoming).await?,
        target => {
            let answer = incoming.collect().await?;
            match fields.get("parser-fn") {
                Some(parser) => parse(cx, parser, wanted, &place, &answer).await?,
                None => {
                    let read = body(decode::decode(wanted, &place, &answer)?, &place, &answer)?;
                    match target {
                        Some(_) if store::is_utf8(&answer.body) => {
                            store::keep(cx, &answer, wanted).await?
                        }
                        Some(_) | None => read,
                    }
                }
            }
        }
    };
    Ok((status, headers, body))
}

/// Returns the error for an error response, with the beginning of its body.
async fn refused(incoming: Incoming) -> HttpError {
    let (status, host) = (incoming.status, incoming.host.clone());
    let answer = Box::new(incoming.start(error::MOST_SHOWN).await);
    HttpError::Status {
        host,
        status,
        answer,
    }
}

fn response_as(fields: Fields<'_>) -> Result<ResponseAs, StepError> {
    let Some(name) = fields.name("response-as")? else {
        return Ok(ResponseAs::Auto);
    };
    ResponseAs::from_name(&name).ok_or_else(|| {
        StepError::config("E0728", format!("`:response-as` has no `:{name}`")).hint(format!(
            "there are {}; `:text` with a `:parser-fn` reads any other format",
            crate::fields::listed(ResponseAs::NAMES)
        ))
    })
}

/// Reads a body with the flow's own function: as text, or as bytes if the flow asks for them.
async fn parse(
    cx: &StepContext,
    parser: &Value,
    wanted: ResponseAs,
    host: &str,
    answer: &Answer,
) -> Result<Value, StepError> {
    let wanted = match wanted {
        ResponseAs::Auto => ResponseAs::Text,
        other => other,
    };
    let body = body(decode::decode(wanted, host, answer)?, host, answer)?;
    cx.call(&cx.function(parser)?, &[body]).await
}

fn body(decoded: Decoded, host: &str, answer: &Answer) -> Result<Value, StepError> {
    let bad = |wanted, cause| HttpError::Undecodable {
        host: host.to_string(),
        status: answer.status,
        wanted,
        cause,
        preview: error::preview(&answer.body),
    };
    Ok(match decoded {
        Decoded::Empty => Value::Nil,
        Decoded::Json(text) => json::read(text.trim_start_matches('\u{feff}'))
            .map_err(|error| bad("JSON", error.to_string()))?,
        Decoded::JsonLines(text) => json_lines(&text).map_err(|cause| bad("JSON", cause))?,
        Decoded::Text(text) => Value::from(text),
        Decoded::Events(events) => Value::vector(events.into_iter().map(|event| {
            let name = if event.name.is_empty() {
                Value::Nil
            } else {
                Value::from(event.name)
            };
            Value::map([
                (Value::keyword("event"), name),
                (Value::keyword("data"), Value::from(event.data)),
                (
                    Value::keyword("id"),
                    event.id.map_or(Value::Nil, Value::from),
                ),
            ])
        })),
        Decoded::Edn(text) => read_data(&text).map_err(|error| {
            let at = xml::place(&text, error.span.start.into());
            bad("EDN", format!("{} ({at})", error.message))
        })?,
        Decoded::Xml(text) => xml::read(&text).map_err(|cause| bad("XML", cause))?,
        Decoded::Yaml(text) => yaml::read(&text).map_err(|cause| bad("YAML", cause))?,
        Decoded::Bytes => Object::Bytes(answer.body.clone().into_boxed_slice()).into(),
    })
}

/// Returns the headers that the config selects; several with one name have their values joined.
fn shown_headers(
    fields: Fields<'_>,
    headers: &[(String, String)],
) -> Result<Option<Value>, StepError> {
    let wanted: Option<Vec<String>> = match fields.get("include-headers") {
        None | Some(Value::Bool(true)) => None,
        Some(Value::Bool(false)) => return Ok(None),
        Some(list) => {
            let items = json::items(list).unwrap_or_default();
            Some(
                items
                    .iter()
                    .filter_map(name_of)
                    .map(|name| name.to_ascii_lowercase())
                    .collect(),
            )
        }
    };
    Ok(Some(header_map(headers, wanted.as_deref())))
}

fn header_map(headers: &[(String, String)], wanted: Option<&[String]>) -> Value {
    let mut shown: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        if wanted.is_some_and(|wanted| !wanted.contains(name)) {
            continue;
        }
        match shown.iter_mut().find(|(it, _)| it == name) {
            Some((_, known)) => {
                known.push_str(", ");
                known.push_str(value);
            }
            None => shown.push((name.clone(), value.clone())),
        }
    }
    Value::map(
        shown
            .into_iter()
            .map(|(name, value)| (Value::keyword(&name), Value::from(value))),
    )
}

impl From<HttpError> for StepError {
    fn from(error: HttpError) -> StepError {
        if let HttpError::Refused(refused) = &error
            && let Why::NotAllowed(port) = refused.why
        {
            return StepError::not_allowed(&refused.missing(port));
        }
        let (code, kind) = error.code();
        let retry = match error.again() {
            Again::Never => Retry::Never,
            Again::Later => Retry::Backoff,
            Again::After(wait) => Retry::After(wait),
        };
        let mut message = error.to_string();
        if let HttpError::Status { answer, .. } = &error
            && let Some(beginning) = shown::beginning(&answer.body)
        {
            message = format!("{message}: {beginning}");
        }
        let mut step = StepError::new(code, kind, message)
            .hint(error.hint())
            .retry(retry);
        if let Some(status) = error.status() {
            step = step.with("status", i64::from(status));
        }
        // The body comes before parts that are longer and less informative.
        if let HttpError::Status { answer, .. } = &error {
            if let Some(body) = error_body(answer) {
                step = step.with("body", body);
            }
            step = step.with("headers", header_map(&answer.headers, None));
        }
        if let Some(preview) = error.preview() {
            step = step.with("preview", preview);
        }
        step
    }
}

/// Reads a JSON value from each line that is not blank.
fn json_lines(text: &str) -> Result<Value, String> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let values = lines.map(|(idx, line)| {
        json::read(line).map_err(|error| format!("in its line {}, {error}", idx + 1))
    });
    Ok(Value::vector(values.collect::<Result<Vec<_>, _>>()?))
}

/// Returns the server's error message, parsed if it is JSON.
fn error_body(answer: &Answer) -> Option<Value> {
    if answer.body.is_empty() {
        return None;
    }
    let start = &answer.body[..answer.body.len().min(error::MOST_SHOWN)];
    match json::read_bytes(start) {
        Ok(value) => Some(value),
        Err(_) => Some(Value::from(String::from_utf8_lossy(start).into_owned())),
    }
}
