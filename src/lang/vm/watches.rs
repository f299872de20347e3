//! Watches: functions that are told when a reference gets another value.

use std::cell::RefCell;
use std::rc::Rc;

use super::Vm;
use crate::value::{PMap, Result, Value, Var};

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

    /// Sets the root of a var, and calls its watches.
    ///
    /// # Errors
    /// Whatever a watch throws.
    pub(crate) fn set_root(&mut self, var: &Rc<Var>, new: Value) -> Result<()> {
        if var.watches.borrow().is_empty() {
            self.world().set_root(var, new);
            return Ok(());
        }
        let old = var.root().unwrap_or(Value::Nil);
        self.world().set_root(var, new.clone());
        self.notify(&var.watches, || Value::Var(var.clone()), (&old, &new))
    }
}
