//! The connections that a run uses for its slots: a profile of the settings, and connections set for single slots.
//!
//! A run stores its bindings in its row, so that a worker or a command that resumes it later uses the same ones. The
//! settings themselves are not stored: a connection that is corrected is correct for a waiting run too.

use std::collections::BTreeMap;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::codec;
use crate::diagnostic::nearest;

/// A profile, and connections for single slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    /// A key of `:profiles` in the settings.
    pub profile: Option<String>,
    /// Names of connections, by slot.
    pub set: BTreeMap<String, String>,
    /// The flow is not one of the project: it starts without permissions.
    pub is_outside: bool,
    /// The run is a test, and so is every run that it starts.
    pub test: Option<TestMode>,
    /// The installation that the run is of. Its run has these connections only.
    pub installation: Option<Installed>,
}

/// How a run of kind test treats changes of the world outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestMode {
    /// The run acts, as any other run.
    Live,
    /// A step that would change something outside has a stand-in for its value, and changes of the project's stores are only
    /// seen by the runs of the test.
    Dry,
}

impl TestMode {
    fn name(self) -> &'static str {
        match self {
            TestMode::Live => "live",
            TestMode::Dry => "dry",
        }
    }

    fn named(name: &str) -> Option<TestMode> {
        let all = [TestMode::Live, TestMode::Dry];
        all.into_iter().find(|mode| mode.name() == name)
    }
}

/// The installation of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// As [`crate::installation::InstalledFlow`] is written.
    pub flow: String,
    /// How many tokens models may use in all its runs together.
    pub max_tokens: Option<i64>,
}

/// The reason why a run's bindings cannot be applied to the project's settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingsError {
    #[error("there is no profile `{name}`")]
    NoProfile { name: String, known: Vec<String> },
    #[error("the bindings of the run cannot be read: {detail}")]
    Unreadable { detail: String },
}

impl BindingsError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoProfile { .. } => "E0935",
            Self::Unreadable { .. } => "E0945",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> String {
        match self {
            Self::NoProfile { name, known } if known.is_empty() => format!(
                "describe it in flowstone.edn: {{:profiles {{:{name} {{:bindings {{:ai {{:conn :openai}}}}}}}}}}"
            ),
            Self::NoProfile { name, known } => {
                match nearest(name, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", known.join(", ")),
                }
            }
            Self::Unreadable { .. } => "the run was started by another build".to_owned(),
        }
    }
}

impl Bindings {
    /// Encodes the bindings. Returns `None` if they are empty.
    pub fn encode(&self) -> Option<String> {
        if *self == Bindings::default() {
            return None;
        }
        let text = |text: &String| Value::from(text.as_str());
        let set = self.set.iter();
        let set = Value::map(set.map(|(slot, name)| (text(slot), text(name))));
        let profile = self.profile.as_ref().map_or(Value::Nil, text);
        let outside = (Value::keyword("outside"), Value::Bool(true));
        let test = self.test.map(|mode| Value::keyword(mode.name()));
        let test = test.map(|mode| (Value::keyword("test"), mode));
        let whole = [
            (Value::keyword("profile"), profile),
            (Value::keyword("set"), set),
        ];
        let whole = whole.into_iter().chain(self.is_outside.then_some(outside));
        let whole = whole.chain(test);
        let installed = self.installation.as_ref().map(|installed| {
            let most = installed.max_tokens.map_or(Value::Nil, Value::Int);
            let parts = Value::vector([text(&installed.flow), most]);
            (Value::keyword("installation"), parts)
        });
        let whole = whole.chain(installed);
        let whole = Value::map(whole);
        codec::canonical(&whole).ok()
    }

    /// Reads the output of [`Bindings::encode`].
    ///
    /// # Errors
    /// Fails if the text is not encoded bindings.
    pub fn decode(text: Option<&str>) -> Result<Bindings, BindingsError> {
        let Some(text) = text else {
            return Ok(Bindings::default());
        };
        let unreadable = |detail: String| BindingsError::Unreadable { detail };
        let whole = codec::decode(text).map_err(|error| unreadable(error.to_string()))?;
        let profile = whole.get("profile").and_then(Value::as_str);
        let mut set = BTreeMap::new();
        let entries = whole.get("set").and_then(Value::as_map);
        for (slot, name) in entries.into_iter().flat_map(|map| map.iter()) {
            let (Some(slot), Some(name)) = (slot.as_str(), name.as_str()) else {
                return Err(unreadable(text.to_owned()));
            };
            set.insert(slot.to_owned(), name.to_owned());
        }
        let installed = whole.get("installation").and_then(Value::as_vector);
        let installation = installed.and_then(|parts| {
            let mut parts = parts.iter();
            Some(Installed {
                flow: parts.next()?.as_str()?.to_owned(),
                max_tokens: parts.next().and_then(Value::as_int),
            })
        });
        if installation.is_none() && whole.get("installation").is_some() {
            return Err(unreadable(text.to_owned()));
        }
        Ok(Bindings {
            installation,
            profile: profile.map(str::to_owned),
            set,
            is_outside: whole.get("outside").is_some_and(Value::is_truthy),
            test: match whole.get("test").and_then(name_of) {
                None => None,
                Some(mode) => {
                    let mode = TestMode::named(&mode);
                    Some(mode.ok_or_else(|| unreadable(text.to_owned()))?)
                }
            },
        })
    }

    /// Returns the settings as a run with these bindings sees them: the settings of the profile override the others,
    /// name by name.
    ///
    /// # Errors
    /// Fails if the profile does not exist.
    pub fn apply(&self, settings: &Value) -> Result<Value, BindingsError> {
        let mut settings = match self.installation {
            Some(_) => self.bound_only(settings),
            None => settings.clone(),
        };
        if let Some(name) = &self.profile {
            let over = profile(&settings, name)?;
            settings = merged(&settings, &over);
        }
        if !self.set.is_empty() {
            let bound = self.set.iter().map(|(slot, name)| {
                let conn = Value::map([(Value::keyword("conn"), Value::keyword(name))]);
                (Value::keyword(slot), conn)
            });
            let bindings = Value::map([(Value::keyword("bindings"), Value::map(bound))]);
            settings = merged(&settings, &bindings);
        }
        Ok(settings)
    }
}

impl Bindings {
    /// Returns settings that have only the connections of the bindings, and no values for setup forms.
    fn bound_only(&self, settings: &Value) -> Value {
        let is_bound = |name: &Value| {
            let name = name_of(name);
            name.is_some_and(|name| self.set.values().any(|bound| **bound == *name))
        };
        let kept = |(key, value): (&Value, &Value)| {
            let value = match name_of(key).as_deref() {
                Some("bindings" | "profiles" | "setup") => return None,
                Some("connections") => {
                    let own = value.as_map().into_iter().flat_map(|map| map.iter());
                    let own = own.filter(|(name, _)| is_bound(name));
                    Value::map(own.map(|(name, value)| (name.clone(), value.clone())))
                }
                Some("llm-providers") => {
                    let own = value.as_vector().into_iter().flat_map(|items| items.iter());
                    let own = own.filter(|item| item.get("id").is_some_and(is_bound));
                    Value::vector(own.cloned())
                }
                _ => value.clone(),
            };
            Some((key.clone(), value))
        };
        let entries = settings.as_map().into_iter().flat_map(|map| map.iter());
        Value::map(entries.filter_map(kept))
    }
}

fn profile(settings: &Value, name: &str) -> Result<Value, BindingsError> {
    let profiles = settings.get("profiles").and_then(Value::as_map);
    let entries = || profiles.into_iter().flat_map(|map| map.iter());
    let found = entries().find(|(key, _)| name_of(key).is_some_and(|it| *it == *name));
    found.map(|(_, over)| over.clone()).ok_or_else(|| {
        let known = entries().filter_map(|(key, _)| name_of(key));
        BindingsError::NoProfile {
            name: name.to_owned(),
            known: known.map(|it| it.to_string()).collect(),
        }
    })
}

/// Merges two maps. The keys of `over` win; maps under the same key are merged one level deep.
fn merged(under: &Value, over: &Value) -> Value {
    let entries = |value: &Value| {
        let map = value.as_map().map(|map| map.entries().clone());
        map.unwrap_or_default()
    };
    let mut all = entries(under);
    for (key, value) in entries(over).iter() {
        let both = all.get(key).filter(|it| it.as_map().is_some()).cloned();
        let value = match (both, value.as_map()) {
            (Some(known), Some(_)) => {
                let mut inner = entries(&known);
                for (name, value) in entries(value).iter() {
                    // The same name may be written in two ways.
                    let keys = inner.iter().map(|(key, _)| key.clone());
                    let same = keys.into_iter().find(|it| name_of(it) == name_of(name));
                    inner.insert(same.unwrap_or_else(|| name.clone()), value.clone());
                }
                Value::map(
                    inner
                        .iter()
                        .map(|(key, value)| (key.clone(), value.clone())),
                )
            }
            _ => value.clone(),
        };
        all.insert(key.clone(), value);
    }
    Value::map(all.iter().map(|(key, value)| (key.clone(), value.clone())))
}
