//! The ids of the model providers that a flow can name without describing them. What is known of each is in
//! [`crate::llm::PROVIDERS`].

/// The ids, sorted.
const IDS: &[&str] = &[
    "anthropic",
    "azure-openai",
    "bedrock",
    "deepseek",
    "fireworks",
    "google",
    "google-ai",
    "groq",
    "llama-cpp",
    "lm-studio",
    "mistral",
    "ollama",
    "openai",
    "openai-chat",
    "openai-compatible",
    "openrouter",
    "scripted",
    "together",
    "vllm",
];

/// Tells whether flows can name a provider by this id without describing it.
pub(crate) fn is_provider(id: &str) -> bool {
    IDS.contains(&id)
}

#[cfg(test)]
mod tests {
    use super::IDS;
    use crate::llm::PROVIDERS;

    #[test]
    fn every_provider_has_its_id_here() {
        let mut ids: Vec<&str> = PROVIDERS.iter().map(|it| it.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, IDS);
    }
}
