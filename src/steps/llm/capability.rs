//! Capabilities that not every provider has.
//!
//! One list for all: the capabilities that a provider's row lacks, that `:capabilities` of `:llm-providers` declares,
//! and that a step needs. A step that needs a missing one fails before the call.

/// A capability that a step may need and a provider may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Running tools in a loop. Not assumed for unknown servers.
    AgenticToolLoop,
    /// Marking the system prompt for caching.
    CacheSystem,
    FrequencyPenalty,
    /// Fetching images from an address.
    ImageUrls,
    PresencePenalty,
    /// Continuing an answer that the provider stores.
    PreviousResponse,
    PromptCacheKey,
    ReasoningEffort,
    /// The options of the Responses interface.
    Responses,
    Seed,
    Stop,
    Streaming,
    /// Constraining the answer to a JSON Schema. Models without it get the schema as text.
    StructuredOutput,
    Temperature,
    ToolCalling,
    TopP,
    Vision,
}

impl Capability {
    pub const ALL: &[Capability] = &[
        Capability::AgenticToolLoop,
        Capability::CacheSystem,
        Capability::FrequencyPenalty,
        Capability::ImageUrls,
        Capability::PresencePenalty,
        Capability::PreviousResponse,
        Capability::PromptCacheKey,
        Capability::ReasoningEffort,
        Capability::Responses,
        Capability::Seed,
        Capability::Stop,
        Capability::Streaming,
        Capability::StructuredOutput,
        Capability::Temperature,
        Capability::ToolCalling,
        Capability::TopP,
        Capability::Vision,
    ];

    /// The capabilities that `:capabilities` may declare; those that are not declared are missing.
    pub const DECLARED: &[Capability] = &[
        Capability::AgenticToolLoop,
        Capability::Streaming,
        Capability::StructuredOutput,
        Capability::ToolCalling,
        Capability::Vision,
    ];

    /// Returns the name in `:capabilities`, or the field of a step that needs the capability.
    pub fn name(self) -> &'static str {
        match self {
            Capability::AgenticToolLoop => "agentic-tool-loop",
            Capability::CacheSystem => "cache-system?",
            Capability::FrequencyPenalty => "frequency-penalty",
            Capability::ImageUrls => "image-urls",
            Capability::PresencePenalty => "presence-penalty",
            Capability::PreviousResponse => "previous-response-id",
            Capability::PromptCacheKey => "prompt-cache-key",
            Capability::ReasoningEffort => "reasoning-effort",
            Capability::Responses => "openai",
            Capability::Seed => "seed",
            Capability::Stop => "stop",
            Capability::Streaming => "streaming",
            Capability::StructuredOutput => "structured-output",
            Capability::Temperature => "temperature",
            Capability::ToolCalling => "tool-calling",
            Capability::TopP => "top-p",
            Capability::Vision => "vision",
        }
    }

    /// Tells whether a field of that name needs the capability.
    pub fn is_field(self) -> bool {
        !Capability::DECLARED.contains(&self)
    }
}

/// A set of missing capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacks(u32);

impl Lacks {
    pub const NOTHING: Lacks = Lacks(0);

    /// Returns the set of these.
    pub const fn of(list: &[Capability]) -> Lacks {
        let (mut bits, mut at) = (0, 0);
        while at < list.len() {
            bits |= 1 << list[at] as u32;
            at += 1;
        }
        Lacks(bits)
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn and(self, list: &[Capability]) -> Lacks {
        Lacks(self.0 | Lacks::of(list).0)
    }

    /// Returns the set without these.
    #[must_use]
    pub const fn but(self, list: &[Capability]) -> Lacks {
        Lacks(self.0 & !Lacks::of(list).0)
    }

    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u32) != 0
    }
}
