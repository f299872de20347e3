//! The host of a fiber: answers what needs no suspension, and leaves the stack for everything else.

use std::rc::Rc;

use super::{Exiter, Leave};
use crate::value::meter::Watch;
use crate::value::{Result, Signal, Stop, Value};
use crate::vm::{Host, Request, Stream, World};

pub(super) struct FiberHost {
    inner: Box<dyn Host>,
    watch: Rc<FiberWatch>,
    started: bool,
}

impl FiberHost {
    pub(super) fn new(
        inner: Box<dyn Host>,
        exiter: Box<dyn Exiter>,
        world: Rc<World>,
    ) -> FiberHost {
        let watch = Rc::new(FiberWatch {
            inner: inner.watch(),
            exiter,
            world,
        });
        FiberHost {
            inner,
            watch,
            started: false,
        }
    }
}

/// The limits of the inner host, and the exit from the stack.
struct FiberWatch {
    inner: Option<Rc<dyn Watch>>,
    exiter: Box<dyn Exiter>,
    world: Rc<World>,
}

impl Watch for FiberWatch {
    fn spend(&self, units: u64) -> Result<(), Stop> {
        self.inner
            .as_ref()
            .map_or(Ok(()), |watch| watch.spend(units))
    }

    fn check_interrupt(&self) -> Result<(), Stop> {
        self.inner
            .as_ref()
            .map_or(Ok(()), |watch| watch.check_interrupt())
    }

    /// Leaves the stack until the owner resumes the fiber. The fiber keeps its turn while the library is being loaded,
    /// because other evaluations of this world would see incomplete definitions.
    fn yield_now(&self) -> Result<(), Stop> {
        if self.world.is_library_loading() {
            return Ok(());
        }
        match self.exiter.leave(Leave::OutOfFuel) {
            Ok(_) => Ok(()),
            Err(Signal::Stop(stop)) => Err((*stop).clone()),
            Err(Signal::Throw(exception)) => Err(Stop::Interrupted(exception.text().to_owned())),
        }
    }
}

impl Host for FiberHost {
    fn refill(&mut self) -> Result<u32, Stop> {
        // The first quantum is granted before the first instruction: nothing has run yet that others could wait for.
        if std::mem::replace(&mut self.started, true) {
            self.watch.yield_now()?;
        }
        self.inner.refill()
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        Some(self.watch.clone())
    }

    fn yield_now(&mut self) -> Result<(), Stop> {
        self.watch.yield_now()
    }

    fn room_for(&mut self, bytes: usize) -> Result<(), Stop> {
        self.inner.room_for(bytes)
    }

    fn write(&mut self, stream: Stream, text: &str) -> Result<(), String> {
        self.inner.write(stream, text)
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        self.inner.read_line()
    }

    fn now_millis(&mut self) -> Result<i64> {
        self.inner.now_millis()
    }

    fn now_nanos(&mut self) -> Result<i64> {
        self.inner.now_nanos()
    }

    fn random(&mut self) -> Result<u64> {
        self.inner.random()
    }

    fn read_file(&mut self, path: &str) -> Result<String, String> {
        self.inner.read_file(path)
    }

    fn write_file(&mut self, path: &str, text: &str, append: bool) -> Result<(), String> {
        self.inner.write_file(path, text, append)
    }

    fn find_source(&mut self, namespace: &str) -> Option<(String, String)> {
        self.inner.find_source(namespace)
    }

    fn missing_source(&self) -> String {
        self.inner.missing_source()
    }

    fn suspend(&mut self, request: Request) -> Result<Value> {
        self.watch.exiter.leave(Leave::Step(request))
    }

    fn yield_request(&mut self) -> Option<Request> {
        self.inner.yield_request()
    }

    fn touch_session(&mut self) -> Result<(), Stop> {
        self.inner.touch_session()
    }

    fn sleep(&mut self, millis: u64) -> Result<()> {
        self.inner.sleep(millis)
    }

    fn exit(&mut self, status: i32) -> Signal {
        self.inner.exit(status)
    }

    fn list_folder(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
        self.inner.list_folder(path)
    }
}
