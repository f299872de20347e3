//! Answers requests from a recording and uses each exchange once. A request that was not recorded fails with an error
//! that shows the most similar one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use flowstone_flow::ports::{
    ExchangeError, Exchanged, Exchanges, OutgoingRequest, RecordedResponse,
};

use super::alike::{Likeness, difference};
use super::file::Exchange;
use super::record::asked;
use super::redact::{Redactor, secrets_in};
use super::{About, RecordingError, exchanges};

/// Answers requests from a recording, without sending them.
#[derive(Debug)]
pub struct Replayer {
    about: About,
    entries: Vec<Entry>,
    /// Whether each entry has been used.
    used: Mutex<Vec<bool>>,
}

#[derive(Debug)]
struct Entry {
    file: String,
    exchange: Exchange,
    likeness: Likeness,
}

impl Replayer {
    /// Reads a whole recording.
    ///
    /// # Errors
    /// Returns an error if the folder is not a recording, or a file in it is invalid.
    pub fn open(folder: &Path) -> Result<Replayer, RecordingError> {
        let about = About::read(folder)?;
        let mut entries = Vec::new();
        for path in exchanges(folder)? {
            let mut exchange = Exchange::read(&path)?;
            // Older builds redacted fewer parameters.
            exchange.request.url = Redactor::new(&[]).url(&exchange.request.url);
            let wrong = || RecordingError::Wrong {
                path: path.display().to_string(),
                cause: "`at` is not a time such as 2026-03-01T10:00:00Z".into(),
            };
            let at: jiff::Timestamp = exchange.at.parse().map_err(|_| wrong())?;
            let likeness = Likeness::of(&exchange.request, at.as_millisecond());
            let file = path.file_name().unwrap_or_default();
            entries.push(Entry {
                file: file.to_string_lossy().into_owned(),
                exchange,
                likeness,
            });
        }
        entries.sort_by_key(|entry| entry.exchange.number);
        let used = Mutex::new(vec![false; entries.len()]);
        Ok(Replayer {
            about,
            entries,
            used,
        })
    }

    /// Returns the recorded environment's settings of model providers.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.about.environment
    }

    /// Tells whether a secret existed; `None` if the recorded run never requested it.
    pub(super) fn had_secret(&self, name: &str) -> Option<bool> {
        self.about.secrets.get(name).copied()
    }

    /// Finds the entry that answers a request, among those not used yet.
    fn find(&self, step: &str, wanted: &Likeness, used: &[bool]) -> Option<usize> {
        let matches: [fn(&Likeness, &Likeness) -> bool; 2] = [
            |one, other| one.text == other.text,
            |one, other| one.loose == other.loose,
        ];
        matches.iter().find_map(|is_same| {
            let same = |(at, entry): &(usize, &Entry)| {
                !used[*at] && entry.exchange.answer.is_some() && is_same(&entry.likeness, wanted)
            };
            let found: Vec<(usize, &Entry)> =
                self.entries.iter().enumerate().filter(same).collect();
            let own = found.iter().find(|(_, entry)| entry.exchange.step == step);
            own.or(found.first()).map(|(at, _)| *at)
        })
    }

    /// Returns the error for a request that no entry answers.
    fn missing(&self, what: &str, wanted: &Likeness, used: &[bool]) -> ExchangeError {
        let same: Vec<(usize, &Entry)> = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.likeness.loose == wanted.loose)
            .collect();
        if let Some((_, entry)) = same.iter().find(|(at, _)| !used[*at]) {
            return ExchangeError {
                code: "E0758",
                kind: "not-recorded",
                message: format!("{} has no answer to {what}", entry.file),
                hint: "the recording broke off there: record again, or give the file a `response` and an `end`"
                    .into(),
            };
        }
        let not_recorded = |message: String, hint: String| ExchangeError {
            code: "E0754",
            kind: "not-recorded",
            message,
            hint,
        };
        if let Some((_, last)) = same.last() {
            let (count, file) = (same.len(), &last.file);
            let times = if count == 1 {
                "once".into()
            } else {
                format!("{count} times")
            };
            return not_recorded(
                format!("{what} was recorded {times}, but is requested once more"),
                format!("{file} is used already; copy it under a higher number, or record again"),
            );
        }
        let closeness = |entry: &Entry| entry.likeness.closeness(wanted);
        let nearest = self
            .entries
            .iter()
            .max_by(|one, other| closeness(one).total_cmp(&closeness(other)));
        match nearest {
            None => not_recorded(
                format!("{what} is not in the recording, which has no exchanges"),
                "record again with `--record`".into(),
            ),
            Some(entry) => not_recorded(
                format!("{what} is not in the recording"),
                format!(
                    "the nearest is {}; what was recorded (-) and what is requested (+):\n{}",
                    entry.file,
                    difference(&entry.likeness, wanted)
                ),
            ),
        }
    }
}

impl Exchanges for Replayer {
    fn ask(&self, request: OutgoingRequest) -> Result<Exchanged, ExchangeError> {
        let mut secrets = request.secrets.all();
        secrets.extend(secrets_in(&request.body));
        let clean = Redactor::new(&secrets).request(asked(&request), &request.varying);
        let wanted = Likeness::of(&clean, request.now_ms);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = self.find(&request.step, &wanted, &used) else {
            let what = wanted.text.lines().next().unwrap_or_default().to_owned();
            return Err(self.missing(&what, &wanted, &used));
        };
        used[at] = true;
        let answer = self.entries[at].exchange.answer.clone();
        let answer = answer.expect("only exchanges with an answer are found");
        let head = answer.head;
        Ok(Exchanged::Recorded(RecordedResponse {
            head,
            chunks: answer.chunks,
            end: answer.end,
        }))
    }

    fn is_replay(&self) -> bool {
        true
    }
}
