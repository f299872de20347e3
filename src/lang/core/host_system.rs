//! `System/...`: the clock of the host.

use crate::value::{Arity, Native, Value};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[CURRENT_TIME_MILLIS, NANO_TIME];

const CURRENT_TIME_MILLIS: Native = Native {
    name: "currentTimeMillis",
    usage: "(System/currentTimeMillis)",
    doc: "Returns milliseconds since 1970. In a flow, the journaled time of the run.",
    examples: &[("(int? (System/currentTimeMillis))", "true")],
    arity: Arity::exactly(0),
    run: |vm, _| vm.host().now_millis().map(Value::Int),
};

const NANO_TIME: Native = Native {
    name: "nanoTime",
    usage: "(System/nanoTime)",
    doc: "Returns nanoseconds since some fixed moment.",
    examples: &[("(int? (System/nanoTime))", "true")],
    arity: Arity::exactly(0),
    run: |vm, _| vm.host().now_nanos().map(Value::Int),
};
