//! The one place where concrete stores, steps and the prompt meet.

use std::rc::Rc;

use flowstone_engine::step::Step;
use flowstone_lang::session::Session;
use flowstone_repl::Repl;
use flowstone_surfaces::cli::{App, Prompt, Report, lost_terminal};

/// Flowstone with everything plugged in.
pub struct Flowstone;

impl App for Flowstone {
    fn steps(&self) -> Vec<Box<dyn Step>> {
        flowstone_steps::all()
    }

    fn repl(&self, prompt: Prompt) -> Result<bool, Report> {
        let session = Rc::new(Session::new());
        let mut vm = session.vm(prompt.host);
        vm.set_native_stack_limit(prompt.native_stack_limit);
        let repl = Repl {
            session,
            vm,
            history: prompt.history,
            colored: prompt.colored,
            complain: prompt.complain,
            begin: prompt.begin,
        };
        repl.run().map_err(|error| lost_terminal(&error))
    }
}
