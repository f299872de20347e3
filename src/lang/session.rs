//! A session: one world of namespaces, and everything needed to read, evaluate and report in it.

mod loader;
mod read_context;

use std::rc::Rc;

use crate::reader::{ReadOptions, Reader};
use crate::value::{Namespace, Native, Result, Symbol, Value};
use crate::vm::{Host, Vm, World};

pub use read_context::{WorldContext, read_next};

/// A world with the core library, and the ways into it.
pub struct Session {
    world: Rc<World>,
}

impl Session {
    /// Returns a session in which `clojure.core` and the other libraries can be used; the current
    /// namespace is `user`.
    pub fn new() -> Session {
        let session = Session {
            world: Rc::new(World::new()),
        };
        crate::core::install(&session);
        crate::compiler::macros::install(&session.world);
        session
            .world
            .loader
            .replace(Some(Rc::new(loader::SessionLoader::default())));
        session
    }

    pub fn world(&self) -> &Rc<World> {
        &self.world
    }

    /// Adds natives to a namespace, making it if need be.
    pub fn register(&self, namespace: &str, natives: &'static [Native]) -> Rc<Namespace> {
        let namespace = self.world.namespace(Symbol::new(namespace));
        for native in natives {
            namespace
                .intern(Symbol::new(native.name))
                .set_root(Value::Native(native));
        }
        namespace
    }

    /// Returns a machine that runs code of this session against `host`.
    pub fn vm(&self, host: Box<dyn Host>) -> Vm {
        Vm::new(self.world.clone(), host)
    }

    /// Reads every form of a text. The text is kept, so that errors can show it.
    ///
    /// # Errors
    /// A reader exception with its place.
    pub fn read(&self, name: &str, text: &str) -> Result<Vec<Value>> {
        let source = self.world.sources.borrow_mut().add(name, text);
        let mut reader = Reader::new(text, ReadOptions::code(source));
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
    pub fn eval(&self, vm: &mut Vm, form: &Value) -> Result<Value> {
        self.world.loader().eval(vm, form)
    }

    /// Reads and runs every form of a text, each before the next is read; returns the last value.
    pub fn eval_text(&self, vm: &mut Vm, name: &str, text: &str) -> Result<Value> {
        self.world.loader().load_text(vm, name, text)
    }
}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}
