//! Where a project's secrets are: the environment, `.env` beside the flows, or files that the settings name.
//!
//! The environment wins over `.env`. Values are read when they are asked for and kept nowhere.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use flowstone_engine::flow::name_of;
use flowstone_engine::ports::{Secret, Secrets};
use flowstone_lang::value::Value;

use crate::settings::SettingsError;

/// The secrets of a project.
#[derive(Default)]
pub struct ProjectSecrets {
    dotenv: HashMap<String, String>,
    places: HashMap<String, Place>,
}

/// Where the settings say that a secret is.
enum Place {
    Variable(String),
    File(PathBuf),
}

impl ProjectSecrets {
    /// Reads `.env` in the project's folder, and `:secrets` of its settings.
    ///
    /// # Errors
    /// When `.env` or `:secrets` is not well formed.
    pub fn load(root: &Path, settings: &Value) -> Result<ProjectSecrets, SettingsError> {
        Ok(ProjectSecrets {
            dotenv: dotenv(&root.join(".env"))?,
            places: places(root, settings)?,
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = std::env::var(name)
            .ok()
            .or_else(|| self.dotenv.get(name).cloned());
        found
            .map(|text| text.trim().to_string())
            .filter(|text| !text.is_empty())
    }
}

impl Secrets for ProjectSecrets {
    fn find(&self, name: &str) -> Option<Secret> {
        let found = match self.places.get(name) {
            Some(Place::Variable(variable)) => self.variable(variable),
            Some(Place::File(path)) => fs::read_to_string(path)
                .ok()
                .map(|text| text.trim().to_string())
                .filter(|text| !text.is_empty()),
            None => self
                .variable(name)
                .or_else(|| self.variable(&variable(name))),
        };
        found.map(Secret::new)
    }
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
        // The text of a line that cannot be read may hold a secret: only its place is told.
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
        let place = match (text("env"), text("file")) {
            (Some(variable), None) => Place::Variable(variable.to_string()),
            (None, Some(file)) => Place::File(root.join(file)),
            _ => {
                return Err(wrong(format!(
                    "the secret `:{name}` is to be `{{:env \"VARIABLE\"}}` or `{{:file \"path\"}}`; a secret itself does not belong into the file"
                )));
            }
        };
        places.insert(name.to_string(), place);
    }
    Ok(places)
}
