//! The permissions of the flows of a project, collected from its rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Allow, OwnRows, Trust};

/// The rows of `:allow`, of the project or of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants {
    /// Whether the defaults apply in addition to the rows.
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

/// The permissions of the flows of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The permissions that hold without any row: the project's folder and public addresses.
    pub defaults: Allow,
    /// The permissions that follow from connections and from the environment: their hosts, secrets and programs.
    pub derived: Allow,
    /// `:allow` of the project.
    pub project: Grants,
    /// `:flows {:slug {:allow ...}}`.
    pub flows: BTreeMap<String, Grants>,
    /// The permissions that the options of the command add.
    pub command: Allow,
    /// The permissions that `flows trust` recorded.
    pub trusted: Vec<TrustedFlow>,
}

/// A flow from elsewhere that a person trusts, in the version at that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFlow {
    pub slug: String,
    /// The digest of [`crate::flow::Flow::digest`].
    pub digest: String,
    pub allow: Allow,
}

impl Permissions {
    /// Allows everything: for tests of other features.
    pub fn everything() -> Permissions {
        Permissions {
            command: Allow::everything(),
            ..Permissions::default()
        }
    }

    /// Returns the permissions of a flow of the project.
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
        // A flow that only has rows of its own does not get those of the project.
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

    /// Returns the permissions of a flow from elsewhere: those that it was trusted with in this version, by its digest,
    /// and those of the command.
    pub fn of_outside_flow(&self, slug: &str, digest: Option<&str>) -> Allow {
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
    /// Records that the project's rows do not apply to the flow.
    fn set_own(&mut self, slug: &str, trust: Trust) {
        let own = OwnRows {
            slug: slug.into(),
            trust,
        };
        Arc::make_mut(&mut self.net).own = Some(own.clone());
        self.own = Some(own);
    }
}
