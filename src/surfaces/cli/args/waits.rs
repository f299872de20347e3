//! `flowstone waits` and its verbs.

use clap::{Args, Subcommand};

use super::{Home, Permits, RunLimits, Show};

/// Lists, shows and answers what runs wait for
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

/// Who answers, and what comes after.
#[derive(Debug, Args)]
pub struct Answer {
    /// Who answers; kept with the answer [default: local]
    #[arg(long = "as", value_name = "NAME", env = "FLOWSTONE_USER")]
    pub caller: Option<String>,

    /// A role of who answers, where the wait asks for one; may be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,

    /// Only store the answer; the run goes on with `runs resume`, or with a worker
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

/// Approves what a wait shows, and goes on with its run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits approve w1
  flowstone waits approve w1 --comment 'as agreed' --as Nora --role finance
  flowstone waits approve w1 --value '{:text \"what it should have said\"}'")]
pub struct WaitsApprove {
    /// The wait's id, the beginning of it, its token or its key
    pub id: String,

    /// A word about it, under `:comment`
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,

    /// What to use instead of what is shown, where the wait offers `:edit`
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: Option<String>,

    /// The digest that `waits show` printed, or its beginning: refused where the wait shows something else by now
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Takes a wait away: its step fails with kind `:cancelled`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone waits cancel w1 --reason 'no longer needed'")]
pub struct WaitsCancel {
    /// The wait's id, the beginning of it, its token or its key
    pub id: String,

    /// Why, under `:reason` of the error
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Answers a wait, and goes on with its run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits complete w1 --value '{:action :approve}'
  flowstone waits complete w1 --value '{\"action\": \"approve\"}'
  flowstone waits complete payment-17 --value '{:amount 20}' --keep --dedup evt-9")]
pub struct WaitsComplete {
    /// The wait's id, the beginning of it, its token, or a key: then all that wait under it
    pub id: String,

    /// What the wait step returns: EDN or JSON, `@file`, or `-`
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: String,

    /// Where nothing waits under this key yet, keep the answer for the wait that comes
    #[arg(long)]
    pub keep: bool,

    /// A name for this answer: a second one of the same name is taken, and does nothing
    #[arg(long, value_name = "TEXT")]
    pub dedup: Option<String>,

    /// The digest that `waits show` printed, or its beginning: refused where the wait shows something else by now
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Delivers an event to the waits for it; kept where none is open
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits event orders.callback --key order-17 --value '{:paid true}'
  flowstone waits event orders.callback --value '{\"order-id\": \"order-17\"}' --dedup evt-9")]
pub struct WaitsEvent {
    /// The event's name
    pub name: String,

    /// The event's key [default: what the payload has where a wait says that it is]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// The event's payload: EDN or JSON, `@file`, or `-`
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: String,

    /// A name for this event: a second one of the same name is taken, and does nothing
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
    /// Only those of this run
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,

    /// Only those of runs of this flow
    #[arg(long, value_name = "SLUG")]
    pub flow: Option<String>,

    /// Only those under this key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// Also those that are decided; of runs that are over, too, with --run or --key
    #[arg(long)]
    pub all: bool,

    /// Instead, the signals that no wait has taken: kept ones, and refused ones with why
    #[arg(long, conflicts_with_all = ["run", "flow", "all"])]
    pub signals: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Rejects what a wait shows, and goes on with its run
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone waits reject w1 --reason 'no receipt' --as Nora")]
pub struct WaitsReject {
    /// The wait's id, the beginning of it, its token or its key
    pub id: String,

    /// Why, under `:reason`
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// The digest that `waits show` printed, or its beginning: refused where the wait shows something else by now
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}

/// Shows one wait: what is asked, who may answer, until when, how
///
/// The token answers this wait, once, from anywhere. It is shown only to who may answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone waits show w1
  flowstone waits show w1 --role finance --json")]
pub struct WaitsShow {
    /// The wait's id, the beginning of it, its token or its key
    pub id: String,

    /// A role of who looks, where the wait asks for one; may be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Sends a signal to all that wait under a key; kept where nothing does
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

    /// A name for this signal: a second one of the same name is taken, and does nothing
    #[arg(long, value_name = "TEXT")]
    pub dedup: Option<String>,

    #[command(flatten)]
    pub answer: Answer,
}
