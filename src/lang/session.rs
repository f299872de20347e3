//! A session: one world of namespaces, with everything needed to read, evaluate and report in it.

#[cfg(test)]
mod against_tree;
mod body;
mod describe;
mod loader;
mod read_context;
mod typed;

use std::rc::Rc;

use crate::failure::Failure;
use crate::reader::{ReadOptions, Reader};
use crate::sandbox::Sandbox;
use crate::value::{
    Class, Exception, Namespace, Native, PrintOptions, Result, Signal, Symbol, Value, Var,
};
use crate::vm::{Host, Vm, World};

pub use body::Body;
pub use describe::{DefinitionPlace, DescribedKind, Description, SPECIAL_FORMS};
pub use read_context::{WorldContext, read_next};
pub use typed::{Typed, first_typed, split_typed};

/// A world with the core library, and operations to use it.
///
/// Sessions share nothing: definitions in one are not visible in another. Creating one takes well under a millisecond,
/// because the library is compiled as it is used. A session stays on its thread.
///
/// ```
/// use flowstone_lang::{Output, Sandbox, Session};
///
/// let session = Session::new();
/// session.evaluate("(defn square [x] (* x x))")?;
/// let squares = session.evaluate("(map square [1 2 3])")?;
/// assert_eq!(session.show(&squares), "(1 4 9)");
///
/// let output = Output::new();
/// let host = Sandbox::new().fuel(1_000_000).output(&output);
/// session.evaluate_in(host, "job.clj", r#"(println "squares:" (square 4))"#)?;
/// assert_eq!(output.take(), "squares: 16\n");
///
/// let failure = session.evaluate("(square :four)").expect_err("a keyword is not a number");
/// assert_eq!(failure.code(), "E0301");
/// # Ok::<(), flowstone_lang::Failure>(())
/// ```
pub struct Session {
    world: Rc<World>,
}

impl Session {
    /// Returns a session with `clojure.core` and the other libraries; the current namespace is `user`.
    pub fn new() -> Session {
        let session = Session {
            world: Rc::new(World::new()),
        };
        crate::core::install(&session.world);
        crate::compiler::macros::install(&session.world);
        session
            .world
            .loader
            .replace(Some(Rc::new(loader::SessionLoader::default())));
        session
    }

    /// Returns the namespaces and texts of this session.
    pub fn world(&self) -> &Rc<World> {
        &self.world
    }

    /// Evaluates every form of a text and returns the last value. Code can compute, but has no other abilities; there
    /// are no limits. Lazy sequences in the value are computed when they are read with a machine: see [`Session::show`]
    /// and `evaluate_as` of the crate `flowstone-embed`.
    ///
    /// # Errors
    /// The exception that was thrown, or an error in the text.
    pub fn evaluate(&self, text: &str) -> Result<Value, Failure> {
        self.evaluate_in(Sandbox::new(), "<text>", text)
    }

    /// Evaluates every form of a text against `host` and returns the last value. `name` identifies the text in errors.
    /// The text may change the current namespace, which is not restored.
    ///
    /// # Errors
    /// The exception that was thrown, an error in the text, or the host's stop.
    pub fn evaluate_in(
        &self,
        host: impl Host + 'static,
        name: &str,
        text: &str,
    ) -> Result<Value, Failure> {
        let mut vm = self.vm(Box::new(host));
        self.eval_text(&mut vm, name, text)
            .map_err(|signal| self.explain(signal))
    }

    /// Calls the function named `name`: a qualified name, or one of the current namespace.
    ///
    /// # Errors
    /// The exception that it throws, or that the name is not defined.
    pub fn call(
        &self,
        host: impl Host + 'static,
        name: &str,
        args: &[Value],
    ) -> Result<Value, Failure> {
        let mut vm = self.vm(Box::new(host));
        self.find(&mut vm, name)
            .and_then(|var| vm.var_value(&var))
            .and_then(|function| vm.call(&function, args))
            .map_err(|signal| self.explain(signal))
    }

    /// Returns the var of a name in the current namespace or the library.
    fn find(&self, vm: &mut Vm, name: &str) -> Result<Rc<Var>> {
        let symbol = Symbol::new(name);
        if let Some(var) = self.world.resolve(symbol) {
            return Ok(var);
        }
        let home = symbol.namespace();
        let home = Symbol::new(home.as_deref().unwrap_or("clojure.core"));
        let plain = Symbol::new(&symbol.name());
        if self.world.loader().load_definition(vm, home, plain)?
            && let Some(var) = self.world.namespace(home).lookup(plain)
        {
            return Ok(var);
        }
        Err(Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0372",
            format!("there is no `{name}` to call"),
        )
        .into())
    }

    /// Returns a value as `pr-str` prints it, computing lazy sequences in it. If that throws, the exception is shown in
    /// place of the value.
    pub fn show(&self, value: &Value) -> String {
        let mut vm = self.vm(Box::new(Sandbox::new()));
        vm.print(value, PrintOptions::READABLE)
            .unwrap_or_else(|signal| self.explain(signal).to_string())
    }

    /// Returns the printing options of a prompt, from `*print-length*` and similar vars.
    pub fn print_options(&self, vm: &mut Vm) -> PrintOptions {
        crate::core::print_options(vm, true)
    }

    /// Releases all definitions and ends the use of this session. Dropping a session does the same; this is for a
    /// session that one of its own functions holds.
    pub fn close(&self) {
        self.world.close();
    }

    /// Describes the signal that stopped an evaluation, with the places of this session's texts.
    pub fn explain(&self, signal: Signal) -> Failure {
        Failure::new(&self.world.sources.borrow(), signal)
    }

    /// Adds natives to a namespace; creates it if necessary.
    pub fn register(&self, namespace: &str, natives: &'static [Native]) -> Rc<Namespace> {
        self.world.register(namespace, natives)
    }

    /// Returns a machine that runs code of this session against `host`.
    pub fn vm(&self, host: Box<dyn Host>) -> Vm {
        Vm::new(self.world.clone(), host)
    }

    /// Makes reader conditionals choose branches of additional features, such as `clj`, if they precede those of
    /// `:flowstone` and `:default`.
    pub fn set_features(&self, features: impl IntoIterator<Item = String>) {
        self.world.features.replace(features.into_iter().collect());
    }

    /// Reports classes and methods of the host that do not exist only when they are reached, and not when the form that
    /// names them is compiled, as needed by programs that use only a part of a library. Files loaded by `require` are
    /// always compiled in this way.
    pub fn defer_host_names(&self) {
        self.world.set_defers_host_names(true);
    }

    /// Reads every form of a text. The text is kept, so that errors can show it.
    ///
    /// # Errors
    /// A reader exception with its place.
    pub fn read(&self, name: &str, text: &str) -> Result<Vec<Value>> {
        let source = self.world.sources.borrow_mut().add(name, text);
        let features = self.world.features.borrow().clone();
        let features = with_own(&features);
        let options = ReadOptions {
            features: &features,
            ..ReadOptions::code(source)
        };
        let mut reader = Reader::new(text, options);
        let mut cx = WorldContext::new(&self.world);
        let mut forms = Vec::new();
        while let Some(form) = reader
            .next(&mut cx)
            .map_err(|error| error.into_exception())?
        {
            forms.push(form);
        }
        Ok(forms)
    }

    /// Compiles and runs a form in the current namespace.
    ///
    /// # Errors
    /// The exception that it throws, or an error in the form.
    pub fn eval(&self, vm: &mut Vm, form: &Value) -> Result<Value> {
        self.world.loader().eval(vm, form)
    }

    /// Reads and runs every form of a text, each before the next is read; returns the last value.
    ///
    /// # Errors
    /// The exception that it throws, or an error in the text.
    pub fn eval_text(&self, vm: &mut Vm, name: &str, text: &str) -> Result<Value> {
        self.world.loader().load_text(vm, name, text)
    }
}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}

/// Returns the features of a program together with others.
fn with_own(others: &[String]) -> Vec<&str> {
    let own = ReadOptions::code(crate::value::SourceId(0)).features;
    own.iter()
        .copied()
        .chain(others.iter().map(String::as_str))
        .collect()
}
