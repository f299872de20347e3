//! What is tested: the cases of flows, and files with tests of `clojure.test`.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::check::gather;
use super::super::report::{Report, unreadable};
use super::suite::{Suite, flow_of, suites_of};
use super::trial::{Subject, Trial};
use super::{Test, flow_file, is_suite};

/// Folders without tests of a project.
const SKIPPED: &[&str] = &["node_modules", "target"];
/// The endings of files with tests of `clojure.test`.
const CODE: &[&str] = &["_test.clj", "_test.cljc"];

/// The tests that a command found.
#[derive(Debug, Default)]
pub struct Found {
    pub trials: Vec<Trial>,
    /// Flows without a case.
    pub without_case: Vec<PathBuf>,
    /// Files of cases that cannot be used, and why.
    pub unusable: Vec<(PathBuf, Report)>,
}

impl Found {
    /// Returns the tests whose names contain a text.
    pub fn selected(&self, filter: Option<&str>) -> Vec<&Trial> {
        let trials = self.trials.iter();
        let is_selected = |trial: &&Trial| filter.is_none_or(|text| trial.name().contains(text));
        trials.filter(is_selected).collect()
    }

    /// Adds the cases of a file, for a flow if one was named.
    fn add(&mut self, file: &Path, flow: Option<&Path>) {
        match Suite::read(file, flow) {
            Err(report) => self.unusable.push((file.to_path_buf(), report)),
            Ok(suite) => {
                let cases = suite.cases.into_iter().enumerate();
                self.trials.extend(cases.map(|(idx, case)| Trial {
                    subject: Subject::Flow {
                        flow: suite.flow.clone(),
                        suite: Some(file.to_path_buf()),
                        idx,
                    },
                    case: Some(case.name),
                    skip: case.skip,
                }));
            }
        }
    }

    fn add_code(&mut self, file: &Path) {
        self.trials.push(Trial {
            subject: Subject::Code(file.to_path_buf()),
            case: None,
            skip: None,
        });
    }
}

/// Finds the tests that the arguments name.
///
/// # Errors
/// When a folder cannot be read, or a flow is named that does not exist.
pub fn find(args: &Test) -> Result<Found, Report> {
    let mut found = Found::default();
    for path in &args.flows {
        if path.is_dir() {
            folder(path, &mut found)?;
        } else if is_code(path) {
            found.add_code(path);
        } else if is_suite(path) && args.case.is_none() {
            found.add(path, None);
        } else {
            let flow = flow_file(path)?;
            one_flow(args, &flow, &mut found)?;
        }
    }
    Ok(found)
}

/// Adds the cases of a flow that was named; one without a case is run without input.
fn one_flow(args: &Test, flow: &Path, found: &mut Found) -> Result<(), Report> {
    if let Some(case) = &args.case {
        let before = found.unusable.len();
        found.add(case, Some(flow));
        return match found.unusable.get(before) {
            Some(_) => Err(found.unusable.remove(before).1),
            None => Ok(()),
        };
    }
    let suites = suites_of(flow);
    for suite in &suites {
        found.add(suite, Some(flow));
    }
    if suites.is_empty() {
        found.trials.push(Trial {
            subject: Subject::Flow {
                flow: flow.to_path_buf(),
                suite: None,
                idx: 0,
            },
            case: None,
            skip: None,
        });
    }
    Ok(())
}

/// Adds the tests of a folder: of its flows with a case, of files of cases that name their flow, and of `clojure.test`.
fn folder(path: &Path, found: &mut Found) -> Result<(), Report> {
    let unreadable = |error: std::io::Error| unreadable(&path.display().to_string(), &error);
    let mut flows = Vec::new();
    gather(path, &mut flows).map_err(unreadable)?;
    let mut files = Vec::new();
    tests_below(path, &mut files).map_err(unreadable)?;
    for flow in flows {
        let suites = suites_of(&flow);
        for suite in &suites {
            found.add(suite, Some(&flow));
        }
        if suites.is_empty() {
            found.without_case.push(flow);
        }
    }
    for file in files {
        if is_code(&file) {
            found.add_code(&file);
        } else if flow_of(&file).is_none() {
            found.add(&file, None);
        }
    }
    Ok(())
}

fn tests_below(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if entry.is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&&*name) {
                tests_below(&entry, files)?;
            }
        } else if entry.is_file() && (is_code(&entry) || name.ends_with("_test.edn")) {
            files.push(entry);
        }
    }
    Ok(())
}

fn is_code(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    CODE.iter().any(|ending| name.ends_with(ending))
}
