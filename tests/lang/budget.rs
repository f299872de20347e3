//! A host with a budget of instructions, which captures printed text.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use flowstone_lang::value::{Result, Stop, Value};
use flowstone_lang::vm::{Host, NoHost, Request, Stream};

/// The rest of a budget and the printed text, shared with the host that a machine owns.
#[derive(Clone, Default)]
pub struct Budget {
    /// How often 20,000 further instructions are granted.
    pub refills: Rc<Cell<u32>>,
    pub printed: Rc<RefCell<String>>,
}

impl Budget {
    pub fn new(refills: u32) -> Budget {
        let budget = Budget::default();
        budget.refills.set(refills);
        budget
    }
}

impl Host for Budget {
    fn refill(&mut self) -> Result<u32, Stop> {
        let left = self.refills.get().checked_sub(1).ok_or(Stop::OutOfFuel)?;
        self.refills.set(left);
        Ok(20_000)
    }

    fn write(&mut self, _stream: Stream, text: &str) -> Result<(), String> {
        self.printed.borrow_mut().push_str(text);
        Ok(())
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        NoHost::default().read_line()
    }

    fn now_millis(&mut self) -> Result<i64> {
        NoHost::default().now_millis()
    }

    fn now_nanos(&mut self) -> Result<i64> {
        NoHost::default().now_nanos()
    }

    fn random(&mut self) -> Result<u64> {
        NoHost::default().random()
    }

    fn read_file(&mut self, path: &str) -> Result<String, String> {
        NoHost::default().read_file(path)
    }

    fn write_file(&mut self, path: &str, text: &str, append: bool) -> Result<(), String> {
        NoHost::default().write_file(path, text, append)
    }

    fn find_source(&mut self, namespace: &str) -> Option<(String, String)> {
        NoHost::default().find_source(namespace)
    }

    fn suspend(&mut self, request: Request) -> Result<Value> {
        NoHost::default().suspend(request)
    }

    fn sleep(&mut self, millis: u64) -> Result<()> {
        NoHost::default().sleep(millis)
    }
}
