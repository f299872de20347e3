//! A model call as plain data, the same for every family of providers.

use serde_json::Value as Json;

/// What to ask a model.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub model: String,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    /// Whether it must call a tool.
    pub tool_choice: ToolChoice,
    pub options: Options,
    pub output: Output,
    /// Laid over the request's body at the end, as they are.
    pub extra: Vec<(String, Json)>,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One message of the conversation.
#[derive(Clone, Debug)]
pub struct Message {
    pub role: Role,
    pub content: Vec<Part>,
    /// The calls that an assistant's message asked for.
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool's message answers.
    pub tool_call_id: Option<String>,
    /// Which tool that was: some formats want its name again.
    pub tool_name: Option<String>,
    /// The tool failed.
    pub is_error: bool,
    /// What the provider gave with an assistant's message and wants back unchanged: reasoning, signatures.
    pub opaque: Option<Opaque>,
}

/// What a provider wants back as it gave it. Only the family that wrote it reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Opaque {
    /// The id of the family.
    pub family: String,
    pub blocks: Json,
}

impl Message {
    /// Returns a message that is only text.
    pub fn text(role: Role, text: impl Into<String>) -> Message {
        Message {
            role,
            content: vec![Part::Text(text.into())],
            ..Message::empty(role)
        }
    }

    /// Returns its text, without what else is in it.
    pub fn plain_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image { .. } => None,
        });
        texts.collect()
    }

    /// Returns a message that says nothing yet.
    pub fn empty(role: Role) -> Message {
        Message {
            role,
            content: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            is_error: false,
            opaque: None,
        }
    }
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// An image by its address, which may be a `data:` one.
    Image {
        url: String,
        detail: Option<String>,
    },
}

impl Part {
    pub fn is_image(&self) -> bool {
        matches!(self, Part::Image { .. })
    }
}

/// A tool that the model may ask for.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema.
    pub parameters: Json,
}

/// Whether a model must call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// At least one.
    Required,
    /// None, though it knows them.
    None,
}

/// What steers the answer. All optional: a provider's own defaults hold else.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub stop: Vec<String>,
    pub max_tokens: Option<i64>,
    pub seed: Option<i64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub reasoning_effort: Option<String>,
    pub prompt_cache_key: Option<String>,
    /// The provider is to keep what it made of the system prompt and the tools.
    pub cache_system: bool,
    /// The answer that this call goes on from, where the provider keeps answers.
    pub previous_response_id: Option<String>,
}

/// What form the answer has.
#[derive(Clone, Debug, Default)]
pub enum Output {
    #[default]
    Text,
    /// Any JSON.
    Json,
    /// JSON by a schema.
    Schema {
        name: String,
        schema: Json,
        strict: bool,
    },
    /// The provider's own words for it.
    Raw(Json),
}

/// A call of a tool that the model asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text as the model wrote it; not always valid.
    pub arguments: String,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub content: String,
    pub reasoning: String,
    /// Why it did not want to.
    pub refusal: String,
    pub tool_calls: Vec<ToolCall>,
    /// `stop`, `length`, `tool_calls`, `content_filter`; empty when the stream ended without one.
    pub finish_reason: String,
    pub model: String,
    /// The provider's name of the answer.
    pub id: String,
    pub usage: Option<Usage>,
    /// To be sent back with this answer in further calls.
    pub opaque: Option<Opaque>,
}

/// How many tokens a call took, counted the same way for every family: cached ones are among the prompt's, and
/// reasoning ones among the completion's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt: i64,
    pub completion: i64,
    pub total: i64,
    /// Of the prompt's, those that the provider had kept.
    pub cached: Option<i64>,
    /// Of the prompt's, those that it keeps from now on.
    pub cache_write: Option<i64>,
    /// Of the completion's, those that it thought with.
    pub reasoning: Option<i64>,
    /// Of all, those that the provider did not count.
    pub estimated: Option<i64>,
}

impl Usage {
    /// Returns both together.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        let both = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Usage {
            prompt: self.prompt.saturating_add(other.prompt),
            completion: self.completion.saturating_add(other.completion),
            total: self.total.saturating_add(other.total),
            cached: both(self.cached, other.cached),
            cache_write: both(self.cache_write, other.cache_write),
            reasoning: both(self.reasoning, other.reasoning),
            estimated: both(self.estimated, other.estimated),
        }
    }
}

/// A piece of an answer on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thought(String),
}
