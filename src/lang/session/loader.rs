//! The VM's access to reader, compiler and library.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::read_next;
use crate::compiler;
use crate::library;
use crate::reader::{ReadOptions, Reader};
use crate::value::{FixedState, Namespace, PrintOptions, Result, Symbol, Value};
use crate::vm::{Loader, ReadHow, Vm};

/// The loader of a session.
#[derive(Default)]
pub(super) struct SessionLoader {
    /// Definitions of the library that were loaded, or are being loaded.
    loaded: RefCell<HashSet<Symbol, FixedState>>,
}

/// Returns the forms of a `(do ...)`, which are compiled one after another. A macro may return it as any kind of
/// sequence.
fn do_forms(vm: &mut Vm, form: &Value) -> Result<Option<Vec<Value>>> {
    if !matches!(form, Value::List(_) | Value::Seq(_) | Value::Lazy(_)) {
        return Ok(None);
    }
    match vm.uncons(form.clone())? {
        Some((first, rest)) if first.as_symbol().is_some_and(|symbol| symbol.is("do")) => {
            vm.items(rest).map(Some)
        }
        _ => Ok(None),
    }
}

/// An expanded top-level form.
pub(super) enum Top {
    /// Forms that are compiled one after another, each after those before it were evaluated.
    Forms(Vec<Value>),
    Form(Value),
}

/// Expands a top-level form.
pub(super) fn expand_top(vm: &mut Vm, form: &Value) -> Result<Top> {
    let mut form = form.clone();
    // A top-level macro may return a `do` whose later forms need the definitions of the earlier ones.
    loop {
        if let Some(forms) = do_forms(vm, &form)? {
            return Ok(Top::Forms(forms));
        }
        let expanded = compiler::expand_once(vm, &form)?;
        let is_same = match (&expanded, &form) {
            (Value::List(one), Value::List(other)) => Rc::ptr_eq(one, other),
            _ => true,
        };
        form = expanded;
        if is_same {
            return Ok(Top::Form(form));
        }
    }
}

impl SessionLoader {
    /// Evaluates with another current namespace.
    fn in_namespace<T>(
        vm: &mut Vm,
        namespace: Rc<Namespace>,
        work: impl FnOnce(&mut Vm) -> Result<T>,
    ) -> Result<T> {
        let world = vm.world().clone();
        let before = world.current.replace(namespace);
        let result = work(vm);
        world.current.replace(before);
        result
    }

    fn mark(&self, name: Symbol) -> bool {
        self.loaded.borrow_mut().insert(name)
    }

    /// Evaluates the `ns` forms of a library namespace, once.
    fn prepare(&self, vm: &mut Vm, namespace: Symbol) -> Result<()> {
        if namespace == vm.world().core.name || !self.mark(namespace) {
            return Ok(());
        }
        let prepared = library::sources(&namespace.to_string()).try_for_each(|source| {
            let file = format!("<{}>", source.file);
            vm.isolated(|vm| self.load_text(vm, &file, source.header_text()))
                .map(|_| ())
        });
        if prepared.is_err() {
            self.loaded.borrow_mut().remove(&namespace);
        }
        prepared
    }
}

impl Loader for SessionLoader {
    fn eval(&self, vm: &mut Vm, form: &Value) -> Result<Value> {
        match expand_top(vm, form)? {
            Top::Forms(forms) => {
                let mut last = Value::Nil;
                for form in forms {
                    last = self.eval(vm, &form)?;
                }
                Ok(last)
            }
            Top::Form(form) => {
                let function = compiler::compile(vm, &form)?;
                vm.invoke(&function, &mut [])
            }
        }
    }

    fn load_definition(&self, vm: &mut Vm, namespace: Symbol, name: Symbol) -> Result<bool> {
        let (home_name, definition) = (namespace.to_string(), name.to_string());
        if !library::defines(&home_name, &definition) {
            return Ok(false);
        }
        let home = vm.world().namespace(namespace);
        let mark = Symbol::with_namespace(Some(&home_name), &definition);
        if self.mark(mark) {
            // The var exists from now on, so that functions of the library may refer to each other.
            home.intern(name);
            let world = vm.world().clone();
            world.begin_library();
            let loaded = Self::in_namespace(vm, home, |vm| {
                self.prepare(vm, namespace)?;
                library::forms_of(&home_name, &definition).try_for_each(|form| {
                    let file = format!("<{}>", form.source.file);
                    vm.isolated(|vm| self.load_text(vm, &file, form.text))
                        .map(|_| ())
                })
            });
            world.end_library();
            if loaded.is_err() {
                // Loading was interrupted: the next use loads the definition again.
                self.loaded.borrow_mut().remove(&mark);
            }
            loaded?;
        }
        Ok(true)
    }

    fn macroexpand_1(&self, vm: &mut Vm, form: &Value) -> Result<Value> {
        compiler::macroexpand_1(vm, form)
    }

    fn read(
        &self,
        vm: &mut Vm,
        name: &str,
        text: &str,
        how: &ReadHow,
    ) -> Result<Option<(Value, usize)>> {
        let world = vm.world().clone();
        let source = world.sources.borrow_mut().add(name, text);
        let code = ReadOptions::code(source);
        let session = world.features.borrow().clone();
        let own = how.features.iter().map(String::as_str);
        let features: Vec<&str> = super::with_own(&session).into_iter().chain(own).collect();
        let options = ReadOptions {
            features: &features,
            conditionals: how.conditionals,
            ..code
        };
        let mut reader = Reader::new(text, options);
        let names = world.gensym.get();
        let form = read_next(vm, &mut reader)?;
        if world.gensym.get() != names {
            // The form contains names that the session has not used before.
            vm.touch_session()?;
        }
        Ok(form.map(|form| (form, reader.position() as usize)))
    }

    fn printed(&self, vm: &mut Vm, value: &Value, options: PrintOptions) -> Result<Option<String>> {
        crate::core::printed(vm, value, options)
    }

    fn load_text(&self, vm: &mut Vm, name: &str, text: &str) -> Result<Value> {
        let world = vm.world().clone();
        let source = world.sources.borrow_mut().add(name, text);
        let features = world.features.borrow().clone();
        let features = super::with_own(&features);
        let options = ReadOptions {
            features: &features,
            ..ReadOptions::code(source)
        };
        let _watch = vm.watch();
        if text.contains('`') {
            // A syntax quote generates names that the session has not used before.
            vm.touch_session()?;
        }
        let mut reader = Reader::new(text, options);
        let mut last = Value::Nil;
        loop {
            match read_next(vm, &mut reader)? {
                Some(form) => last = self.eval(vm, &form)?,
                None => return Ok(last),
            }
        }
    }
}
