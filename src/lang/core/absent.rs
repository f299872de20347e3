//! What Clojure has for several threads and this language has not: each says what to use instead.

use crate::value::{Arity, Class, Exception, Native, Result, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    AGENT,
    AGENT_ERROR,
    ALTER,
    AWAIT,
    AWAIT_FOR,
    COMMUTE,
    ENSURE,
    REF,
    REF_SET,
    RESTART_AGENT,
    SEND,
    SEND_OFF,
    SEND_VIA,
];

macro_rules! absent {
    ($($constant:ident $name:literal $usage:literal $instead:literal $run:ident;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: $usage,
            doc: concat!("Throws: there is one thread here, so there are no agents and no refs. Use ", $instead, "."),
            examples: &[],
            arity: Arity::at_least(0),
            run: $run,
        };)*
    };
}

absent! {
    AGENT "agent" "(agent x)" "an atom" no_agents;
    AGENT_ERROR "agent-error" "(agent-error agent)" "try around what an atom's function does" no_agents;
    ALTER "alter" "(alter ref f & args)" "swap! on an atom" no_refs;
    AWAIT "await" "(await & agents)" "nothing: swap! is done when it returns" no_agents;
    AWAIT_FOR "await-for" "(await-for ms & agents)" "nothing: swap! is done when it returns" no_agents;
    COMMUTE "commute" "(commute ref f & args)" "swap! on an atom" no_refs;
    ENSURE "ensure" "(ensure ref)" "deref on an atom" no_refs;
    REF "ref" "(ref x)" "an atom" no_refs;
    REF_SET "ref-set" "(ref-set ref x)" "reset! on an atom" no_refs;
    RESTART_AGENT "restart-agent" "(restart-agent agent state)" "reset! on an atom" no_agents;
    SEND "send" "(send agent f & args)" "swap! on an atom" no_agents;
    SEND_OFF "send-off" "(send-off agent f & args)" "swap! on an atom, or a step for slow work" no_agents;
    SEND_VIA "send-via" "(send-via executor agent f & args)" "swap! on an atom" no_agents;
}

fn no_agents(_vm: &mut Vm, _args: Args<'_>) -> Result<Value> {
    Err(absent(
        "there are no agents here: programs run on one thread",
    ))
}

fn no_refs(_vm: &mut Vm, _args: Args<'_>) -> Result<Value> {
    Err(absent(
        "there are no refs and no transactions here: programs run on one thread",
    ))
}

fn absent(message: &str) -> crate::value::Signal {
    Exception::new(Class::UNSUPPORTED_OPERATION, "E0352", message)
        .hint("use an atom: swap! and reset! change it at once")
        .into()
}
