//! Values that instructions construct: collections from their items, closures, values with metadata.

use std::rc::Rc;

use super::Vm;
use super::code::Op;
use super::exec::{Base, Pc, at, register};
use super::slots;
use crate::value::{Class, Closure, Exception, PMap, PVec, Result, Signal, Value, Vector, track};

impl Vm {
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
    pub(super) unsafe fn make_map(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the verifier knows the registers.
        unsafe {
            self.protect(pc, base);
            let i = at(pc);
            let map = self.map_of(register(base, i.c), usize::from(i.b));
            self.put(register(base, i.a), map)
        }
    }

    unsafe fn map_of(&mut self, from: *mut Value, count: usize) -> Result<Value> {
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
    pub(super) unsafe fn make_set(&mut self, pc: Pc, base: Base) -> bool {
        // SAFETY: the verifier knows the registers.
        unsafe {
            self.protect(pc, base);
            let i = at(pc);
            let set = self.set_of(register(base, i.c), usize::from(i.b));
            self.put(register(base, i.a), set)
        }
    }

    unsafe fn set_of(&mut self, from: *mut Value, count: usize) -> Result<Value> {
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

    /// Creates a closure from a template; the moves after the instruction name its captured values. Returns their
    /// number.
    ///
    /// # Safety
    /// `pc` is at a `Closure`.
    #[inline(never)]
    pub(super) unsafe fn make_closure(pc: Pc, base: Base, template: &Value) -> usize {
        let Value::Fn(template) = template else {
            return 0;
        };
        let count = template.captured.len();
        // SAFETY: the compiler puts one move for each captured value after the instruction.
        unsafe {
            let captured = (0..count)
                .map(|idx| {
                    let source = at(pc.add(1 + idx));
                    match source.op {
                        Op::Take => std::mem::replace(&mut *register(base, source.b), Value::Nil),
                        Op::Captured => {
                            slots::running(base).captured[usize::from(source.b)].clone()
                        }
                        Op::Myself => (*slots::borrowed(base.sub(1))).clone(),
                        _ => (*register(base, source.b)).clone(),
                    }
                })
                .collect();
            let closure = Closure {
                proto: template.proto.clone(),
                captured,
                meta: template.meta.clone(),
            };
            slots::put_value(register(base, at(pc).a), Value::Fn(Rc::new(closure)));
        }
        count
    }

    /// Replaces one captured value of the closure in a register: functions of one `letfn` refer to each other in this
    /// way.
    ///
    /// # Safety
    /// The register holds a closure that has not been called yet.
    pub(super) unsafe fn patch(closure: *mut Value, idx: u16, value: Value) {
        // SAFETY: the closure was just made, does not run, and no reference into it is alive.
        unsafe {
            if let Value::Fn(function) = &*closure {
                let captured = function.captured.as_ptr().cast_mut().add(usize::from(idx));
                *captured = value;
            }
            track(&*closure);
        }
    }

    /// Sets the metadata of the value in a register from another register, which becomes nil.
    ///
    /// # Safety
    /// Both are registers.
    #[inline(never)]
    pub(super) unsafe fn give_meta(to: *mut Value, meta: *mut Value) {
        // SAFETY: as the caller promises.
        unsafe {
            let meta = std::mem::replace(&mut *meta, Value::Nil);
            if let Value::Var(var) = &*to {
                var.set_meta(meta);
            } else if let Some(value) = (*to).with_meta(meta) {
                slots::put_value(to, value);
            }
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
