//! Context windows of models of hosted services, by the beginnings of their names.
//!
//! A small table, not a catalogue. Local servers set the window themselves, so their models are not in it: a flow says
//! `:window` there.

/// Prefixes of names without their makers, and the size of the window in tokens. The longest prefix of a name counts.
const WINDOWS: &[(&str, i64)] = &[
    ("chatgpt-4o", 128_000),
    ("claude-", 200_000),
    ("claude-2.0", 100_000),
    ("claude-instant", 100_000),
    ("deepseek-chat", 64_000),
    ("deepseek-reasoner", 64_000),
    ("gemini-", 1_048_576),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("mistral-large", 128_000),
    ("mistral-small", 32_000),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// Returns the context window of a model, if it is known.
pub(super) fn of(model: &str) -> Option<i64> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.to_ascii_lowercase();
    let fitting = WINDOWS.iter().filter(|(start, _)| name.starts_with(start));
    let longest = fitting.max_by_key(|(start, _)| start.len());
    longest.map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        for (model, window) in [
            ("gpt-4", Some(8_192)),
            ("gpt-4o-mini", Some(128_000)),
            ("openai/gpt-4.1-nano", Some(1_047_576)),
            ("GPT-5-mini", Some(400_000)),
            ("llama3.3", None),
        ] {
            assert_eq!(of(model), window, "{model}");
        }
    }
}
