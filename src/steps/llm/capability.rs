//! What not every provider can do.
//!
//! One list for all: what a provider's row lacks, what `:capabilities` of `:llm-providers` declares, and what a step
//! asks for are said in these words. A step that asks for more fails before the call.

/// Something that a step may ask for and a provider may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Running tools in a loop. Off for servers that nobody vouches for.
    AgenticToolLoop,
    /// Marking the system prompt to be kept.
    CacheSystem,
    FrequencyPenalty,
    /// Fetching images from an address.
    ImageUrls,
    PresencePenalty,
    /// Going on from an answer that the provider keeps.
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

    /// What `:capabilities` may declare: what is not declared there is lacking.
    pub const DECLARED: &[Capability] = &[
        Capability::AgenticToolLoop,
        Capability::Streaming,
        Capability::StructuredOutput,
        Capability::ToolCalling,
        Capability::Vision,
    ];

    /// Returns its name in `:capabilities`, or the field of a step that asks for it.
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

    /// Tells whether a field of that name asks for it.
    pub fn is_field(self) -> bool {
        !Capability::DECLARED.contains(&self)
    }
}

/// A set of capabilities that are lacking.
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

    /// Returns both sets together.
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
