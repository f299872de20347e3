//! Watches: functions that are told when a reference gets another value.

use std::cell::RefCell;
use std::rc::Rc;

use super::Vm;
use crate::value::{Class, Exception, PMap, PrintOptions, Result, Value, Var};

impl Vm {
    /// Calls the watches of a reference with its old and its new value.
    ///
    /// # Errors
    /// Whatever a watch throws.
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

    /// Throws unless the validator of a reference takes a value; nil takes any.
    ///
    /// # Errors
    /// When it refuses the value, and whatever it throws.
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

    /// Sets the root of a var, when its validator takes the value, and calls its watches.
    ///
    /// # Errors
    /// Whatever the validator or a watch throws.
    pub(crate) fn set_root(&mut self, var: &Rc<Var>, new: Value) -> Result<()> {
        let validator = var.validator.borrow().clone();
        self.validate(&validator, &new)?;
        if var.watches.borrow().is_empty() {
            self.world().set_root(var, new);
            return Ok(());
        }
        let old = var.root().unwrap_or(Value::Nil);
        self.world().set_root(var, new.clone());
        self.notify(&var.watches, || Value::Var(var.clone()), (&old, &new))
    }
}
