//! The functions of the namespace `flow` that only a prompt has: loading, running and debugging flows, looking at runs,
//! answering waits.
//!
//! Each leaves the machine with an [`Asked`], which the [`super::Desk`] answers.

use flowstone_lang::session::Session;
use flowstone_lang::value::{Arity, Native, Result, Value};
use flowstone_lang::vm::{Args, Vm};

/// What a prompt asks for.
#[derive(Debug)]
pub struct Asked {
    pub operation: Operation,
    pub args: Vec<Value>,
}

/// An operation of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Answer,
    Approve,
    Cancel,
    CancelWait,
    Debug,
    Diff,
    Event,
    Events,
    Export,
    Flows,
    Fork,
    Import,
    Load,
    Locals,
    Next,
    Reject,
    Replay,
    Resume,
    Run,
    Runs,
    Show,
    Signal,
    Wait,
    Waits,
    Watch,
}

/// The operations as natives, sorted.
pub const FNS: &[Native] = &[
    ANSWER,
    APPROVE,
    CANCEL,
    CANCEL_WAIT,
    DEBUG,
    DIFF,
    EVENT,
    EVENTS,
    EXPORT,
    FLOWS,
    FORK,
    IMPORT,
    LOAD,
    LOCALS,
    NEXT,
    REJECT,
    REPLAY,
    RESUME,
    RUN,
    RUNS,
    SHOW,
    SIGNAL,
    WAIT,
    WAITS,
    WATCH,
];

/// Adds the operations to the namespace `flow` of a prompt's session.
pub fn install(session: &Session) {
    session.register("flow", FNS);
}

/// Returns the options of an operation, by the name of its function: those that its documentation names.
pub fn options(function: &str) -> Vec<&'static str> {
    let name = function.strip_prefix("flow/").unwrap_or_default();
    let Some(native) = FNS.iter().find(|native| native.name == name) else {
        return Vec::new();
    };
    let Some((_, options)) = native.doc.split_once("Option") else {
        return Vec::new();
    };
    let words = options.split([' ', ',', '.', '(', ')', ';']);
    let mut names: Vec<&str> = words.filter_map(|word| word.strip_prefix(':')).collect();
    if options.contains("as for run") {
        names.extend(self::options("flow/run"));
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn ask(vm: &mut Vm, args: &Args<'_>, operation: Operation) -> Result<Value> {
    for arg in args.as_slice() {
        vm.realise(arg)?;
    }
    vm.suspend(Asked {
        operation,
        args: args.as_slice().to_vec(),
    })
}

const ANSWER: Native = Native {
    name: "answer",
    usage: "(answer wait value & options)",
    doc: "Answers an open wait with a value, and resumes its run. wait is the id of the wait, its key, or a run that has \
          one open wait. Options: :as NAME, :role ROLE, :dedup TEXT, :digest TEXT, :keep true (keeps the answer for a \
          later wait).",
    examples: &[],
    arity: Arity::at_least(2),
    run: |vm, args| ask(vm, &args, Operation::Answer),
};

const APPROVE: Native = Native {
    name: "approve",
    usage: "(approve wait & options)",
    doc: "Approves what a wait shows, and resumes its run. Options: :comment TEXT, :value VALUE (replaces the shown \
          value), :as NAME, :role ROLE, :digest TEXT.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Approve),
};

const CANCEL: Native = Native {
    name: "cancel",
    usage: "(cancel run & options)",
    doc: "Cancels a run: its cleanup is performed. Options: :reason TEXT, :force true (ends it at once, without cleanup).",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Cancel),
};

const CANCEL_WAIT: Native = Native {
    name: "cancel-wait",
    usage: "(cancel-wait wait & options)",
    doc: "Cancels a wait: its step fails with kind :cancelled. Options: :reason TEXT, :as NAME, :role ROLE.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::CancelWait),
};

const DEBUG: Native = Native {
    name: "debug",
    usage: "(debug flow input? & options)",
    doc: "Runs a flow and stops before each of its steps. At a stop you see the request, and go on, skip the step, answer \
          it with a value, change its config, go back to an earlier step, or leave. flow is a slug or a file. Options: as \
          for run.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Debug),
};

const DIFF: Native = Native {
    name: "diff",
    usage: "(diff run-a run-b & options)",
    doc: "Compares two runs: flow, input, each step, end. Option: :all true also lists equal steps.",
    examples: &[],
    arity: Arity::at_least(2),
    run: |vm, args| ask(vm, &args, Operation::Diff),
};

const EVENT: Native = Native {
    name: "event",
    usage: "(event name value & options)",
    doc: "Publishes an event: answers the waits for it, or is kept for a later one. Options: :key TEXT, :dedup TEXT.",
    examples: &[],
    arity: Arity::at_least(2),
    run: |vm, args| ask(vm, &args, Operation::Event),
};

const EVENTS: Native = Native {
    name: "events",
    usage: "(events run & options)",
    doc: "Returns the journal of a run, entry by entry. Option: :after NUMBER, the first entries to leave out.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| ask(vm, &args, Operation::Events),
};

const EXPORT: Native = Native {
    name: "export",
    usage: "(export run & options)",
    doc: "Returns a run with its journal as text, for `import` and `flowstone runs import`. Option: :children true adds \
          the runs that it called.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Export),
};

const FLOWS: Native = Native {
    name: "flows",
    usage: "(flows)",
    doc: "Returns the flows of the project, and those that were loaded here, with their files.",
    examples: &[],
    arity: Arity::exactly(0),
    run: |vm, args| ask(vm, &args, Operation::Flows),
};

const FORK: Native = Native {
    name: "fork",
    usage: "(fork run & options)",
    doc: "Starts a run with the results of another one, and executes it. Options: :at STEP, the first step to perform \
          again; :flow FILE, an edited flow; :set {PATH VALUE}, such as {\"input.limit\" 5}; :reuse true, which keeps \
          later results whose requests are unchanged; :debug true, which stops at each step.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Fork),
};

const IMPORT: Native = Native {
    name: "import",
    usage: "(import text & options)",
    doc: "Takes over the runs of a text that `export` returned. Option: :new-id true gives them new ids.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Import),
};

const LOAD: Native = Native {
    name: "load",
    usage: "(load file)",
    doc: "Reads and checks a flow file, and makes its slug known to run, debug and next. Returns what the flow declares.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| ask(vm, &args, Operation::Load),
};

const LOCALS: Native = Native {
    name: "locals",
    usage: "(locals run step)",
    doc: "Returns the locals that the flow has where a run requests a step, as a map from symbols to values. Nothing is \
          performed.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |vm, args| ask(vm, &args, Operation::Locals),
};

const NEXT: Native = Native {
    name: "next",
    usage: "(next flow-or-run input?)",
    doc: "Returns the steps that a flow would perform first with an input, or that a run would perform next. Nothing is \
          performed.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| ask(vm, &args, Operation::Next),
};

const REJECT: Native = Native {
    name: "reject",
    usage: "(reject wait & options)",
    doc: "Rejects what a wait shows, and resumes its run. Options: :reason TEXT, :as NAME, :role ROLE, :digest TEXT.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Reject),
};

const REPLAY: Native = Native {
    name: "replay",
    usage: "(replay run?)",
    doc: "Evaluates a run again with every answer from its journal, and compares the end. Nothing is performed.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| ask(vm, &args, Operation::Replay),
};

const RESUME: Native = Native {
    name: "resume",
    usage: "(resume run?)",
    doc: "Resumes a run that was suspended, or whose wait was answered, and returns its result.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| ask(vm, &args, Operation::Resume),
};

const RUN: Native = Native {
    name: "run",
    usage: "(run flow input? & options)",
    doc: "Runs a flow and returns its result. flow is a slug, or a file. When the run waits, its question is asked here. \
          Options: :invocation NAME, :id NAME, :timeout SECONDS, :watch true (runs it again whenever its file changes).",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Run),
};

const RUNS: Native = Native {
    name: "runs",
    usage: "(runs & options)",
    doc: "Returns runs, newest first. Options: :flow, :status, :since, :until, :key, :text, :started-by, :parent, :sort, \
          :before, :limit, as of `flowstone runs list`.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| ask(vm, &args, Operation::Runs),
};

const SHOW: Native = Native {
    name: "show",
    usage: "(show run? step?)",
    doc: "Returns a run with its steps, or one step with its whole request and result. Without a run, it is the last one.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| ask(vm, &args, Operation::Show),
};

const SIGNAL: Native = Native {
    name: "signal",
    usage: "(signal key value & options)",
    doc: "Sends a value to the waits with a key; it is kept if nothing waits yet. Option: :dedup TEXT.",
    examples: &[],
    arity: Arity::at_least(2),
    run: |vm, args| ask(vm, &args, Operation::Signal),
};

const WAIT: Native = Native {
    name: "wait",
    usage: "(wait id)",
    doc: "Returns one wait with everything that it shows.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| ask(vm, &args, Operation::Wait),
};

const WAITS: Native = Native {
    name: "waits",
    usage: "(waits & options)",
    doc: "Returns open waits. Options: :run, :flow, :key, :all true (also answered ones), :signals true (instead, signals \
          that no wait has taken).",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| ask(vm, &args, Operation::Waits),
};

const WATCH: Native = Native {
    name: "watch",
    usage: "(watch flow input? & options)",
    doc: "Runs a flow, and runs it again whenever its file changes: steps whose requests are unchanged are answered from \
          the run before. Ctrl-C ends it. Options: as for run.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| ask(vm, &args, Operation::Watch),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_an_operation_are_those_of_its_documentation() {
        assert_eq!(
            options("flow/run"),
            ["id", "invocation", "timeout", "watch"]
        );
        assert_eq!(options("flow/debug"), options("flow/run"));
        assert_eq!(
            options("flow/waits"),
            ["all", "flow", "key", "run", "signals"]
        );
        assert!(options("flow/flows").is_empty());
    }

    #[test]
    fn the_operations_are_sorted() {
        let names: Vec<&str> = FNS.iter().map(|native| native.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
    }
}
