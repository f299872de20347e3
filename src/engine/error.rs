//! Why the engine could not do what it was asked. What a flow throws is a [`crate::outcome::Failure`], not this.

mod archive;
mod jobs;
mod links;
mod resources;
mod sealed;
mod tokens;
mod waits;

use crate::bindings::BindingsError;
use crate::codec::CodecError;
use crate::flow::InputError;
use crate::outcome::FailurePlace;
use crate::ports::StoreError;

pub use archive::ArchiveError;
pub use jobs::JobError;
pub use links::LinkError;
pub use resources::ResourceError;
pub use sealed::SealError;
pub(crate) use tokens::TEXT_MAX;
pub use tokens::TokenError;
pub use waits::{Decided, WaitError};

/// Maximum number of runs that one call starts.
pub const MOST_STARTS: usize = 1_000;

/// Counters of the quantities that a run's limits apply to.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    #[error("there is no run `{run}`")]
    NoSuchRun { run: String },
    #[error("`{prefix}` may be any of these runs: {}", runs.join(", "))]
    AmbiguousRun { prefix: String, runs: Vec<String> },
    #[error("the run {run} is being executed by another process ({owner})")]
    Held { run: String, owner: String },
    #[error("the run {run} is of the flow `{flow}`, and the file is the flow `{given}`")]
    OtherFlow {
        run: String,
        flow: String,
        given: String,
    },
    #[error("the run {run} is in quarantine: {reason}")]
    Quarantined { run: String, reason: String },
    #[error("the run {run} is over: it is {status}")]
    Over { run: String, status: &'static str },
    #[error(
        "the run {run} was started by a build that replays differently (version {found}, this one is {known})"
    )]
    OtherAbi { run: String, found: i64, known: i64 },
    #[error("the program of the run {run} cannot be read: {detail}")]
    BadProgram { run: String, detail: String },
    #[error(
        "the run {run} asks for something else than before at step `{path}`\n  journal: {recorded}\n  now:     {requested}"
    )]
    Diverged {
        run: String,
        path: String,
        recorded: String,
        requested: String,
        /// Where the flow asks for it.
        place: Option<Box<FailurePlace>>,
    },
    #[error(
        "the flow conflicts with the journal of run {run}: step `{path}`\n  journal: {recorded}\n  flow:    {requested}"
    )]
    Incompatible {
        run: String,
        path: String,
        recorded: String,
        requested: String,
        place: Option<Box<FailurePlace>>,
    },
    #[error("the run {run} has no step `{step}`")]
    NoSuchStep {
        run: String,
        step: String,
        steps: Vec<String>,
    },
    #[error(transparent)]
    Sealed(#[from] SealError),
    #[error(transparent)]
    Bindings(#[from] BindingsError),
    #[error("`{path}` cannot be set: {why}")]
    BadSetting { path: String, why: String },
    #[error("there is no wait `{target}`")]
    NoSuchWait { target: String },
    #[error("{0}")]
    AlreadyDecided(Box<Decided>),
    #[error("the answer does not fit the wait: {}", problems.join("; "))]
    BadAnswer { problems: Vec<String> },
    /// An installation cannot run: see [`crate::installations::InstalledError`].
    #[error("{message}")]
    Installation {
        code: &'static str,
        message: String,
        hint: Option<String>,
    },
    #[error("there is no schedule `{id}` of the flow `{flow}`")]
    NoSuchSchedule {
        flow: String,
        id: String,
        known: Vec<String>,
    },
    #[error("the run {run} belongs to a prompt that has ended")]
    Interactive { run: String },
    #[error("the journal of the run {run} was removed by `gc`; its row and result are left")]
    Pruned { run: String },
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("a run of `{flow}`{} is under way: {by}", of_key(key))]
    SlotTaken {
        flow: String,
        key: Option<String>,
        by: String,
    },
    #[error("the input has no `{path}`, which `{what}` of `{flow}` names")]
    NoKey {
        flow: String,
        what: &'static str,
        path: String,
    },
    #[error("a run of `{flow}` would wait for the run {caller}, which waits for it")]
    WaitsForCaller { flow: String, caller: String },
    #[error("{} of the runs cannot be started, so none was{}", errors.len(), listed(errors))]
    BadStarts {
        /// The place of each in the call, from 0, and why.
        errors: Vec<(usize, EngineError)>,
    },
    #[error("one call starts at most {} runs, not {count}", MOST_STARTS)]
    TooManyStarts { count: usize },
    #[error("`{name}` is set by the engine, and a caller cannot give it")]
    ReservedInput { name: String },
    /// The version of a flow that a trigger starts cannot be run.
    #[error("{message}")]
    Unstartable { code: &'static str, message: String },
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Job(#[from] JobError),
    /// We are wrong.
    #[error("internal error: {0}")]
    Internal(String),
}

impl EngineError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            EngineError::Internal(_) => "E0500",
            EngineError::Diverged { .. } => "E0501",
            EngineError::NoSuchRun { .. } => "E0502",
            EngineError::AmbiguousRun { .. } => "E0503",
            EngineError::Held { .. } => "E0504",
            EngineError::Over { .. } => "E0505",
            EngineError::BadProgram { .. } => "E0507",
            EngineError::OtherAbi { .. } => "E0508",
            EngineError::Interactive { .. } => "E0509",
            EngineError::Quarantined { .. } => "E0990",
            EngineError::Installation { code, .. } => code,
            EngineError::NoSuchSchedule { .. } => "E0550",
            EngineError::NoSuchWait { .. } => "E0514",
            EngineError::AlreadyDecided(_) => "E0515",
            EngineError::BadAnswer { .. } => "E0516",
            EngineError::Pruned { .. } => "E0565",
            EngineError::Archive(error) => error.code(),
            EngineError::Incompatible { .. } => "E0570",
            EngineError::OtherFlow { .. } => "E0955",
            EngineError::NoSuchStep { .. } => "E0571",
            EngineError::BadSetting { .. } => "E0572",
            EngineError::Sealed(error) => error.code(),
            EngineError::Bindings(error) => error.code(),
            EngineError::SlotTaken { .. } => "E0555",
            EngineError::NoKey { .. } => "E0556",
            EngineError::WaitsForCaller { .. } => "E0557",
            EngineError::BadStarts { .. } => "E0542",
            EngineError::TooManyStarts { .. } => "E0543",
            EngineError::ReservedInput { .. } => "E1120",
            EngineError::Unstartable { code, .. } => code,
            EngineError::Input(error) => error.code(),
            EngineError::Codec(error) => error.code(),
            EngineError::Resource(error) => error.code(),
            EngineError::Store(error) => error.code(),
            EngineError::Token(error) => error.code(),
            EngineError::Wait(error) => error.code(),
            EngineError::Job(error) => error.code(),
            EngineError::Link(error) => error.code(),
        }
    }

    /// Returns the place in a flow that it is about.
    pub fn place(&self) -> Option<&FailurePlace> {
        match self {
            EngineError::Diverged { place, .. } | EngineError::Incompatible { place, .. } => {
                place.as_deref()
            }
            _ => None,
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            EngineError::Sealed(error) => error.hint(),
            EngineError::Token(error) => return error.hint(),
            EngineError::Bindings(error) => error.hint(),
            EngineError::NoSuchRun { .. } => "`flowstone runs list` shows the runs".to_owned(),
            EngineError::AmbiguousRun { .. } => "give more of its id".to_owned(),
            EngineError::Held { .. } => {
                "wait for it, or stop that process; the run continues there".to_owned()
            }
            EngineError::Quarantined { run, .. } => format!(
                "`flowstone runs resume {run}` executes it again, `flowstone runs cancel {run} --force` ends it, and \
                 `flowstone run FILE --new` starts another"
            ),
            EngineError::Installation { hint, .. } => return hint.clone(),
            EngineError::NoSuchSchedule { known, .. } => known_schedules(known),
            EngineError::OtherFlow { flow, .. } => {
                format!("give the file its slug again, `:slug :{flow}`, or name the file of that flow")
            }
            EngineError::Over { run, .. } => format!("look at it with `flowstone runs show {run}`"),
            EngineError::OtherAbi { .. } => {
                "finish it with the build that started it, or start a new one".to_owned()
            }
            EngineError::Diverged { .. } => {
                "the journal is intact; resume the run with the build that started it, or start a new one"
                    .to_owned()
            }
            EngineError::Incompatible { run, path, .. } => format!(
                "nothing was changed; `flowstone runs fork {run} --at {path} --flow FILE` starts a run that does \
                 that step again"
            ),
            EngineError::NoSuchStep { step, steps, .. } => {
                match crate::diagnostic::nearest(step, steps.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if steps.is_empty() => "it has done no step; leave `--at` away".to_owned(),
                    None => format!("its steps are {}", steps.join(", ")),
                }
            }
            EngineError::BadSetting { .. } => {
                "write it as `input.key=value` or `step.key=value`; values are EDN".to_owned()
            }
            EngineError::NoSuchWait { .. } => "`flowstone waits list` shows what is open".to_owned(),
            EngineError::AlreadyDecided(_) => {
                "an answer is taken once; the first one counts".to_owned()
            }
            EngineError::BadAnswer { .. } => "the wait is still open; answer it again".to_owned(),
            EngineError::Interactive { .. } => "what it did is in `flowstone runs show`".to_owned(),
            EngineError::Pruned { .. } => {
                "`:retention {:journal ...}` in flowstone.edn says how long journals are kept".to_owned()
            }
            EngineError::Archive(error) => error.hint(),
            EngineError::SlotTaken { by, .. } => {
                format!("wait for it, or end it: `flowstone runs cancel {by}`")
            }
            EngineError::NoKey { path, .. } => {
                format!("give it with `--input`; the flow takes its key from `{path}`")
            }
            EngineError::WaitsForCaller { .. } => {
                "a flow whose runs go one at a time cannot call itself; make it `:keyed`, or raise its limit".to_owned()
            }
            EngineError::BadStarts { errors } => match errors.first() {
                Some((_, error)) => return error.hint(),
                None => return None,
            },
            EngineError::TooManyStarts { .. } => "make several calls".to_owned(),
            EngineError::ReservedInput { name } => format!("leave `{name}` out of the input"),
            EngineError::Input(error) => error.hint(),
            EngineError::Resource(error) => error.hint(),
            EngineError::Store(error) => return error.hint(),
            EngineError::Wait(error) => error.hint(),
            EngineError::Job(error) => error.hint(),
            EngineError::Link(error) => error.hint().to_owned(),
            EngineError::Unstartable { .. }
            | EngineError::BadProgram { .. }
            | EngineError::Codec(_)
            | EngineError::Internal(_) => {
                return None;
            }
        })
    }
}

fn known_schedules(known: &[String]) -> String {
    match known {
        [] => "`flowstone serve` reads the schedules from the flows".to_owned(),
        known => format!("known: {}", known.join(", ")),
    }
}

/// At most this many wrong starts are described in a message.
const LISTED: usize = 5;

fn listed(errors: &[(usize, EngineError)]) -> String {
    let shown = errors.iter().take(LISTED);
    let mut lines: Vec<String> = shown
        .map(|(idx, error)| format!("\n  {idx}: {error} [{}]", error.code()))
        .collect();
    if let Some(more) = errors.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines.push(format!("\n  and {more} more"));
    }
    lines.concat()
}

fn of_key(key: &Option<String>) -> String {
    key.as_ref()
        .map_or_else(String::new, |key| format!(" with the key {key}"))
}
