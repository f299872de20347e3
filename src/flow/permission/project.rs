//! The permissions of the flows of a project, collected from its rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::{Allow, Known, OwnRows, Trust, derived, variable};

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
    /// The servers that need no connection.
    pub known: Vec<Known>,
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

impl Permissions {
    /// Returns the permissions of the runs of an installation: its own folder, and what its connections, the only ones in
    /// `settings`, imply. A flow of the project also reaches public servers, if flows do, and has the rows of its own.
    pub fn of_installation(
        &self,
        (slug, is_outside): (&str, bool),
        settings: &Value,
        folder: &Path,
    ) -> Allow {
        let mut allow = Allow {
            home: self.defaults.home.clone(),
            read: vec![folder.to_path_buf()],
            write: vec![folder.to_path_buf()],
            ..Allow::default()
        };
        let own = self.flows.get(slug).filter(|_| !is_outside);
        let has_defaults = self.project.has_defaults && own.is_none_or(|own| own.has_defaults);
        if has_defaults && !is_outside {
            Arc::make_mut(&mut allow.net).public = self.defaults.net.public;
        }
        let mut implied = derived(settings, &self.known);
        implied.env.retain(|name| names_secret(settings, name));
        implied
            .secrets
            .retain(|row| names_secret(settings, &row.name));
        allow.add(&implied);
        if let Some(own) = own {
            allow.add(&own.allow);
        }
        allow.add(&self.command);
        allow
    }
}

/// Tells whether one of the bound connections uses a secret, by a reference or because of its name or backend.
fn names_secret(settings: &Value, secret: &str) -> bool {
    let secret = variable(secret);
    let bindings = settings.get("bindings").and_then(Value::as_map);
    let bound = bindings.into_iter().flat_map(|map| map.iter());
    let bound = bound.filter_map(|(_, binding)| name_of(binding.get("conn")?));
    let connections = settings.get("connections");
    let mut begins = Vec::new();
    let mut names = Vec::new();
    for name in bound {
        let record = connections.and_then(|all| {
            let all = all.as_map()?.iter();
            let mut found = all.filter(|(key, _)| name_of(key).is_some_and(|it| *it == *name));
            found.next().map(|(_, record)| record)
        });
        begins.push(variable(&name));
        if let Some(record) = record {
            begins.extend(
                record
                    .get("backend")
                    .and_then(name_of)
                    .map(|it| variable(&it)),
            );
            let auth = record.get("auth").and_then(Value::as_map);
            for (_, value) in auth.into_iter().flat_map(|map| map.iter()) {
                names.extend(name_of(value).map(|it| variable(&it)));
            }
        }
    }
    names.contains(&secret)
        || begins.iter().any(|begin| {
            let rest = secret.strip_prefix(begin.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
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
