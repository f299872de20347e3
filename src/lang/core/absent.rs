//! Functions of Clojure for threads and its host that do not exist here: each reports an error with a replacement.

use crate::value::{Arity, Class, Exception, Native, Result, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ADD_CLASSPATH,
    AGENT,
    AGENT_ERROR,
    AGENT_ERRORS,
    ALTER,
    AWAIT,
    AWAIT1,
    AWAIT_FOR,
    CLEAR_AGENT_ERRORS,
    COMMUTE,
    COMPILE,
    CONSTRUCT_PROXY,
    ENSURE,
    ERROR_HANDLER,
    ERROR_MODE,
    GET_PROXY_CLASS,
    INIT_PROXY,
    PROXY_MAPPINGS,
    PROXY_NAME,
    REF,
    REF_HISTORY_COUNT,
    REF_MAX_HISTORY,
    REF_MIN_HISTORY,
    REF_SET,
    REFUSE,
    RELEASE_PENDING_SENDS,
    RESTART_AGENT,
    RESULTSET_SEQ,
    SEND,
    SEND_OFF,
    SEND_VIA,
    SET_AGENT_SEND_EXECUTOR,
    SET_AGENT_SEND_OFF_EXECUTOR,
    SET_ERROR_HANDLER,
    SET_ERROR_MODE,
    UPDATE_PROXY,
];

const REFUSE: Native = Native {
    name: "-refuse",
    usage: "(-refuse exception)",
    doc: "Throws the compiler's error about a host name that does not exist, when the name is reached.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Exception(refused) => Err(refused.again().into()),
        _ => Err(args.expected(0, "an exception")),
    },
};

macro_rules! absent {
    ($($constant:ident $name:literal $usage:literal $instead:literal $run:ident;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: $usage,
            doc: concat!("Throws: this is not here. Use ", $instead, "."),
            examples: &[],
            arity: Arity::at_least(0),
            run: $run,
        };)*
    };
}

absent! {
    AGENT "agent" "(agent x)" "an atom" no_agents;
    ADD_CLASSPATH "add-classpath" "(add-classpath url)" "--path with a folder of source files" no_host;
    AGENT_ERROR "agent-error" "(agent-error agent)" "try in the function that changes an atom" no_agents;
    AGENT_ERRORS "agent-errors" "(agent-errors agent)" "try in the function that changes an atom" no_agents;
    ALTER "alter" "(alter ref f & args)" "swap! on an atom" no_refs;
    AWAIT "await" "(await & agents)" "nothing: swap! has finished when it returns" no_agents;
    AWAIT1 "await1" "(await1 agent)" "nothing: swap! has finished when it returns" no_agents;
    AWAIT_FOR "await-for" "(await-for ms & agents)" "nothing: swap! has finished when it returns" no_agents;
    CLEAR_AGENT_ERRORS "clear-agent-errors" "(clear-agent-errors agent)" "reset! on an atom" no_agents;
    COMMUTE "commute" "(commute ref f & args)" "swap! on an atom" no_refs;
    COMPILE "compile" "(compile lib)" "require: namespaces are compiled when they are loaded" no_host;
    CONSTRUCT_PROXY "construct-proxy" "(construct-proxy class & args)" "reify with a protocol" no_host;
    ENSURE "ensure" "(ensure ref)" "deref on an atom" no_refs;
    ERROR_HANDLER "error-handler" "(error-handler agent)" "try in the function that changes an atom" no_agents;
    ERROR_MODE "error-mode" "(error-mode agent)" "try in the function that changes an atom" no_agents;
    GET_PROXY_CLASS "get-proxy-class" "(get-proxy-class & bases)" "reify with a protocol" no_host;
    INIT_PROXY "init-proxy" "(init-proxy proxy mappings)" "reify with a protocol" no_host;
    PROXY_MAPPINGS "proxy-mappings" "(proxy-mappings proxy)" "reify with a protocol" no_host;
    PROXY_NAME "proxy-name" "(proxy-name super interfaces)" "reify with a protocol" no_host;
    REF "ref" "(ref x)" "an atom" no_refs;
    REF_HISTORY_COUNT "ref-history-count" "(ref-history-count ref)" "an atom" no_refs;
    REF_MAX_HISTORY "ref-max-history" "(ref-max-history ref)" "an atom" no_refs;
    REF_MIN_HISTORY "ref-min-history" "(ref-min-history ref)" "an atom" no_refs;
    REF_SET "ref-set" "(ref-set ref x)" "reset! on an atom" no_refs;
    RELEASE_PENDING_SENDS "release-pending-sends" "(release-pending-sends)" "nothing: swap! has finished when it returns" no_agents;
    RESTART_AGENT "restart-agent" "(restart-agent agent state)" "reset! on an atom" no_agents;
    RESULTSET_SEQ "resultset-seq" "(resultset-seq rs)" "a :sql step in a flow" no_host;
    SEND "send" "(send agent f & args)" "swap! on an atom" no_agents;
    SEND_OFF "send-off" "(send-off agent f & args)" "swap! on an atom, or a step for slow work" no_agents;
    SEND_VIA "send-via" "(send-via executor agent f & args)" "swap! on an atom" no_agents;
    SET_AGENT_SEND_EXECUTOR "set-agent-send-executor!" "(set-agent-send-executor! executor)" "flow/pmap for work in parallel" no_agents;
    SET_AGENT_SEND_OFF_EXECUTOR "set-agent-send-off-executor!" "(set-agent-send-off-executor! executor)" "flow/pmap for work in parallel" no_agents;
    SET_ERROR_HANDLER "set-error-handler!" "(set-error-handler! agent f)" "try in the function that changes an atom" no_agents;
    SET_ERROR_MODE "set-error-mode!" "(set-error-mode! agent mode)" "try in the function that changes an atom" no_agents;
    UPDATE_PROXY "update-proxy" "(update-proxy proxy mappings)" "reify with a protocol" no_host;
}

fn no_agents(_vm: &mut Vm, _args: Args<'_>) -> Result<Value> {
    Err(absent(
        "Flowstone has no agents: programs run on one thread",
    ))
}

fn no_refs(_vm: &mut Vm, _args: Args<'_>) -> Result<Value> {
    Err(absent(
        "Flowstone has no refs and transactions: programs run on one thread",
    ))
}

fn no_host(_vm: &mut Vm, _args: Args<'_>) -> Result<Value> {
    let message = "Flowstone does not run on the JVM";
    Err(
        Exception::new(Class::UNSUPPORTED_OPERATION, "E0354", message)
            .hint("use protocols with reify, records, and plain maps")
            .into(),
    )
}

fn absent(message: &str) -> crate::value::Signal {
    Exception::new(Class::UNSUPPORTED_OPERATION, "E0352", message)
        .hint("use an atom: swap! and reset! change it at once")
        .into()
}
