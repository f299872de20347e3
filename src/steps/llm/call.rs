//! A model call as plain data, the same for every family of providers.

use serde_json::Value as Json;

use super::citations::Citation;
use super::provider_tool::ProviderTool;

/// A request to a model.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub model: String,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    /// Tools that the provider runs.
    pub provider_tools: Vec<ProviderTool>,
    /// Whether the model must call a tool.
    pub tool_choice: ToolChoice,
    pub options: Options,
    pub output: Output,
    /// Fields that are merged into the request's body at the end, unchanged.
    pub extra: Vec<(String, Json)>,
}

/// The author of a message.
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

/// A message of the conversation.
#[derive(Clone, Debug)]
pub struct Message {
    pub role: Role,
    pub content: Vec<Part>,
    /// The tool calls of an assistant's message.
    pub tool_calls: Vec<ToolCall>,
    /// The id of the call that a tool's message answers.
    pub tool_call_id: Option<String>,
    /// The name of that tool, which some formats require again.
    pub tool_name: Option<String>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Blocks of an assistant's message that the provider requires back unchanged: reasoning, signatures.
    pub opaque: Option<Opaque>,
}

/// Blocks that a provider requires back unchanged. Only the family that wrote them reads them.
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

    /// Returns the text of the message, without its other parts.
    pub fn plain_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::File { .. } | Part::Image { .. } => None,
        });
        texts.collect()
    }

    /// Returns a message without contents.
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

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// A file other than an image.
    File {
        /// The content type.
        kind: String,
        /// The contents, in Base64.
        data: String,
        name: String,
    },
    /// An image by its address, which may be a `data:` one.
    Image {
        url: String,
        detail: Option<String>,
    },
}

impl Part {
    pub fn is_file(&self) -> bool {
        matches!(self, Part::File { .. })
    }

    pub fn is_image(&self) -> bool {
        matches!(self, Part::Image { .. })
    }
}

/// A tool that the model may call.
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
    /// The model decides.
    #[default]
    Auto,
    /// At least one.
    Required,
    /// The one at this index of [`Call::tools`].
    Tool(usize),
    /// No tool, although tools are defined.
    None,
}

impl Call {
    /// Returns the name of the tool that the model must call, if it must call a certain one.
    pub fn forced_tool(&self) -> Option<&str> {
        match self.tool_choice {
            ToolChoice::Tool(idx) => self.tools.get(idx).map(|tool| tool.name.as_str()),
            ToolChoice::Auto | ToolChoice::Required | ToolChoice::None => None,
        }
    }

    /// Returns the instruction for a model that cannot be forced to call a tool; nothing if it need not call one.
    pub fn asked_to_call(&self) -> Option<String> {
        match self.tool_choice {
            ToolChoice::Required if !self.tools.is_empty() => {
                Some("Call at least one of the tools now.".to_owned())
            }
            ToolChoice::Tool(_) => {
                let name = self.forced_tool()?;
                Some(format!("Call the tool `{name}` now."))
            }
            ToolChoice::Auto | ToolChoice::Required | ToolChoice::None => None,
        }
    }
}

/// Options of the answer. All are optional; the provider's own defaults apply.
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
    /// Whether the provider should cache the system prompt and the tools.
    pub cache_system: bool,
    /// The id of the answer that this call continues, if the provider stores answers.
    pub previous_response_id: Option<String>,
}

/// The format of the answer.
#[derive(Clone, Debug, Default)]
pub enum Output {
    #[default]
    Text,
    /// Any JSON.
    Json,
    /// JSON that matches a schema.
    Schema {
        name: String,
        schema: Json,
        strict: bool,
    },
    /// The provider's own description of the format.
    Raw(Json),
}

/// A tool call that the model requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text as the model wrote it; not always valid.
    pub arguments: String,
}

/// The answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub content: String,
    pub reasoning: String,
    /// The model's reason for a refusal.
    pub refusal: String,
    pub tool_calls: Vec<ToolCall>,
    /// `stop`, `length`, `tool_calls`, `content_filter`; empty when the stream ended without one.
    pub finish_reason: String,
    pub model: String,
    /// The provider's id of the answer.
    pub id: String,
    pub usage: Option<Usage>,
    /// The sources that the provider names.
    pub citations: Vec<Citation>,
    /// Blocks that are sent back with this answer in further calls.
    pub opaque: Option<Opaque>,
}

/// The token counts of a call, with the same meaning for every family: cached tokens are included in those of the
/// prompt, and reasoning tokens in those of the completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt: i64,
    pub completion: i64,
    pub total: i64,
    /// Prompt tokens read from the provider's cache.
    pub cached: Option<i64>,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: Option<i64>,
    /// Completion tokens used for reasoning.
    pub reasoning: Option<i64>,
    /// Tokens that the provider did not count, and that are estimated.
    pub estimated: Option<i64>,
}

impl Usage {
    /// Returns the sum of both.
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

/// A piece of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thought(String),
}
