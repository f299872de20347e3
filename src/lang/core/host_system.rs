//! `System/...` and `Thread/...`: the clock of the host, sleep and exit.

use crate::value::{Arity, Class, Native, Value};
use crate::vm::wrong_type;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[CURRENT_TIME_MILLIS, EXIT, NANO_TIME];

pub(super) const THREAD_FNS: &[Native] = &[SLEEP];

const CURRENT_TIME_MILLIS: Native = Native {
    name: "currentTimeMillis",
    usage: "(System/currentTimeMillis)",
    doc: "Returns milliseconds since 1970. In a flow, the journaled time of the run.",
    examples: &[("(int? (System/currentTimeMillis))", "true")],
    arity: Arity::exactly(0),
    run: |vm, _| vm.host().now_millis().map(Value::Int),
};

const EXIT: Native = Native {
    name: "exit",
    usage: "(System/exit status)",
    doc: "Ends the program at once, with an exit status: 0 is success. Not available in flows.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let status = i32::try_from(args.int(0)?).map_err(|_| {
            wrong_type(args.get(0), "a status of 32 bits", 0).of_class(Class::ILLEGAL_ARGUMENT)
        })?;
        Err(vm.host().exit(status))
    },
};

const NANO_TIME: Native = Native {
    name: "nanoTime",
    usage: "(System/nanoTime)",
    doc: "Returns nanoseconds since some fixed instant.",
    examples: &[("(int? (System/nanoTime))", "true")],
    arity: Arity::exactly(0),
    run: |vm, _| vm.host().now_nanos().map(Value::Int),
};

const SLEEP: Native = Native {
    name: "sleep",
    usage: "(Thread/sleep millis)",
    doc: "Waits for a number of milliseconds. Not available in flows, which have the step :sleep.",
    examples: &[("(Thread/sleep 1)", "nil")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let millis = u64::try_from(args.int(0)?).map_err(|_| {
            wrong_type(args.get(0), "an integer of 0 or more", 0).of_class(Class::ILLEGAL_ARGUMENT)
        })?;
        vm.host().sleep(millis)?;
        Ok(Value::Nil)
    },
};
