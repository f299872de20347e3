//! The `flow` namespace, through which a flow reaches the world outside its own evaluation.
//!
//! Each function leaves the VM with a [`Request`], which the executor answers.

pub mod branches;
mod call_flow;
pub mod fanout;
pub mod log;
pub mod poll;
mod saga;

use flowstone_lang::session::Session;
use flowstone_lang::value::{Arity, Class, Exception, Native, Result, Span, Symbol, Value};
use flowstone_lang::vm::{Args, Vm};

use crate::call_problem;
use crate::diagnostic::Diagnostic;
use crate::duration;

/// The natives of the `flow` namespace, sorted.
pub const FNS: &[Native] = &[
    branches::ALL,
    BACKOFF,
    call_flow::CALL_FLOW,
    saga::COMPENSATE,
    saga::CONTINUE_AS_NEW,
    ELAPSED,
    EMIT,
    branches::GRAPH,
    INPUT,
    LOG,
    NOW_MS,
    saga::ON_CANCEL,
    branches::PMAP,
    poll::PROBLEM,
    branches::RACE,
    RAND,
    SLOT_BOUND,
    STEP,
    UUID,
];

/// Conventional aliases of namespaces, which flows do not have to require. A flow's own aliases take precedence.
pub const USUAL_ALIASES: &[(&str, &str)] = &[
    ("edn", "clojure.edn"),
    ("set", "clojure.set"),
    ("str", "clojure.string"),
    ("walk", "clojure.walk"),
];

/// Defines the functions in a session. `step` alone refers to `flow/step` in the current namespace.
pub fn install(session: &Session) {
    let flow = session.register("flow", FNS);
    let world = session.world();
    let step = flow.intern(Symbol::new("step"));
    let user = world.current.borrow().clone();
    user.set_usual_aliases(USUAL_ALIASES);
    if user.lookup(Symbol::new("step")).is_none() {
        user.refer(Symbol::new("step"), step);
    }
}

/// A request of a flow to the executor.
#[derive(Debug)]
pub enum Request {
    Step {
        /// The type as written, which may be an alias or an unknown type.
        kind: Value,
        id: Value,
        config: Value,
        /// The place of the call in the flow.
        place: Span,
    },
    Input,
    Now,
    Uuid,
    Rand,
    Log {
        level: Value,
        message: Value,
        data: Value,
    },
    Emit {
        name: Value,
        data: Value,
    },
    SlotBound {
        slot: Value,
    },
    Compensate {
        value: Value,
        function: Value,
    },
    ContinueAsNew {
        input: Value,
    },
    OnCancel {
        function: Value,
    },
    Branches(Box<branches::Branches>),
    /// Notes the locals where the next step is requested, for a person who looks at it.
    Locals {
        values: Value,
    },
    /// Another branch has to run first, because it computes a value that is needed.
    Turn,
}

/// Leaves the VM with a request.
fn ask(vm: &mut Vm, request: Request) -> Result<Value> {
    vm.suspend(request)
}

/// Converts a finding of the checks to an exception.
pub fn exception(finding: Diagnostic) -> Exception {
    let exception = Exception::new(Class::ILLEGAL_ARGUMENT, finding.code, finding.message);
    finding.hints.into_iter().fold(exception, Exception::hint)
}

const STEP: Native = Native {
    name: "step",
    usage: "(step type id config)",
    doc: "Performs a step and returns its value; journaled, so that it is done once even when the run is \
          resumed. type and id are keywords, config is a map of the step type's options.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| {
        let packaged = args.get(0).as_keyword();
        let packaged = packaged.filter(|kind| kind.namespace().is_some());
        if let (Some(_), 2) = (packaged, args.len()) {
            // The id of the step is that of the packaged step.
            vm.realise(args.get(1))?;
            let request = Request::Step {
                kind: args.get(0).clone(),
                id: Value::Nil,
                config: args.get(1).clone(),
                place: vm.here(),
            };
            return ask(vm, request);
        }
        if args.len() != 3 {
            let name = packaged.map(|kind| kind.to_string().trim_start_matches(':').to_owned());
            let finding = match (name, args.len()) {
                (Some(name), 1) => call_problem::no_input(&name),
                (Some(name), _) => call_problem::extra(&name),
                (None, 1) => Diagnostic::error("E0432", "the step has no id and no config")
                    .hint("write it as `(flow/step :type :step-id {...})`"),
                (None, 2) => Diagnostic::error("E0432", "the step has no id or no config")
                    .hint("write it as `(flow/step :type :step-id {...})`"),
                (None, count) => call_problem::arity(count),
            };
            return Err(exception(finding).into());
        }
        vm.realise(args.get(2))?;
        if fanout::is_fanout(args.get(0)) {
            return fanout::perform(vm, args.get(1), args.get(2), &STEP);
        }
        let request = Request::Step {
            kind: args.get(0).clone(),
            id: args.get(1).clone(),
            config: args.get(2).clone(),
            place: vm.here(),
        };
        ask(vm, request)
    },
};

const INPUT: Native = Native {
    name: "input",
    usage: "(input)",
    doc: "Returns the input of the run, a map with keyword keys; `:flow/ctx` in it describes the run.",
    examples: &[],
    arity: Arity::exactly(0),
    run: |vm, _| ask(vm, Request::Input),
};

const NOW_MS: Native = Native {
    name: "now-ms",
    usage: "(now-ms)",
    doc: "Returns the time in milliseconds since 1970; journaled, so that a resumed run sees the same.",
    examples: &[],
    arity: Arity::exactly(0),
    run: |vm, _| ask(vm, Request::Now),
};

const UUID: Native = Native {
    name: "uuid",
    usage: "(uuid)",
    doc: "Returns a random UUID; the same one when the run is resumed.",
    examples: &[],
    arity: Arity::exactly(0),
    run: |vm, _| ask(vm, Request::Uuid),
};

const RAND: Native = Native {
    name: "rand",
    usage: "(rand)",
    doc: "Returns a random double from 0 up to 1; the same one when the run is resumed.",
    examples: &[],
    arity: Arity::exactly(0),
    run: |vm, _| ask(vm, Request::Rand),
};

const LOG: Native = Native {
    name: "log",
    usage: "(log level message)\n(log level message data)",
    doc: "Writes a line to the run's log, only once even if the run is resumed. Returns nil.",
    examples: &[],
    arity: Arity::between(2, 3),
    run: |vm, args| {
        vm.realise(args.get(2))?;
        let request = Request::Log {
            level: args.get(0).clone(),
            message: args.get(1).clone(),
            data: args.get(2).clone(),
        };
        ask(vm, request)
    },
};

const EMIT: Native = Native {
    name: "emit",
    usage: "(emit name)\n(emit name data)",
    doc: "Reports an event to the run's observers, only once even if the run is resumed. Returns nil.",
    examples: &[],
    arity: Arity::between(1, 2),
    run: |vm, args| {
        vm.realise(args.get(1))?;
        let request = Request::Emit {
            name: args.get(0).clone(),
            data: args.get(1).clone(),
        };
        ask(vm, request)
    },
};

const SLOT_BOUND: Native = Native {
    name: "slot-bound?",
    usage: "(slot-bound? slot)",
    doc: "Tells whether the project's settings have a connection for a slot of `:requires`.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, mut args| ask(vm, Request::SlotBound { slot: args.take(0) }),
};

const ELAPSED: Native = Native {
    name: "elapsed?",
    usage: "(elapsed? since-ms duration)",
    doc: "Tells whether the duration, such as \"10m\" or milliseconds, has passed since an instant that \
          now-ms returned.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let since = args.int(0)?;
        let Some(duration) = duration::of_millis_value(args.get(1)) else {
            return Err(args.expected(1, "milliseconds or a duration such as \"10m\""));
        };
        let now = ask(vm, Request::Now)?.as_int().unwrap_or(since);
        Ok(Value::from(
            now.saturating_sub(since) >= duration::millis(duration),
        ))
    },
};

const BACKOFF: Native = Native {
    name: "backoff",
    usage: "(backoff policy attempt)",
    doc: "Returns how many milliseconds to wait before an attempt, counted from 1. policy is a duration, or \
          {:type :exponential|:linear|:constant :base \"1s\" :factor 2 :step \"5s\" :max \"1m\"}.",
    examples: &[
        (
            r#"(flow/backoff {:type :exponential :base "1s" :factor 2 :max "1m"} 3)"#,
            "4000",
        ),
        (r#"(flow/backoff "10s" 2)"#, "10000"),
    ],
    arity: Arity::exactly(2),
    run: |_, args| backoff(&args),
};

fn backoff(args: &Args<'_>) -> Result<Value> {
    let policy = args.get(0);
    let attempt = args.index(1)?.max(1);
    if duration::of_millis_value(policy).is_none() && policy.as_map().is_none() {
        return Err(args.expected(0, "a duration or a map"));
    }
    let attempt = i64::try_from(attempt).unwrap_or(i64::MAX);
    Ok(Value::Int(pause_millis(policy, attempt)?))
}

/// Returns how many milliseconds to wait before an attempt, counted from 1, by the policy of `flow/backoff`.
///
/// # Errors
/// E0442 if the policy is malformed.
pub fn pause_millis(policy: &Value, attempt: i64) -> std::result::Result<i64, Exception> {
    if let Some(fixed) = duration::of_millis_value(policy) {
        return Ok(duration::millis(fixed));
    }
    let millis = |key: &str, default: f64| -> std::result::Result<f64, Exception> {
        match policy.get(key) {
            None | Some(Value::Nil) => Ok(default),
            Some(value) => duration::of_millis_value(value)
                .map(|duration| duration::millis(duration) as f64)
                .ok_or_else(|| {
                    Exception::new(
                        Class::ILLEGAL_ARGUMENT,
                        "E0442",
                        format!("`:{key}` of the backoff is not a duration"),
                    )
                    .hint("give milliseconds or text such as \"10s\"")
                }),
        }
    };
    let base = millis("base", 1000.0)?;
    let step = millis("step", base)?;
    let max = millis("max", f64::MAX)?;
    let factor = match policy.get("factor") {
        Some(Value::Int(factor)) => *factor as f64,
        Some(Value::Float(factor)) => *factor,
        _ => 2.0,
    };
    let kind = policy.get("type").and_then(flowstone_model::names::name_of);
    let passed = attempt as f64 - 1.0;
    let wait = match kind.as_deref().unwrap_or("exponential") {
        "exponential" => base * factor.powf(passed),
        "linear" => base + step * passed,
        "constant" => base,
        other => {
            return Err(Exception::new(
                Class::ILLEGAL_ARGUMENT,
                "E0442",
                format!("unknown type of backoff `:{other}`"),
            )
            .hint("the types are :constant, :exponential and :linear"));
        }
    };
    Ok(wait.min(max).min(1e15).round() as i64)
}
