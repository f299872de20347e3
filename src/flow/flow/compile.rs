//! Compiles a flow's code without running it, so that undefined names, calls with a wrong number of arguments and a
//! misplaced `recur` are found before a run starts.

use flowstone_lang::Sandbox;
use flowstone_lang::session::{Body, Session};
use flowstone_lang::value::{Signal, Stop, Value};
use flowstone_lang::vm::Vm;

use super::lint::Code;
use super::{Flow, bindings, outside, text};
use crate::diagnostic::Diagnostic;
use crate::forms::{entry_spans, quoted};
use crate::limits::Limits;

/// The error code of a `require` without a source file, and the hint for a flow, which has no source folders.
const NO_SOURCE: &str = "E0344";
const IN_A_FLOW: &str = "a flow loads no files of code: put the functions into `:functions`, or take them from another file with \
                         `#flow/include \"...\"`; namespaces of the library, such as `clojure.string`, are there";

/// Maximum number of instructions for all macros of a flow: some seconds.
const MACRO_FUEL: u64 = 200_000_000;

/// The findings about a flow's code, with its compiled body.
pub(super) struct CheckedCode {
    pub findings: Vec<Diagnostic>,
    /// The compiled `:flow`, if compiling left the session unchanged: runs of the flow can use both.
    pub body: Option<Body>,
}

/// Compiles the body, the functions and the code in steps. The names that flows may use must be installed in the
/// session.
pub(super) fn check_code(session: &Session, flow: &Flow, in_steps: &[Code]) -> CheckedCode {
    let generation = session.world().generation();
    let host = Sandbox::new()
        .fuel(MACRO_FUEL)
        .heap_limit(Limits::default().memory);
    let mut vm = session.vm(Box::new(host));
    let mut findings = Vec::new();
    let mut whole = vec![flow.body.clone()];
    let body = Body::default();
    for form in statements(&flow.body) {
        findings.extend(compile(session, &mut vm, &form, Some(&body)));
    }
    findings.extend(outside::check_body(&flow.body));
    let named = flow.functions.iter().map(|function| Code {
        name: format!("<function {}>", function.id),
        code: function.code.clone(),
        span: function.span,
    });
    let packaged = flow.packaged.iter().flat_map(|step| {
        let code = [
            ("prepare", step.prepare.as_ref()),
            ("project-result", step.project_result.as_ref()),
        ];
        let code = code
            .into_iter()
            .filter_map(|(key, code)| Some((key, code?)));
        let code = code.filter(|(_, code)| matches!(code, Value::List(_) | Value::Text(_)));
        let sources = session.world().sources.borrow();
        let code: Vec<Code> = code
            .map(|(key, code)| Code {
                name: format!("<step {}>", step.id),
                code: code.clone(),
                span: entry_spans(&sources, &step.entry, &format!(":{key}")).value,
            })
            .collect();
        code
    });
    let code: Vec<Code> = named.chain(packaged).collect();
    for code in code.iter().chain(in_steps) {
        let (forms, problem) = text::forms(session, code);
        findings.extend(problem);
        for form in forms {
            let parts = statements(&form);
            let found = parts
                .iter()
                .filter_map(|part| compile(session, &mut vm, part, None));
            let mut found: Vec<Diagnostic> = found.collect();
            if found.is_empty() {
                found.extend(outside::check(&form));
            }
            let sources = session.world().sources.borrow();
            let placed = found
                .into_iter()
                .map(|finding| text::placed(&sources, code, finding));
            findings.extend(placed);
            whole.push(form);
        }
    }
    findings.extend(bindings::check(&whole));
    let is_as_it_was = session.world().generation() == generation;
    CheckedCode {
        findings,
        body: is_as_it_was.then_some(body),
    }
}

/// Returns the forms that are compiled one by one when the body is run: the parts of an outer `do`.
fn statements(body: &Value) -> Vec<Value> {
    match body {
        Value::List(list) if is_call_of(body, &["do"]) => list.iter().skip(1).cloned().collect(),
        _ => vec![body.clone()],
    }
}

/// Compiles a form, as a body or into a function that is never called. Definitions are made, because later forms may
/// need them.
fn compile(
    session: &Session,
    vm: &mut Vm,
    form: &Value,
    body: Option<&Body>,
) -> Option<Diagnostic> {
    let is_made = is_call_of(form, &["defmacro", "defn", "defn-"]) || is_require(form);
    let compiled = match (body, is_made) {
        (_, true) => session.eval(vm, form).map(|_| ()),
        (Some(body), false) => body.compile_more(vm, form),
        (None, false) => {
            let code = Value::list([Value::symbol("fn*"), Value::vector([]), form.clone()]);
            session.eval(vm, &code).map(|_| ())
        }
    };
    match compiled {
        Ok(()) => None,
        Err(Signal::Stop(stop)) => {
            let (code, why) = match *stop {
                Stop::OutOfMemory(_) => ("E0903", stop.to_string()),
                _ => ("E0901", "a macro does not end".to_owned()),
            };
            let message = format!("this code cannot be compiled: {why}");
            Some(Diagnostic::error(code, message).at(form.span()))
        }
        // An exception that a program's own macro throws has no code, and would be thrown in the run as well.
        Err(Signal::Throw(exception)) => {
            let code = if exception.code.is_empty() {
                "E0444"
            } else {
                exception.code
            };
            let mut finding = Diagnostic::error(code, exception.display_text())
                .at(exception.span().or(form.span()));
            finding.hints.clone_from(&exception.hints);
            finding.changes.clone_from(&exception.changes);
            if code == NO_SOURCE {
                finding.hints = vec![IN_A_FLOW.to_owned()];
            }
            Some(finding)
        }
    }
}

/// Tells whether a form only makes known the names that are written in it.
fn is_require(form: &Value) -> bool {
    let Value::List(list) = form else {
        return false;
    };
    is_call_of(form, &["require", "use", "alias", "refer"])
        && list.iter().skip(1).all(|part| quoted(part).is_some())
}

fn is_call_of(form: &Value, names: &[&str]) -> bool {
    let Value::List(list) = form else {
        return false;
    };
    let head = list.first.as_symbol();
    head.is_some_and(|head| head.namespace().is_none() && names.contains(&&*head.name()))
}
