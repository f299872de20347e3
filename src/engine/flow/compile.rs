//! Compiles a flow's code without running it: names that nothing defines, calls with a wrong number of arguments,
//! `recur` in a wrong place are known before a run starts.

use flowstone_lang::Sandbox;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Signal, Stop, Value};
use flowstone_lang::vm::Vm;

use super::{Flow, bindings};
use crate::diagnostic::Diagnostic;
use crate::limits::Limits;

/// Instructions that the macros of a flow may take together: some seconds.
const MACRO_FUEL: u64 = 200_000_000;

/// Compiles the body and the functions; the session must know what flows may use.
pub(super) fn check_code(session: &Session, flow: &Flow) -> Vec<Diagnostic> {
    let host = Sandbox::new()
        .fuel(MACRO_FUEL)
        .heap_limit(Limits::default().memory);
    let mut vm = session.vm(Box::new(host));
    let mut findings = Vec::new();
    let mut whole = vec![flow.body.clone()];
    for form in statements(&flow.body) {
        findings.extend(compile(session, &mut vm, &form));
    }
    let named = flow
        .functions
        .iter()
        .map(|function| (format!("<function {}>", function.id), &function.code));
    let packaged = flow.packaged.iter().flat_map(|step| {
        // Hooks that do not compile would only be logged.
        let hooks = ["before-tool-call", "after-tool-call"].map(|key| step.defaults.get(key));
        let code = [step.prepare.as_ref(), step.project_result.as_ref()];
        let code = code.into_iter().chain(hooks).flatten();
        let code = code.filter(|code| matches!(code, Value::List(_) | Value::Text(_)));
        code.map(|code| (format!("<step {}>", step.id), code))
    });
    for (name, code) in named.chain(packaged) {
        let forms = match code {
            Value::Text(text) => match session.read(&name, text) {
                Ok(forms) => forms,
                // The definition's own check has said so.
                Err(_) => continue,
            },
            form => vec![form.clone()],
        };
        for form in forms {
            findings.extend(compile(session, &mut vm, &form));
            whole.push(form);
        }
    }
    findings.extend(bindings::check(&whole));
    findings
}

/// Returns what is compiled one by one when the body is run: the parts of an outer `do`.
fn statements(body: &Value) -> Vec<Value> {
    match body {
        Value::List(list) if is_call_of(body, &["do"]) => list.iter().skip(1).cloned().collect(),
        _ => vec![body.clone()],
    }
}

/// Compiles a form. Definitions are made, because what follows may need them; all else is only wrapped into a
/// function that nobody calls.
fn compile(session: &Session, vm: &mut Vm, form: &Value) -> Option<Diagnostic> {
    let code = if is_call_of(form, &["defmacro", "defn", "defn-"]) {
        form.clone()
    } else {
        Value::list([Value::symbol("fn*"), Value::vector([]), form.clone()])
    };
    match session.eval(vm, &code) {
        Ok(_) => None,
        Err(Signal::Stop(stop)) => {
            let (code, why) = match *stop {
                Stop::OutOfMemory(_) => ("E0903", stop.to_string()),
                _ => ("E0901", "a macro does not end".to_owned()),
            };
            let message = format!("this code cannot be compiled: {why}");
            Some(Diagnostic::error(code, message).at(form.span()))
        }
        // What a program's own macro throws has no code, and would be thrown in the run as well.
        Err(Signal::Throw(exception)) => {
            let code = if exception.code.is_empty() {
                "E0444"
            } else {
                exception.code
            };
            let mut finding =
                Diagnostic::error(code, exception.shown()).at(exception.span().or(form.span()));
            finding.hints.clone_from(&exception.hints);
            Some(finding)
        }
    }
}

fn is_call_of(form: &Value, names: &[&str]) -> bool {
    let Value::List(list) = form else {
        return false;
    };
    let head = list.first.as_symbol();
    head.is_some_and(|head| head.namespace().is_none() && names.contains(&&*head.name()))
}
