//! `flowstone waits` and its subcommands.

use clap::{Args, Subcommand};

use super::{Home, Permits, RunLimits, Show};

/// Lists, shows and answers the waits of runs
#[derive(Debug, Args)]
pub struct Waits {
    #[command(subcommand)]
    pub command: WaitsCommand,
}

#[derive(Debug, Subcommand)]
pub enum WaitsCommand {
    Approve(WaitsApprove),
    Cancel(WaitsCancel),
    Complete(WaitsComplete),
    Event(WaitsEvent),
    List(WaitsList),
    Reject(WaitsReject),
    Show(WaitsShow),
    Signal(WaitsSignal),
}

/// Who answers, and whether the run resumes.
#[derive(Debug, Args)]
pub struct Answer {
    /// Name of the person who answers; stored with the answer [default: local]
    #[arg(long = "as", value_name = "NAME", env = "FLOWSTONE_USER")]
    pub caller: Option<String>,

    /// A role of the person who answers, if the wait requires one; may be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,

    /// Only store the answer; `runs resume` or a worker resumes the run
    #[arg(long)]
    pub no_resume: bool,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub home: Home,

    #[command(flatten)]
    pub show: Show,
}

/// Approves what a wait shows, and resumes its run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits approve w1
  flowstone waits approve w1 --comment 'as agreed' --as Nora --role finance
  flowstone waits approve w1 --value '{:text \"what it should have said\"}'")]
pub struct WaitsApprove {
    /// The wait's id, the beginning of the id, its token or its key
    pub id: String,

    /// A comment, stored under `:comment`
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,

    /// A value to use instead of the shown one, if the wait offers `:edit`
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: Option<String>,

    /// The digest that `waits show` printed, or its beginning; the answer is refused if the wait shows something else
    /// now
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Cancels a wait: its step fails with kind `:cancelled`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone waits cancel w1 --reason 'no longer needed'")]
pub struct WaitsCancel {
    /// The wait's id, the beginning of the id, its token or its key
    pub id: String,

    /// The reason, under `:reason` of the error
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Answers a wait, and resumes its run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits complete w1 --value '{:action :approve}'
  flowstone waits complete w1 --value '{\"action\": \"approve\"}'
  flowstone waits complete payment-17 --value '{:amount 20}' --keep --dedup evt-9")]
pub struct WaitsComplete {
    /// The wait's id, the beginning of the id, its token, or a key for all waits under it
    pub id: String,

    /// What the wait step returns: EDN or JSON, `@file`, or `-`
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: String,

    /// If nothing waits under this key yet, keep the answer for the next wait
    #[arg(long)]
    pub keep: bool,

    /// A name for this answer; a second answer with the same name is accepted but does nothing
    #[arg(long, value_name = "TEXT")]
    pub dedup: Option<String>,

    /// The digest that `waits show` printed, or its beginning; the answer is refused if the wait shows something else
    /// now
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Delivers an event to the waits for it, or keeps it if none is open
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits event orders.callback --key order-17 --value '{:paid true}'
  flowstone waits event orders.callback --value '{\"order-id\": \"order-17\"}' --dedup evt-9")]
pub struct WaitsEvent {
    /// The event's name
    pub name: String,

    /// The event's key [default: taken from the payload, at the path that the wait defines]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// The event's payload: EDN or JSON, `@file`, or `-`
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: String,

    /// A name for this event; a second event with the same name is accepted but does nothing
    #[arg(long, value_name = "TEXT")]
    pub dedup: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Lists open waits
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits list
  flowstone waits list --flow expense-approval --json
  flowstone waits list --run r3 --all
  flowstone waits list --signals")]
pub struct WaitsList {
    /// Only waits of this run
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,

    /// Only waits of runs of this flow
    #[arg(long, value_name = "SLUG")]
    pub flow: Option<String>,

    /// Only waits under this key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// Also waits that were decided; with --run or --key, also those of finished runs
    #[arg(long)]
    pub all: bool,

    /// List signals that no wait has taken instead: those that are kept, and those that were refused, with the reason
    #[arg(long, conflicts_with_all = ["run", "flow", "all"])]
    pub signals: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Rejects what a wait shows, and resumes its run
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone waits reject w1 --reason 'no receipt' --as Nora")]
pub struct WaitsReject {
    /// The wait's id, the beginning of the id, its token or its key
    pub id: String,

    /// The reason, under `:reason`
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// The digest that `waits show` printed, or its beginning; the answer is refused if the wait shows something else
    /// now
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Shows one wait: the question, who may answer, the deadline, and how to answer
///
/// The token answers this wait once, from anywhere. It is only printed for those who may answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits show w1
  flowstone waits show w1 --role finance --json")]
pub struct WaitsShow {
    /// The wait's id, the beginning of the id, its token or its key
    pub id: String,

    /// A role of the person who looks, if the wait requires one; may be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Sends a signal to all waits under a key, or keeps it if none is open
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits signal payment-17 --value '{:amount 20}'
  flowstone waits signal payment-17 --value '{:amount 20}' --dedup evt-9")]
pub struct WaitsSignal {
    /// The key
    pub key: String,

    /// What the wait steps return: EDN or JSON, `@file`, or `-`
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: String,

    /// A name for this signal; a second signal with the same name is accepted but does nothing
    #[arg(long, value_name = "TEXT")]
    pub dedup: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}
