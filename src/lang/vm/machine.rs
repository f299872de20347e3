//! The VM's state and its interface: calling functions, walking sequences.

use std::any::Any;
use std::cmp::Ordering;
use std::rc::Rc;

use super::code::Word;
use super::stack::{Frames, Size, Stack};
use super::{Host, Request, World, slots};
use crate::value::deferred::{self, Running};
use crate::value::drops;
use crate::value::meter::{self, Watch, Watched};
use crate::value::{
    Class, Closure, Exception, Force, Lazy, LazyState, MapPlace, Object, PMap, PrintOptions,
    Result, SeqView, Signal, Span, Thunk, Value, Var, compare, equal, hash_value, print_value,
};

/// Native stack in bytes that a machine may use by default.
const NATIVE_ROOM: usize = 700 * 1024;

/// Returns an address near the top of the native stack.
#[inline(always)]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// Size in bytes below which an allocation is granted without asking the host.
const SMALL_ALLOCATION: usize = 64 * 1024;

/// Maximum nesting of calls.
const MAX_FRAMES: usize = 100_000;

/// One thread of execution: registers, frames, bindings, and the fuel it has left.
pub struct Vm {
    world: Rc<World>,
    host: Box<dyn Host>,
    /// The limits of native work; installed while the machine works.
    watch: Option<Rc<dyn Watch>>,
    pub(super) fuel: u32,
    pub(super) frames: Frames,
    pub(super) max_frames: usize,
    /// The word after the last instruction that called Rust; meaningful only if it lies in the running body.
    pub(super) pc: *mut Word,
    /// The failure that stopped the machine's loop.
    pub(super) failure: Option<Signal>,
    pub(super) stack: Stack,
    pub(super) stack_end: *mut Value,
    /// The first register available to a call from Rust.
    pub(super) top: *mut Value,
    /// Bindings of dynamic vars, innermost last.
    pub(super) bindings: Vec<(Rc<Var>, Value)>,
    /// The address down to which the native stack may grow.
    native_limit: usize,
    /// Whether the last argument of the starting call is the sequence for the rest parameter.
    pub(super) rest_is_given: bool,
    /// Whether the innermost macro being expanded belongs to the library.
    expands_library: bool,
}

impl Vm {
    /// Returns a machine for a world; `host` provides everything outside.
    pub fn new(world: Rc<World>, host: Box<dyn Host>) -> Vm {
        Vm::sized(world, host, Size::Usual)
    }

    /// Returns a machine with a given initial size of its memory.
    pub(crate) fn sized(world: Rc<World>, host: Box<dyn Host>, size: Size) -> Vm {
        let mut stack = Stack::default();
        let top = stack.start(size);
        let stack_end = stack.end();
        let watch = host.watch();
        if world.has_replaced.get() {
            meter::note_replaced();
        }
        Vm {
            world,
            host,
            watch,
            fuel: 0,
            frames: Frames::new(size),
            max_frames: MAX_FRAMES,
            pc: std::ptr::null_mut(),
            failure: None,
            stack,
            stack_end,
            top,
            bindings: Vec::new(),
            native_limit: address().saturating_sub(NATIVE_ROOM),
            rest_is_given: false,
            expands_library: false,
        }
    }

    /// Tells whether the running code loads the library or belongs to one of its macros: every session creates the same
    /// values sooner or later.
    pub(crate) fn is_library_at_work(&self) -> bool {
        self.world.is_library_loading() || self.expands_library
    }

    /// Sets whether a library macro is being expanded; returns the previous setting.
    pub(crate) fn set_expands_library(&mut self, is_library: bool) -> bool {
        std::mem::replace(&mut self.expands_library, is_library)
    }

    /// Returns the address down to which the native stack may grow.
    pub fn native_stack_limit(&self) -> usize {
        self.native_limit
    }

    /// Returns the globals.
    pub fn world(&self) -> &Rc<World> {
        &self.world
    }

    /// Returns the host.
    pub fn host(&mut self) -> &mut dyn Host {
        &mut *self.host
    }

    /// Pays for `units` of work done by a native.
    ///
    /// # Errors
    /// The host's stop when the fuel is used up.
    #[inline]
    pub fn charge(&mut self, units: u32) -> Result<()> {
        match self.fuel.checked_sub(units) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => self.refill(),
        }
    }

    /// Pays for work that may cost more than one ration of fuel.
    ///
    /// # Errors
    /// As [`Vm::charge`].
    pub fn charge_much(&mut self, units: u64) -> Result<()> {
        let mut owed = units;
        while owed > u64::from(self.fuel) {
            owed -= u64::from(self.fuel);
            self.refill()?;
            // A host that grants zero fuel is asked at most once per unit.
            owed = owed.saturating_sub(1);
        }
        self.fuel -= owed as u32;
        Ok(())
    }

    /// Installs the limits of the host for native work until the guard is dropped; returns `None` if they are installed
    /// already. Values that earlier evaluations of the thread left to be freed are freed first.
    pub(crate) fn watch(&self) -> Option<Watched> {
        let watched = self.watch_fiber();
        if watched.is_some() {
            drops::free_all();
        }
        watched
    }

    /// Like [`Vm::watch`], for a fiber: its host frees the values of earlier evaluations in slices.
    pub(crate) fn watch_fiber(&self) -> Option<Watched> {
        let watch = self.watch.as_ref()?;
        (!meter::is_installed(watch)).then(|| meter::watched(Some(watch.clone())))
    }

    /// Checks the limits after native work, and yields to others: returns the result, or the stop.
    #[cold]
    #[inline(never)]
    pub(super) fn check_limits<T>(&mut self, result: Result<T>) -> Result<T> {
        let turn_is_due = meter::take_due()?;
        let unpaid = meter::take_unpaid();
        let value = result?;
        if self.watch.is_none() {
            self.charge_much(unpaid)?;
        }
        if turn_is_due {
            self.host.yield_now()?;
        }
        Ok(value)
    }

    /// Returns the result of native work, unless a limit was reached meanwhile.
    #[inline(always)]
    pub(super) fn finish_native<T>(&mut self, result: Result<T>) -> Result<T> {
        match meter::is_due() {
            true => self.check_limits(result),
            false => result,
        }
    }

    /// Requests room for an allocation whose size, in bytes, comes from data. Small sizes are always granted, because
    /// the budget is checked with each ration of fuel.
    ///
    /// # Errors
    /// The host's stop if there is no room.
    #[inline]
    pub fn room_for(&mut self, bytes: usize) -> Result<()> {
        if bytes < SMALL_ALLOCATION {
            return Ok(());
        }
        self.host.room_for(bytes).inspect_err(meter::remember)?;
        Ok(())
    }

    /// Sets the address down to which the native stack may grow. The default is 700 KB below where the machine was
    /// created.
    pub fn set_native_stack_limit(&mut self, address: usize) {
        self.native_limit = address;
    }

    /// Stops a native recursion before it overflows the stack.
    ///
    /// # Errors
    /// A `StackOverflowError` when little of the native stack is left.
    #[inline]
    pub fn check_native_stack(&self) -> Result<()> {
        if address() < self.native_limit {
            return Err(super::slow::native_stack_overflow());
        }
        Ok(())
    }

    #[cold]
    pub(super) fn refill(&mut self) -> Result<()> {
        if deferred::is_sweep_due() {
            self.sweep();
        }
        self.fuel = self.host.refill().inspect_err(meter::remember)?;
        Ok(())
    }

    /// Drops functions that were replaced and that no frame runs any more.
    fn sweep(&self) {
        let running: Vec<*const Closure> = (0..self.frames.depth())
            .filter_map(|up| self.frames.up(up))
            // SAFETY: the slot before the registers of a frame has its closure.
            .map(|frame| std::ptr::from_ref(unsafe { slots::running(frame.base) }))
            .collect();
        deferred::sweep(|value| match value {
            Value::Fn(closure) => running.contains(&Rc::as_ptr(closure)),
            _ => false,
        });
    }

    /// Binds a dynamic var until [`Vm::unbind`].
    pub fn bind(&mut self, var: Rc<Var>, value: Value) {
        if Rc::ptr_eq(&var, &self.world.ns_var)
            && let Value::Object(object) = &value
            && let Object::Namespace(namespace) = &**object
        {
            // The previous namespace is bound, because it is restored when the binding ends.
            let before = self.world.set_current(namespace.clone());
            self.bindings
                .push((var, Value::from(Object::Namespace(before))));
            return;
        }
        self.bindings.push((var, value));
    }

    /// Removes the last `count` bindings.
    pub fn unbind(&mut self, count: usize) {
        for _ in 0..count {
            let Some((var, value)) = self.bindings.pop() else {
                return;
            };
            if Rc::ptr_eq(&var, &self.world.ns_var)
                && let Value::Object(object) = &value
                && let Object::Namespace(before) = &**object
            {
                self.world.set_current(before.clone());
            }
        }
    }

    /// Returns the vars that are bound in this machine.
    pub fn bound_vars(&self) -> Vec<Rc<Var>> {
        self.bindings.iter().map(|bound| bound.0.clone()).collect()
    }

    /// Returns the number of bindings.
    pub fn binding_depth(&self) -> usize {
        self.bindings.len()
    }

    /// Replaces the innermost binding of a var; returns false if the var is not bound here.
    pub fn set_binding(&mut self, var: &Rc<Var>, value: Value) -> bool {
        if Rc::ptr_eq(var, &self.world.ns_var)
            && let Value::Object(object) = &value
            && let Object::Namespace(namespace) = &**object
        {
            self.world.set_current(namespace.clone());
            return true;
        }
        let bound = self
            .bindings
            .iter_mut()
            .rev()
            .find(|bound| Rc::ptr_eq(&bound.0, var));
        bound.map(|bound| bound.1 = value).is_some()
    }

    /// Yields to other evaluations of the session; false if none of them can run.
    ///
    /// # Errors
    /// When this evaluation is stopped meanwhile.
    #[cold]
    pub fn wait_for_others(&mut self) -> Result<bool> {
        match self.host.yield_request() {
            Some(request) => Ok(self.host.suspend(request)?.is_truthy()),
            None => Ok(false),
        }
    }

    /// Waits for a lazy sequence that another evaluation is computing.
    #[cold]
    fn force_elsewhere(&mut self, lazy: &Rc<Lazy>) -> Result<Value> {
        while self.wait_for_others()? {
            if !matches!(*lazy.state.borrow(), LazyState::Running) {
                return Force::force(self, lazy);
            }
        }
        let words = "the items of a lazy sequence depend on themselves";
        Err(Exception::new(Class::ILLEGAL_STATE, "E0310", words).into())
    }

    /// Returns the place of the current call.
    pub fn here(&self) -> Span {
        let Some(body) = self.body() else {
            return Span::NONE;
        };
        let site = body.number(self.pc).and_then(|number| body.site(number));
        site.map_or(Span::NONE, |site| site.span)
    }

    /// Calls a closure with arguments that it may move out.
    pub(super) fn call_closure(&mut self, function: &Value, args: &mut [Value]) -> Result<Value> {
        self.check_native_stack()?;
        if self.frames.depth() == 0 {
            return self.call_outermost(function, args);
        }
        self.call_in_segment(function, args)
    }

    /// Makes the first call from outside, which functions in vars must outlive.
    #[cold]
    #[inline(never)]
    fn call_outermost(&mut self, function: &Value, args: &mut [Value]) -> Result<Value> {
        let watch = self.watch();
        let running = Running::begin();
        let result = self.call_in_segment(function, args);
        drop(running);
        let result = self.finish_native(result);
        drop(watch);
        result
    }

    #[inline(always)]
    fn call_in_segment(&mut self, function: &Value, args: &mut [Value]) -> Result<Value> {
        let outer = self.top;
        let room = (self.stack_end as usize) - (outer as usize);
        if room <= size_of_val(args) {
            return self.call_far(function, args);
        }
        // SAFETY: the window has room for function and arguments, and lies above all registers in use.
        let result = unsafe { self.call_at(outer, function, args) };
        self.top = outer;
        result
    }

    /// Tells whether a call with `count` arguments fits after the running frame.
    #[inline]
    fn has_room_for(&self, count: usize) -> bool {
        let room = (self.stack_end as usize - self.top as usize) / size_of::<Value>();
        // The first call from outside needs additional work.
        room > count && self.frames.depth() > 0
    }

    /// Calls a closure with the values of these slots, which become nil; the first slot receives the result. In place,
    /// for functions called for each item of a sequence.
    ///
    /// # Errors
    /// Any exception that the closure throws.
    pub(super) fn call_in_place<const COUNT: usize>(
        &mut self,
        function: &Value,
        mut slots: [&mut Value; COUNT],
    ) -> Result<()> {
        if !self.has_room_for(COUNT) {
            let mut args = slots
                .each_mut()
                .map(|slot| std::mem::replace(&mut **slot, Value::Nil));
            *slots[0] = self.call_closure(function, &mut args)?;
            return Ok(());
        }
        self.check_native_stack()?;
        let outer = self.top;
        // SAFETY: as in `call_closure`; the caller holds the function, and the slots are its own values.
        let result = unsafe {
            slots::borrow(outer, function);
            for (idx, slot) in slots.iter_mut().enumerate() {
                slots::take(outer.add(idx + 1), &raw mut **slot);
            }
            super::exec::execute(self, outer, COUNT)
                .map(|()| slots::take(&raw mut *slots[0], outer))
        };
        self.top = outer;
        result
    }

    /// Calls a closure with a copy of a value, and tells whether the result is neither nil nor false.
    ///
    /// # Errors
    /// Any exception that the closure throws.
    pub(super) fn test_closure(&mut self, function: &Value, arg: &Value) -> Result<bool> {
        if !self.has_room_for(1) {
            return Ok(self.call_closure(function, &mut [arg.clone()])?.is_truthy());
        }
        self.check_native_stack()?;
        let outer = self.top;
        // SAFETY: as in `call_closure`; the caller holds the function.
        let result = unsafe {
            slots::borrow(outer, function);
            slots::copy(outer.add(1), arg);
            super::exec::execute(self, outer, 1).map(|()| {
                let holds = slots::is_truthy(outer);
                slots::release(outer);
                holds
            })
        };
        self.top = outer;
        result
    }

    /// Makes a call for which the segment has no room.
    #[cold]
    #[inline(never)]
    fn call_far(&mut self, function: &Value, args: &mut [Value]) -> Result<Value> {
        let outer = self.top;
        let window = self.stack.advance(args.len() + 1);
        self.stack_end = self.stack.end();
        // SAFETY: as in `call_in_segment`; the segment was made for it.
        let result = unsafe { self.call_at(window, function, args) };
        self.stack.retreat();
        self.stack_end = self.stack.end();
        self.top = outer;
        result
    }

    #[inline(always)]
    unsafe fn call_at(
        &mut self,
        window: *mut Value,
        function: &Value,
        args: &mut [Value],
    ) -> Result<Value> {
        // SAFETY: the caller has room in the window. It holds the function for the duration of the call.
        unsafe {
            slots::borrow(window, function);
            for (idx, arg) in args.iter_mut().enumerate() {
                slots::take(window.add(idx + 1), arg);
            }
            super::exec::execute(self, window, args.len()).map(|()| slots::take_out(window))
        }
    }

    /// Does work with the root values of dynamic vars, ignoring bindings: for loading the library.
    pub(crate) fn isolated<T>(&mut self, work: impl FnOnce(&mut Vm) -> T) -> T {
        let bindings = std::mem::take(&mut self.bindings);
        let result = work(self);
        self.bindings = bindings;
        result
    }

    /// Leaves the VM with a request and returns its outcome.
    ///
    /// # Errors
    /// The error of the request.
    pub fn suspend(&mut self, asked: impl Any) -> Result<Value> {
        meter::stopped()?;
        self.host.suspend(Request::new(asked))
    }

    /// Tells whether two values are equal as by `=`.
    pub fn equal(&mut self, left: &Value, right: &Value) -> Result<bool> {
        equal(self, left, right)
    }

    /// Compares two values as `compare` does.
    pub fn compare(&mut self, left: &Value, right: &Value) -> Result<Ordering> {
        if let Value::Object(_) = left
            && let Some(answer) =
                self.call_own_method(left, "compareTo", std::slice::from_ref(right))?
        {
            return Ok(answer.as_int().unwrap_or(0).cmp(&0));
        }
        compare(self, left, right)
    }

    /// Returns the hash of a value.
    pub fn hash(&mut self, value: &Value) -> Result<u32> {
        hash_value(self, value)
    }

    /// Prints a value.
    pub fn print(&mut self, value: &Value, options: PrintOptions) -> Result<String> {
        let mut out = String::new();
        let options = PrintOptions {
            extended: self.world.print_extended.get(),
            ..options
        };
        let _watch = self.watch();
        print_value(&mut out, self, value, options)?;
        Ok(out)
    }

    /// Returns nil for a value without items, or a non-empty sequence of kind `List` or `Seq`.
    ///
    /// # Errors
    /// When the value is not seqable, and any exception thrown while it is computed.
    pub fn seq(&mut self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::Nil => Value::Nil,
            Value::List(list) if list.is_empty() => Value::Nil,
            Value::List(_) | Value::Seq(_) => value.clone(),
            Value::Lazy(lazy) => self.force(lazy)?,
            Value::Vector(vector) if vector.is_empty() => Value::Nil,
            Value::Vector(vector) => Value::Seq(Rc::new(SeqView::Slice {
                items: vector.items().clone(),
                start: 0,
            })),
            Value::Map(map) => seq_of_map(map.entries().clone(), MapPlace::Index(0), entry),
            Value::Record(record) => seq_of_map(record.fields.clone(), MapPlace::Index(0), entry),
            Value::Set(set) => {
                let items = set.items().as_map().clone();
                seq_of_map(items, MapPlace::Index(0), |item, _| item)
            }
            Value::Object(object) if let Object::Queue { items, taken, .. } = &**object => {
                if items.len() == *taken {
                    return Ok(Value::Nil);
                }
                Value::Seq(Rc::new(SeqView::Slice {
                    items: items.clone(),
                    start: *taken,
                }))
            }
            Value::Text(text) if text.is_empty() => Value::Nil,
            Value::Text(text) => Value::Seq(Rc::new(SeqView::Chars {
                text: text.clone(),
                start: 0,
            })),
            Value::Object(object) if let Object::Array(array) = &**object => {
                SeqView::chunk(array.snapshot(), Value::Nil)
            }
            Value::Object(object) if let Object::Bytes(bytes) = &**object => SeqView::chunk(
                bytes
                    .iter()
                    .map(|byte| Value::Int(i64::from(*byte as i8)))
                    .collect(),
                Value::Nil,
            ),
            _ => {
                if let Some(seq) = self.seq_of_object(value)? {
                    return Ok(seq);
                }
                return Err(super::args::not_seqable(value).into());
            }
        })
    }

    /// Splits a seqable value into its first item and the rest, which may be lazy; `None` if it has no items. Takes the
    /// value, so that its head is not held.
    pub fn uncons(&mut self, value: Value) -> Result<Option<(Value, Value)>> {
        let seq = match value {
            Value::List(_) | Value::Seq(_) => value,
            value => self.seq(&value)?,
        };
        Ok(match &seq {
            Value::List(list) if list.is_empty() => None,
            Value::List(list) => Some((list.first.clone(), list.rest.clone())),
            Value::Seq(view) => Some((view.first(), view.rest())),
            _ => None,
        })
    }

    /// Collects the items of a seqable value.
    pub fn items(&mut self, value: Value) -> Result<Vec<Value>> {
        if let Value::Vector(vector) = &value {
            self.charge(u32::try_from(vector.len()).unwrap_or(u32::MAX))?;
            return Ok(vector.iter().cloned().collect());
        }
        let mut iter = self.iter(value)?;
        let mut items = Vec::new();
        while let Some(item) = iter.next(self)? {
            items.push(item);
        }
        Ok(items)
    }

    /// Computes every lazy part of a value, however deep, so that it can be a key or be stored.
    pub fn realise(&mut self, value: &Value) -> Result<()> {
        let _watch = self.watch();
        hash_value(self, value).map(|_| ())
    }

    fn compute(&mut self, thunk: Thunk) -> Result<Value> {
        match thunk {
            Thunk::Call(function) => self.call(&function, &[]),
            Thunk::Native(step) => step(self),
            Thunk::Stage { stage, coll } => self.pull(stage, coll),
        }
    }
}

fn entry(key: Value, value: Value) -> Value {
    Value::entry(key, value)
}

/// Returns the sequence of a map's entries from a place on, converted by `item`: in chunks, so that a caller that needs
/// only the first does not pay for all.
fn seq_of_map(map: PMap, place: MapPlace, item: fn(Value, Value) -> Value) -> Value {
    const AT_ONCE: usize = 32;
    let (entries, next) = map.entries_from(&place, AT_ONCE);
    let is_end = entries.len() < AT_ONCE;
    let items = entries
        .into_iter()
        .map(|(key, value)| item(key, value))
        .collect();
    let rest = if is_end {
        Value::Nil
    } else {
        Lazy::native(move |_| Ok(seq_of_map(map, next, item)))
    };
    SeqView::chunk(items, rest)
}

impl Force for Vm {
    fn is_print_extended(&self) -> bool {
        self.world.print_extended.get()
    }

    fn printed(&mut self, value: &Value, options: PrintOptions) -> Result<Option<String>> {
        self.check_native_stack()?;
        let loader = self.world.loader();
        loader.printed(self, value, options)
    }

    fn own_text(&mut self, value: &Value) -> Result<Option<String>> {
        let text = self.call_own_method(value, "toString", &[])?;
        Ok(text.and_then(|text| text.as_str().map(str::to_owned)))
    }

    fn own_items(&mut self, value: &Value) -> Result<Option<Value>> {
        self.check_native_stack()?;
        self.seq_of_object(value)
    }

    fn own_equality(&mut self, left: &Value, right: &Value) -> Result<Option<bool>> {
        self.equal_objects(left, right)
    }

    fn charge(&mut self, items: u32) -> Result<()> {
        Vm::charge(self, items)
    }

    fn force(&mut self, lazy: &Rc<Lazy>) -> Result<Value> {
        self.check_native_stack()?;
        let state = lazy.state.replace(LazyState::Running);
        let thunk = match state {
            LazyState::Pending(thunk) => thunk,
            LazyState::Done(seq) => {
                lazy.state.replace(LazyState::Done(seq.clone()));
                return Ok(seq);
            }
            LazyState::Failed(exception) => {
                lazy.state.replace(LazyState::Failed(exception.clone()));
                return Err(Signal::Throw(exception));
            }
            LazyState::Running => return self.force_elsewhere(lazy),
        };
        let mut result = self.compute(thunk);
        // The body of a lazy sequence may be another one: walk down in a loop, not on the stack.
        while let Ok(Value::Lazy(inner)) = &result {
            let inner = inner.clone();
            let state = inner.state.replace(LazyState::Running);
            result = match state {
                LazyState::Pending(thunk) if Rc::strong_count(&inner) <= 2 => self.compute(thunk),
                state => {
                    inner.state.replace(state);
                    self.force(&inner)
                }
            };
        }
        match result.and_then(|value| self.seq(&value)) {
            Ok(seq) => {
                lazy.state.replace(LazyState::Done(seq.clone()));
                Ok(seq)
            }
            Err(Signal::Throw(exception)) => {
                lazy.state.replace(LazyState::Failed(exception.clone()));
                Err(Signal::Throw(exception))
            }
            Err(stop) => {
                // Another evaluation of the session may need the sequence, and must not wait forever.
                let words = "the computation of a lazy sequence was stopped";
                let exception = Exception::new(Class::ILLEGAL_STATE, "E0310", words);
                lazy.state.replace(LazyState::Failed(Rc::new(exception)));
                Err(stop)
            }
        }
    }
}
