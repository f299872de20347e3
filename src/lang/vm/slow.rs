//! The machine's uncommon cases: entering and leaving functions, look-ups, construction, closures.

use std::rc::Rc;

use super::Vm;
use super::code::{Body, Instruction, Op};
use super::exec::SWITCHED;
use super::machine::Frame;
use super::slots::{self, MAP};
use crate::value::{
    Class, Closure, Exception, List, Object, PMap, PVec, Result, Signal, Value, Var, Vector,
    number, track,
};

/// Where a function goes on: its next instruction and its registers.
pub(super) type Place = (*mut Instruction, *mut Value);

impl Vm {
    /// Begins a call of the closure in `window[0]`: checks arity, room and budget, saves the caller.
    ///
    /// # Safety
    /// As for `execute`; `window[0]` holds a closure.
    #[inline(always)]
    pub(super) unsafe fn enter(
        &mut self,
        window: *mut Value,
        count: usize,
        caller: Place,
        dst: u16,
        flags: u8,
    ) -> Result<Place> {
        // SAFETY: the window holds a closure, and stays in place while it runs.
        unsafe {
            let closure = slots::closure(window);
            if let Some(body) = closure.proto.fixed_body(count)
                && self.fuel > 0
                && self.frames.len() < self.frames.capacity()
            {
                let base = window.add(1);
                if (self.stack_end as usize) - (base as usize)
                    >= usize::from((*body).registers) * size_of::<Value>()
                {
                    self.fuel -= 1;
                    // There is room, as was just seen.
                    let depth = self.frames.len();
                    let frame = self.frames.as_mut_ptr().add(depth);
                    // Field by field: a frame built aside would be read back in larger pieces, and wait.
                    (&raw mut (*frame).pc).write(caller.0);
                    (&raw mut (*frame).base).write(caller.1);
                    (&raw mut (*frame).body).write(self.body);
                    (&raw mut (*frame).dst).write(dst);
                    (&raw mut (*frame).flags).write(flags);
                    self.frames.set_len(depth + 1);
                    self.body = body;
                    self.constants = (*body).constants.as_ptr();
                    return Ok(((*body).start(), base));
                }
            }
            self.enter_slow(window, count, caller, dst, flags)
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn enter_slow(
        &mut self,
        mut window: *mut Value,
        count: usize,
        caller: Place,
        dst: u16,
        mut flags: u8,
    ) -> Result<Place> {
        // SAFETY: as in `enter`; a move to another segment moves function and arguments one by one.
        unsafe {
            self.top = window.add(1 + count);
            if self.fuel == 0 {
                self.refill()?;
            }
            self.fuel -= 1;
            if self.frames.len() >= self.max_frames {
                return Err(stack_overflow(self.max_frames));
            }
            if self.frames.len() == self.frames.capacity() {
                // Never more than the limit: the fast way looks at the capacity alone.
                let more = self
                    .frames
                    .len()
                    .max(32)
                    .min(self.max_frames - self.frames.len());
                self.frames.reserve_exact(more);
            }
            let proto = match &*window {
                Value::Fn(closure) => closure.proto.clone(),
                other => return Err(Vm::not_callable(self, &other.clone())),
            };
            let Some(body) = proto.body(count) else {
                return Err(wrong_arity(&proto, count).into());
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
                flags |= SWITCHED;
            }
            let base = window.add(1);
            if body.is_variadic {
                let params = usize::from(body.params);
                let rest: Vec<Value> = (params..count)
                    .map(|idx| std::mem::replace(&mut *base.add(idx), Value::Nil))
                    .collect();
                *base.add(params) = if rest.is_empty() {
                    Value::Nil
                } else {
                    List::of(rest)
                };
            }
            let (pc, base_of_caller) = caller;
            self.frames.push(Frame {
                base: base_of_caller,
                pc,
                body: self.body,
                dst,
                flags,
            });
            self.body = &raw const **body;
            self.constants = body.constants.as_ptr();
            Ok((body.start(), base))
        }
    }

    /// Makes the caller's body and segment current again.
    #[inline(always)]
    pub(super) fn leave(&mut self, body: *const Body, flags: u8) {
        self.body = body;
        if !body.is_null() {
            // SAFETY: the body of a frame is held by the closure that runs in it.
            self.constants = unsafe { (*body).constants.as_ptr() };
        }
        if flags & SWITCHED != 0 {
            self.stack.retreat();
            self.stack_end = self.stack.end();
        }
    }

    /// Calls what is in `window[0]`, which is no closure, with the arguments after it, and clears them.
    ///
    /// # Safety
    /// As for `execute`.
    #[inline(never)]
    pub(super) unsafe fn call_window(&mut self, window: *mut Value, count: usize) -> Result<Value> {
        // SAFETY: the slots are registers of the running frame, and never move.
        unsafe {
            let args = std::slice::from_raw_parts_mut(window.add(1), count);
            self.top = window.add(1 + count);
            let function = std::mem::replace(&mut *window, Value::Nil);
            let result = self.invoke(&function, args);
            for slot in args {
                slots::release(slot);
            }
            result
        }
    }

    /// Puts the root of a plain var into a register; false when the var is dynamic or unbound.
    ///
    /// # Safety
    /// `var` points at a var.
    #[inline(always)]
    pub(super) unsafe fn load_function(&mut self, window: *mut Value, var: *const Value) -> bool {
        // SAFETY: the constant is a var, as the compiler emits it.
        unsafe {
            let var = slots::var(var);
            if var.is_dynamic.get() {
                return false;
            }
            var.with_root(|root| match root {
                Some(root) => {
                    slots::copy_closure(window, root);
                    true
                }
                None => false,
            })
        }
    }

    /// Returns what a var holds here: its binding in this machine, or its root.
    pub(super) fn global(&mut self, var: &Value) -> Result<Value> {
        let Value::Var(var) = var else {
            return Ok(Value::Nil);
        };
        self.var_value(var)
    }

    /// Returns what a var holds here: its binding in this machine, or its root.
    ///
    /// # Errors
    /// When it is not bound.
    pub fn var_value(&mut self, var: &Rc<Var>) -> Result<Value> {
        if Rc::ptr_eq(var, &self.world().ns_var) {
            let current = self.world().current.borrow().clone();
            return Ok(Value::from(Object::Namespace(current)));
        }
        if var.is_dynamic.get()
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

    pub(super) fn define(&mut self, var: &Value, value: Value) {
        if let Value::Var(var) = var {
            var.set_root(value);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn add_int(left: &Value, right: i64, x: u8) -> Result<Value> {
        match x {
            0 => number::add(left, &Value::Int(right)),
            1 => number::sub(left, &Value::Int(-right)),
            2 => number::inc(left),
            _ => number::dec(left),
        }
    }

    /// Looks a keyword up where it was last time.
    ///
    /// # Safety
    /// Registers and a keyword constant.
    #[inline(always)]
    pub(super) unsafe fn keyword_hit(
        to: *mut Value,
        coll: *const Value,
        key: *const Value,
        hint: u8,
    ) -> bool {
        // SAFETY: the slots hold values; the entry is copied before anything is dropped.
        unsafe {
            if slots::tag(coll) != MAP {
                return false;
            }
            let Value::Map(map) = &*coll else {
                return false;
            };
            match map.entries().array_entry(usize::from(hint)) {
                Some((Value::Keyword(found), value)) if found.id() == slots::id(key) => {
                    let value = value.clone();
                    *to = value;
                    true
                }
                _ => false,
            }
        }
    }

    /// Looks a keyword up anywhere; returns where a small map has it as the next hint.
    #[inline(never)]
    pub(super) fn keyword_miss(&mut self, coll: &Value, key: &Value) -> Result<(Value, u8)> {
        if let Value::Map(map) = coll {
            let entries = map.entries();
            let at = (0..8).find(|idx| {
                entries
                    .array_entry(usize::from(*idx))
                    .is_some_and(|entry| entry.0 == *key)
            });
            if let Some(at) = at
                && let Some(entry) = entries.array_entry(usize::from(at))
            {
                return Ok((entry.1.clone(), at));
            }
        }
        Ok((self.lookup(coll, key)?.unwrap_or(Value::Nil), 0))
    }

    pub(super) fn case_entry(&mut self, value: &Value, table: &Value) -> Result<isize> {
        self.realise_key(value)?;
        let entry = table
            .as_map()
            .and_then(|table| table.get(value))
            .and_then(Value::as_int);
        Ok(entry.unwrap_or(0) as isize)
    }

    /// # Safety
    /// `count` registers from `from` on.
    #[inline(never)]
    pub(super) unsafe fn make_vector(from: *mut Value, count: usize) -> Value {
        // SAFETY: each register is moved out once and becomes nil.
        let items: PVec = (0..count)
            .map(|idx| unsafe { std::mem::replace(&mut *from.add(idx), Value::Nil) })
            .collect();
        Value::Vector(Rc::new(Vector::new(items)))
    }

    /// # Safety
    /// As for `make_vector`.
    #[inline(never)]
    pub(super) unsafe fn make_map(&mut self, from: *mut Value, count: usize) -> Result<Value> {
        let mut entries = PMap::new();
        for idx in (0..count).step_by(2) {
            // SAFETY: as in `make_vector`.
            let (key, value) = unsafe {
                (
                    std::mem::replace(&mut *from.add(idx), Value::Nil),
                    std::mem::replace(&mut *from.add(idx + 1), Value::Nil),
                )
            };
            self.realise_key(&key)?;
            if entries.contains(&key) {
                return Err(duplicate_key(self, &key));
            }
            entries.insert(key, value);
        }
        Ok(Value::Map(Rc::new(crate::value::Map::new(entries))))
    }

    /// # Safety
    /// As for `make_vector`.
    #[inline(never)]
    pub(super) unsafe fn make_set(&mut self, from: *mut Value, count: usize) -> Result<Value> {
        let mut items = crate::value::PSet::new();
        for idx in 0..count {
            // SAFETY: as in `make_vector`.
            let item = unsafe { std::mem::replace(&mut *from.add(idx), Value::Nil) };
            self.realise_key(&item)?;
            if items.contains(&item) {
                return Err(duplicate_key(self, &item));
            }
            items.insert(item);
        }
        Ok(Value::Set(Rc::new(crate::value::Set::new(items))))
    }

    /// Makes a closure of a template; the moves after the instruction say what it captures.
    ///
    /// # Safety
    /// `pc` is at the first of these moves, `base` the frame.
    #[inline(never)]
    pub(super) unsafe fn make_closure(
        base: *mut Value,
        pc: *mut Instruction,
        template: &Value,
    ) -> (Value, usize) {
        let Value::Fn(template) = template else {
            return (Value::Nil, 0);
        };
        let count = template.captured.len();
        // SAFETY: the compiler puts one move for each captured value after the instruction.
        let captured = (0..count)
            .map(|idx| unsafe {
                let source = *pc.add(idx);
                match source.op {
                    Op::Take => {
                        std::mem::replace(&mut *base.add(usize::from(source.b)), Value::Nil)
                    }
                    Op::Captured => {
                        slots::closure(base.sub(1)).captured[usize::from(source.b)].clone()
                    }
                    Op::Myself => (*base.sub(1)).clone(),
                    _ => (*base.add(usize::from(source.b))).clone(),
                }
            })
            .collect();
        let closure = Closure {
            proto: template.proto.clone(),
            captured,
            meta: template.meta.clone(),
        };
        (Value::Fn(Rc::new(closure)), count)
    }

    /// Replaces one captured value of the closure in a register: how functions of one `letfn` meet.
    ///
    /// # Safety
    /// The register holds a closure that nobody calls yet.
    pub(super) unsafe fn patch(closure: *mut Value, idx: u16, value: Value) {
        // SAFETY: the closure was just made, runs nowhere, and no reference into it is alive.
        unsafe {
            if let Value::Fn(function) = &*closure {
                let captured = function.captured.as_ptr().cast_mut().add(usize::from(idx));
                *captured = value;
            }
            track(&*closure);
        }
    }

    #[cold]
    pub(super) fn thrown(value: Value) -> Signal {
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
                Object::Stop(stop) => Signal::Stop(Rc::new(stop.clone())),
                _ => Vm::thrown(Value::Object(object)),
            },
            other => Vm::thrown(other),
        }
    }

    pub(super) fn is_class(exception: &Value, class: &Value) -> bool {
        match (exception, class) {
            (Value::Exception(exception), Value::Object(class)) => match &**class {
                Object::Class(class) => exception.class.is_a(*class),
                _ => false,
            },
            _ => false,
        }
    }
}

#[cold]
fn duplicate_key(vm: &mut Vm, key: &Value) -> Signal {
    let shown = vm
        .print(key, crate::value::PrintOptions::BRIEF)
        .unwrap_or_default();
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0312",
        format!("duplicate key: {shown}"),
    )
    .into()
}

/// What too many calls inside one another give.
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

/// What library functions that call one another too deep give.
#[cold]
pub(super) fn native_stack_overflow() -> Signal {
    Exception::new(
        Class::STACK_OVERFLOW,
        "E0302",
        "the native stack is used up: functions of the library call one another too deep",
    )
    .hint("sequences made of thousands of lazy steps are like this: use loop and recur, or doall in between")
    .into()
}

/// What a call with another number of arguments than the function takes gives.
#[cold]
pub(super) fn wrong_arity(proto: &super::Proto, got: usize) -> Exception {
    Exception::new(
        Class::ARITY,
        "E0305",
        format!(
            "wrong number of arguments ({got}) passed to {}, which takes {}",
            proto.name(),
            proto.arity_text()
        ),
    )
}
