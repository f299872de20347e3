//! `flowstone test --update`: writes what tests found into the files of their cases, and tests those cases again.
//!
//! Only the values of expectations change; the rest of a file stays as it is, with its comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use flowstone_engine::codec;
use flowstone_engine::crash_test::Correction;
use flowstone_lang::syntax::{NodeId, NodeKind, Tree};

use super::super::fmt;
use super::super::output;
use super::super::pretty::pretty_at;
use super::super::report::{Report, unreadable};
use super::suite::Suite;
use super::trial::{Ended, Subject, Trial, Trials};

/// The code of a file of cases that cannot be updated.
const NOT_UPDATED: &str = "E1595";

/// The corrections of the cases of a file, by their numbers.
type Corrected = BTreeMap<usize, Vec<Correction>>;

/// Checks that no two cases of a file share a recording that each of them would replace.
///
/// # Errors
/// When two do.
pub fn check_recordings(trials: &[&Trial]) -> Result<(), Report> {
    let suites = trials.iter().filter_map(|trial| trial.suite());
    let files: BTreeSet<&Path> = suites.map(|(file, _)| file).collect();
    let mut used = BTreeSet::new();
    for file in files {
        let cases = Suite::read(file, Some(Path::new("")))?.cases;
        for folder in cases.into_iter().filter_map(|case| case.replay) {
            if !used.insert(folder.clone()) {
                let message = format!(
                    "several cases use the recording {}, and each would replace it",
                    folder.display()
                );
                let hint =
                    "give each case a folder of its own, or record with `flowstone test --record`";
                return Err(Report::error(NOT_UPDATED, message).hint(hint));
            }
        }
    }
    Ok(())
}

/// Writes the corrections of tests into their files, and performs the corrected cases again.
///
/// # Errors
/// When a file cannot be written.
pub fn update(trials: &Trials<'_>, all: &[&Trial], ended: &mut [Ended]) -> Result<(), Report> {
    let mut files: BTreeMap<PathBuf, Corrected> = BTreeMap::new();
    for ended in ended.iter_mut() {
        let corrections = std::mem::take(&mut ended.corrections);
        if let (Some((file, idx)), false) = (&ended.source, corrections.is_empty()) {
            files
                .entry(file.clone())
                .or_default()
                .insert(*idx, corrections);
        }
    }
    for (file, cases) in &files {
        write(file, cases)?;
        let count = cases.values().map(Vec::len).sum::<usize>();
        let expectations = match count {
            1 => "1 expectation".to_owned(),
            count => format!("{count} expectations"),
        };
        output::note(&format!("updated {expectations} in {}", file.display()));
    }
    let is_corrected = |trial: &&Trial| {
        let cases = trial
            .suite()
            .and_then(|(file, idx)| Some((files.get(file)?, idx)));
        cases.is_some_and(|(cases, idx)| cases.contains_key(&idx))
    };
    let again: Vec<&Trial> = all.iter().copied().filter(is_corrected).collect();
    if again.is_empty() {
        return Ok(());
    }
    for fresh in trials.perform(&again) {
        let place = ended.iter_mut().find(|it| it.source == fresh.source);
        if let Some(place) = place {
            *place = fresh;
        }
    }
    Ok(())
}

fn write(file: &Path, cases: &Corrected) -> Result<(), Report> {
    let name = file.display().to_string();
    let failed = |why: String| {
        let message = format!("{name} cannot be updated: {why}");
        Report::error(NOT_UPDATED, message)
    };
    let text = fs::read_to_string(file).map_err(|error| unreadable(&name, &error))?;
    let edited = edited(&text, cases).ok_or_else(|| {
        failed("its cases are not written as maps of EDN".to_owned())
            .hint("write each case as a map, {:input ... :expect ...}, or change the file yourself")
    })?;
    fmt::replace(file, &edited).map_err(|error| failed(error.to_string()))
}

/// Returns the text of a file of cases with new expectations. `None`: a case is not written as a map.
fn edited(text: &str, cases: &Corrected) -> Option<String> {
    let tree = Tree::parse(text);
    if !tree.flaws().is_empty() {
        return None;
    }
    let file = File { text, tree };
    let top = file.tree.bare(file.tree.forms(None).next()?);
    let list = file.entry(top, ":cases").map(|id| file.tree.bare(id));
    let mut edits = Vec::new();
    for (idx, corrections) in cases {
        let case = match list {
            None => top,
            Some(list) => file.tree.bare(file.tree.form(list, *idx)?),
        };
        edits.extend(file.edits(case, corrections)?);
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = text.to_owned();
    for (range, new) in edits.into_iter().rev() {
        out.replace_range(range, &new);
    }
    Some(out)
}

/// A file of cases as it is written.
struct File<'a> {
    text: &'a str,
    tree: Tree,
}

impl File<'_> {
    /// Returns the value of a key in a map.
    fn entry(&self, map: NodeId, key: &str) -> Option<NodeId> {
        let forms: Vec<NodeId> = self.tree.forms(Some(map)).collect();
        let mut entries = forms.chunks_exact(2);
        let found = entries.find(|entry| self.tree.text(self.text, entry[0]) == key)?;
        Some(found[1])
    }

    /// Returns the edits of a case: new values for the keys that it has, and new entries behind the last one.
    fn edits(
        &self,
        case: NodeId,
        corrections: &[Correction],
    ) -> Option<Vec<(Range<usize>, String)>> {
        let node = self.tree.node(case);
        if node.kind != NodeKind::Map {
            return None;
        }
        let mut keys = self.tree.forms(Some(case)).step_by(2);
        // The keys of JSON are texts.
        if keys.any(|key| self.tree.node(key).kind != NodeKind::Keyword) {
            return None;
        }
        let inside = node.start as usize + node.open as usize;
        let mut edits = Vec::new();
        let mut added = String::new();
        for Correction { key, value } in corrections {
            let (key, value) = (format!(":{key}"), codec::decode(value).ok()?);
            match self.entry(case, &key) {
                Some(old) => {
                    let range = self.tree.node(old).range();
                    let new = pretty_at(&value, self.column(range.start));
                    edits.push((range, new));
                }
                None => {
                    let column = self.column(inside);
                    let is_first = added.is_empty() && self.tree.forms(Some(case)).next().is_none();
                    if !is_first {
                        added += &format!("\n{}", " ".repeat(column));
                    }
                    let value = pretty_at(&value, column + key.len() + 1);
                    added += &format!("{key} {value}");
                }
            }
        }
        if !added.is_empty() {
            let at = self.end_of_entries(case).unwrap_or(inside);
            edits.push((at..at, added));
        }
        Some(edits)
    }

    /// Returns the end of the last entry of a map, with the comment behind it.
    fn end_of_entries(&self, map: NodeId) -> Option<usize> {
        let last = self.tree.forms(Some(map)).last()?;
        let end = self.tree.node(last).range().end;
        let behind = self.tree.parts(Some(map)).filter(|id| *id > last);
        let comment = behind
            .map(|id| self.tree.node(id))
            .find(|node| node.kind == NodeKind::Comment)
            .filter(|node| !self.text[end..node.start as usize].contains('\n'));
        Some(comment.map_or(end, |node| node.range().end))
    }

    fn column(&self, at: usize) -> usize {
        let start = self.text[..at].rfind('\n').map_or(0, |line| line + 1);
        self.text[start..at].chars().count()
    }
}

impl Trial {
    /// Returns the file of the case, and its number there.
    fn suite(&self) -> Option<(&Path, usize)> {
        match &self.subject {
            Subject::Flow {
                suite: Some(file),
                idx,
                ..
            } => Some((file, *idx)),
            Subject::Flow { suite: None, .. } | Subject::Code(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, corrections: &[(usize, &'static str, &str)], expected: &str) {
        let mut cases = Corrected::new();
        for &(idx, key, value) in corrections {
            cases.entry(idx).or_default().push(Correction {
                key,
                value: value.to_owned(),
            });
        }
        assert_eq!(edited(text, &cases).as_deref(), Some(expected));
    }

    #[test]
    fn a_value_is_replaced_and_the_rest_stays() {
        check(
            "; refunds\n{:input {:n 1} ; small\n :expect  {:n 1}}\n",
            &[(0, "expect", "{:n 2}")],
            "; refunds\n{:input {:n 1} ; small\n :expect  {:n 2}}\n",
        );
    }

    #[test]
    fn a_new_entry_follows_the_last_one() {
        check(
            "{:input {:n 1}}",
            &[(0, "expect", "2"), (0, "steps", "[:a]")],
            "{:input {:n 1}\n :expect 2\n :steps [:a]}",
        );
        check(
            "{:input 1 ; the input\n }",
            &[(0, "expect", "2")],
            "{:input 1 ; the input\n :expect 2\n }",
        );
        check("{}", &[(0, "expect", "2")], "{:expect 2}");
    }

    #[test]
    fn a_case_among_others_is_found_by_its_number() {
        check(
            "{:expect 0\n :cases [{:name \"a\" :expect 1} #_{:name \"gone\"}\n         {:name \"b\"}]}",
            &[(0, "expect", "5"), (1, "expect", "6")],
            "{:expect 0\n :cases [{:name \"a\" :expect 5} #_{:name \"gone\"}\n         {:name \"b\"\n          :expect 6}]}",
        );
    }

    #[test]
    fn a_wide_value_is_laid_out_below_its_beginning() {
        let x = "x".repeat(60);
        check(
            "{:expect 1}",
            &[(0, "expect", &format!("{{:a \"{x}\" :b \"{x}\"}}"))],
            &format!("{{:expect {{:a \"{x}\"\n          :b \"{x}\"}}}}"),
        );
    }

    #[test]
    fn what_is_not_a_map_is_left_alone() {
        let cases: Corrected = [(
            0,
            vec![Correction {
                key: "expect",
                value: "1".to_owned(),
            }],
        )]
        .into();
        assert_eq!(edited("[1 2]", &cases), None);
        assert_eq!(edited("{:cases [#:a{:b 1", &cases), None);
        assert_eq!(edited("{\"expect\": 2}", &cases), None);
    }
}
