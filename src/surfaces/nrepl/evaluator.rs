//! The thread that evaluates: one request after the other; what only looks at names is answered in between.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flowstone_engine::observer::Observer;
use flowstone_engine::{Asker, Interactive};
use flowstone_lang::library;
use flowstone_lang::session::{Session, split_typed};
use flowstone_lang::value::{
    Exception, Namespace, PrintOptions, Result, Signal, Stop, Symbol, Value, Var,
};
use flowstone_lang::vm::{Stream, Vm};
use tokio::sync::mpsc::Receiver;

use super::bencode::{Bencode, Dict};
use super::connection::Protocol;
use super::host::{ClientHost, Current, Target};
use super::reply::status_of;
use super::sessions::{Hub, Request};
use super::{QUEUE, Serve, names, socket};
use crate::cli::{Around, Desk, Grants, Interrupt, Lines, ProgramHost, Waiting, draw_error};

/// The operations of the evaluating thread, and whether each evaluates code.
pub const OPS: &[(&str, bool)] = &[
    ("complete", false),
    ("completions", false),
    ("eldoc", false),
    ("eval", true),
    ("info", false),
    ("load-file", true),
    ("lookup", false),
    ("macroexpand", true),
];

/// How often the thread checks whether the server is to end.
const POLL: Duration = Duration::from_millis(100);
/// Limits of printing unless `*print-length*` and `*print-level*` are set.
const MOST_ITEMS: usize = 1_000;
const MOST_LEVELS: usize = 64;
/// How many lines of code may come before the evaluated ones in their file, for the places of errors.
const LINES_MAX: i64 = 200_000;
/// Names of printing functions of other servers that print as `pr` does.
const PRINTERS: &[&str] = &["cider.nrepl.pprint/pr", "nrepl.util.print/pr"];
/// The width of pretty values, unless the client names another.
const MARGIN: i64 = 72;

/// Evaluates the requests of all clients.
pub struct Evaluator<'a> {
    session: Rc<Session>,
    steps: Interactive<'a>,
    desk: Desk<'a>,
    hub: Arc<Hub>,
    grants: Grants,
    current: Current,
    /// What each session has of its own.
    states: RefCell<HashMap<String, State>>,
    results: [Rc<Var>; 4],
    ends: &'a dyn Fn() -> bool,
    words: crate::cli::Words,
}

/// What a session has of its own: its namespace, the last values and the last error.
#[derive(Clone)]
struct State {
    namespace: Rc<Namespace>,
    results: [Value; 4],
}

/// How values are printed for a client.
struct Printing {
    /// A function such as `clojure.pprint/pprint`.
    function: Option<String>,
    margin: i64,
    /// Maximum number of characters of a value.
    quota: Option<usize>,
    /// Whether it is the value of a file, which has no namespace of its own.
    is_file: bool,
}

impl<'a> Evaluator<'a> {
    pub fn new(serve: &Serve<'a>, hub: Arc<Hub>) -> Evaluator<'a> {
        let session = serve.session.clone();
        let current = Current::new(hub.clone());
        let teller = current.clone();
        let observer: Rc<dyn Observer> = Rc::new(Lines(move |text: &str| {
            teller.print(Stream::Error, &format!("{text}\n"));
        }));
        let waiting = Waiting::new(observer.clone());
        let interrupt = flowstone_flow::Interrupt::from_flag(hub.interrupt.clone());
        let steps = serve
            .engine
            .interactive(session.clone(), waiting.clone(), interrupt.clone());
        let desk = Desk::new(
            serve.engine,
            session.clone(),
            Around {
                observer,
                interrupt,
                // Nobody is asked for permissions: what the project and the options allow is all.
                asker: Asker::default(),
                person: Rc::new(current.clone()),
                waiting,
            },
        );
        let core = session.world().core.clone();
        let var = |name: &str| {
            let var = core.intern(Symbol::new(name));
            var.set_root(Value::Nil);
            var
        };
        Evaluator {
            words: crate::cli::Words::new(session.clone(), serve.engine),
            results: [var("*1"), var("*2"), var("*3"), var("*e")],
            session,
            steps,
            desk,
            hub,
            grants: serve.grants.clone(),
            current,
            states: RefCell::default(),
            ends: serve.ends,
        }
    }

    /// Answers requests until the process is to end.
    pub async fn run(self, mut arriving: Receiver<Request>) {
        let mut later: VecDeque<Request> = VecDeque::new();
        while !(self.ends)() {
            let request = match later.pop_front() {
                Some(request) => request,
                None => match tokio::time::timeout(POLL, arriving.recv()).await {
                    Ok(Some(request)) => request,
                    Ok(None) => break,
                    Err(_) => continue,
                },
            };
            if !evaluates(&request) {
                self.look(&request);
                continue;
            }
            let evaluation = self.evaluate(&request);
            tokio::pin!(evaluation);
            loop {
                tokio::select! {
                    biased;
                    () = &mut evaluation => break,
                    next = arriving.recv() => match next {
                        Some(next) if !evaluates(&next) => self.look(&next),
                        Some(next) if later.len() < QUEUE => later.push_back(next),
                        Some(next) => {
                            let status = ["error", "too-many-requests", "done"];
                            next.client.answer(&next.address.status(&status));
                        }
                        None => break,
                    },
                    () = tokio::time::sleep(POLL) => {
                        if (self.ends)() {
                            self.hub.interrupt.store(true, Ordering::Relaxed);
                        }
                    }
                }
            }
        }
        // The run of the steps that clients performed ends with the server; a store that fails has nothing to report to.
        let _ = self.steps.finish().await;
    }

    /// Answers a request about names.
    fn look(&self, request: &Request) {
        let namespace = self.namespace_of(request);
        let answer = names::answer(&self.session, &self.words, &namespace, request);
        request.client.answer(&answer);
    }

    /// Evaluates the code of a request, and answers it.
    async fn evaluate(&self, request: &Request) {
        self.hub.begin(&request.address);
        if (self.ends)() {
            self.hub.interrupt.store(true, Ordering::Relaxed);
        }
        let protocol = match &*request.op {
            socket::OP => Protocol::Socket,
            _ => Protocol::Nrepl,
        };
        let target = Target {
            client: request.client.clone(),
            session: request.session.clone(),
            address: request.address.clone(),
            protocol,
        };
        self.current.set(Some(target.clone()));
        self.enter(&request.session.id);
        match (protocol, &*request.op) {
            (Protocol::Socket, _) => {
                let code = text(request, "code").unwrap_or_default();
                self.evaluate_forms(&target, &code, &Printing::plain())
                    .await;
                self.leave(request);
            }
            (Protocol::Nrepl, "macroexpand") => {
                let answer = self.expand(request).await;
                self.leave(request);
                request.client.answer(&answer);
            }
            (Protocol::Nrepl, _) => {
                let answer = self.evaluate_request(request, &target).await;
                self.leave(request);
                request.client.answer(&answer);
            }
        }
        self.current.set(None);
        self.hub.ended();
        if protocol == Protocol::Socket {
            socket::prompt(&target, &self.namespace_of(request).name.to_string());
            request.session.set_free();
        }
    }

    /// Evaluates the code of `eval` or `load-file`. Returns the last answer.
    async fn evaluate_request(&self, request: &Request, target: &Target) -> Dict {
        let is_file = request.op == "load-file";
        let Some(code) = text(request, if is_file { "file" } else { "code" }) else {
            let missing = if is_file { "no-file" } else { "no-code" };
            return request.address.status(&["error", missing, "done"]);
        };
        let world = self.session.world();
        let before = world.current.borrow().clone();
        let named = text(request, "ns").filter(|_| !is_file);
        if let Some(name) = &named {
            let symbol = Symbol::new(name);
            if world.find_namespace(symbol).is_none() && !library::has(name) {
                return request.address.reply([
                    ("ns", Bencode::from(name.as_str())),
                    (
                        "status",
                        status_of(&["namespace-not-found", "done", "error"]),
                    ),
                ]);
            }
            world.current.replace(world.namespace(symbol));
        }
        let file = text(request, if is_file { "file-path" } else { "file" });
        let place = Place {
            file: file.unwrap_or_else(|| "<nrepl>".to_owned()),
            line: number(request, "line").unwrap_or(1).clamp(1, LINES_MAX),
            column: number(request, "column").unwrap_or(1).clamp(1, LINES_MAX),
        };
        let printing = Printing {
            is_file,
            ..Printing::of(request)
        };
        if let Some(problem) = self.print_problem(&printing) {
            request.client.answer(&request.address.reply([
                ("nrepl.middleware.print/error", Bencode::from(problem)),
                ("status", status_of(&["nrepl.middleware.print/error"])),
            ]));
        }
        let ended = match is_file {
            true => self.evaluate_file(target, &code, &place, &printing).await,
            false => self.evaluate_at(target, &code, &place, &printing).await,
        };
        if named.is_some() {
            // A named namespace is that of this evaluation only.
            self.session.world().current.replace(before);
        }
        request.address.status(match ended {
            Ok(()) | Err(Failed::Threw) => &["done"],
            Err(Failed::Interrupted) => &["interrupted", "done"],
        })
    }

    async fn evaluate_forms(&self, target: &Target, code: &str, printing: &Printing) {
        let place = Place {
            file: "<socket>".to_owned(),
            line: 1,
            column: 1,
        };
        // Failures were shown.
        let _ = self.evaluate_at(target, code, &place, printing).await;
    }

    /// Evaluates each form of a code and sends its value, up to the first failure.
    async fn evaluate_at(
        &self,
        target: &Target,
        code: &str,
        place: &Place,
        printing: &Printing,
    ) -> std::result::Result<(), Failed> {
        let Ok(forms) = split_typed(code) else {
            // The session reads it again and reports what is wrong, and where.
            return self
                .evaluate_one(target, place.padded(code, 0, code), place, printing)
                .await;
        };
        for form in forms {
            let text = place.padded(code, form.start, form.text);
            self.evaluate_one(target, text, place, printing).await?;
        }
        Ok(())
    }

    /// Evaluates a whole file and sends the value of its last form.
    async fn evaluate_file(
        &self,
        target: &Target,
        code: &str,
        place: &Place,
        printing: &Printing,
    ) -> std::result::Result<(), Failed> {
        let before = self.session.world().current.borrow().clone();
        let ended = self
            .evaluate_one(target, code.to_owned(), place, printing)
            .await;
        self.session.world().current.replace(before);
        ended
    }

    async fn evaluate_one(
        &self,
        target: &Target,
        text: String,
        place: &Place,
        printing: &Printing,
    ) -> std::result::Result<(), Failed> {
        let (session, file) = (self.session.clone(), place.file.clone());
        let (function, margin) = (printing.function.clone(), printing.margin);
        let both = self.run_body(move |vm| {
            let value = session.eval_text(vm, &file, &text)?;
            let printed = print(&session, vm, &value, function.as_deref(), margin)?;
            Ok(Value::entry(value, Value::from(printed)))
        });
        let both = match both.await {
            Ok(both) => both,
            Err(signal) => return Err(self.fail(target, signal)),
        };
        let part = |idx: usize| both.as_vector().and_then(|both| both.get(idx).cloned());
        let value = part(0).unwrap_or(Value::Nil);
        let printed = part(1)
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let [first, second, third, _] = &self.results;
        third.set_root(second.root().unwrap_or(Value::Nil));
        second.set_root(first.root().unwrap_or(Value::Nil));
        first.set_root(value);
        self.send_value(target, &printed, printing);
        Ok(())
    }

    fn send_value(&self, target: &Target, printed: &str, printing: &Printing) {
        self.current.flush();
        if target.protocol == Protocol::Socket {
            return target.client.send(format!("{printed}\n").into_bytes());
        }
        let namespace = self.session.world().current.borrow().name.to_string();
        let cut = printing
            .quota
            .and_then(|most| printed.char_indices().nth(most));
        let shown = &printed[..cut.map_or(printed.len(), |(at, _)| at)];
        let mut members = vec![("value", Bencode::from(shown))];
        if !printing.is_file {
            members.push(("ns", Bencode::from(namespace)));
        }
        if cut.is_some() {
            members.push(("status", status_of(&["nrepl.middleware.print/truncated"])));
            members.push((
                "nrepl.middleware.print/truncated-keys",
                [Bencode::from("value")].into_iter().collect(),
            ));
        }
        target.client.answer(&target.address.reply(members));
    }

    /// Returns why the function that is to print values cannot be used.
    fn print_problem(&self, printing: &Printing) -> Option<String> {
        let name = printing
            .function
            .as_deref()
            .filter(|name| !name.ends_with("pprint"))?;
        let is_known =
            PRINTERS.contains(&name) || self.session.describe_alone(Symbol::new(name)).is_some();
        (!is_known).then(|| format!("Couldn't resolve var {name}"))
    }

    async fn run_body(
        &self,
        body: impl FnOnce(&mut Vm) -> Result<Value> + 'static,
    ) -> Result<Value> {
        let interrupt = Interrupt::of_flag(self.hub.interrupt.clone());
        let host = ClientHost {
            program: ProgramHost::new(self.grants.clone(), interrupt),
            current: self.current.clone(),
        };
        self.steps.eval(Box::new(host), &self.desk, body).await
    }

    /// Shows why an evaluation failed.
    fn fail(&self, target: &Target, signal: Signal) -> Failed {
        self.current.flush();
        if let Signal::Stop(stop) = &signal
            && matches!(**stop, Stop::Interrupted(_) | Stop::Cancelled)
        {
            // No key was pressed here.
            let text = stop
                .to_string()
                .replace("interrupted by Ctrl-C", "interrupted");
            target.print(Stream::Error, &format!("{text}\n"));
            return Failed::Interrupted;
        }
        let exception = match &signal {
            Signal::Throw(exception) => Some(exception.clone()),
            Signal::Stop(_) => None,
        };
        if let Some(exception) = &exception {
            self.results[3].set_root(Value::Exception(exception.clone()));
        }
        let page = exception
            .as_ref()
            .and_then(|exception| self.desk.report(exception));
        let page = page.unwrap_or_else(|| draw_error(&self.session, &signal));
        target.print(Stream::Error, &crate::cli::exact(&page));
        if target.protocol == Protocol::Nrepl {
            let class = |exception: &Exception| {
                Bencode::from(format!("class {}", exception.class.0.full_name))
            };
            let (ex, root) = match &exception {
                Some(exception) => (class(exception), class(&root_of(exception))),
                None => (
                    Bencode::from("class java.lang.Error"),
                    Bencode::from("class java.lang.Error"),
                ),
            };
            target.client.answer(&target.address.reply([
                ("ex", ex),
                ("root-ex", root),
                ("status", status_of(&["eval-error"])),
            ]));
        }
        Failed::Threw
    }

    /// Answers `macroexpand`.
    async fn expand(&self, request: &Request) -> Dict {
        let address = &request.address;
        let Some(code) = text(request, "code") else {
            return address.status(&["error", "no-code", "done"]);
        };
        let expander = text(request, "expander").unwrap_or_else(|| "macroexpand".to_owned());
        let name = match &*expander {
            "macroexpand" | "macroexpand-1" => format!("clojure.core/{expander}"),
            "macroexpand-all" => "clojure.walk/macroexpand-all".to_owned(),
            _ => return address.status(&["error", "unknown-expander", "done"]),
        };
        if let Some(name) = text(request, "ns") {
            let world = self.session.world();
            world.current.replace(world.namespace(Symbol::new(&name)));
        }
        let session = self.session.clone();
        let expanded = self.run_body(move |vm| {
            let forms = session.read("<nrepl>", &code)?;
            let Some(var) = session.var_of(vm, Symbol::new(&name))? else {
                return Ok(Value::Nil);
            };
            let function = vm.var_value(&var)?;
            let expanded = vm.call(&function, &[forms.into_iter().next().unwrap_or(Value::Nil)])?;
            Ok(Value::from(vm.print(&expanded, PrintOptions::READABLE)?))
        });
        match expanded.await {
            Ok(value) => address.reply([
                (
                    "expansion",
                    Bencode::from(value.as_str().unwrap_or_default()),
                ),
                ("status", status_of(&["done"])),
            ]),
            Err(signal) => {
                let page = draw_error(&self.session, &signal);
                address.reply([
                    ("err", Bencode::from(&*crate::cli::exact(&page))),
                    ("status", status_of(&["error", "macroexpand-error", "done"])),
                ])
            }
        }
    }

    /// Sets the namespace and the last values of a session.
    fn enter(&self, id: &str) {
        let state = self.state(id);
        self.session.world().current.replace(state.namespace);
        for (var, value) in self.results.iter().zip(state.results) {
            var.set_root(value);
        }
    }

    /// Keeps the namespace and the last values of a session.
    fn leave(&self, request: &Request) {
        if request.session.is_ephemeral {
            return;
        }
        let namespace = self.session.world().current.borrow().clone();
        let results = self
            .results
            .each_ref()
            .map(|var| var.root().unwrap_or(Value::Nil));
        let mut states = self.states.borrow_mut();
        states.retain(|id, _| self.hub.session(id).is_some());
        if self.hub.session(&request.session.id).is_some() {
            states.insert(request.session.id.clone(), State { namespace, results });
        }
    }

    fn state(&self, id: &str) -> State {
        self.states
            .borrow()
            .get(id)
            .cloned()
            .unwrap_or_else(|| State {
                namespace: self.session.world().namespace(Symbol::new("user")),
                results: [Value::Nil, Value::Nil, Value::Nil, Value::Nil],
            })
    }

    /// Returns the namespace that a request names, or that of its session.
    fn namespace_of(&self, request: &Request) -> Rc<Namespace> {
        let named = text(request, "ns").map(|name| Symbol::new(&name));
        let named = named.and_then(|name| self.session.world().find_namespace(name));
        named.unwrap_or_else(|| self.state(&request.session.id).namespace)
    }
}

/// Why an evaluation did not end with a value.
enum Failed {
    Interrupted,
    Threw,
}

/// Where the code of a request is in its file.
struct Place {
    file: String,
    line: i64,
    column: i64,
}

impl Place {
    /// Returns a form with blanks before it, so that its place in the text is that in its file.
    fn padded(&self, code: &str, start: usize, form: &str) -> String {
        let before = &code[..start];
        let lines = before.matches('\n').count();
        let above = usize::try_from(self.line - 1).unwrap_or(0) + lines;
        let last = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count();
        let beside = match lines {
            0 => usize::try_from(self.column - 1).unwrap_or(0) + last,
            _ => last,
        };
        format!("{}{}{form}", "\n".repeat(above), " ".repeat(beside))
    }
}

impl Printing {
    fn plain() -> Printing {
        Printing {
            function: None,
            margin: MARGIN,
            quota: None,
            is_file: false,
        }
    }

    fn of(request: &Request) -> Printing {
        let options = request.message.get("nrepl.middleware.print/options");
        let option = |name: &str| match options {
            Some(Bencode::Dict(options)) => match options.get(name) {
                Some(Bencode::Int(number)) => Some(*number),
                _ => None,
            },
            _ => None,
        };
        let margin = option("right-margin").or_else(|| option("width"));
        let quota = number(request, "nrepl.middleware.print/quota");
        Printing {
            function: text(request, "nrepl.middleware.print/print"),
            margin: margin.unwrap_or(MARGIN).clamp(20, 10_000),
            quota: quota.and_then(|most| usize::try_from(most).ok()),
            is_file: false,
        }
    }
}

/// Returns a value as text. Functions whose name ends in `pprint` print it pretty, all others as `pr` does.
fn print(
    session: &Session,
    vm: &mut Vm,
    value: &Value,
    function: Option<&str>,
    margin: i64,
) -> Result<String> {
    if function.is_some_and(|name| name.ends_with("pprint")) {
        let code = format!(
            "(fn [x] (binding [clojure.pprint/*print-right-margin* {margin}] (with-out-str (clojure.pprint/pprint x))))"
        );
        let before = session.world().current.borrow().clone();
        let function =
            session.eval_text(vm, "<nrepl>", &format!("(require 'clojure.pprint) {code}"));
        session.world().current.replace(before);
        let printed = vm.call(&function?, std::slice::from_ref(value))?;
        return Ok(printed.as_str().unwrap_or_default().trim_end().to_owned());
    }
    let asked = session.print_options(vm);
    let options = PrintOptions {
        length: asked.length.or(Some(MOST_ITEMS)),
        level: asked.level.or(Some(MOST_LEVELS)),
        ..asked
    };
    vm.print(value, options)
}

/// Returns the innermost cause of an exception.
fn root_of(exception: &Rc<Exception>) -> Rc<Exception> {
    let mut root = exception.clone();
    while let Value::Exception(cause) = &root.cause {
        root = cause.clone();
    }
    root
}

fn evaluates(request: &Request) -> bool {
    request.op == socket::OP
        || OPS
            .iter()
            .any(|(name, evaluates)| *evaluates && *name == request.op)
}

/// Returns a member of a message that is a text.
pub fn text(request: &Request, name: &str) -> Option<String> {
    let text = request.message.get(name)?.as_text()?;
    Some(text.to_owned()).filter(|text| !text.is_empty() || name == "code" || name == "file")
}

fn number(request: &Request, name: &str) -> Option<i64> {
    match request.message.get(name)? {
        Bencode::Int(number) => Some(*number),
        Bencode::Text(text) => text.parse().ok(),
        Bencode::List(_) | Bencode::Dict(_) => None,
    }
}
