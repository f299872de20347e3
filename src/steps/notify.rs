//! `:notify`: messages to people and services, including those of waits.
//!
//! A message of the channel `:http` is sent with the client of `:http`, with the connection's credentials and an
//! idempotency key; one of `:email` by SMTP. Its texts are templates over data. The journal does not contain the message, only the outcome of sending it.

mod email;
mod smtp;

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
        A message has the channel `:http`, `:email`, or both. The strings of a channel are templates over the flow's input with `:data` over it. A message that is not accepted \
        returns `{:sent? false :errors [...]}`; if the step has `:retry` or `:on-error`, it is an error.",
    fields: FIELDS,
    examples: &[
        "(flow/step :notify :mail {:channels {:email {:connection :mail :from \"flows@example.com\" :to [\"ada@example.com\"] :subject \"Order {{order-id}}\" :text \"It is paid.\"}}})",
        "(flow/step :notify :tell {:channels {:http {:connection :chat :path \"/messages\" :json {:text \"Order {{order-id}} is paid\"}}}})",
    ],
    effect: Effect::External,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "channels",
        FieldType::Map,
        "`{:http {:connection :chat :path \"/messages\" :method :post :json {...}}}`, also with `:headers` and `:query`; or `{:email {:connection :mail :from \"...\" :to [\"...\"] :subject \"...\" :text \"...\"}}`, also with `:html`, `:cc`, `:bcc` and `:reply-to`.",
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
            let data = data(cx, fields, [])?;
            let is_strict = fields.has("retry") || fields.has("on-error");
            let mut results = Vec::new();
            let mut errors = Vec::new();
            for channel in &message.channels {
                match message.send_by(cx, channel, &data).await {
                    Ok(sent) => results.push((channel.name(), sent)),
                    Err(error) if !is_strict && error.kind != "bad-config" => {
                        results.push((channel.name(), not_sent()));
                        errors.push(facts(channel.name(), &error));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(Outcome::Value(result(results, errors)))
        })
    }
}

fn not_sent() -> Value {
    Value::map([(Value::keyword("sent?"), Value::Bool(false))])
}

/// Returns the facts about an error of a channel.
fn facts(channel: &str, error: &StepError) -> Value {
    let keyword = Value::keyword;
    let mut facts = vec![
        (keyword("channel"), keyword(channel)),
        (keyword("code"), Value::from(error.code)),
        (keyword("kind"), keyword(error.kind)),
        (keyword("message"), Value::from(error.message.as_str())),
    ];
    if let Some(status) = error.data.get("status") {
        facts.push((keyword("status"), status.clone()));
    }
    Value::map(facts)
}

/// Returns the result of a message: the outcome of each channel, and the errors.
fn result(channels: Vec<(&str, Value)>, errors: Vec<Value>) -> Value {
    let keyword = Value::keyword;
    let channels = channels
        .into_iter()
        .map(|(name, result)| (keyword(name), result));
    let mut entries = vec![
        (keyword("sent?"), Value::Bool(errors.is_empty())),
        (keyword("channels"), Value::map(channels)),
    ];
    if !errors.is_empty() {
        entries.push((keyword("errors"), Value::vector(errors)));
    }
    Value::map(entries)
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
    channels: Vec<Channel>,
    strict: bool,
}

/// One way in which a message is sent.
enum Channel {
    Http(Value),
    Email(Value),
}

impl Channel {
    fn name(&self) -> &'static str {
        match self {
            Channel::Http(_) => "http",
            Channel::Email(_) => "email",
        }
    }
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
            channels: read_channels(cx, &channels)?,
            strict,
        })
    }

    /// Converts its texts to another syntax before they are rendered.
    pub(crate) fn rewritten(self, write: impl Fn(&Value) -> Value) -> Message {
        let channels = self.channels.into_iter().map(|channel| match channel {
            Channel::Http(channel) => Channel::Http(write(&channel)),
            Channel::Email(channel) => Channel::Email(write(&channel)),
        });
        Message {
            channels: channels.collect(),
            ..self
        }
    }

    /// Sends the rendered message by all of its channels, and returns the outcome; the first error ends it.
    pub(crate) async fn send(&self, cx: &StepContext, data: &Json) -> Result<Value, StepError> {
        let mut results = Vec::new();
        for channel in &self.channels {
            results.push((channel.name(), self.send_by(cx, channel, data).await?));
        }
        Ok(result(results, Vec::new()))
    }

    /// Sends the rendered message by one channel.
    async fn send_by(
        &self,
        cx: &StepContext,
        channel: &Channel,
        data: &Json,
    ) -> Result<Value, StepError> {
        let (Channel::Http(content) | Channel::Email(content)) = channel;
        let content = render(content, data, self.strict)
            .map_err(|error| wrong(format!("the message cannot be rendered: {error}")))?;
        match channel {
            Channel::Http(_) => send_request(cx, &content).await,
            Channel::Email(_) => email::send(cx, &content).await,
        }
    }
}

async fn send_request(cx: &StepContext, content: &Value) -> Result<Value, StepError> {
    let request = build(cx, Fields::new(content)).await?;
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
    Ok(Value::map([
        (Value::keyword("sent?"), Value::Bool(true)),
        (Value::keyword("status"), Value::Int(i64::from(status))),
    ]))
}

/// Reads the channels of a message.
fn read_channels(cx: &StepContext, channels: &Value) -> Result<Vec<Channel>, StepError> {
    let names = channels.as_map().into_iter().flat_map(|map| map.iter());
    let mut found = Vec::new();
    for (name, channel) in names {
        match name_of(name).as_deref() {
            Some("http") => found.push(Channel::Http(http_channel(cx, channel)?)),
            Some("email") => {
                email::check(cx, channel)?;
                found.push(Channel::Email(channel.clone()));
            }
            other => {
                let other = other.unwrap_or("?");
                return Err(wrong(format!("there is no channel `:{other}`"))
                    .hint("messages go by `:http` or `:email`, through a connection"));
            }
        }
    }
    match found.is_empty() {
        true => Err(wrong("`:channels` holds no channel").hint("add `:http` or `:email`")),
        false => Ok(found),
    }
}

/// Checks the channel `:http`, and adds its method.
fn http_channel(cx: &StepContext, channel: &Value) -> Result<Value, StepError> {
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
