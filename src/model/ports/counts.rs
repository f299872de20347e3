//! Numbers about all that a store keeps, for figures about a server.

use std::time::Duration;

use flowstone_lang::value::Value;

use super::{BATCH_KEY, CHILD_KEY, JOB_KEY, JobStatus, RunStatus};
use crate::codec;
use crate::waits::is_approval;

/// How many runs, waits and jobs there are, and what commits took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs that are not over, by status.
    pub runs: Vec<(RunStatus, u64)>,
    /// Open waits, by kind.
    pub waits: Vec<(WaitKind, u64)>,
    /// Jobs by job type and status.
    pub jobs: Vec<(String, JobStatus, u64)>,
    pub commits: CommitCounts,
}

/// What may answer a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitKind {
    /// A person, by one of the actions that it offers.
    Approval,
    /// The end of a child run.
    Child,
    /// An event.
    Event,
    /// The end of a job or of a batch of jobs.
    Job,
    /// A signal with its key.
    Signal,
    /// A delivery to its webhook.
    Webhook,
}

impl WaitKind {
    /// Returns the kind of a wait with this key, which may have a webhook and an event. `details` is EDN text.
    pub fn of(key: &str, (has_webhook, has_event): (bool, bool), details: &str) -> WaitKind {
        if key.starts_with(CHILD_KEY) {
            return WaitKind::Child;
        }
        if key.starts_with(JOB_KEY) || key.starts_with(BATCH_KEY) {
            return WaitKind::Job;
        }
        let details = codec::decode(details).unwrap_or(Value::Nil);
        match (is_approval(&details), has_webhook, has_event) {
            (true, _, _) => WaitKind::Approval,
            (false, true, _) => WaitKind::Webhook,
            (false, false, true) => WaitKind::Event,
            (false, false, false) => WaitKind::Signal,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Approval => "approval",
            WaitKind::Child => "child",
            WaitKind::Event => "event",
            WaitKind::Job => "job",
            WaitKind::Signal => "signal",
            WaitKind::Webhook => "webhook",
        }
    }
}

/// Adds one to the count of a key.
pub fn count_one<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K) {
    match counts.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += 1,
        None => counts.push((key, 1)),
    }
}

/// The commits of this process since it opened the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitCounts {
    /// Number of commits that took at most the bound at the same place of [`CommitCounts::BOUNDS`], and longer than the
    /// bound before it. The last count is of those that took longer than all bounds.
    pub counts: [u64; CommitCounts::BOUNDS.len() + 1],
    /// Time that all of them took.
    pub total: Duration,
    /// Number of changes that wait for their transaction.
    pub queued: u64,
}

impl CommitCounts {
    /// Bounds in seconds, ascending.
    pub const BOUNDS: [f64; 16] = [
        0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256,
        0.512, 1.0, 2.0, 4.0,
    ];

    /// Counts a commit.
    pub fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let place = Self::BOUNDS.iter().position(|bound| seconds <= *bound);
        let place = place.unwrap_or(Self::BOUNDS.len());
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.total += took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_wait_is_what_may_answer_it() {
        let kind = |key: &str, parts: (bool, bool), details: &str| {
            WaitKind::of(key, parts, details).name()
        };
        let plain = (false, false);
        assert_eq!(kind("child-run:r1", plain, "{}"), "child");
        assert_eq!(kind("job:j1", plain, "{}"), "job");
        assert_eq!(kind("job-batch:b1", plain, "{}"), "job");
        assert_eq!(kind("k", plain, "{:actions [:approve]}"), "approval");
        assert_eq!(
            kind("k", (true, true), "{:show {:actions [:approve]}}"),
            "approval"
        );
        assert_eq!(kind("k", (true, true), "{:show {:title \"a\"}}"), "webhook");
        assert_eq!(kind("k", (false, true), "{}"), "event");
        assert_eq!(kind("k", plain, "{}"), "signal");
    }

    #[test]
    fn a_commit_is_counted_once() {
        let mut commits = CommitCounts::default();
        for micros in [100, 101, 5_000_000] {
            commits.add(Duration::from_micros(micros));
        }
        assert_eq!(commits.counts.iter().sum::<u64>(), 3);
        assert_eq!((commits.counts[0], commits.counts[1]), (1, 1));
        assert_eq!(commits.counts.last(), Some(&1));
    }
}
