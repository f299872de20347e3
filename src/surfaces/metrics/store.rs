//! Figures about commits. The store counts them, because they are made on its own thread.

use std::fmt::Write as _;

use flowstone_engine::ports::CommitCounts;

const NAME: &str = "flowstone_store_commit_seconds";

/// Returns the times of commits as a histogram in text.
pub(super) fn text(commits: &CommitCounts) -> String {
    let mut out = format!(
        "# HELP {NAME} Time that transactions of this process took, from their begin to their commit.\n\
         # TYPE {NAME} histogram\n"
    );
    let mut total = 0;
    for (bound, count) in CommitCounts::BOUNDS.iter().zip(&commits.counts) {
        total += count;
        // A string takes everything.
        let _ = writeln!(out, "{NAME}_bucket{{le=\"{bound:?}\"}} {total}");
    }
    let all: u64 = commits.counts.iter().sum();
    let _ = writeln!(out, "{NAME}_bucket{{le=\"+Inf\"}} {all}");
    let _ = writeln!(out, "{NAME}_count {all}");
    let _ = writeln!(out, "{NAME}_sum {:?}", commits.total.as_secs_f64());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn buckets_of_commits_add_up() {
        let mut commits = CommitCounts::default();
        for ms in [1, 3, 3, 60_000] {
            commits.add(Duration::from_millis(ms));
        }
        let text = text(&commits);
        for line in [
            "flowstone_store_commit_seconds_bucket{le=\"0.001\"} 1",
            "flowstone_store_commit_seconds_bucket{le=\"0.004\"} 3",
            "flowstone_store_commit_seconds_bucket{le=\"+Inf\"} 4",
            "flowstone_store_commit_seconds_count 4",
            "flowstone_store_commit_seconds_sum 60.007",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
