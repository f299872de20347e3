//! `:notify`: messages to people and services, including those of waits.
//!
//! A message is sent with the client of `:http`, with the connection's credentials and an idempotency key. Its texts
//! are templates over data. The journal does not contain the message, only the outcome of sending it.

use flowstone_flow::diagnostic::Diagnostic;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::connections;
use crate::fields::Fields;
use crate::http::error::HttpError;
use crate::http::{build, client};
use crate::json;
use crate::oauth;
use crate::rendered::{render, template};

/// The `:notify` step.
pub struct Notify;

const SPEC: StepSpec = StepSpec {
    kind: "notify",
    operations: None,
    aliases: &[],
    doc: "Sends a message and returns `{:sent? true :channels {:http {:sent? true :status 202}}}`.\n\n\
        The strings of a channel are templates over the flow's input with `:data` over it. A message that is not accepted \
        returns `{:sent? false :errors [...]}`; if the step has `:retry` or `:on-error`, it is an error.",
    fields: FIELDS,
    examples: &[
        "(flow/step :notify :tell {:channels {:http {:connection :chat :path \"/messages\" :json {:text \"Order {{order-id}} is paid\"}}}})",
    ],
    effect: Effect::External,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "channels",
        FieldType::Map,
        "`{:http {:connection :chat :path \"/messages\" :method :post :json {...}}}`; also `:headers` and `:query`.",
    ),
    Field::optional(
        "data",
        FieldType::Map,
        "Variables of the texts, which override the flow's input.",
    ),
    Field::optional(
        "template",
        FieldType::Name,
        "A template of type `:notification`, instead of `:channels`.",
    ),
];

/// The content of a message.
pub(crate) const KEYS: &[&str] = &["channels", "data", "template"];
const CHANNEL: &[&str] = &["connection", "headers", "json", "method", "path", "query"];

impl Step for Notify {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        crate::rendered::remarks(flow, config, "notification", true)
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        crate::needs::of_message(flow, settings, config)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let message = Message::read(cx, fields)?;
            let sent = message.send(cx, &data(cx, fields, [])?).await;
            let is_strict = fields.has("retry") || fields.has("on-error");
            match sent {
                Err(error) if !is_strict && error.kind != "bad-config" => {
                    Ok(Outcome::Value(not_sent(&error)))
                }
                sent => sent.map(Outcome::Value),
            }
        })
    }
}

fn not_sent(error: &StepError) -> Value {
    let keyword = Value::keyword;
    let mut facts = vec![
        (keyword("channel"), keyword("http")),
        (keyword("code"), Value::from(error.code)),
        (keyword("kind"), keyword(error.kind)),
        (keyword("message"), Value::from(error.message.as_str())),
    ];
    if let Some(status) = error.data.get("status") {
        facts.push((keyword("status"), status.clone()));
    }
    let channel = Value::map([(keyword("sent?"), Value::Bool(false))]);
    Value::map([
        (keyword("sent?"), Value::Bool(false)),
        (
            keyword("channels"),
            Value::map([(keyword("http"), channel)]),
        ),
        (keyword("errors"), Value::vector([Value::map(facts)])),
    ])
}

/// Returns the variables of a message's templates: the flow's input, overridden by `:data`, overridden by `own`.
pub(crate) fn data<const N: usize>(
    cx: &StepContext,
    fields: Fields<'_>,
    own: [(&str, Json); N],
) -> Result<Json, StepError> {
    let mut all = serde_json::Map::new();
    for map in [Some(cx.input()), fields.map("data")?]
        .into_iter()
        .flatten()
    {
        let json = json::to_json(map)
            .map_err(|error| wrong(format!("`:data` cannot be used in a message: {error}")))?;
        if let Json::Object(entries) = json {
            all.extend(entries);
        }
    }
    all.extend(own.map(|(key, value)| (key.to_owned(), value)));
    Ok(Json::Object(all))
}

/// A message before rendering.
pub(crate) struct Message {
    http: Value,
    strict: bool,
}

impl Message {
    /// Reads a message, and rejects one that cannot be sent.
    pub(crate) fn read(cx: &StepContext, fields: Fields<'_>) -> Result<Message, StepError> {
        let (channels, strict) = match (fields.map("channels")?, fields.name("template")?) {
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "a message has `:channels` or a `:template`, not both",
                ));
            }
            (Some(channels), None) => (channels.clone(), false),
            (None, Some(id)) => {
                let found = template(cx, &id, "notification")?;
                let strict = matches!(found.body.get("strict"), Some(Value::Bool(true)));
                let channels = found.body.get("channels").cloned();
                let channels = channels.filter(|it| it.as_map().is_some());
                let channels = channels
                    .ok_or_else(|| wrong(format!("the template `:{id}` has no `:channels`")))?;
                (channels, strict)
            }
            (None, None) => {
                return Err(wrong("a message needs `:channels` or a `:template`").hint(
                    "as in `:channels {:http {:connection :chat :path \"/messages\" :json {:text \"...\"}}}`",
                ));
            }
        };
        Ok(Message {
            http: http_channel(cx, &channels)?,
            strict,
        })
    }

    /// Converts its texts to another syntax before they are rendered.
    pub(crate) fn rewritten(self, write: impl Fn(&Value) -> Value) -> Message {
        Message {
            http: write(&self.http),
            ..self
        }
    }

    /// Sends the rendered message, and returns the outcome.
    pub(crate) async fn send(&self, cx: &StepContext, data: &Json) -> Result<Value, StepError> {
        let request = render(&self.http, data, self.strict)
            .map_err(|error| wrong(format!("the message cannot be rendered: {error}")))?;
        let request = build(cx, Fields::new(&request)).await?;
        let host = client::host(&request.url);
        let answer = oauth::open(cx, request).await??.collect().await?;
        let status = answer.status;
        if status >= 400 {
            let answer = Box::new(answer);
            return Err(HttpError::Status {
                host,
                status,
                answer,
            }
            .into());
        }
        let keyword = Value::keyword;
        let channel = Value::map([
            (keyword("sent?"), Value::Bool(true)),
            (keyword("status"), Value::Int(i64::from(status))),
        ]);
        Ok(Value::map([
            (keyword("sent?"), Value::Bool(true)),
            (
                keyword("channels"),
                Value::map([(keyword("http"), channel)]),
            ),
        ]))
    }
}

/// Returns the one supported channel.
fn http_channel(cx: &StepContext, channels: &Value) -> Result<Value, StepError> {
    let names = channels.as_map().into_iter().flat_map(|map| map.iter());
    let mut http = None;
    for (name, channel) in names {
        match name_of(name).as_deref() {
            Some("http") => http = Some(channel),
            other => {
                let other = other.unwrap_or("?");
                return Err(wrong(format!("there is no channel `:{other}`"))
                    .hint("messages go by `:http`, through a connection"));
            }
        }
    }
    let channel = http.ok_or_else(|| wrong("`:channels` holds no channel").hint("add `:http`"))?;
    let place = ":channels :http";
    let fields = Fields::nested(place, channel)?;
    for key in ["auth", "url"] {
        if fields.has(key) {
            return Err(wrong(format!("`{place}` takes no `:{key}`"))
                .hint("address and auth are those of its `:connection`"));
        }
    }
    fields.only(CHANNEL)?;
    let Some(connection) = fields.name("connection")? else {
        return Err(wrong(format!("`{place}` needs a `:connection`")));
    };
    connections::find(cx, &connection)?;
    let post = (Value::keyword("method"), Value::keyword("post"));
    let given = channel.as_map().into_iter().flat_map(|map| map.iter());
    let given = given.map(|(key, value)| (key.clone(), value.clone()));
    Ok(Value::map([post].into_iter().chain(given)))
}

pub(crate) fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0716", message)
}
