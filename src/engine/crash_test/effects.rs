//! The list of effects outside, recorded as they happen, in a file that survives a crash.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{EFFECTS, TestError};

/// What may be done about an effect that a crash left in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It is a read: repeating it is harmless.
    Look,
    /// The server recognises a repetition, or the flow declares it harmless.
    Repeat,
    /// A person must be asked.
    Ask,
}

impl Doubt {
    const NAMES: &'static [(Doubt, &'static str)] = &[
        (Doubt::Ask, "ask"),
        (Doubt::Look, "look"),
        (Doubt::Repeat, "repeat"),
    ];

    fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(doubt, _)| *doubt == self);
        found.map_or("ask", |(_, name)| name)
    }
}

/// An effect that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectLine {
    /// The flow, and the path of the step in it.
    pub path: String,
    pub attempt: u32,
    pub doubt: Doubt,
}

pub(super) struct Log(PathBuf);

impl Log {
    pub(super) fn new(path: PathBuf) -> Log {
        Log(path)
    }

    /// Records an effect and syncs the file.
    pub(super) fn add(&self, line: &EffectLine) -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        let text = format!("{}\t{}\t{}\n", line.doubt.name(), line.attempt, line.path);
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }
}

/// Reads the effects of a home.
///
/// # Errors
/// When the file exists and cannot be read.
pub fn read_effects(home: &Path) -> Result<Vec<EffectLine>, TestError> {
    let path = home.join(EFFECTS);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(TestError::Unusable {
                path: path.display().to_string(),
                detail: error.to_string(),
            });
        }
    };
    Ok(text.lines().filter_map(line).collect())
}

fn line(text: &str) -> Option<EffectLine> {
    let mut parts = text.splitn(3, '\t');
    let doubt = parts.next()?;
    let (doubt, _) = Doubt::NAMES.iter().find(|(_, name)| *name == doubt)?;
    Some(EffectLine {
        doubt: *doubt,
        attempt: parts.next()?.parse().ok()?,
        path: parts.next()?.to_owned(),
    })
}
