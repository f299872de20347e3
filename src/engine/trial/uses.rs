//! Which mocks and answers of a case were used, written down in the home, so that a process that dies leaves its part.
//!
//! An entry that no step matches is a mistake of the case: it is misspelt, or the step is gone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flowstone_lang::value::Value;

use super::{Case, TrialError, World};
use crate::diagnostic::nearest;
use crate::flow::name_of;

/// The file in the home of a trial.
const USES: &str = "uses.log";
/// Keys of mocks that hold several outcomes.
const LISTS: &[&str] = &["attempts", "each"];

/// Where the uses of a case are noted.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// The file, and what this process wrote to it.
    file: RefCell<Option<PathBuf>>,
    lines: RefCell<HashSet<String>>,
}

impl Noted {
    /// Keeps the notes in a home from now on.
    pub(super) fn keep_in(&self, home: &Path) {
        *self.file.borrow_mut() = Some(home.join(USES));
    }

    /// Notes that a step or wait asked by these names: the first that the case has is used.
    pub(super) fn asked(&self, part: &str, names: &[&str]) {
        for name in names {
            self.add(&format!("{part}\t{name}"));
        }
    }

    /// Notes that one of several outcomes of a mock was used, counted from 1.
    pub(super) fn chosen(&self, list: &str, name: &str, number: usize) {
        self.add(&format!("{list}:{number}\t{name}"));
    }

    /// A line that cannot be written is missing from the report about unused entries, and changes nothing else.
    fn add(&self, line: &str) {
        if !self.lines.borrow_mut().insert(line.to_owned()) {
            return;
        }
        if let Some(path) = &*self.file.borrow() {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        }
    }
}

/// What the processes of one or more trials used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// The names by which steps and waits asked, for each part of a case.
    asked: BTreeMap<String, BTreeSet<String>>,
    /// The highest outcome used of a mock with several, by list and name.
    chosen: BTreeMap<(String, String), usize>,
}

impl Uses {
    /// Reads what the processes in a home used.
    ///
    /// # Errors
    /// When the notes exist and cannot be read.
    pub fn read(home: &Path) -> Result<Uses, TrialError> {
        let path = home.join(USES);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(TrialError::Unusable {
                    path: path.display().to_string(),
                    detail: error.to_string(),
                });
            }
        };
        let mut uses = Uses::default();
        for (part, name) in text.lines().filter_map(|line| line.split_once('\t')) {
            match part.split_once(':') {
                None => {
                    let names = uses.asked.entry(part.to_owned()).or_default();
                    names.insert(name.to_owned());
                }
                Some((list, number)) => {
                    let key = (list.to_owned(), name.to_owned());
                    let highest = uses.chosen.entry(key).or_default();
                    *highest = number.parse().unwrap_or(0).max(*highest);
                }
            }
        }
        Ok(uses)
    }

    /// Adds what another trial of the same case used.
    pub fn add(&mut self, other: Uses) {
        for (part, names) in other.asked {
            self.asked.entry(part).or_default().extend(names);
        }
        for (key, number) in other.chosen {
            let highest = self.chosen.entry(key).or_default();
            *highest = number.max(*highest);
        }
    }

    fn names(&self, part: &str) -> impl Iterator<Item = &str> {
        self.asked
            .get(part)
            .into_iter()
            .flatten()
            .map(String::as_str)
    }
}

/// An entry of a case that no step used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    pub message: String,
    /// The step or wait that was probably meant.
    pub near: Option<String>,
    /// What to try where none is near.
    advice: &'static str,
}

impl Unused {
    /// The code of the page in `docs/errors`.
    pub const CODE: &'static str = "E0952";

    /// Returns what to try.
    pub fn hint(&self) -> String {
        match &self.near {
            Some(near) => format!("did you mean `{near}`?"),
            None => self.advice.to_owned(),
        }
    }
}

/// Returns the entries of a case that no step used.
pub fn unused(case: &Case, uses: &Uses) -> Vec<Unused> {
    let mut found = Vec::new();
    for (part, entries, what) in [
        ("mock", &case.mock, "step"),
        ("answers", &case.answers, "wait"),
    ] {
        for (key, entry) in entries.as_map().into_iter().flat_map(|map| map.iter()) {
            let name = name_of(key).unwrap_or_default();
            if part == "answers" && &*name == "*" {
                continue;
            }
            if !uses.names(part).any(|asked| asked == &*name) {
                found.push(Unused {
                    message: format!("no {what} used the entry `{key}` of `:{part}`"),
                    near: nearest(&name, uses.names(part)).map(str::to_owned),
                    advice: match part {
                        "mock" => "remove the entry, or name a step by its path, id or type",
                        _ => "remove the entry, or name a wait by its path, id or key",
                    },
                });
            } else if part == "mock" {
                found.extend(left_over(&name, key, entry, uses));
            }
        }
    }
    found
}

/// Outcomes of a mock with several that no step got.
fn left_over(name: &str, key: &Value, entry: &Value, uses: &Uses) -> Option<Unused> {
    LISTS.iter().find_map(|list| {
        let items = super::case::outcomes(entry, list)?;
        // A mock that another one hides gave nothing at all: it is there for other steps.
        let highest = uses.chosen.get(&((*list).to_owned(), name.to_owned()))?;
        (*highest < items.len()).then(|| Unused {
            message: format!(
                "the entry `{key}` of `:mock` has {} outcomes under `:mock/{list}`, and only {highest} {} used",
                items.len(),
                if *highest == 1 { "was" } else { "were" }
            ),
            near: None,
            advice: "remove the outcomes that are left over, or find out why the flow did not ask for them",
        })
    })
}

impl World {
    /// Returns what was used of the case in this home.
    ///
    /// # Errors
    /// When the notes cannot be read.
    pub fn uses(&self) -> Result<Uses, TrialError> {
        Uses::read(&self.home)
    }
}
