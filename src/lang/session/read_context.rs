//! Answers the reader's questions from a world: namespaces, aliases, data readers.

use crate::library;
use crate::reader::{ReadContext, Reader};
use crate::value::{Class, Result, Signal, Symbol, Value};
use crate::vm::{Vm, World};

/// Tells whether a tag is the full name of a type.
fn is_type(tag: Symbol) -> bool {
    tag.namespace().is_none() && tag.name().contains('.')
}

const CORE: &str = "clojure.core";

/// Names that mean the same in every namespace.
const SPECIAL_FORMS: &[&str] = &[
    "&", ".", "case*", "catch", "def", "deftype*", "do", "finally", "fn*", "if", "let*", "letfn*",
    "loop*", "new", "quote", "recur", "set!", "throw", "try", "var",
];

/// Reads in the current namespace of a world. With a VM it also runs the functions of `*data-readers*`.
pub struct WorldContext<'a> {
    world: &'a World,
    vm: Option<&'a mut Vm>,
    failed: Option<Signal>,
}

impl<'a> WorldContext<'a> {
    /// Reads without running any function: tags have only their built-in meaning.
    pub fn new(world: &'a World) -> WorldContext<'a> {
        WorldContext {
            world,
            vm: None,
            failed: None,
        }
    }

    /// Reads with a machine that runs data readers.
    pub fn with_vm(world: &'a World, vm: &'a mut Vm) -> WorldContext<'a> {
        WorldContext {
            world,
            vm: Some(vm),
            failed: None,
        }
    }

    fn plain_symbol(&self, symbol: Symbol) -> Symbol {
        let name = symbol.name();
        if SPECIAL_FORMS.contains(&&*name) {
            return symbol;
        }
        if let Some(var) = self.world.resolve(symbol) {
            return var.qualified();
        }
        if name.find('.').is_some_and(|at| at > 0) {
            return symbol;
        }
        if let Some(class) = Class::THROWABLES
            .iter()
            .find(|class| class.0.name == &*name)
        {
            return Symbol::new(class.0.full_name);
        }
        if name.starts_with(char::is_uppercase) {
            // Class names mean the same in every namespace.
            if let Some(class) = Class::named(&name) {
                return Symbol::new(class.0.full_name);
            }
            if self.world.find_namespace(symbol).is_some()
                || crate::compiler::is_known_everywhere(&name)
            {
                return symbol;
            }
        }
        // A definition of the library is compiled when it is first used, so it may not be a var yet.
        let home = self.world.current.borrow().clone();
        let current = home.name.to_string();
        let in_core = !library::defines(&current, &name)
            && library::defines(CORE, &name)
            && home.sees_core(symbol);
        let namespace = if in_core { CORE } else { &current };
        Symbol::with_namespace(Some(namespace), &name)
    }

    /// Returns the constructor call of `#my.ns.Point{...}` or `#my.ns.Point[...]`, if the type has a constructor.
    fn constructor(&self, tag: Symbol, form: &Value) -> Option<Value> {
        let name = match form {
            Value::Map(_) => "create",
            Value::Vector(_) => "new",
            _ => return None,
        };
        if !is_type(tag) {
            return None;
        }
        let full = tag.to_string();
        let (home, own) = full.rsplit_once('.')?;
        let dashed = format!("{}.{own}", home.replace('_', "-"));
        let namespace = self.world.find_namespace(Symbol::new(&dashed))?;
        namespace.lookup(Symbol::new(name))?.root()
    }

    /// Returns the value of a var of `clojure.core`, if it is defined.
    fn core_value(&mut self, name: &str) -> Option<Value> {
        let var = self.world.core.lookup(Symbol::new(name))?;
        match &mut self.vm {
            Some(vm) => vm.var_value(&var).ok(),
            None => var.root(),
        }
    }
}

/// Reads the next form in the current namespace of the VM's world.
///
/// # Errors
/// A reader exception with its place, or any exception that a data reader throws.
pub fn read_next(vm: &mut Vm, reader: &mut Reader<'_>) -> Result<Option<Value>> {
    let world = vm.world().clone();
    let mut cx = WorldContext::with_vm(&world, vm);
    let read = reader.next(&mut cx);
    match cx.failed.take() {
        Some(signal) => Err(signal),
        None => read.map_err(|error| error.into_exception().into()),
    }
}

impl ReadContext for WorldContext<'_> {
    fn resolve_alias(&self, alias: &str) -> Option<String> {
        let name = Symbol::new(alias);
        let current = self.world.current.borrow().clone();
        let target = current
            .alias(name)
            .or_else(|| self.world.find_namespace(name).map(|found| found.name))?;
        Some(target.to_string())
    }

    fn current_namespace(&self) -> String {
        self.world.current.borrow().name.to_string()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        match symbol.namespace() {
            None => self.plain_symbol(symbol),
            Some(prefix) => {
                let alias = self.world.current.borrow().alias(Symbol::new(&prefix));
                alias.map_or(symbol, |target| {
                    Symbol::with_namespace(Some(&target.to_string()), &symbol.name())
                })
            }
        }
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        Symbol::new(&format!("{prefix}{}", self.world.next_id()))
    }

    fn read_tag(&mut self, tag: Symbol, form: Value) -> Option<Result<Value, String>> {
        let readers = self.core_value("*data-readers*");
        let reader = readers
            .as_ref()
            .and_then(Value::as_map)
            .and_then(|readers| readers.get(&Value::Symbol(tag)).cloned());
        let is_builtin = tag.is("inst") || tag.is("uuid");
        let (function, args) = match reader.or_else(|| self.constructor(tag, &form)) {
            Some(reader) => match &form {
                Value::Vector(items) if is_type(tag) => (reader, items.iter().cloned().collect()),
                _ => (reader, vec![form]),
            },
            None if is_builtin => return None,
            None => match self.core_value("*default-data-reader-fn*") {
                Some(default) if default.is_truthy() => (default, vec![tag.into(), form]),
                _ => return None,
            },
        };
        let vm = self.vm.as_deref_mut()?;
        Some(vm.call(&function, &args).map_err(|signal| {
            self.failed = Some(signal);
            "its reader failed".to_owned()
        }))
    }
}
