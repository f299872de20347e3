//! Namespaces and the vars in them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use super::{FixedState, Keyword, Map, PMap, Symbol, Value, cycles, deferred};
use crate::vm::code::{Entry, NO_ENTRY};

/// A named, replaceable root value. Every global reference goes through a var.
pub struct Var {
    /// The namespace of the var.
    pub namespace: Symbol,
    /// The name of the var within its namespace.
    pub name: Symbol,
    /// `None` while unbound.
    root: RefCell<Option<Value>>,
    meta: RefCell<Value>,
    /// Functions called after each change of the root, by their keys.
    pub watches: RefCell<PMap>,
    /// A predicate that each new root must satisfy, or nil.
    pub validator: RefCell<Value>,
    is_dynamic: Cell<bool>,
    /// The entry point of calls through the var, if the root is bytecode and no binding can replace it.
    entry: Cell<Entry>,
    /// Whether its value is a macro.
    pub is_macro: Cell<bool>,
    /// Whether other namespaces must not use it.
    pub is_private: Cell<bool>,
    /// Whether the var is in the mappings of its namespace.
    pub(super) is_interned: Cell<bool>,
}

impl Var {
    /// Returns a var without a value.
    pub fn new(namespace: Symbol, name: Symbol) -> Var {
        Var {
            namespace,
            name,
            root: RefCell::new(None),
            meta: RefCell::new(Value::Nil),
            watches: RefCell::default(),
            validator: RefCell::new(Value::Nil),
            is_dynamic: Cell::new(false),
            entry: Cell::new(NO_ENTRY),
            is_macro: Cell::new(false),
            is_private: Cell::new(false),
            is_interned: Cell::new(false),
        }
    }

    /// Returns the root value; `None` while unbound. Thread bindings belong to the VM.
    pub fn root(&self) -> Option<Value> {
        self.root.borrow().clone()
    }

    /// Returns the entry point of a call of the root with its usual number of arguments.
    #[inline(always)]
    pub(crate) fn entry(&self) -> Entry {
        self.entry.get()
    }

    /// Tells whether the root is bytecode and no binding can replace it.
    pub(crate) fn is_plain_function(&self) -> bool {
        // `try_borrow` fails only while the root is being replaced, during which no code runs.
        let is_function = self
            .root
            .try_borrow()
            .is_ok_and(|root| matches!(&*root, Some(Value::Fn(_))));
        is_function && !self.is_dynamic.get()
    }

    /// Returns where the root is, for a call that does not count a reference to it: the value stays alive
    /// while a machine of this thread runs, as `set_root` defers its drop. Only for plain functions.
    #[inline(always)]
    pub(crate) fn root_slot(&self) -> *const Value {
        debug_assert!(self.is_plain_function(), "a frame borrows the root");
        self.root.as_ptr().cast()
    }

    /// Tells whether `binding` may rebind the var.
    pub fn is_dynamic(&self) -> bool {
        self.is_dynamic.get()
    }

    /// Sets whether `binding` may rebind the var.
    pub fn set_dynamic(&self, is_dynamic: bool) {
        self.is_dynamic.set(is_dynamic);
        self.find_entry();
    }

    fn find_entry(&self) {
        let entry = match &*self.root.borrow() {
            Some(Value::Fn(closure)) if !self.is_dynamic.get() => closure.proto.entry(),
            _ => NO_ENTRY,
        };
        self.entry.set(entry);
    }

    /// Tells whether there is a root value.
    pub fn is_bound(&self) -> bool {
        self.root.borrow().is_some()
    }

    /// Replaces the root value.
    pub fn set_root(&self, value: Value) {
        let old = self.root.replace(Some(value));
        self.find_entry();
        if let Some(old) = old {
            deferred::defer(old);
        }
    }

    /// Removes the root value, as `declare` does.
    pub fn clear_root(&self) {
        let old = self.root.replace(None);
        self.find_entry();
        if let Some(old) = old {
            deferred::defer(old);
        }
    }

    /// Returns the metadata map, or nil.
    pub fn meta(&self) -> Value {
        self.meta.borrow().clone()
    }

    /// Sets the metadata; `:dynamic`, `:macro` and `:private` become the flags.
    pub fn set_meta(&self, meta: Value) {
        let flag = |name: &str| meta.get(name).is_some_and(Value::is_truthy);
        self.set_dynamic(flag("dynamic"));
        self.is_macro.set(flag("macro"));
        self.is_private.set(flag("private"));
        self.meta.replace(meta);
    }

    /// Returns one entry of the metadata.
    pub fn meta_entry(&self, key: &str) -> Option<Value> {
        self.meta
            .borrow()
            .as_map()
            .and_then(|meta| meta.get(&Value::Keyword(Keyword::new(key))).cloned())
    }

    pub(super) fn visit_values(&self, see: &mut dyn FnMut(&Value)) {
        if let Ok(Some(root)) = self.root.try_borrow().as_deref() {
            see(root);
        }
        if let Ok(meta) = self.meta.try_borrow() {
            see(&meta);
        }
        if let Ok(watches) = self.watches.try_borrow() {
            cycles::entries_in(&watches, see);
        }
    }

    /// Takes the value and the metadata.
    pub(super) fn empty(&self, spoils: &mut Vec<Value>) {
        spoils.extend(self.root.take());
        self.entry.set(NO_ENTRY);
        spoils.push(self.meta.replace(Value::Nil));
        spoils.push(Value::Map(Rc::new(Map::new(self.watches.take()))));
    }

    /// Marks the var as not interned in any namespace.
    fn lose(self: &Rc<Self>) {
        if self.is_interned.replace(false) {
            cycles::track(&Value::Var(self.clone()));
        }
    }

    /// Returns `namespace/name`.
    pub fn qualified(&self) -> Symbol {
        Symbol::with_namespace(Some(&self.namespace.to_string()), &self.name.name())
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#'{}/{}", self.namespace, self.name)
    }
}

/// The names of `clojure.core` that a namespace sees.
#[derive(Clone, Default)]
pub enum CoreNames {
    /// All names.
    #[default]
    All,
    /// All names except these.
    Except(Vec<Symbol>),
    /// Only these.
    Only(Vec<Symbol>),
}

/// A table of names.
pub struct Namespace {
    /// The name of the namespace.
    pub name: Symbol,
    /// The vars that plain symbols refer to in this namespace: its own and referred ones.
    mappings: RefCell<HashMap<Symbol, Rc<Var>, FixedState>>,
    aliases: RefCell<HashMap<Symbol, Symbol, FixedState>>,
    /// The names of `clojure.core` that it sees without a mapping.
    core: RefCell<CoreNames>,
    /// Default aliases, which apply unless an alias of the same name is added.
    usual_aliases: Cell<&'static [(&'static str, &'static str)]>,
    meta: RefCell<Value>,
}

impl Namespace {
    /// Returns an empty namespace.
    pub fn new(name: Symbol) -> Namespace {
        Namespace {
            name,
            mappings: RefCell::default(),
            aliases: RefCell::default(),
            core: RefCell::default(),
            usual_aliases: Cell::new(&[]),
            meta: RefCell::new(Value::Nil),
        }
    }

    /// Tells whether a plain symbol without a mapping here may refer to a name of `clojure.core`.
    pub fn sees_core(&self, name: Symbol) -> bool {
        match &*self.core.borrow() {
            CoreNames::All => true,
            CoreNames::Except(hidden) => !hidden.contains(&name),
            CoreNames::Only(seen) => seen.contains(&name),
        }
    }

    /// Sets which names of `clojure.core` are visible.
    pub fn see_core(&self, names: CoreNames) {
        *self.core.borrow_mut() = names;
    }

    /// Hides one more name of `clojure.core`.
    pub fn hide_core(&self, name: Symbol) {
        match &mut *self.core.borrow_mut() {
            CoreNames::Except(hidden) => hidden.push(name),
            CoreNames::Only(seen) => seen.retain(|other| *other != name),
            all @ CoreNames::All => *all = CoreNames::Except(vec![name]),
        }
    }

    /// Returns the var that a plain symbol refers to here, without `clojure.core`.
    pub fn lookup(&self, name: Symbol) -> Option<Rc<Var>> {
        self.mappings.borrow().get(&name).cloned()
    }

    /// Returns the var of this namespace with that name; creates it if necessary.
    pub fn intern(&self, name: Symbol) -> Rc<Var> {
        let mut mappings = self.mappings.borrow_mut();
        match mappings.get(&name) {
            Some(var) if var.namespace == self.name => var.clone(),
            _ => {
                let var = Rc::new(Var::new(self.name, name));
                var.is_interned.set(true);
                mappings.insert(name, var.clone());
                var
            }
        }
    }

    /// Maps a plain symbol to a var of another namespace.
    pub fn refer(&self, name: Symbol, var: Rc<Var>) {
        let before = self.mappings.borrow_mut().insert(name, var);
        self.forget(before);
    }

    /// Removes a mapping.
    pub fn unmap(&self, name: Symbol) {
        let before = self.mappings.borrow_mut().remove(&name);
        self.forget(before);
    }

    fn forget(&self, var: Option<Rc<Var>>) {
        if let Some(var) = var.filter(|var| var.namespace == self.name) {
            var.lose();
        }
    }

    /// Takes every value and all metadata away when a session ends, because its functions and vars refer to each other.
    pub(crate) fn close(&self) {
        let mut spoils = vec![self.meta.replace(Value::Nil)];
        let mappings = self.mappings.take();
        for var in mappings.values().filter(|var| var.namespace == self.name) {
            var.is_interned.set(false);
            var.empty(&mut spoils);
        }
    }

    /// Returns all mappings, by name.
    pub fn mappings(&self) -> Vec<(Symbol, Rc<Var>)> {
        let mut all: Vec<_> = self
            .mappings
            .borrow()
            .iter()
            .map(|(name, var)| (*name, var.clone()))
            .collect();
        all.sort_by_key(|mapping| mapping.0.name());
        all
    }

    /// Adds an alias of a namespace.
    pub fn add_alias(&self, alias: Symbol, namespace: Symbol) {
        self.aliases.borrow_mut().insert(alias, namespace);
    }

    /// Returns the namespace of an alias.
    pub fn alias(&self, alias: Symbol) -> Option<Symbol> {
        let own = self.aliases.borrow().get(&alias).copied();
        own.or_else(|| {
            let usual = self.usual_aliases.get().iter();
            let mut named = usual.filter(|(name, _)| alias.is(name));
            named.next().map(|(_, namespace)| Symbol::new(namespace))
        })
    }

    /// Sets default aliases, which apply unless an alias of the same name is added.
    pub fn set_usual_aliases(&self, aliases: &'static [(&'static str, &'static str)]) {
        self.usual_aliases.set(aliases);
    }

    /// Removes an alias.
    pub fn remove_alias(&self, alias: Symbol) {
        self.aliases.borrow_mut().remove(&alias);
    }

    /// Returns all aliases, by name.
    pub fn aliases(&self) -> Vec<(Symbol, Symbol)> {
        let mut all: Vec<_> = self
            .aliases
            .borrow()
            .iter()
            .map(|(alias, name)| (*alias, *name))
            .collect();
        all.sort_by_key(|alias| alias.0.name());
        all
    }

    /// Returns the metadata map, or nil.
    pub fn meta(&self) -> Value {
        self.meta.borrow().clone()
    }

    /// Replaces the metadata.
    pub fn set_meta(&self, meta: Value) {
        self.meta.replace(meta);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for var in self.mappings.take().into_values() {
            self.forget(Some(var));
        }
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#namespace[{}]", self.name)
    }
}
