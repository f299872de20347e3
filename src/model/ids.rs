//! Ids of runs, and the paths of steps in them.

use std::fmt;

/// The permanent name of a run. Sorts by start time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(String);

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl RunId {
    /// Returns an id made of a time and random bits: 16 letters and digits that are hard to confuse.
    pub fn new(now_ms: i64, random: u64) -> RunId {
        let millis = now_ms.max(0) as u128 & ((1 << 48) - 1);
        let mut bits = (millis << 32) | u128::from(random >> 32);
        let mut text = [0; 16];
        for slot in text.iter_mut().rev() {
            *slot = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        RunId(text.iter().map(|byte| char::from(*byte)).collect())
    }

    /// Returns the id that is always derived from a text, such as when a run is started from a place in another.
    pub fn derived(text: &str) -> RunId {
        let digest = crate::codec::digest_bytes(text.as_bytes());
        let id = digest.bytes().take(32).collect::<Vec<_>>().chunks(2).fold(
            String::new(),
            |mut id, pair| {
                let number = pair.iter().fold(0_usize, |number, digit| {
                    let digit = char::from(*digit).to_digit(16).unwrap_or(0);
                    number * 16 + digit as usize
                });
                id.push(char::from(ALPHABET[number % ALPHABET.len()]));
                id
            },
        );
        RunId(id)
    }

    /// Accepts an id that came from outside, unchanged.
    pub fn from_text(text: impl Into<String>) -> RunId {
        RunId(text.into())
    }

    /// Reads the id of a run from a file: 16 letters and digits.
    pub fn read(text: &str) -> Option<RunId> {
        let is_id = text.len() == 16 && text.bytes().all(|byte| ALPHABET.contains(&byte));
        is_id.then(|| RunId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the time that [`RunId::new`] was given. For an id that was made in another way, the result is
    /// meaningless.
    pub fn started_ms(&self) -> Option<i64> {
        let mut bits: u128 = 0;
        for letter in self.0.bytes() {
            let at = ALPHABET.iter().position(|it| *it == letter)?;
            bits = (bits << 5) | at as u128;
        }
        (self.0.len() == 16).then(|| i64::try_from(bits >> 32).ok())?
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The place of a step in its run: branch, step id, and how often this step was reached there. Replay and fork match on
/// this place, not on a counter over the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepPath {
    /// The path of the branch; empty for the main branch of the flow.
    pub branch: String,
    pub step: String,
    /// The number of the call at this place, counted from 1.
    pub occurrence: u32,
}

impl fmt::Display for StepPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.branch.is_empty() {
            write!(out, "{}/", self.branch)?;
        }
        out.write_str(&self.step)?;
        if self.occurrence > 1 {
            write!(out, "#{}", self.occurrence)?;
        }
        Ok(())
    }
}
