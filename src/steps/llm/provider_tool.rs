//! Tools that a provider runs itself, as plain data: the same for all formats.

/// A tool that the provider runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTool {
    pub kind: ProviderToolKind,
    /// Maximum number of uses in one call.
    pub max_uses: Option<i64>,
    /// The only domains of a web tool; all if it is empty.
    pub allowed_domains: Vec<String>,
    pub blocked_domains: Vec<String>,
}

/// The kinds of tools that providers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderToolKind {
    /// Runs code of the model in a container of the provider.
    CodeExecution,
    /// Reads pages whose addresses are in the conversation.
    WebFetch,
    WebSearch,
}

impl ProviderToolKind {
    pub const ALL: &[ProviderToolKind] = &[
        ProviderToolKind::CodeExecution,
        ProviderToolKind::WebFetch,
        ProviderToolKind::WebSearch,
    ];

    /// Returns the name in flows.
    pub fn name(self) -> &'static str {
        match self {
            ProviderToolKind::CodeExecution => "code-execution",
            ProviderToolKind::WebFetch => "web-fetch",
            ProviderToolKind::WebSearch => "web-search",
        }
    }
}

impl ProviderTool {
    /// Returns the names of the options that are set.
    pub fn options(&self) -> Vec<&'static str> {
        let set = [
            ("allowed-domains", !self.allowed_domains.is_empty()),
            ("blocked-domains", !self.blocked_domains.is_empty()),
            ("max-uses", self.max_uses.is_some()),
        ];
        set.into_iter().filter(|it| it.1).map(|it| it.0).collect()
    }
}
