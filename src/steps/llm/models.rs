//! Known limits of models by their names: capabilities of a provider that some of its models lack.
//!
//! A small table, not a catalogue: a name that is not in it has all capabilities of its provider. `:capabilities` of
//! `:llm-providers` or of a connection take precedence.

use super::capability::Capability::{self, ReasoningEffort, ToolCalling, Vision};

/// Prefixes of the names of models, without their makers, and the capabilities that such models lack.
const LACKING: &[(&str, &[Capability])] = &[
    ("chatgpt-4o", &[ReasoningEffort, ToolCalling]),
    ("claude-2", &[ReasoningEffort, ToolCalling, Vision]),
    ("claude-3-", &[ReasoningEffort]),
    ("claude-instant", &[ReasoningEffort, ToolCalling, Vision]),
    ("codellama", &[ReasoningEffort, Vision]),
    ("codestral", &[ReasoningEffort, Vision]),
    ("deepseek-chat", &[Vision]),
    ("deepseek-coder", &[Vision]),
    ("deepseek-reasoner", &[Vision]),
    ("gemini-1", &[ReasoningEffort]),
    ("gpt-3.5", &[ReasoningEffort, Vision]),
    ("gpt-4", &[ReasoningEffort]),
    ("gpt-oss", &[Vision]),
    ("llama-3.1", &[ReasoningEffort, Vision]),
    ("llama-3.3", &[ReasoningEffort, Vision]),
    ("llama3", &[ReasoningEffort, Vision]),
    ("mixtral", &[ReasoningEffort, Vision]),
    ("o1-mini", &[ToolCalling, Vision]),
    ("o3-mini", &[Vision]),
    ("qwen2.5-coder", &[ReasoningEffort, Vision]),
    ("smollm", &[ReasoningEffort, Vision]),
];

/// Names with one of these prefixes that are other models.
const OTHERS: &[(&str, Capability)] =
    &[("claude-3-7", ReasoningEffort), ("llama3.2-vision", Vision)];

/// Tells whether a model has a capability, as far as its name shows.
pub(super) fn can(model: &str, capability: Capability) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.to_ascii_lowercase();
    let is_other =
        |(start, what): &(&str, Capability)| *what == capability && name.starts_with(start);
    OTHERS.iter().any(is_other)
        || !LACKING
            .iter()
            .any(|(start, what)| name.starts_with(start) && what.contains(&capability))
}
