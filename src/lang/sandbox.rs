//! A host with limits and no other abilities: code in it can only compute and print.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::value::heap::HeapBudget;
use crate::value::meter::Watch;
use crate::value::{Result, Stop, Value};
use crate::vm::{Host, Request, Stream};

/// Number of instructions between two checks of the limits.
const QUANTUM: u32 = 20_000;

/// A flag that stops an evaluation from another thread, or from a signal handler. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Returns a flag that is not set.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Requests the evaluation under this flag to stop.
    pub fn trigger(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Clears the flag, so that it can be used again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Tells whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The printed text of a [`Sandbox`]. Clones share the text.
#[derive(Debug, Clone, Default)]
pub struct Output {
    out: Rc<RefCell<String>>,
    error: Rc<RefCell<String>>,
}

impl Output {
    /// Returns an empty output.
    pub fn new() -> Output {
        Output::default()
    }

    /// Takes the text that was printed so far.
    pub fn take(&self) -> String {
        self.out.take()
    }

    /// Takes the text that was printed to `*err*` so far.
    pub fn take_errors(&self) -> String {
        self.error.take()
    }
}

type Probe = Box<dyn Fn() -> usize>;
type Steps = Box<dyn FnMut(Value) -> Result<Value>>;

/// A host with configured abilities: fuel, an interrupt, a limit of memory, captured output, sources
/// for `require`, answers to steps. Without any of these it lets code compute, and drops what is printed.
///
/// ```
/// use flowstone_lang::{Sandbox, Session, value::Stop};
///
/// let session = Session::new();
/// let host = Sandbox::new().fuel(100_000);
/// let failure = session.evaluate_in(host, "job", "(loop [] (recur))").expect_err("no end");
/// assert_eq!(failure.stop(), Some(&Stop::OutOfFuel));
/// ```
#[derive(Default)]
pub struct Sandbox {
    limits: Rc<Limits>,
    output: Option<Output>,
    /// The file name and the text of namespaces.
    sources: BTreeMap<String, (String, String)>,
    steps: Option<Steps>,
    random: u64,
}

impl Sandbox {
    /// Returns a host without limits.
    pub fn new() -> Sandbox {
        Sandbox::default()
    }

    /// Sets the number of instructions that may run: about one for each call and each iteration of a loop.
    #[must_use]
    pub fn fuel(mut self, instructions: u64) -> Sandbox {
        self.limits().fuel = Some(Cell::new(instructions));
        self
    }

    /// Stops the evaluation when the flag is set.
    #[must_use]
    pub fn interrupt(mut self, interrupt: &Interrupt) -> Sandbox {
        self.limits().interrupt = Some(interrupt.clone());
        self
    }

    /// Stops the evaluation when more than `limit` bytes are in use according to `used`, such as the figure of a
    /// counting allocator. It is checked every few thousand instructions.
    #[must_use]
    pub fn memory(mut self, limit: usize, used: impl Fn() -> usize + 'static) -> Sandbox {
        self.limits().memory = Some((limit, Box::new(used)));
        self
    }

    /// Stops the evaluation when the thread has allocated more than `limit` bytes since this call, less the bytes that
    /// it freed. Needs a program whose global allocator is
    /// [`CountingAllocator`](crate::value::heap::CountingAllocator); without it nothing is counted.
    #[must_use]
    pub fn heap_limit(mut self, limit: usize) -> Sandbox {
        let heap = HeapBudget::new(limit);
        heap.enter();
        self.limits().heap = Some(heap);
        self
    }

    /// Captures printed text in `output`.
    #[must_use]
    pub fn output(mut self, output: &Output) -> Sandbox {
        self.output = Some(output.clone());
        self
    }

    /// Sets the source of a namespace for `require`.
    #[must_use]
    pub fn source(self, namespace: &str, text: &str) -> Sandbox {
        self.source_file(namespace, &format!("{namespace}.clj"), text)
    }

    /// Sets the source of a namespace for `require`, with the file name that errors show.
    #[must_use]
    pub fn source_file(mut self, namespace: &str, file: &str, text: &str) -> Sandbox {
        let source = (file.to_owned(), text.to_owned());
        self.sources.insert(namespace.to_owned(), source);
        self
    }

    /// Answers requests that functions make with [`Vm::suspend`](crate::vm::Vm::suspend), if they are values.
    #[must_use]
    pub fn steps(mut self, answer: impl FnMut(Value) -> Result<Value> + 'static) -> Sandbox {
        self.steps = Some(Box::new(answer));
        self
    }

    /// Sets the seed of random numbers; equal seeds produce equal numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Sandbox {
        self.random = seed;
        self
    }

    fn limits(&mut self) -> &mut Limits {
        Rc::get_mut(&mut self.limits).expect("limits are set before the host is in use")
    }
}

/// The limits of a sandbox, which the machine and native work share.
#[derive(Default)]
struct Limits {
    fuel: Option<Cell<u64>>,
    interrupt: Option<Interrupt>,
    memory: Option<(usize, Probe)>,
    heap: Option<HeapBudget>,
}

impl Limits {
    fn check(&self) -> Result<(), Stop> {
        self.check_interrupt()?;
        if let Some(heap) = &self.heap {
            heap.check()?;
        }
        match &self.memory {
            Some((limit, used)) if used() > *limit => Err(Stop::OutOfMemory(format!(
                "more than {limit} bytes are in use"
            ))),
            _ => Ok(()),
        }
    }
}

impl Watch for Limits {
    fn check_interrupt(&self) -> Result<(), Stop> {
        match self.interrupt.as_ref().is_some_and(Interrupt::is_set) {
            true => Err(Stop::Interrupted("interrupted".to_owned())),
            false => Ok(()),
        }
    }

    fn spend(&self, units: u64) -> Result<(), Stop> {
        self.check()?;
        let Some(fuel) = &self.fuel else {
            return Ok(());
        };
        let left = fuel.get().checked_sub(units);
        fuel.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(Stop::OutOfFuel)
    }
}

impl Host for Sandbox {
    fn refill(&mut self) -> Result<u32, Stop> {
        self.limits.check()?;
        let Some(fuel) = &self.limits.fuel else {
            return Ok(QUANTUM);
        };
        let left = fuel.get();
        if left == 0 {
            return Err(Stop::OutOfFuel);
        }
        let quantum = u32::try_from(left).map_or(QUANTUM, |left| left.min(QUANTUM));
        fuel.set(left - u64::from(quantum));
        Ok(quantum)
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        Some(self.limits.clone())
    }

    fn room_for(&mut self, bytes: usize) -> Result<(), Stop> {
        let heap = &self.limits.heap;
        heap.as_ref().map_or(Ok(()), |heap| heap.room_for(bytes))
    }

    fn write(&mut self, stream: Stream, text: &str) -> Result<(), String> {
        if let Some(output) = &self.output {
            let to = match stream {
                Stream::Out => &output.out,
                Stream::Error => &output.error,
            };
            to.borrow_mut().push_str(text);
        }
        Ok(())
    }

    fn random(&mut self) -> Result<u64> {
        // SplitMix64, starting at the seed.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(bits ^ (bits >> 31))
    }

    fn find_source(&mut self, namespace: &str) -> Option<(String, String)> {
        self.sources.get(namespace).cloned()
    }

    fn missing_source(&self) -> String {
        "a host adds the sources of namespaces with Sandbox::source".to_owned()
    }

    fn suspend(&mut self, request: Request) -> Result<Value> {
        match (&mut self.steps, request.take()) {
            (Some(answer), Ok(request)) => answer(request),
            _ => Err(Stop::Interrupted("a step cannot run here".to_owned()).into()),
        }
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sandbox")
            .field("fuel", &self.limits.fuel)
            .field("interrupt", &self.limits.interrupt)
            .finish_non_exhaustive()
    }
}
