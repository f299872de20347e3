//! Where a project's secrets are: the environment, `.env` beside the flows, or files and entries of the system's
//! keyring that the settings name.
//!
//! The environment wins over `.env`. Values are read on demand and never kept.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use flowstone_flow::flow::name_of;
use flowstone_flow::ports::{Secret, Secrets};
use flowstone_lang::value::Value;

use crate::settings_error::SettingsError;

/// The secrets of a project.
#[derive(Default)]
pub struct ProjectSecrets {
    /// The file of variables, which is read again for a variable that it lacked.
    dotenv_path: PathBuf,
    dotenv: HashMap<String, String>,
    places: Places,
    /// The entries of profiles, by profile.
    profiles: HashMap<String, Places>,
}

type Places = HashMap<String, Place>;

/// The source of a secret in the settings.
enum Place {
    Variable(String),
    File(PathBuf),
    Keyring(String),
}

impl ProjectSecrets {
    /// Reads `.env` in the project's folder, and `:secrets` of its settings and their profiles.
    ///
    /// # Errors
    /// When `.env` or `:secrets` is malformed.
    pub fn load(root: &Path, settings: &Value) -> Result<ProjectSecrets, SettingsError> {
        let mut profiles = HashMap::new();
        let entries = settings.get("profiles").and_then(Value::as_map);
        for (name, profile) in entries.into_iter().flat_map(|map| map.iter()) {
            if let Some(name) = name_of(name) {
                profiles.insert(name.to_string(), places(root, profile)?);
            }
        }
        let dotenv_path = root.join(".env");
        Ok(ProjectSecrets {
            dotenv: dotenv(&dotenv_path)?,
            dotenv_path,
            places: places(root, settings)?,
            profiles,
        })
    }

    fn configured(&self, profile: Option<&str>, name: &str) -> Option<&Place> {
        let own = profile.and_then(|profile| self.profiles.get(profile)?.get(name));
        own.or_else(|| self.places.get(name))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = std::env::var(name)
            .ok()
            .or_else(|| self.dotenv.get(name).cloned())
            .or_else(|| dotenv(&self.dotenv_path).ok()?.remove(name));
        found
            .map(|text| text.trim().to_string())
            .filter(|text| !text.is_empty())
    }

    /// Reads a secret from the source in the settings.
    fn read(&self, place: &Place) -> Result<Option<String>, String> {
        match place {
            Place::Variable(variable) => Ok(self.variable(variable)),
            Place::File(path) => match fs::read_to_string(path) {
                Ok(text) => Ok(Some(text.trim().to_string()).filter(|text| !text.is_empty())),
                Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
            },
            Place::Keyring(entry) => keyring(entry),
        }
    }
}

impl Secrets for ProjectSecrets {
    fn find(&self, name: &str) -> Option<Secret> {
        self.find_in(None, name)
    }

    fn find_in(&self, profile: Option<&str>, name: &str) -> Option<Secret> {
        let found = match self.configured(profile, name) {
            Some(place) => self.read(place).ok().flatten(),
            None => self
                .variable(name)
                .or_else(|| self.variable(&variable(name))),
        };
        found.map(Secret::new)
    }

    fn place(&self, profile: Option<&str>, name: &str) -> String {
        let of_variable = |name: &str| {
            let is_in_file = std::env::var(name).is_err() && self.dotenv.contains_key(name);
            let place = if is_in_file { ".env" } else { "environment" };
            format!("{place} {name}")
        };
        match self.configured(profile, name) {
            Some(Place::Variable(variable)) => of_variable(variable),
            Some(Place::File(path)) => format!("file {}", path.display()),
            Some(Place::Keyring(entry)) => format!("keyring {entry}"),
            None if self.variable(name).is_some() => of_variable(name),
            None => of_variable(&variable(name)),
        }
    }

    fn problem(&self, profile: Option<&str>, name: &str) -> Option<String> {
        let place = self.configured(profile, name)?;
        self.read(place).err()
    }

    fn remedy(&self, profile: Option<&str>, name: &str) -> Option<String> {
        Some(match self.configured(profile, name)? {
            Place::Variable(variable) => {
                format!("set {variable} in the environment, or in `.env` beside the flows")
            }
            Place::File(path) => format!("write it to {}", path.display()),
            Place::Keyring(entry) => format!("store it in the system's keyring as `{entry}`"),
        })
    }
}

/// Reads `service/name` from the keyring of the system.
#[cfg(feature = "keyring")]
fn keyring(entry: &str) -> Result<Option<String>, String> {
    let (service, name) = entry.rsplit_once('/').unwrap_or(("flowstone", entry));
    let failed = |error: keyring::Error| format!("the keyring cannot be read: {error}");
    let entry = keyring::Entry::new(service, name).map_err(failed)?;
    match entry.get_password() {
        Ok(text) => Ok(Some(text)),
        Err(keyring::Error::NoEntry) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Reports that this build has no keyring support.
#[cfg(not(feature = "keyring"))]
fn keyring(entry: &str) -> Result<Option<String>, String> {
    Err(format!(
        "`{entry}` is in the system's keyring, which this program was built without (its cargo feature `keyring`)"
    ))
}

/// Returns the environment variable for a secret's name: `crm-token` is `CRM_TOKEN`.
pub fn variable(name: &str) -> String {
    let upper = |it: char| {
        if it.is_alphanumeric() {
            it.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    name.chars().map(upper).collect()
}

pub(crate) fn dotenv(path: &Path) -> Result<HashMap<String, String>, SettingsError> {
    if !path.is_file() {
        return Ok(HashMap::new());
    }
    let bad = |error: &dyn std::fmt::Display| SettingsError::BadDotenv {
        path: path.display().to_string(),
        // The text of an unreadable line may contain a secret: only its place is reported.
        cause: error
            .to_string()
            .split("'")
            .next()
            .unwrap_or_default()
            .trim_end_matches([' ', ':'])
            .to_string(),
    };
    let lines = dotenvy::from_path_iter(path).map_err(|error| bad(&error))?;
    lines
        .map(|line| line.map_err(|error| bad(&error)))
        .collect()
}

fn places(root: &Path, settings: &Value) -> Result<HashMap<String, Place>, SettingsError> {
    let Some(secrets) = settings.get("secrets").filter(|it| !it.is_nil()) else {
        return Ok(HashMap::new());
    };
    let wrong = |message: String| SettingsError::Wrong { message };
    let entries = secrets
        .as_map()
        .ok_or_else(|| wrong(format!("`:secrets` takes a map, not {}", secrets.kind())))?;
    let mut places = HashMap::new();
    for (key, place) in entries.iter() {
        let name = name_of(key)
            .ok_or_else(|| wrong(format!("`:secrets` has {} as a name", key.kind())))?;
        let text = |key: &str| place.get(key).and_then(Value::as_str);
        let place = match (text("env"), text("file"), text("keyring")) {
            (Some(variable), None, None) => Place::Variable(variable.to_string()),
            (None, Some(file), None) => Place::File(root.join(file)),
            (None, None, Some(entry)) => Place::Keyring(entry.to_string()),
            _ => {
                return Err(wrong(format!(
                    "the secret `:{name}` must be `{{:env \"VARIABLE\"}}`, `{{:file \"path\"}}` or `{{:keyring \"service/name\"}}`; the file must not contain the secret itself"
                )));
            }
        };
        places.insert(name.to_string(), place);
    }
    Ok(places)
}
