//! State shared by the functions of one session: namespaces, texts, and access to the compiler.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::{Coverage, Vm};
use crate::value::drops::after_deferred;
use crate::value::meter;
use crate::value::{
    Conditionals, FixedState, Namespace, Native, Object, Origin, PrintOptions, RecordType, Result,
    Sources, Span, Symbol, Value, Var, collect_few,
};

/// Services of the layers above the VM, with which it evaluates forms and finds library code.
pub trait Loader {
    /// Compiles and runs a form in the current namespace.
    fn eval(&self, vm: &mut Vm, form: &Value) -> Result<Value>;

    /// Loads the library's definition of a name; returns whether there is one.
    fn load_definition(&self, vm: &mut Vm, namespace: Symbol, name: Symbol) -> Result<bool>;

    /// Expands a macro call once; returns other forms unchanged.
    fn macroexpand_1(&self, vm: &mut Vm, form: &Value) -> Result<Value>;

    /// Reads the first form of a text, and how many bytes of it were read; `None` if the text has no form.
    fn read(
        &self,
        vm: &mut Vm,
        name: &str,
        text: &str,
        how: &ReadHow,
    ) -> Result<Option<(Value, usize)>>;

    /// Returns the text that a program's printing method writes for a value; `None` if there is no such method.
    fn printed(&self, vm: &mut Vm, value: &Value, options: PrintOptions) -> Result<Option<String>>;

    /// Reads and runs every form of a text; returns the value of the last.
    fn load_text(&self, vm: &mut Vm, name: &str, text: &str) -> Result<Value>;
}

/// The options of `read`.
#[derive(Debug, Default)]
pub struct ReadHow {
    /// How to treat reader conditionals.
    pub conditionals: Conditionals,
    /// Features in addition to those of every program.
    pub features: Vec<String>,
}

/// The globals of a session. Several VMs of one thread may share it.
pub struct World {
    /// All namespaces by name.
    pub namespaces: RefCell<HashMap<Symbol, Rc<Namespace>, FixedState>>,
    /// The current value of `*ns*`.
    pub current: RefCell<Rc<Namespace>>,
    /// `clojure.core`.
    pub core: Rc<Namespace>,
    /// `*ns*`, whose value is [`World::current`].
    pub ns_var: Rc<Var>,
    /// The texts that errors refer to.
    pub sources: RefCell<Sources>,
    /// The loader, which reads and compiles; set by the session.
    pub loader: RefCell<Option<Rc<dyn Loader>>>,
    /// The last number that `gensym` used.
    pub gensym: Cell<u64>,
    /// Features that reader conditionals choose besides `:flowstone` and `:default`; without colon.
    pub features: RefCell<Vec<String>>,
    /// Natives whose vars have other roots although calls are linked to them, with those vars.
    replaced: RefCell<Vec<(&'static Native, Rc<Var>)>>,
    /// Whether `replaced` has any entries.
    pub(crate) has_replaced: Cell<bool>,
    /// Whether the program has printing methods of its own.
    pub print_extended: Cell<bool>,
    /// Where the program was stopped; taken by the report of the stop.
    pub stopped: RefCell<Option<Origin>>,
    /// The names of the methods of the program's and the library's types, with their dot: `.area`.
    methods: RefCell<std::collections::HashSet<Symbol>>,
    /// Whether classes and methods that do not exist are reported only when they are reached.
    defers_host_names: Cell<bool>,
    /// The host classes that programs name but that have no instances here, by their full names.
    foreign: RefCell<HashMap<Symbol, Rc<Var>, FixedState>>,
    /// Namespaces whose source was run, in that order.
    loaded: RefCell<Vec<Symbol>>,
    /// Namespaces whose source is being run.
    loading: RefCell<Vec<Symbol>>,
    /// The number of library definitions being loaded, each required by the one before it.
    library: Cell<u32>,
    /// The number of changes that programs made to state shared by all evaluations of the session.
    generation: Cell<u64>,
    /// Records which branches are taken, if that is measured.
    coverage: RefCell<Option<Rc<Coverage>>>,
}

impl World {
    /// Replaces the root of a var. Calls of a native are compiled to the native itself; if the root of its var is
    /// another value, as in `with-redefs`, the native is marked as replaced.
    pub fn set_root(&self, var: &Rc<Var>, value: Value) {
        let is_of = |native: &'static Native, of: &(&'static Native, Rc<Var>)| {
            std::ptr::eq(of.0, native) && Rc::ptr_eq(&of.1, var)
        };
        let mut replaced = self.replaced.borrow_mut();
        if let Value::Native(native) = &value {
            replaced.retain(|of| !is_of(native, of));
        }
        if let Some(Value::Native(native)) = var.root()
            && !matches!(&value, Value::Native(new) if std::ptr::eq(*new, native))
        {
            replaced.push((native, Rc::clone(var)));
        }
        let has_replaced = !replaced.is_empty();
        self.has_replaced.set(has_replaced);
        if has_replaced {
            meter::note_replaced();
        }
        drop(replaced);
        var.set_root(value);
    }

    /// Returns the current value of a native's var, if that is not the native.
    pub(crate) fn replacement(&self, native: &'static Native) -> Option<Value> {
        let replaced = self.replaced.borrow();
        let of = replaced.iter().find(|of| std::ptr::eq(of.0, native))?;
        of.1.root()
    }

    /// Returns a world with an empty `clojure.core` and `user`.
    pub fn new() -> World {
        let core = Rc::new(Namespace::new(Symbol::new("clojure.core")));
        let user = Rc::new(Namespace::new(Symbol::new("user")));
        let namespaces = [core.clone(), user.clone()].map(|namespace| (namespace.name, namespace));
        let methods = crate::library::METHODS.iter();
        let methods = methods.map(|name| Symbol::new(&format!(".{name}")));
        World {
            namespaces: RefCell::new(namespaces.into_iter().collect()),
            current: RefCell::new(user),
            ns_var: ns_var(&core),
            core,
            sources: RefCell::default(),
            loader: RefCell::default(),
            gensym: Cell::new(0),
            replaced: RefCell::default(),
            has_replaced: Cell::new(false),
            features: RefCell::default(),
            print_extended: Cell::new(false),
            stopped: RefCell::default(),
            methods: RefCell::new(methods.collect()),
            defers_host_names: Cell::new(false),
            foreign: RefCell::default(),
            loaded: RefCell::default(),
            loading: RefCell::default(),
            library: Cell::new(0),
            generation: Cell::new(0),
            coverage: RefCell::default(),
        }
    }

    /// Compiles from now on so that it is recorded which branches are taken.
    pub fn measure(&self, coverage: Rc<Coverage>) {
        *self.coverage.borrow_mut() = Some(coverage);
    }

    /// Tells whether it is recorded which branches are taken.
    pub(crate) fn is_measured(&self) -> bool {
        self.coverage.borrow().is_some()
    }

    /// Returns the number of a new branch at a place, if branches are measured and the place is in the program's own text.
    pub(crate) fn branch(&self, span: Span, label: &str) -> Option<usize> {
        let coverage = self.coverage.borrow();
        let sources = self.sources.borrow();
        let is_own = span.is_some() && !sources.is_library(span.source);
        coverage
            .as_ref()
            .filter(|_| is_own)?
            .add(&sources, span, label)
    }

    /// Records that a branch is taken.
    pub(crate) fn take_branch(&self, number: usize) {
        if let Some(coverage) = &*self.coverage.borrow() {
            coverage.take(number);
        }
    }

    /// Records that a type of the program has a method.
    pub(crate) fn add_method(&self, name: &str) {
        let mut methods = self.methods.borrow_mut();
        methods.insert(Symbol::new(&format!(".{name}")));
    }

    /// Tells whether a type of the program has a method of this name.
    pub(crate) fn is_method(&self, symbol: Symbol) -> bool {
        self.methods.borrow().contains(&symbol)
    }

    /// Tells whether classes and methods that do not exist are reported only when they are reached.
    pub(crate) fn defers_host_names(&self) -> bool {
        self.defers_host_names.get()
    }

    /// Sets whether classes and methods that do not exist are reported only when they are reached, as needed by a
    /// program that uses only a part of a library; returns the previous setting.
    pub(crate) fn set_defers_host_names(&self, defers: bool) -> bool {
        self.defers_host_names.replace(defers)
    }

    /// Returns the var of a host class that does not exist here: a class without instances.
    pub(crate) fn foreign_class(&self, full_name: Symbol) -> Rc<Var> {
        let mut foreign = self.foreign.borrow_mut();
        let new = || {
            let text = full_name.to_string();
            let (package, short) = text.rsplit_once('.').unwrap_or(("", &text));
            let var = Var::new(Symbol::new(package), Symbol::new(short));
            let class = RecordType::new(full_name, Box::default(), Box::default());
            var.set_root(Value::from(Object::RecordType(Rc::new(class))));
            Rc::new(var)
        };
        foreign.entry(full_name).or_insert_with(new).clone()
    }

    /// Finds the var of a type or protocol by the name of its class: `my_app.core.Point`.
    pub(crate) fn class_var(&self, name: &str) -> Option<Rc<Var>> {
        if let Some(foreign) = self.foreign.borrow().get(&Symbol::new(name)) {
            return Some(foreign.clone());
        }
        let (namespace, name) = name.rsplit_once('.')?;
        let namespace = self
            .find_namespace(Symbol::new(namespace))
            .or_else(|| self.find_namespace(Symbol::new(&namespace.replace('_', "-"))))?;
        namespace.lookup(Symbol::new(name))
    }

    /// Sets the current namespace, and returns the previous one.
    pub fn set_current(&self, namespace: Rc<Namespace>) -> Rc<Namespace> {
        self.current.replace(namespace)
    }

    /// Returns a namespace, if it exists.
    pub fn find_namespace(&self, name: Symbol) -> Option<Rc<Namespace>> {
        self.namespaces.borrow().get(&name).cloned()
    }

    /// Adds natives to a namespace; creates it if necessary.
    pub fn register(&self, namespace: &str, natives: &'static [Native]) -> Rc<Namespace> {
        let namespace = self.namespace(Symbol::new(namespace));
        for native in natives {
            namespace
                .intern(Symbol::new(native.name))
                .set_root(Value::Native(native));
        }
        namespace
    }

    /// Returns a namespace; creates it if necessary.
    pub fn namespace(&self, name: Symbol) -> Rc<Namespace> {
        self.namespaces
            .borrow_mut()
            .entry(name)
            .or_insert_with(|| Rc::new(Namespace::new(name)))
            .clone()
    }

    /// Returns the var of a symbol in the current namespace, if it is defined already.
    pub fn resolve(&self, symbol: Symbol) -> Option<Rc<Var>> {
        let current = self.current.borrow().clone();
        self.resolve_in(&current, symbol)
    }

    /// Returns the var of a symbol in a namespace, if it is defined already.
    pub fn resolve_in(&self, namespace: &Namespace, symbol: Symbol) -> Option<Rc<Var>> {
        match symbol.namespace() {
            None => namespace.lookup(symbol).or_else(|| {
                self.core
                    .lookup(symbol)
                    .filter(|_| namespace.sees_core(symbol))
            }),
            Some(prefix) => {
                let prefix = Symbol::new(&prefix);
                let target = namespace.alias(prefix).unwrap_or(prefix);
                self.find_namespace(target)?
                    .lookup(Symbol::new(&symbol.name()))
            }
        }
    }

    /// Returns the var of the type or protocol with a class name such as `my_app.shapes.Circle`.
    pub fn type_of_class_name(&self, symbol: Symbol) -> Option<Rc<Var>> {
        if symbol.namespace().is_some() {
            return None;
        }
        let name = symbol.name();
        let (package, short) = name.rsplit_once('.')?;
        let home = self.find_namespace(Symbol::new(&package.replace('_', "-")))?;
        let var = home.lookup(Symbol::new(short))?;
        let is_type = var.root().is_some_and(|root| match &root {
            Value::Object(object) => matches!(**object, Object::RecordType(_)),
            root => root.get("impls").is_some(),
        });
        is_type.then_some(var)
    }

    /// Returns a number that was not returned before.
    pub fn next_id(&self) -> u64 {
        self.gensym.set(self.gensym.get() + 1);
        self.gensym.get()
    }

    /// Returns the namespaces whose source is being run, outermost first.
    pub fn loading(&self) -> Vec<Symbol> {
        self.loading.borrow().clone()
    }

    /// Tells whether the source of a namespace was run.
    pub fn is_loaded(&self, name: Symbol) -> bool {
        self.loaded.borrow().contains(&name)
    }

    /// Records that the source of a namespace was run.
    pub fn set_loaded(&self, name: Symbol) {
        if !self.is_loaded(name) {
            self.loaded.borrow_mut().push(name);
        }
    }

    /// Makes the next `require` of a namespace load it again.
    pub fn forget_library(&self, name: Symbol) {
        self.loaded.borrow_mut().retain(|loaded| *loaded != name);
    }

    /// Returns the namespaces whose source was run.
    pub fn loaded_libraries(&self) -> Vec<Symbol> {
        self.loaded.borrow().clone()
    }

    pub(crate) fn begin_library(&self) {
        self.library.set(self.library.get() + 1);
    }

    pub(crate) fn end_library(&self) {
        self.library.set(self.library.get() - 1);
    }

    /// Tells whether a definition of the library is being loaded. Nothing else of this world is evaluated meanwhile.
    pub(crate) fn is_library_loading(&self) -> bool {
        self.library.get() > 0
    }

    /// Returns how often programs changed state shared by all evaluations of the session, or queried which part of the
    /// library is loaded. Loading the library does not count: it happens at the first use, and programs cannot observe
    /// it.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    pub(super) fn raise_generation(&self) {
        self.generation.set(self.generation.get() + 1);
    }

    /// Records that the source of a namespace is about to run; returns false if it is running already.
    pub fn begin_loading(&self, name: Symbol) -> bool {
        let mut loading = self.loading.borrow_mut();
        if loading.contains(&name) {
            return false;
        }
        loading.push(name);
        true
    }

    /// Records that the source of a namespace no longer runs.
    pub fn end_loading(&self, name: Symbol) {
        self.loading.borrow_mut().retain(|loading| *loading != name);
    }

    /// Returns the loader.
    ///
    /// # Panics
    /// When the session did not set one, which is a bug of the session.
    pub fn loader(&self) -> Rc<dyn Loader> {
        self.loader
            .borrow()
            .clone()
            .expect("a session sets the loader of its world")
    }
}

impl World {
    /// Releases all definitions.
    pub fn close(&self) {
        let namespaces = self.namespaces.take();
        // Values that are freed later may refer to these definitions, so cycles are collected after they are gone.
        after_deferred(move || {
            for namespace in namespaces.values() {
                namespace.close();
            }
            drop(namespaces);
            collect_few();
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.close();
    }
}

/// The root only makes the var bound; its value is read from the current namespace.
fn ns_var(core: &Rc<Namespace>) -> Rc<Var> {
    let var = core.intern(Symbol::new("*ns*"));
    var.set_meta(Value::map([(Value::keyword("dynamic"), Value::Bool(true))]));
    var.set_root(Value::from(Object::Namespace(core.clone())));
    var
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}
