//! Changes of references: of state shared by all evaluations of a session, and the watches called after them.

use std::cell::RefCell;
use std::rc::Rc;

use super::Vm;
use crate::value::{Class, Exception, PMap, PrintOptions, Result, Signal, Value, Var};

impl Vm {
    /// Calls the watches of a reference with its old and its new value.
    ///
    /// # Errors
    /// Any exception that a watch throws.
    pub(crate) fn notify(
        &mut self,
        watches: &RefCell<PMap>,
        reference: impl FnOnce() -> Value,
        (old, new): (&Value, &Value),
    ) -> Result<()> {
        let watches = watches.borrow().clone();
        if watches.is_empty() {
            return Ok(());
        }
        let reference = reference();
        for (key, watch) in watches.iter() {
            let args = [key.clone(), reference.clone(), old.clone(), new.clone()];
            self.call(watch, &args)?;
        }
        Ok(())
    }

    /// Throws unless the validator of a reference accepts a value; a nil validator accepts any value.
    ///
    /// # Errors
    /// When it rejects the value, and any exception that it throws.
    pub(crate) fn validate(&mut self, validator: &Value, value: &Value) -> Result<()> {
        if validator.is_nil()
            || self
                .call(validator, std::slice::from_ref(value))?
                .is_truthy()
        {
            return Ok(());
        }
        let shown = self.print(value, PrintOptions::BRIEF)?;
        let message = format!("Invalid reference state: the validator refuses {shown}");
        Err(Exception::new(Class::ILLEGAL_STATE, "E0339", message).into())
    }

    /// Notifies the host that code is about to change state shared by all evaluations of the session, or to query which
    /// part of the library is loaded. No borrow may be alive.
    ///
    /// # Errors
    /// When the host refuses because other evaluations use the session.
    #[cold]
    pub fn touch_session(&mut self) -> Result<()> {
        match self.is_library_at_work() {
            true => Ok(()),
            false => self.change_session(),
        }
    }

    /// Like [`Vm::touch_session`], for changes by a library macro on behalf of the program that uses it.
    ///
    /// # Errors
    /// When the host refuses because other evaluations use the session.
    #[cold]
    pub(crate) fn change_session(&mut self) -> Result<()> {
        if self.world().is_library_loading() {
            return Ok(());
        }
        self.host().touch_session().map_err(Signal::from)?;
        self.world().raise_generation();
        Ok(())
    }

    /// Sets the root of a var if its validator accepts the value, and calls its watches.
    ///
    /// # Errors
    /// Any exception that the validator or a watch throws.
    pub(crate) fn set_root(&mut self, var: &Rc<Var>, new: Value) -> Result<()> {
        let validator = var.validator.borrow().clone();
        self.validate(&validator, &new)?;
        self.touch_session()?;
        if var.watches.borrow().is_empty() {
            self.world().set_root(var, new);
            return Ok(());
        }
        let old = var.root().unwrap_or(Value::Nil);
        self.world().set_root(var, new.clone());
        self.notify(&var.watches, || Value::Var(var.clone()), (&old, &new))
    }
}
