//! Recordings: a folder of exchanges between a run and servers, one readable file per exchange.
//!
//! [`Recorder`] writes a recording while requests are sent; [`Replayer`] answers from it without sending anything. No
//! secret is ever in a file: known secrets are removed from requests and answers before they are written, and from a
//! request before it is looked up. The names of the secrets are recorded, so that a replay needs no values.

mod alike;
mod file;
mod record;
mod redact;
mod replay;
mod secrets;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

pub use record::Recorder;
pub use replay::Replayer;
pub use secrets::{RecordedSecrets, ReplayedSecrets};

/// The file that describes the folder.
const ABOUT: &str = "recording.json";
/// Raised when an older build could not read the folder.
const FORMAT: u64 = 1;

/// Why a recording cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    #[error("{path} is not empty")]
    Occupied { path: String, is_recording: bool },
    #[error("{path} cannot be written: {cause}")]
    Unwritable { path: String, cause: String },
    #[error("{path} is not a recording: {cause}")]
    NotARecording { path: String, cause: String },
    #[error("{path} is not right: {cause}")]
    Wrong { path: String, cause: String },
}

impl RecordingError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Occupied { .. } => "E0934",
            Self::Unwritable { .. } => "E0759",
            Self::NotARecording { .. } | Self::Wrong { .. } => "E0933",
        }
    }

    /// Returns a hint.
    pub fn hint(&self) -> String {
        match self {
            Self::Occupied {
                path,
                is_recording: true,
            } => {
                format!("it holds a recording: play it with `--replay {path}`, or remove it first")
            }
            Self::Occupied { .. } => "name a folder that is empty, or that is not there yet".into(),
            Self::Unwritable { .. } => {
                "check the folder's permissions, and the space on the disk".into()
            }
            Self::NotARecording { .. } => "`flowstone run FLOW --record DIR` makes one".into(),
            Self::Wrong { .. } => "put the file right, or record again".into(),
        }
    }
}

/// The description of a whole recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct About {
    /// Secrets that were requested, and whether they existed.
    secrets: BTreeMap<String, bool>,
    /// The environment's settings of model providers.
    environment: BTreeMap<String, String>,
}

impl About {
    fn write(&self, folder: &Path) -> Result<(), RecordingError> {
        let names = |there: bool| -> Vec<&String> {
            let of = self.secrets.iter().filter(|(_, is)| **is == there);
            of.map(|(name, _)| name).collect()
        };
        let about = json!({
            "format": FORMAT,
            "flowstone": env!("CARGO_PKG_VERSION"),
            "secrets": {"set": names(true), "unset": names(false)},
            "environment": self.environment,
        });
        write(&folder.join(ABOUT), &about)
    }

    fn read(folder: &Path) -> Result<About, RecordingError> {
        let path = folder.join(ABOUT);
        let none = |cause: String| RecordingError::NotARecording {
            path: folder.display().to_string(),
            cause,
        };
        let wrong = |cause: &str| RecordingError::Wrong {
            path: path.display().to_string(),
            cause: cause.to_owned(),
        };
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !folder.exists() => none("there is no such folder".into()),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                none(format!("it has no {ABOUT}"))
            }
            _ => none(error.to_string()),
        })?;
        let json: Json = serde_json::from_str(&text).map_err(|error| wrong(&not_json(&error)))?;
        match json["format"].as_u64() {
            Some(FORMAT) => {}
            Some(format) => {
                let cause = format!("its format is {format}, and this program knows {FORMAT}");
                return Err(wrong(&cause));
            }
            None => return Err(wrong("`format` is missing")),
        }
        let mut about = About::default();
        for (key, there) in [("set", true), ("unset", false)] {
            let names = json["secrets"][key].as_array();
            let names = names.ok_or_else(|| wrong("`secrets` has no lists `set` and `unset`"))?;
            for name in names {
                let name = name.as_str();
                let name =
                    name.ok_or_else(|| wrong("`secrets` lists something else than names"))?;
                about.secrets.insert(name.to_owned(), there);
            }
        }
        for (name, text) in json["environment"].as_object().into_iter().flatten() {
            let text = text.as_str();
            let text = text.ok_or_else(|| wrong("`environment` has something else than texts"))?;
            about.environment.insert(name.clone(), text.to_owned());
        }
        Ok(about)
    }
}

fn not_json(error: &serde_json::Error) -> String {
    match error.is_eof() {
        true => format!("it ends in the middle (line {})", error.line()),
        false => format!("it is not JSON: {error}"),
    }
}

/// Writes a file atomically: a dying process leaves no partial file.
fn write(path: &Path, json: &Json) -> Result<(), RecordingError> {
    let unwritable = |error: io::Error| RecordingError::Unwritable {
        path: path.display().to_string(),
        cause: error.to_string(),
    };
    let mut text = serde_json::to_string_pretty(json).map_err(|error| unwritable(error.into()))?;
    text.push('\n');
    let half = path.with_extension("json.part");
    fs::write(&half, text).map_err(unwritable)?;
    fs::rename(&half, path).map_err(unwritable)
}

/// Returns the exchanges of a folder, in the order of their numbers.
fn exchanges(folder: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let unreadable = |error: io::Error| RecordingError::NotARecording {
        path: folder.display().to_string(),
        cause: error.to_string(),
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_exchange =
            name.ends_with(".json") && name.starts_with(|it: char| it.is_ascii_digit());
        if is_exchange {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the unknown fields of an object.
fn unknown<'a>(object: &'a Map<String, Json>, known: &[&str]) -> Option<&'a str> {
    let mut keys = object.keys().map(String::as_str);
    keys.find(|key| !known.contains(key))
}
