//! What the flows of a project may touch, put together from its rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Allow, OwnRows, Trust};

/// What `:allow` says, of the project or of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants {
    /// Whether the defaults hold beside the rows.
    pub has_defaults: bool,
    pub allow: Allow,
}

impl Default for Grants {
    fn default() -> Self {
        Grants {
            has_defaults: true,
            allow: Allow::default(),
        }
    }
}

/// What the flows of a project may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// What holds without any row: the project's folder and public addresses.
    pub defaults: Allow,
    /// What follows from connections and from the environment: their hosts, secrets and programs.
    pub derived: Allow,
    /// `:allow` of the project.
    pub project: Grants,
    /// `:flows {:slug {:allow ...}}`.
    pub flows: BTreeMap<String, Grants>,
    /// The options of the command.
    pub command: Allow,
    /// What was recorded by `flows trust`.
    pub trusted: Vec<TrustedFlow>,
}

/// A flow from elsewhere that a person trusts, as it was then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFlow {
    pub slug: String,
    /// That of [`crate::flow::Flow::digest`].
    pub digest: String,
    pub allow: Allow,
}

impl Permissions {
    /// Allows everything: for tests of other things.
    pub fn everything() -> Permissions {
        Permissions {
            command: Allow::everything(),
            ..Permissions::default()
        }
    }

    /// Returns what a flow of the project may touch.
    pub fn of_flow(&self, slug: &str) -> Allow {
        let own = self.flows.get(slug);
        let mut allow = Allow {
            home: self.defaults.home.clone(),
            ..Allow::default()
        };
        let has_defaults = self.project.has_defaults && own.is_none_or(|own| own.has_defaults);
        if has_defaults {
            allow.add(&self.defaults);
        }
        // A flow with rows of its own only is not given those of the project.
        match own.is_none_or(|own| own.has_defaults) {
            true => {
                allow.add(&self.derived);
                allow.add(&self.project.allow);
            }
            false => allow.set_own(slug, Trust::NotNeeded),
        }
        if let Some(own) = own {
            allow.add(&own.allow);
        }
        allow.add(&self.command);
        allow
    }

    /// Returns what a flow from elsewhere may touch: what it was trusted with as it is now, by its digest, and what the
    /// command allows.
    pub fn of_stranger(&self, slug: &str, digest: Option<&str>) -> Allow {
        let mut allow = Allow {
            home: self.defaults.home.clone(),
            ..Allow::default()
        };
        let mut trust = Trust::Missing;
        for trusted in self.trusted.iter().filter(|it| it.slug == slug) {
            match Some(&*trusted.digest) == digest {
                true => {
                    allow.add(&trusted.allow);
                    trust = Trust::Given;
                }
                false if trust == Trust::Missing => trust = Trust::Outdated,
                false => {}
            }
        }
        allow.set_own(slug, trust);
        if let Some(own) = self.flows.get(slug) {
            allow.add(&own.allow);
        }
        allow.add(&self.command);
        allow
    }
}

impl Allow {
    /// Says that the project's rows do not hold for the flow.
    fn set_own(&mut self, slug: &str, trust: Trust) {
        let own = OwnRows {
            slug: slug.into(),
            trust,
        };
        Arc::make_mut(&mut self.net).own = Some(own.clone());
        self.own = Some(own);
    }
}
