//! What step types need a connection for, and which of a project's connections fits best.

use flowstone_project::connections::ConnectionReport;

use super::state::{Integration, Integrations};

/// The kind of connection without which a step cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Database,
    Machine,
    Mail,
    Model,
}

impl Need {
    /// Returns what steps of a type always need.
    pub fn of_step(kind: &str) -> Option<Need> {
        match kind {
            "agent" | "llm" => Some(Need::Model),
            "db" => Some(Need::Database),
            "ssh" => Some(Need::Machine),
            _ => None,
        }
    }

    /// Returns what a step of a type needs for a use case: a notification needs a mail server only if it is a mail.
    pub fn of_use_case(kind: &str, use_case: &str) -> Option<Need> {
        let text = use_case.to_lowercase();
        let mut words = text.split(|char: char| !char.is_alphanumeric());
        let is_mail = kind == "notify"
            && words.any(|word| matches!(word.trim_end_matches('s'), "email" | "mail" | "smtp"));
        match is_mail {
            true => Some(Need::Mail),
            false => Need::of_step(kind),
        }
    }

    /// Tells whether a connection is of this kind.
    pub fn fits(self, report: &ConnectionReport) -> bool {
        let backend = report.backend.as_deref();
        match self {
            Need::Database => report.kind == "database",
            Need::Machine => report.kind == "ssh",
            Need::Mail => report.kind == "smtp",
            // A connection with the backend of a provider, whatever the provider is called.
            Need::Model => {
                let has_provider = backend.is_some_and(|backend| backend != "mcp");
                report.kind == "llm-provider" || (report.kind == "http-api" && has_provider)
            }
        }
    }

    /// Returns the integration that a caller requests where the project has no such connection. For models it is the provider
    /// that steps try first.
    pub fn integration(self) -> &'static str {
        match self {
            Need::Database => "database",
            Need::Machine => "ssh",
            Need::Mail => "smtp",
            Need::Model => "openai",
        }
    }
}

impl Integrations {
    /// Returns the connection that fits a need best: one that can be used before others, then slots of the flow, connections
    /// of the settings, and providers that the environment has a key for.
    pub fn best(&self, need: Need) -> Option<&Integration> {
        let fitting = self.0.iter().filter(|it| need.fits(&it.report));
        fitting.min_by_key(|it| (it.state, it.order))
    }
}
