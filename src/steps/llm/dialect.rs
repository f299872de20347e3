//! The providers, with their wire formats and the differences between them.

use super::anthropic::Anthropic;
use super::bedrock::Bedrock;
use super::capability::Capability::{
    AgenticToolLoop, CacheSystem, FrequencyPenalty, ImageUrls, PresencePenalty, PreviousResponse,
    PromptCacheKey, ReasoningEffort, Responses, Seed, StructuredOutput, Vision,
};
use super::capability::{Capability, Lacks};
use super::chat_completions::ChatCompletions;
use super::family::Family;
use super::gemini::Gemini;
use super::responses;

/// A provider's row.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// The name in flows.
    pub id: &'static str,
    pub family: &'static dyn Family,
    /// The URL; `None` if only the user knows it.
    pub base_url: Option<&'static str>,
    /// The environment variable of the key; `None` if no key is needed.
    pub key: Option<&'static str>,
    /// Another name under which its key is often set.
    pub other_key: Option<&'static str>,
    /// The provider whose environment variables are used, if not its own.
    pub variables_of: Option<&'static str>,
    /// The default model.
    pub model: Option<&'static str>,
    /// The header of the key, if it is not `Authorization: Bearer`.
    pub key_header: Option<&'static str>,
    /// The missing capabilities.
    pub lacks: Lacks,
    /// The variant of chat completions, if that is its family.
    pub chat: Chat,
    /// Whether its Responses API only accepts the format of the answer under the name of chat completions.
    pub older_format: bool,
}

/// The differences between providers with chat completions.
#[derive(Clone, Copy)]
pub struct Chat {
    /// The name of the limit on the answer's tokens.
    pub max_tokens: &'static str,
    pub seed: &'static str,
    /// The value that forces a tool call.
    pub required: &'static str,
    pub usage: AskUsage,
    pub effort: Effort,
    pub call_ids: CallIds,
    /// Whether it requires the reasoning of turns with tools back.
    pub reasoning_back: bool,
    /// Whether it accepts its thoughts back as data.
    pub details_back: bool,
}

/// The option by which a stream reports the usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskUsage {
    /// `stream_options: {include_usage: true}`.
    StreamOptions,
    /// `usage: {include: true}`.
    Include,
    /// Usage is always reported, and the option is rejected.
    Unasked,
}

/// How a request expresses the reasoning effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// `reasoning_effort: "low"`.
    Word,
    /// The same, and thoughts are returned separately from the answer.
    WordParsed,
    /// `reasoning: {effort: "low"}`.
    Object,
}

/// The allowed form of the ids of tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIds {
    Any,
    /// Nine letters and digits; others are replaced, always by the same id.
    Nine,
}

const CHAT: Chat = Chat {
    max_tokens: "max_tokens",
    seed: "seed",
    required: "required",
    usage: AskUsage::StreamOptions,
    effort: Effort::Word,
    call_ids: CallIds::Any,
    reasoning_back: false,
    details_back: false,
};

/// Capabilities that chat completions lack.
const CHAT_LACKS: Lacks = Lacks::of(&[CacheSystem, PreviousResponse, Responses]);

const PLAIN: Dialect = Dialect {
    id: "openai-compatible",
    family: &ChatCompletions,
    base_url: None,
    key: None,
    other_key: None,
    variables_of: None,
    model: None,
    key_header: None,
    lacks: CHAT_LACKS,
    chat: CHAT,
    older_format: false,
};

pub const ANTHROPIC: Dialect = Dialect {
    id: "anthropic",
    family: &Anthropic,
    base_url: Some("https://api.anthropic.com/v1"),
    key: Some("ANTHROPIC_API_KEY"),
    model: Some("claude-sonnet-5-5"),
    key_header: Some("x-api-key"),
    // Single models may lack more.
    lacks: Lacks::of(&[
        FrequencyPenalty,
        PresencePenalty,
        PreviousResponse,
        PromptCacheKey,
        Responses,
        Seed,
    ]),
    ..PLAIN
};

pub const AZURE_OPENAI: Dialect = Dialect {
    id: "azure-openai",
    key: Some("AZURE_OPENAI_API_KEY"),
    key_header: Some("api-key"),
    chat: Chat {
        max_tokens: "max_completion_tokens",
        ..CHAT
    },
    ..PLAIN
};

/// The URL follows from the region. Requests are signed, unless there is a token.
pub const BEDROCK: Dialect = Dialect {
    id: "bedrock",
    family: &Bedrock,
    key: Some("AWS_BEARER_TOKEN_BEDROCK"),
    lacks: Lacks::of(&[
        FrequencyPenalty,
        ImageUrls,
        PresencePenalty,
        PreviousResponse,
        PromptCacheKey,
        Responses,
        Seed,
    ]),
    ..PLAIN
};

pub const DEEPSEEK: Dialect = Dialect {
    id: "deepseek",
    base_url: Some("https://api.deepseek.com/v1"),
    key: Some("DEEPSEEK_API_KEY"),
    model: Some("deepseek-chat"),
    lacks: CHAT_LACKS.and(&[
        PromptCacheKey,
        ReasoningEffort,
        Seed,
        StructuredOutput,
        Vision,
    ]),
    chat: Chat {
        reasoning_back: true,
        ..CHAT
    },
    ..PLAIN
};

pub const FIREWORKS: Dialect = Dialect {
    id: "fireworks",
    base_url: Some("https://api.fireworks.ai/inference/v1"),
    key: Some("FIREWORKS_API_KEY"),
    lacks: CHAT_LACKS.and(&[PromptCacheKey]),
    chat: Chat {
        reasoning_back: true,
        ..CHAT
    },
    ..PLAIN
};

/// Caches prompts automatically; a longer cache is named by `:provider-opts {:google {:cachedContent ..}}`.
pub const GOOGLE: Dialect = Dialect {
    id: "google",
    family: &Gemini,
    base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
    key: Some("GEMINI_API_KEY"),
    other_key: Some("GOOGLE_API_KEY"),
    model: Some("gemini-2.5-flash"),
    key_header: Some("x-goog-api-key"),
    lacks: CHAT_LACKS.and(&[PromptCacheKey]),
    ..PLAIN
};

pub const GOOGLE_AI: Dialect = Dialect {
    id: "google-ai",
    ..GOOGLE
};

pub const GROQ: Dialect = Dialect {
    id: "groq",
    base_url: Some("https://api.groq.com/openai/v1"),
    key: Some("GROQ_API_KEY"),
    lacks: CHAT_LACKS.and(&[FrequencyPenalty, PresencePenalty, PromptCacheKey]),
    chat: Chat {
        max_tokens: "max_completion_tokens",
        effort: Effort::WordParsed,
        ..CHAT
    },
    ..PLAIN
};

pub const LLAMA_CPP: Dialect = Dialect {
    id: "llama-cpp",
    base_url: Some("http://127.0.0.1:8080/v1"),
    // It answers with the model that it was started with.
    model: Some("default"),
    lacks: CHAT_LACKS.and(&[PromptCacheKey]),
    older_format: true,
    ..PLAIN
};

pub const LM_STUDIO: Dialect = Dialect {
    id: "lm-studio",
    base_url: Some("http://127.0.0.1:1234/v1"),
    lacks: CHAT_LACKS.and(&[PromptCacheKey]),
    ..PLAIN
};

pub const MISTRAL: Dialect = Dialect {
    id: "mistral",
    base_url: Some("https://api.mistral.ai/v1"),
    key: Some("MISTRAL_API_KEY"),
    model: Some("mistral-small-latest"),
    lacks: CHAT_LACKS.and(&[PromptCacheKey, ReasoningEffort]),
    chat: Chat {
        seed: "random_seed",
        required: "any",
        usage: AskUsage::Unasked,
        call_ids: CallIds::Nine,
        ..CHAT
    },
    ..PLAIN
};

pub const OLLAMA: Dialect = Dialect {
    id: "ollama",
    base_url: Some("http://127.0.0.1:11434/v1"),
    lacks: CHAT_LACKS.and(&[ImageUrls, PromptCacheKey]),
    ..PLAIN
};

pub const OPENAI: Dialect = Dialect {
    id: "openai",
    family: &responses::Responses,
    base_url: Some("https://api.openai.com/v1"),
    key: Some("OPENAI_API_KEY"),
    model: Some("gpt-5.4"),
    lacks: Lacks::NOTHING,
    ..PLAIN
};

/// OpenAI over its older API, which others imitate.
pub const OPENAI_CHAT: Dialect = Dialect {
    id: "openai-chat",
    family: &ChatCompletions,
    variables_of: Some("openai"),
    lacks: CHAT_LACKS,
    chat: Chat {
        max_tokens: "max_completion_tokens",
        ..CHAT
    },
    ..OPENAI
};

/// An unknown server with the API of OpenAI.
pub const OPENAI_COMPATIBLE: Dialect = Dialect {
    lacks: CHAT_LACKS.and(&[AgenticToolLoop]),
    ..PLAIN
};

pub const OPENROUTER: Dialect = Dialect {
    id: "openrouter",
    base_url: Some("https://openrouter.ai/api/v1"),
    key: Some("OPENROUTER_API_KEY"),
    model: Some("openrouter/auto"),
    lacks: CHAT_LACKS.but(&[CacheSystem]),
    chat: Chat {
        usage: AskUsage::Include,
        effort: Effort::Object,
        details_back: true,
        ..CHAT
    },
    ..PLAIN
};

/// Scripted answers. It has no wire format: nothing is sent.
pub const SCRIPTED: Dialect = Dialect {
    id: super::scripted::ID,
    model: Some("scripted"),
    lacks: Lacks::NOTHING,
    ..PLAIN
};

pub const TOGETHER: Dialect = Dialect {
    id: "together",
    base_url: Some("https://api.together.xyz/v1"),
    key: Some("TOGETHER_API_KEY"),
    lacks: CHAT_LACKS.and(&[PromptCacheKey]),
    ..PLAIN
};

pub const VLLM: Dialect = Dialect {
    id: "vllm",
    base_url: Some("http://127.0.0.1:8000/v1"),
    lacks: CHAT_LACKS.and(&[PromptCacheKey]),
    ..PLAIN
};

impl Dialect {
    /// Tells whether it has a capability.
    pub fn can(&self, capability: Capability) -> bool {
        !self.lacks.contains(capability)
    }

    /// Returns the names of the environment variables that may hold its key.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.key.into_iter().chain(self.other_key)
    }

    /// Returns the environment variable for the URL: `OPENAI_BASE_URL`.
    pub fn base_variable(&self) -> String {
        format!("{}_BASE_URL", self.variable())
    }

    /// Returns the environment variable for the model: `OLLAMA_MODEL`.
    pub fn model_variable(&self) -> String {
        format!("{}_MODEL", self.variable())
    }

    fn variable(&self) -> String {
        crate::secrets::variable(self.variables_of.unwrap_or(self.id))
    }

    /// Returns this provider with the wire format of another row.
    #[must_use]
    pub fn speaking(self, row: &Dialect) -> Dialect {
        Dialect {
            family: row.family,
            key_header: self.key_header.or(row.key_header),
            lacks: row.lacks,
            chat: row.chat,
            ..self
        }
    }
}
