//! Tracks which active steps are nested in others, and the cost of the models in them.

use std::collections::HashMap;

use flowstone_engine::ids::{RunId, StepPath};

/// Active steps, by run and path.
#[derive(Default)]
pub(super) struct Nest {
    open: HashMap<String, Spent>,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    answers: u32,
    tokens: i64,
    /// `None` once a call had no known price.
    usd: Option<f64>,
}

impl Spent {
    fn add(&mut self, tokens: i64, usd: Option<f64>) {
        let before = match self.answers {
            0 => Some(0.0),
            _ => self.usd,
        };
        self.usd = before.zip(usd).map(|(before, now)| before + now);
        self.answers += 1;
        self.tokens += tokens;
    }

    fn text(self) -> Option<String> {
        if self.answers == 0 {
            return None;
        }
        let tokens = match self.tokens {
            1 => "1 token".to_owned(),
            tokens => format!("{} tokens", grouped(tokens)),
        };
        Some(match self.usd {
            Some(usd) => format!("{tokens} · ${usd:.4}"),
            None => tokens,
        })
    }
}

impl Nest {
    pub fn started(&mut self, run: &RunId, path: &StepPath) {
        self.open.entry(key(run, path)).or_default();
    }

    /// Adds the cost of an answer to its step and to all outer steps.
    pub fn spent(&mut self, run: &RunId, path: &StepPath, tokens: i64, usd: Option<f64>) {
        let path = key(run, path);
        for above in std::iter::once(path.as_str()).chain(outer(&path)) {
            if let Some(spent) = self.open.get_mut(above) {
                spent.add(tokens, usd);
            }
        }
    }

    /// Removes a step and returns the text of its cost.
    pub fn ended(&mut self, run: &RunId, path: &StepPath) -> Option<String> {
        self.open.remove(&key(run, path))?.text()
    }

    /// Returns the number of active steps around a step.
    pub fn depth(&self, run: &RunId, path: &StepPath) -> usize {
        let path = key(run, path);
        outer(&path)
            .filter(|above| self.open.contains_key(*above))
            .count()
    }

    /// Returns the cost so far of the step that directly contains a step.
    pub fn so_far(&self, run: &RunId, path: &StepPath) -> Option<String> {
        let path = key(run, path);
        let above = outer(&path).find_map(|above| self.open.get(above))?;
        above.text().map(|text| format!("{text} so far"))
    }
}

/// Returns a key for a step among those of all runs. Paths contain no spaces.
fn key(run: &RunId, path: &StepPath) -> String {
    format!("{run} {path}")
}

/// Tells whether a step is nested in another.
pub(super) fn is_inside(path: &StepPath, other: &StepPath) -> bool {
    let (path, other) = (path.to_string(), other.to_string());
    outer(&path).any(|above| above == other)
}

/// Returns the paths of possible outer steps, nearest first, with and without the number of an attempt.
fn outer(path: &str) -> impl Iterator<Item = &str> {
    let above = |path: &'_ str| path.rfind('/');
    let mut rest = path;
    std::iter::from_fn(move || {
        let end = above(rest)?;
        rest = &rest[..end];
        let attempt = rest.rsplit_once('~');
        let attempt = attempt.filter(|(_, number)| {
            !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit())
        });
        Some(attempt.map_or(rest, |(path, _)| path))
    })
}

/// Formats a number with commas between thousands.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
