//! The machine's uncommon cases: entering and leaving functions, look-ups, construction, closures.

use std::rc::Rc;

use super::Vm;
use super::code::{Body, Op};
use super::exec::{Base, Pc, at, register};
use super::quick::QUICK;
use super::slots::{self, FLOAT, FN};
use super::stack::{ENTRY, Frame, SWITCHED};
use crate::value::meter;
use crate::value::{Class, Exception, List, Object, Result, Signal, Value, Var, number};

/// Where a function continues: its next instruction and its registers.
pub(super) type Place = (Pc, Base);

/// The result of a test.
pub(super) type Answer = u8;

pub(super) const FAILED: Answer = 2;
pub(super) const HOLDS: Answer = 1;

impl Vm {
    /// Stores the failure that stops the loop.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(&mut self, signal: Signal) {
        self.failure = Some(signal);
    }

    /// Takes the failure that stopped the loop.
    #[cold]
    #[inline(never)]
    pub(super) fn take_failure(&mut self) -> Signal {
        self.failure
            .take()
            .expect("a stop of the loop has a reason")
    }

    /// Returns the value of a result, or stores its error and returns `None`.
    #[inline(always)]
    fn done<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(signal) => {
                self.fail(signal);
                None
            }
        }
    }

    #[inline(always)]
    fn answer(&mut self, result: Result<bool>) -> Answer {
        let result = self.finish_native(result);
        self.done(result).map_or(FAILED, Answer::from)
    }

    /// Stores a result in a register.
    #[inline(always)]
    pub(super) unsafe fn put(&mut self, to: *mut Value, result: Result<Value>) -> bool {
        let result = self.finish_native(result);
        // SAFETY: the caller's slot is a register.
        match unsafe { slots::put_result(to, result) } {
            None => true,
            Some(signal) => {
                self.fail(signal);
                false
            }
        }
    }

    /// Protects the registers of the running body from calls that a native makes, and stores the current position: `pc`
    /// is at the last word of the instruction.
    #[inline(always)]
    pub(super) unsafe fn protect(&mut self, pc: Pc, base: Base) {
        // SAFETY: a body runs, with its registers at `base`.
        unsafe {
            self.pc = pc.add(1);
            self.top = base.byte_add((*(*self.frames.current).body).room);
        }
    }

    /// Begins a call from Rust.
    ///
    /// # Safety
    /// As for `execute`; `window[0]` holds a closure.
    #[inline(always)]
    pub(super) unsafe fn enter_first(
        &mut self,
        window: *mut Value,
        count: usize,
        flags: u16,
    ) -> Option<Place> {
        let caller = Frame {
            base: window,
            body: std::ptr::null(),
            // The caller's current instruction, if it runs code: traces continue there.
            pc: self.pc,
            dst: 0,
            flags,
        };
        // SAFETY: as the caller promises.
        unsafe {
            match slots::running(window.add(1)).proto.fixed_body(count) {
                Some(body) => self.push_frame(window, &*body, count, caller),
                None => self.enter_slow(window, count, caller),
            }
        }
    }

    /// Begins a call of the closure that `window[0]` owns or borrows. `call` is the instruction, `last` its last word.
    ///
    /// # Safety
    /// The window lies in the running frame, with the arguments in it.
    #[inline(always)]
    pub(super) unsafe fn enter(&mut self, window: *mut Value, call: Pc, last: Pc) -> Option<Place> {
        // SAFETY: as the caller promises.
        unsafe {
            match slots::running(window.add(1))
                .proto
                .fixed_body(usize::from(at(call).x))
            {
                Some(body) => self.enter_body(window, &*body, call, last),
                None => self.enter_other(window, call, last),
            }
        }
    }

    /// Begins a call whose code is known.
    ///
    /// # Safety
    /// As for `enter`; the body is the closure's code for that number of arguments.
    #[inline(always)]
    pub(super) unsafe fn enter_body(
        &mut self,
        window: *mut Value,
        body: &Body,
        call: Pc,
        last: Pc,
    ) -> Option<Place> {
        // SAFETY: as the caller promises.
        unsafe {
            let caller = Frame {
                base: window,
                body,
                pc: last.add(1),
                dst: at(call).b,
                flags: 0,
            };
            self.push_frame(window, body, usize::from(at(call).x), caller)
        }
    }

    /// Checks room and budget, and makes the frame of a call current.
    #[inline(always)]
    unsafe fn push_frame(
        &mut self,
        window: *mut Value,
        body: &Body,
        count: usize,
        caller: Frame,
    ) -> Option<Place> {
        // SAFETY: the frame is within the list, because it is not after the last one.
        unsafe {
            let base = window.add(1);
            if self.fuel == 0
                || self.frames.current == self.frames.last
                || (self.stack_end as usize) - (base as usize) < body.room
            {
                return self.enter_slow(window, count, caller);
            }
            self.fuel -= 1;
            let frame = self.frames.current.add(1);
            // Field by field: a frame built separately would be read back in larger pieces, and stall.
            (&raw mut (*frame).base).write(base);
            (&raw mut (*frame).body).write(body);
            (&raw mut (*frame).pc).write(caller.pc);
            (&raw mut (*frame).dst).write(caller.dst);
            (&raw mut (*frame).flags).write(caller.flags);
            self.frames.current = frame;
            Some((body.start(), base))
        }
    }

    /// Begins a call with an uncommon number of arguments.
    #[inline(never)]
    unsafe fn enter_other(&mut self, window: *mut Value, call: Pc, last: Pc) -> Option<Place> {
        // SAFETY: as for `enter`.
        unsafe {
            let caller = Frame {
                base: window,
                body: std::ptr::null(),
                pc: last.add(1),
                dst: at(call).b,
                flags: 0,
            };
            self.enter_slow(window, usize::from(at(call).x), caller)
        }
    }

    /// Begins a call in the general case: with more room, fuel or frames, or with another number of arguments.
    #[inline(never)]
    unsafe fn enter_slow(
        &mut self,
        mut window: *mut Value,
        count: usize,
        mut caller: Frame,
    ) -> Option<Place> {
        // SAFETY: as in `enter`; a move to another segment moves function and arguments one by one.
        unsafe {
            let rest_is_given = std::mem::take(&mut self.rest_is_given);
            self.top = window.add(1 + count);
            if self.fuel == 0 {
                let refilled = self.refill();
                self.done(refilled)?;
            }
            self.fuel -= 1;
            if !self.frames.grow(self.max_frames) {
                self.fail(stack_overflow(self.max_frames));
                return None;
            }
            // The closure in the window holds it.
            let proto = Rc::as_ptr(&slots::running(window.add(1)).proto);
            let Some(body) = (*proto).body(count) else {
                self.fail(wrong_arity(&*proto, count).into());
                return None;
            };
            let registers = usize::from(body.registers).max(count);
            let room = (self.stack_end as usize - window as usize) / size_of::<Value>();
            if room < registers + 1 {
                let start = self.stack.advance(registers + 1);
                self.stack_end = self.stack.end();
                for idx in 0..=count {
                    slots::take(start.add(idx), window.add(idx));
                }
                window = start;
                caller.flags |= SWITCHED;
            }
            let base = window.add(1);
            if body.is_variadic && !rest_is_given {
                let params = usize::from(body.params);
                let mut rest = Value::Nil;
                for idx in (params..count).rev() {
                    let item = std::mem::replace(&mut *base.add(idx), Value::Nil);
                    rest = List::cons(item, rest);
                }
                slots::put_value(base.add(params), rest);
            }
            self.frames.current = self.frames.current.add(1);
            *self.frames.current = Frame {
                base,
                body: &raw const **body,
                ..caller
            };
            Some((body.start(), base))
        }
    }

    /// Calls through a var in an uncommon case: another arity, a native, a bound var ... `window` has the arguments.
    /// Continues after the call if it completes at once.
    ///
    /// # Safety
    /// As for `enter`; `call` is a `CallGlobal`.
    #[inline(never)]
    pub(super) unsafe fn call_global(
        &mut self,
        base: Base,
        window: *mut Value,
        call: Pc,
    ) -> Option<Place> {
        // SAFETY: the word after the instruction points at the var, which the body holds.
        unsafe {
            let last = call.add(1);
            let var = &*(*last).var;
            if var.is_plain_function() {
                slots::borrow(window, var.root_slot());
                return self.enter(window, call, last);
            }
            let constants = &(*(*self.frames.current).body).constants;
            let var = &constants[usize::from(at(call).c)];
            let function = self.global(var);
            let function = self.done(function)?;
            slots::put_value(window, function);
            if slots::tag(window) == FN {
                return self.enter(window, call, last);
            }
            self.call_window(window, call, base)
                .then(|| (last.add(1), base))
        }
    }

    /// Leaves a function that was called from Rust, or whose registers begin a segment. For a call from Rust, the
    /// result goes to `window`, and this returns `true`.
    ///
    /// # Safety
    /// The registers of the running frame, one of which is the result; the window of `execute`.
    #[inline(never)]
    pub(super) unsafe fn return_slow(
        &mut self,
        result: *mut Value,
        base: Base,
        window: *mut Value,
    ) -> bool {
        // SAFETY: the frame is the running one, and is preceded by another.
        unsafe {
            let frame = *self.frames.current;
            let value = slots::take_out(result);
            self.leave(base);
            let is_entry = frame.flags & ENTRY != 0;
            let to = if is_entry {
                window
            } else {
                register((*self.frames.current).base, frame.dst)
            };
            slots::put_value(to, value);
            is_entry
        }
    }

    /// Calls a native with arguments in registers of the frame instead of a window.
    ///
    /// # Safety
    /// `pc` is at a `Quick`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn native_of_registers(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the operands are registers, the word after points at the native.
        unsafe {
            let i = at(pc);
            self.protect(pc.add(1), base);
            let argument = |offset: u16, is_dead: bool| {
                let slot = register(base, offset);
                // A register must not hold a sequence while it is walked.
                if is_dead {
                    slots::take_out(slot)
                } else {
                    (*slot).clone()
                }
            };
            let native = (*pc.add(1)).native;
            let left = argument(i.b, i.x & 1 != 0);
            let result = if QUICK[usize::from(i.x >> 2)].1 == 1 {
                (native.run)(self, super::Args::new(&mut [left]))
            } else {
                let right = argument(i.c, i.x & 2 != 0);
                (native.run)(self, super::Args::new(&mut [left, right]))
            };
            self.put(register(base, i.a), result)
        }
    }

    /// Clears the registers of the running frame and makes the previous one current.
    ///
    /// # Safety
    /// `base` is that of the running frame.
    pub(super) unsafe fn leave(&mut self, base: Base) {
        // SAFETY: each register holds a value, and the slot before them the closure.
        unsafe {
            let frame = *self.frames.current;
            for idx in 0..usize::from((*frame.body).registers) {
                slots::release(base.add(idx));
            }
            slots::release_closure(base.sub(1));
            self.frames.current = self.frames.current.sub(1);
            if frame.flags & ENTRY != 0 {
                self.pc = frame.pc;
            }
            if frame.flags & SWITCHED != 0 {
                self.stack.retreat();
                self.stack_end = self.stack.end();
            }
        }
    }

    /// Calls the value in `window[0]`, which is not a closure, with the arguments after it, and clears them.
    ///
    /// # Safety
    /// As for `execute`; `call` is the instruction.
    #[inline(never)]
    pub(super) unsafe fn call_window(&mut self, window: *mut Value, call: Pc, base: Base) -> bool {
        // SAFETY: the slots are registers of the running frame, and never move.
        unsafe {
            let count = usize::from(at(call).x);
            self.pc = call.add(1 + usize::from(at(call).op.has_data()));
            let args = std::slice::from_raw_parts_mut(window.add(1), count);
            self.top = window.add(1 + count);
            let function = std::mem::replace(&mut *window, Value::Nil);
            let result = self.invoke(&function, args);
            for slot in args {
                slots::release(slot);
            }
            self.put(register(base, at(call).b), result)
        }
    }

    /// Requests fuel for a backward jump when it is used up.
    ///
    /// # Safety
    /// `base` is that of the running frame.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn refuel(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.protect(pc, base) };
        self.fuel = 0;
        let refilled = self.refill();
        self.fuel = self.fuel.saturating_sub(1);
        self.done(refilled).is_some()
    }

    /// # Safety
    /// `pc` is at a `Global`.
    #[inline(never)]
    pub(super) unsafe fn load_global(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the verifier knows the constant.
        unsafe {
            let constants = &(*(*self.frames.current).body).constants;
            let value = self.global(&constants[at(pc).wide() as usize]);
            self.put(register(base, at(pc).a), value)
        }
    }

    /// Performs arithmetic on any values.
    ///
    /// # Safety
    /// `pc` is at an `Add`, `Sub` or `Mul`, or one of their variants.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn arithmetic(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the operands are registers.
        unsafe {
            let i = at(pc);
            let (left, right) = (&*register(base, i.b), &*register(base, i.c));
            let result = match i.op {
                Op::Add | Op::AddInts => number::add(left, right),
                Op::Sub | Op::SubInts => number::sub(left, right),
                _ => number::mul(left, right),
            };
            self.put(register(base, i.a), result)
        }
    }

    /// # Safety
    /// `pc` is at an `AddInt` or one of its variants.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn add_int(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the operands are registers.
        unsafe {
            let i = at(pc);
            let left = &*register(base, i.b);
            let right = i64::from(i.c as i16);
            let result = match i.x {
                0 => number::add(left, &Value::Int(right)),
                1 => number::sub(left, &Value::Int(-right)),
                2 => number::inc(left),
                _ => number::dec(left),
            };
            self.put(register(base, i.a), result)
        }
    }

    /// Compares any two values.
    ///
    /// # Safety
    /// `pc` is at an instruction that compares two registers.
    #[inline(never)]
    pub(super) unsafe fn relation(&mut self, pc: Pc, base: Base) -> Answer {
        // SAFETY: the operands are registers.
        unsafe {
            let i = at(pc);
            let (left, right, is_strict) = match i.op {
                Op::JumpLess | Op::LoopLess => (i.a, i.b, true),
                Op::JumpLessEqual | Op::LoopLessEqual => (i.a, i.b, false),
                Op::Less => (i.b, i.c, true),
                _ => (i.b, i.c, false),
            };
            let (left, right) = (register(base, left), register(base, right));
            if slots::tag(left) == FLOAT && slots::tag(right) == FLOAT {
                let left = f64::from_bits(slots::payload(left));
                let right = f64::from_bits(slots::payload(right));
                return Answer::from(if is_strict {
                    left < right
                } else {
                    left <= right
                });
            }
            // The operands are in instruction order; the message names them in source order.
            let (left, right) = (&*left, &*right);
            let result = match (i.x & 2 != 0, is_strict) {
                (false, true) => number::less(left, right),
                (false, false) => number::less_or_equal(left, right),
                (true, true) => number::greater(right, left),
                (true, false) => number::greater_or_equal(right, left),
            };
            self.answer(result)
        }
    }

    /// Compares any value with a small integer.
    ///
    /// # Safety
    /// `pc` is at a jump that compares with one.
    #[inline(never)]
    pub(super) unsafe fn relation_int(&mut self, pc: Pc, base: Base) -> Answer {
        // SAFETY: the operand is a register.
        unsafe {
            let i = at(pc);
            let left = &*register(base, i.a);
            let right = Value::Int(i64::from(i.b as i16));
            let result = match i.op {
                Op::JumpLessInt | Op::LoopLessInt => number::less(left, &right),
                Op::JumpLessEqualInt | Op::LoopLessEqualInt => number::less_or_equal(left, &right),
                Op::JumpGreaterInt | Op::LoopGreaterInt => number::greater(left, &right),
                _ => number::greater_or_equal(left, &right),
            };
            self.answer(result)
        }
    }

    /// Tells whether two values are equal.
    ///
    /// # Safety
    /// Slots that hold values, and the running frame's registers.
    #[inline(never)]
    pub(super) unsafe fn equality(
        &mut self,
        left: *const Value,
        right: *const Value,
        pc: Pc,
        base: Base,
    ) -> Answer {
        // SAFETY: as the caller promises; the slots are not written before this returns.
        unsafe {
            self.protect(pc, base);
            let result = self.equal(&*left, &*right);
            self.answer(result)
        }
    }

    /// Returns the current value of a var: its binding in this machine, or its root.
    pub(super) fn global(&mut self, var: &Value) -> Result<Value> {
        let Value::Var(var) = var else {
            return Ok(Value::Nil);
        };
        self.var_value(var)
    }

    /// Returns the current value of a var: its binding in this machine, or its root.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn var_value(&mut self, var: &Rc<Var>) -> Result<Value> {
        if Rc::ptr_eq(var, &self.world().ns_var) {
            let current = self.world().current.borrow().clone();
            return Ok(Value::from(Object::Namespace(current)));
        }
        if var.is_dynamic()
            && let Some(bound) = self
                .bindings
                .iter()
                .rev()
                .find(|bound| Rc::ptr_eq(&bound.0, var))
        {
            return Ok(bound.1.clone());
        }
        var.root().ok_or_else(|| {
            Exception::new(
                Class::ILLEGAL_STATE,
                "E0306",
                format!("#'{} is not bound to a value yet", var.qualified()),
            )
            .into()
        })
    }

    /// Sets the root value of a var.
    ///
    /// # Safety
    /// `pc` is at a `Define`.
    #[inline(never)]
    pub(super) unsafe fn define(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the operand is a register, the verifier knows the constant.
        unsafe {
            let i = at(pc);
            let constants = &(*(*self.frames.current).body).constants;
            let constant = constants[i.wide() as usize].clone();
            let value = std::mem::replace(&mut *register(base, i.a), Value::Nil);
            self.protect(pc, base);
            let defined = match &constant {
                Value::Var(var) => self.set_root(var, value),
                _ => Ok(()),
            };
            self.put(register(base, i.a), defined.map(|()| constant))
        }
    }

    /// Looks up a keyword whose cached position is wrong, and caches its position in a small map.
    ///
    /// # Safety
    /// `pc` is at a `Keyword`.
    #[inline(never)]
    pub(super) unsafe fn keyword(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the operand is a register, the constant is a keyword.
        unsafe {
            let i = *at(pc);
            let coll = &*register(base, i.b);
            let constants = &(*(*self.frames.current).body).constants;
            let key = &constants[usize::from(i.c)];
            if let Value::Map(map) = coll
                && let Value::Keyword(keyword) = key
                && let Some(idx) = map.entries().array_index(*keyword)
                && let Some(entry) = map.entries().array_entry(idx)
            {
                slots::put_copy(register(base, i.a), &raw const entry.1);
                (&raw mut (*pc).instruction.x).write(idx as u8);
                return true;
            }
            self.protect(pc.add(1), base);
            let found = self.lookup(coll, key);
            let found = found.map(|found| found.unwrap_or(Value::Nil));
            self.put(register(base, i.a), found)
        }
    }

    /// Returns the target of a `Case`.
    ///
    /// # Safety
    /// `pc` is at a `Case`.
    #[inline(never)]
    pub(super) unsafe fn case_entry(&mut self, pc: Pc, base: Base) -> Option<isize> {
        // SAFETY: the operand is a register, the constant a map.
        unsafe {
            self.protect(pc, base);
            let value = &*register(base, at(pc).a);
            let constants = &(*(*self.frames.current).body).constants;
            let table = &constants[at(pc).wide() as usize];
            let realised = self.realise_key(value);
            self.done(realised)?;
            let entry = table
                .as_map()
                .and_then(|table| table.get(value))
                .and_then(Value::as_int);
            Some(entry.unwrap_or(0) as isize)
        }
    }

    #[cold]
    pub(crate) fn thrown(value: Value) -> Signal {
        match value {
            Value::Exception(exception) => Signal::Throw(exception),
            other => super::args::wrong_type(&other, "an exception to throw", 0)
                .hint("make one with (ex-info \"message\" {:key value})")
                .into(),
        }
    }

    #[cold]
    pub(super) fn rethrown(pending: Value) -> Signal {
        match pending {
            Value::Object(object) => match &*object {
                Object::Stop(stop) => {
                    meter::remember(stop);
                    Signal::Stop(Rc::new(stop.clone()))
                }
                _ => Vm::thrown(Value::Object(object)),
            },
            other => Vm::thrown(other),
        }
    }

    pub(crate) fn is_class(exception: &Value, class: &Value) -> bool {
        match (exception, class) {
            (Value::Exception(exception), Value::Object(class)) => match &**class {
                Object::Class(class) => exception.class.is_a(*class),
                _ => false,
            },
            _ => false,
        }
    }
}

/// Returns the error for too deeply nested calls.
#[cold]
pub(super) fn stack_overflow(depth: usize) -> Signal {
    Exception::new(
        Class::STACK_OVERFLOW,
        "E0302",
        format!("the call depth of {depth} is used up: a function calls itself too deep"),
    )
    .hint("use loop and recur, or reduce, for long repetitions")
    .into()
}

/// Returns the error for too deeply nested calls of library functions.
#[cold]
pub(super) fn native_stack_overflow() -> Signal {
    Exception::new(
        Class::STACK_OVERFLOW,
        "E0302",
        "the native stack is used up: functions of the library call one another too deep",
    )
    .hint("sequences with thousands of nested lazy steps cause this: use loop and recur, or doall in between")
    .into()
}

/// Returns the error for a call with a wrong number of arguments.
#[cold]
pub(super) fn wrong_arity(proto: &super::Proto, got: usize) -> Exception {
    let name = proto.name();
    let shown = match name.strip_suffix("/fn") {
        Some(around) if around.contains('/') => format!("the anonymous function in `{around}`"),
        Some(_) => "an anonymous function".to_owned(),
        None => format!("`{name}`"),
    };
    Exception::new(
        Class::ARITY,
        "E0305",
        format!("Wrong number of args ({got}) passed to: {name}"),
    )
    .display_message(format!(
        "{shown} takes {}, and got {got}",
        proto.arity_text()
    ))
    .hint("check the arguments of the call, or add an arity for that number: ([a] ...) ([a b] ...)")
}
