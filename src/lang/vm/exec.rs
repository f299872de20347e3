//! The loop that runs bytecode.
//!
//! Its live state is `pc`, `base` and `vm`; whatever is not the common case is a cold function in `slow`
//! that gets the instruction and the base. Registers of a body are valid slots (the verifier checks the
//! numbers in debug builds, `Vm::enter` that the segment has room).

use super::code::{Instruction, Op};
use super::slots::{self, FLOAT, FN, INT, KEYWORD};
use super::{Args, Vm};
use crate::value::number::{add, greater, greater_or_equal, less, less_or_equal, mul, sub};
use crate::value::{Native, Result, Signal, Value};

/// Whether a frame returns to Rust.
pub(super) const ENTRY: u8 = 1;
/// Whether a frame's registers begin a segment.
pub(super) const SWITCHED: u8 = 2;

type Pc = *mut Instruction;
type Base = *mut Value;

/// Runs the function in `window[0]` with the `count` arguments after it, until it returns.
///
/// # Safety
/// `window` lies in the machine's current segment, with `count` values after the function.
#[expect(
    clippy::too_many_lines,
    reason = "one arm an instruction: the loop must be one function to be fast"
)]
pub(super) unsafe fn execute(vm: &mut Vm, window: Base, count: usize) -> Result<Value> {
    // What is under way in the caller, if it runs code: traces go on there.
    let mut pc: Pc = vm.pc;
    let mut base: Base = window;
    macro_rules! r {
        ($idx:expr) => {
            base.add(usize::from($idx))
        };
    }
    macro_rules! k {
        ($idx:expr) => {
            vm.constants.add($idx as usize)
        };
    }
    // All failures leave the inner loop at one place: the code of the common cases stays small.
    macro_rules! fail {
        ($signal:expr) => {
            break $signal
        };
    }
    macro_rules! attempt {
        ($result:expr) => {
            match $result {
                Ok(value) => value,
                Err(signal) => fail!(signal),
            }
        };
    }
    macro_rules! enter {
        ($window:expr, $count:expr, $dst:expr, $flags:expr) => {
            match vm.enter($window, $count, (pc, base), $dst, $flags) {
                Ok((to, frame)) => {
                    pc = to;
                    base = frame;
                }
                Err(signal) => fail!(signal),
            }
        };
    }
    macro_rules! jump {
        ($offset:expr) => {
            pc = pc.offset($offset as isize)
        };
    }
    macro_rules! arithmetic {
        ($i:expr, $checked:ident, $float:tt, $slow:path) => {{
            let (left, right) = (r!($i.b), r!($i.c));
            if slots::tag(left) == INT && slots::tag(right) == INT {
                let (value, overflow) = (slots::payload(left) as i64).$checked(slots::payload(right) as i64);
                if !overflow {
                    slots::put_int(r!($i.a), value);
                    continue;
                }
            } else if slots::tag(left) == FLOAT && slots::tag(right) == FLOAT {
                let value = f64::from_bits(slots::payload(left)) $float f64::from_bits(slots::payload(right));
                slots::put_float(r!($i.a), value);
                continue;
            }
            let value = attempt!($slow(&*left, &*right));
            slots::put_value(r!($i.a), value);
        }};
    }
    macro_rules! relation {
        ($i:expr, $left:expr, $right:expr, $operator:tt, $slow:path, $swapped:path) => {{
            let (left, right) = ($left, $right);
            if slots::tag(left) == INT && slots::tag(right) == INT {
                (slots::payload(left) as i64) $operator (slots::payload(right) as i64)
            } else if $i.x & 2 == 0 {
                attempt!($slow(&*left, &*right))
            } else {
                attempt!($swapped(&*right, &*left))
            }
        }};
    }
    macro_rules! relation_int {
        ($i:expr, $operator:tt, $slow:path) => {{
            let left = r!($i.a);
            let right = i64::from($i.b as i16);
            let holds = if slots::tag(left) == INT {
                (slots::payload(left) as i64) $operator right
            } else {
                attempt!($slow(&*left, &Value::Int(right)))
            };
            if holds == ($i.x != 0) {
                jump!($i.c as i16);
            }
        }};
    }
    // SAFETY: of the whole loop: `pc` stays within the body's code and registers and constants within
    // their tables, as the compiler emits and `verify` checks; every slot holds a valid value; a closure
    // that runs is held by the slot before its registers.
    unsafe {
        match vm.enter(window, count, (pc, base), 0, ENTRY) {
            Ok((to, frame)) => {
                pc = to;
                base = frame;
            }
            Err(signal) => {
                for idx in 0..=count {
                    slots::release(window.add(idx));
                }
                return Err(signal);
            }
        }
        loop {
            let signal: Signal = loop {
                // By reference: each arm loads the operands that it needs, from beside `pc`.
                let i = &*pc;
                pc = pc.add(1);
                match i.op {
                    Op::Move => slots::copy(r!(i.a), r!(i.b)),
                    Op::Take => slots::take(r!(i.a), r!(i.b)),
                    Op::Nil => slots::put_nil(r!(i.a)),
                    Op::Bool => slots::put_bool(r!(i.a), i.x != 0),
                    Op::Int => slots::put_int(r!(i.a), i64::from(i.wide() as i32)),
                    Op::Const => slots::copy(r!(i.a), k!(i.wide())),
                    Op::Captured => {
                        let closure = slots::closure(base.sub(1));
                        slots::copy(r!(i.a), closure.captured.as_ptr().add(usize::from(i.b)));
                    }
                    Op::Myself => slots::copy(r!(i.a), base.sub(1)),
                    Op::Global => {
                        let value = attempt!(vm.global(&*k!(i.wide())));
                        slots::put_value(r!(i.a), value);
                    }
                    Op::Define => {
                        let value = std::mem::replace(&mut *r!(i.a), Value::Nil);
                        let var = (*k!(i.wide())).clone();
                        vm.define(&var, value);
                        slots::put_value(r!(i.a), var);
                    }
                    Op::CallNative => {
                        let window = r!(i.a).add(1);
                        let native = slots::payload(k!(i.c)) as *const Native;
                        let count = usize::from(i.x);
                        vm.top = window.add(count);
                        vm.pc = pc;
                        let args = Args::new(std::slice::from_raw_parts_mut(window, count));
                        let value = attempt!(((*native).run)(vm, args));
                        for idx in 0..count {
                            slots::release(window.add(idx));
                        }
                        slots::put_value(r!(i.b), value);
                    }
                    Op::CallMyself => {
                        let window = r!(i.a);
                        slots::copy_closure(window, base.sub(1));
                        enter!(window, usize::from(i.x), i.b, 0);
                    }
                    Op::CallGlobal => {
                        let window = r!(i.a);
                        if !vm.load_function(window, k!(i.c)) {
                            let value = attempt!(vm.global(&*k!(i.c)));
                            *window = value;
                        }
                        if slots::tag(window) == FN {
                            enter!(window, usize::from(i.x), i.b, 0);
                        } else {
                            vm.pc = pc;
                            let value = attempt!(vm.call_window(window, usize::from(i.x)));
                            slots::put_value(r!(i.b), value);
                        }
                    }
                    Op::Call => {
                        let window = r!(i.a);
                        if slots::tag(window) == FN {
                            enter!(window, usize::from(i.x), i.b, 0);
                        } else {
                            vm.pc = pc;
                            let value = attempt!(vm.call_window(window, usize::from(i.x)));
                            slots::put_value(r!(i.b), value);
                        }
                    }
                    Op::Return => {
                        let body = &*vm.body;
                        // A running function has a frame.
                        let depth = vm.frames.len() - 1;
                        vm.frames.set_len(depth);
                        let frame = vm.frames.as_ptr().add(depth);
                        let (body_of_caller, flags) = ((*frame).body, (*frame).flags);
                        if flags & ENTRY != 0 {
                            vm.pc = (*frame).pc;
                            let value = std::mem::replace(&mut *r!(i.a), Value::Nil);
                            for idx in 0..body.registers {
                                slots::release(r!(idx));
                            }
                            slots::release(base.sub(1));
                            vm.leave(body_of_caller, flags);
                            return Ok(value);
                        }
                        let caller = (*frame).base;
                        let to = (*frame).pc;
                        slots::take(caller.add(usize::from((*frame).dst)), r!(i.a));
                        for idx in &*body.owning {
                            slots::release(r!(*idx));
                        }
                        slots::release_closure(base.sub(1));
                        vm.leave(body_of_caller, flags);
                        base = caller;
                        pc = to;
                    }
                    Op::Jump => jump!(i.wide() as i32),
                    Op::JumpBack => {
                        if vm.fuel == 0 {
                            vm.top = r!((*vm.body).registers);
                            vm.pc = pc;
                            attempt!(vm.refill());
                        }
                        vm.fuel -= 1;
                        jump!(i.wide() as i32);
                    }
                    Op::JumpIf => {
                        if slots::is_truthy(r!(i.a)) == (i.x != 0) {
                            jump!(i.wide() as i32);
                        }
                    }
                    Op::JumpIfNil => {
                        if (slots::tag(r!(i.a)) == 0) == (i.x != 0) {
                            jump!(i.wide() as i32);
                        }
                    }
                    Op::JumpLess => {
                        let holds = relation!(i, r!(i.a), r!(i.b), <, less, greater);
                        if holds == (i.x & 1 != 0) {
                            jump!(i.c as i16);
                        }
                    }
                    Op::JumpLessEqual => {
                        let holds =
                            relation!(i, r!(i.a), r!(i.b), <=, less_or_equal, greater_or_equal);
                        if holds == (i.x & 1 != 0) {
                            jump!(i.c as i16);
                        }
                    }
                    Op::JumpEqual => {
                        let (left, right) = (r!(i.a), r!(i.b));
                        let holds = match slots::tag(left) {
                            INT if slots::tag(right) == INT => {
                                slots::payload(left) == slots::payload(right)
                            }
                            KEYWORD => {
                                slots::tag(right) == KEYWORD && slots::id(left) == slots::id(right)
                            }
                            _ => {
                                vm.top = r!((*vm.body).registers);
                                vm.pc = pc;
                                attempt!(vm.equal(&*left, &*right))
                            }
                        };
                        if holds == (i.x != 0) {
                            jump!(i.c as i16);
                        }
                    }
                    Op::JumpLessInt => relation_int!(i, <, less),
                    Op::JumpLessEqualInt => relation_int!(i, <=, less_or_equal),
                    Op::JumpGreaterInt => relation_int!(i, >, greater),
                    Op::JumpGreaterEqualInt => relation_int!(i, >=, greater_or_equal),
                    Op::JumpEqualInt => {
                        let left = r!(i.a);
                        let right = i64::from(i.b as i16);
                        let holds = match slots::tag(left) {
                            INT => slots::payload(left) as i64 == right,
                            0 | KEYWORD => false,
                            _ => attempt!(vm.equal(&*left, &Value::Int(right))),
                        };
                        if holds == (i.x != 0) {
                            jump!(i.c as i16);
                        }
                    }
                    Op::Case => {
                        vm.pc = pc;
                        let entry = attempt!(vm.case_entry(&*r!(i.a), &*k!(i.wide())));
                        jump!(entry);
                    }
                    Op::Add => arithmetic!(i, overflowing_add, +, add),
                    Op::Sub => arithmetic!(i, overflowing_sub, -, sub),
                    Op::Mul => arithmetic!(i, overflowing_mul, *, mul),
                    Op::AddInt => {
                        let left = r!(i.b);
                        let right = i64::from(i.c as i16);
                        if slots::tag(left) == INT {
                            let (value, overflow) =
                                (slots::payload(left) as i64).overflowing_add(right);
                            if !overflow {
                                slots::put_int(r!(i.a), value);
                                continue;
                            }
                        }
                        let value = attempt!(Vm::add_int(&*left, right, i.x));
                        slots::put_value(r!(i.a), value);
                    }
                    Op::Less => {
                        let holds = relation!(i, r!(i.b), r!(i.c), <, less, greater);
                        slots::put_bool(r!(i.a), holds);
                    }
                    Op::LessEqual => {
                        let holds =
                            relation!(i, r!(i.b), r!(i.c), <=, less_or_equal, greater_or_equal);
                        slots::put_bool(r!(i.a), holds);
                    }
                    Op::Equal => {
                        vm.top = r!((*vm.body).registers);
                        vm.pc = pc;
                        let holds = attempt!(vm.equal(&*r!(i.b), &*r!(i.c)));
                        slots::put_bool(r!(i.a), holds);
                    }
                    Op::Not => {
                        let holds = !slots::is_truthy(r!(i.b));
                        slots::put_bool(r!(i.a), holds);
                    }
                    Op::IsNil => {
                        let holds = slots::tag(r!(i.b)) == 0;
                        slots::put_bool(r!(i.a), holds);
                    }
                    Op::Keyword => {
                        if !Vm::keyword_hit(r!(i.a), r!(i.b), k!(i.c), i.x) {
                            vm.pc = pc;
                            let (value, at) = attempt!(vm.keyword_miss(&*r!(i.b), &*k!(i.c)));
                            slots::put_value(r!(i.a), value);
                            // Last: `i` may not be read once the instruction has changed.
                            (*pc.sub(1)).x = at;
                        }
                    }
                    Op::Vector => {
                        let value = Vm::make_vector(r!(i.c), usize::from(i.b));
                        slots::put_value(r!(i.a), value);
                    }
                    Op::Map => {
                        vm.top = r!((*vm.body).registers);
                        vm.pc = pc;
                        let value = attempt!(vm.make_map(r!(i.c), usize::from(i.b)));
                        slots::put_value(r!(i.a), value);
                    }
                    Op::Set => {
                        vm.top = r!((*vm.body).registers);
                        vm.pc = pc;
                        let value = attempt!(vm.make_set(r!(i.c), usize::from(i.b)));
                        slots::put_value(r!(i.a), value);
                    }
                    Op::Closure => {
                        let (value, captures) = Vm::make_closure(base, pc, &*k!(i.wide()));
                        pc = pc.add(captures);
                        slots::put_value(r!(i.a), value);
                    }
                    Op::Patch => Vm::patch(r!(i.a), i.c, (*r!(i.b)).clone()),
                    Op::Throw => {
                        let thrown = (*r!(i.a)).clone();
                        fail!(Vm::thrown(thrown))
                    }
                    Op::Rethrow => {
                        let pending = std::mem::replace(&mut *r!(i.a), Value::Nil);
                        fail!(Vm::rethrown(pending))
                    }
                    Op::IsClass => {
                        let holds = Vm::is_class(&*r!(i.b), &*k!(i.c));
                        slots::put_bool(r!(i.a), holds);
                    }
                    Op::WithMeta => {
                        let meta = std::mem::replace(&mut *r!(i.b), Value::Nil);
                        if let Value::Var(var) = &*r!(i.a) {
                            var.set_meta(meta);
                            continue;
                        }
                        if let Some(value) = (*r!(i.a)).with_meta(meta) {
                            slots::put_value(r!(i.a), value);
                        }
                    }
                }
            };
            match vm.unwind(signal, pc, base) {
                Ok((to, frame)) => {
                    pc = to;
                    base = frame;
                }
                Err(signal) => return Err(signal),
            }
        }
    }
}
