//! Records which mocks and answers of a case were used, in the home, so that a dying process leaves its part.
//!
//! An entry that no step matches is a mistake in the case: it is misspelt, or the step was removed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flowstone_lang::value::Value;

use super::{Case, TestError, World};
use crate::diagnostic::nearest;
use crate::flow::name_of;

/// The file in the home of a test.
const USES: &str = "uses.log";
/// Keys of mocks that hold several outcomes.
const LISTS: &[&str] = &["attempts", "each"];

/// Where the uses of a case are recorded.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// The file, and what this process wrote to it.
    file: RefCell<Option<PathBuf>>,
    lines: RefCell<HashSet<String>>,
}

impl Noted {
    /// Records uses in a home from now on.
    pub(super) fn keep_in(&self, home: &Path) {
        *self.file.borrow_mut() = Some(home.join(USES));
    }

    /// Records that a step or wait asked by these names: the first one in the case is used.
    pub(super) fn asked(&self, part: &str, names: &[&str]) {
        for name in names {
            self.add(&format!("{part}\t{name}"));
        }
    }

    /// Records that one of several outcomes of a mock was used, counted from 1.
    pub(super) fn chosen(&self, list: &str, name: &str, number: usize) {
        self.add(&format!("{list}:{number}\t{name}"));
    }

    /// A line that cannot be written is only missing from the report about unused entries.
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

/// The uses by the processes of one or more tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// The names by which steps and waits asked, for each part of a case.
    asked: BTreeMap<String, BTreeSet<String>>,
    /// The highest used outcome of mocks with several, by list and name.
    chosen: BTreeMap<(String, String), usize>,
}

impl Uses {
    /// Reads the uses by the processes of a home.
    ///
    /// # Errors
    /// When the notes exist and cannot be read.
    pub fn read(home: &Path) -> Result<Uses, TestError> {
        let path = home.join(USES);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(TestError::Unusable {
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

    /// Adds the uses of another test of the same case.
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
    /// The step or wait with a similar name.
    pub near: Option<String>,
    /// The hint if no name is similar.
    advice: &'static str,
}

impl Unused {
    /// The code of the page in `docs/errors`.
    pub const CODE: &'static str = "E0952";

    /// Returns a hint.
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

/// Returns outcomes of a mock with several that no step used.
fn left_over(name: &str, key: &Value, entry: &Value, uses: &Uses) -> Option<Unused> {
    LISTS.iter().find_map(|list| {
        let items = super::case::outcomes(entry, list)?;
        // A mock that another one overrides had no outcome used: it is there for other steps.
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
    /// Returns the uses of the case in this home.
    ///
    /// # Errors
    /// When the notes cannot be read.
    pub fn uses(&self) -> Result<Uses, TestError> {
        Uses::read(&self.home)
    }
}
