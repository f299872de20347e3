//! Who speaks which wire format, and in what each differs from the others.

use super::chat_completions::ChatCompletions;
use super::family::Family;

/// A provider's row.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// What flows call it.
    pub id: &'static str,
    pub family: &'static dyn Family,
    /// Where it is; None when only the user knows.
    pub base_url: Option<&'static str>,
    /// The environment variable of its key; None where none is needed.
    pub key: Option<&'static str>,
    /// The model when nobody says one.
    pub model: Option<&'static str>,
    /// The name of the limit on the answer's tokens.
    pub max_tokens: &'static str,
    pub seed: &'static str,
    /// Whether it takes a JSON Schema for the answer, or only the wish for JSON.
    pub takes_schema: bool,
    /// Whether a stream ends with the usage when asked to.
    pub stream_usage: bool,
    /// The header of the key, where that is not `Authorization: Bearer`.
    pub key_header: Option<&'static str>,
    /// Config keys that it cannot do.
    pub cannot: &'static [&'static str],
}

const PLAIN: Dialect = Dialect {
    id: "openai-compatible",
    family: &ChatCompletions,
    base_url: None,
    key: None,
    model: None,
    max_tokens: "max_tokens",
    seed: "seed",
    takes_schema: true,
    stream_usage: true,
    key_header: None,
    cannot: &[],
};

pub const AZURE_OPENAI: Dialect = Dialect {
    id: "azure-openai",
    key: Some("AZURE_OPENAI_API_KEY"),
    max_tokens: "max_completion_tokens",
    key_header: Some("api-key"),
    ..PLAIN
};

pub const DEEPSEEK: Dialect = Dialect {
    id: "deepseek",
    base_url: Some("https://api.deepseek.com/v1"),
    key: Some("DEEPSEEK_API_KEY"),
    model: Some("deepseek-chat"),
    takes_schema: false,
    cannot: &["prompt-cache-key", "reasoning-effort", "seed"],
    ..PLAIN
};

pub const FIREWORKS: Dialect = Dialect {
    id: "fireworks",
    base_url: Some("https://api.fireworks.ai/inference/v1"),
    key: Some("FIREWORKS_API_KEY"),
    cannot: &["prompt-cache-key"],
    ..PLAIN
};

pub const GROQ: Dialect = Dialect {
    id: "groq",
    base_url: Some("https://api.groq.com/openai/v1"),
    key: Some("GROQ_API_KEY"),
    max_tokens: "max_completion_tokens",
    cannot: &["prompt-cache-key"],
    ..PLAIN
};

pub const MISTRAL: Dialect = Dialect {
    id: "mistral",
    base_url: Some("https://api.mistral.ai/v1"),
    key: Some("MISTRAL_API_KEY"),
    model: Some("mistral-small-latest"),
    seed: "random_seed",
    // It always sends the usage, and refuses to be asked for it.
    stream_usage: false,
    cannot: &["prompt-cache-key", "reasoning-effort"],
    ..PLAIN
};

pub const OLLAMA: Dialect = Dialect {
    id: "ollama",
    base_url: Some("http://127.0.0.1:11434/v1"),
    cannot: &["prompt-cache-key"],
    ..PLAIN
};

pub const OPENAI: Dialect = Dialect {
    id: "openai",
    base_url: Some("https://api.openai.com/v1"),
    key: Some("OPENAI_API_KEY"),
    model: Some("gpt-5.4"),
    max_tokens: "max_completion_tokens",
    ..PLAIN
};

pub const OPENAI_COMPATIBLE: Dialect = PLAIN;

pub const OPENROUTER: Dialect = Dialect {
    id: "openrouter",
    base_url: Some("https://openrouter.ai/api/v1"),
    key: Some("OPENROUTER_API_KEY"),
    model: Some("openrouter/auto"),
    ..PLAIN
};

pub const TOGETHER: Dialect = Dialect {
    id: "together",
    base_url: Some("https://api.together.xyz/v1"),
    key: Some("TOGETHER_API_KEY"),
    cannot: &["prompt-cache-key"],
    ..PLAIN
};

impl Dialect {
    /// Returns the environment variable that says where it is: `OPENAI_BASE_URL`.
    pub fn base_variable(&self) -> String {
        format!("{}_BASE_URL", crate::secrets::variable(self.id))
    }

    /// Returns the environment variable that says which model: `OLLAMA_MODEL`.
    pub fn model_variable(&self) -> String {
        format!("{}_MODEL", crate::secrets::variable(self.id))
    }
}
