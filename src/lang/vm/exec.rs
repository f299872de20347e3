//! The loop that runs bytecode.
//!
//! Its live state is `pc`, `base` and `vm`; each uncommon case is a function in `slow` that receives the instruction
//! and the base, and stores the reason of a failure in the machine. Registers of a body are valid slots (the verifier
//! checks the numbers in debug builds, entering a function checks that the segment has room).

use std::mem::ManuallyDrop;

use super::code::{Instruction, Op, Word};
use super::quick::QUICK;
use super::slots::{self, FLOAT, FN, INT, KEYWORD, MAP};
use super::slow::{FAILED, HOLDS};
use super::stack::ENTRY;
use super::{Args, Vm};
use crate::value::meter;
use crate::value::{Result, Value};

pub(super) type Pc = *mut Word;
pub(super) type Base = *mut Value;

/// Returns the register at an offset.
#[inline(always)]
pub(super) unsafe fn register(base: Base, offset: u16) -> *mut Value {
    // SAFETY: the offset is that of a register of the frame at `base`.
    unsafe { base.byte_add(usize::from(offset)) }
}

/// Returns the instruction at `pc`; to be read before `pc` changes.
#[inline(always)]
pub(super) unsafe fn at<'a>(pc: Pc) -> &'a Instruction {
    // SAFETY: `pc` is at an instruction of a body that runs.
    unsafe { &*pc.cast::<Instruction>() }
}

/// Runs the function in `window[0]` with the `count` arguments after it until it returns; `window[0]` then holds the
/// result.
///
/// # Safety
/// `window` lies in the machine's current segment, with `count` values after the function.
#[expect(
    clippy::too_many_lines,
    reason = "one arm an instruction: the loop must be one function to be fast"
)]
pub(super) unsafe fn execute(vm: &mut Vm, window: Base, count: usize) -> Result<()> {
    let mut pc: Pc;
    let mut base: Base;
    // Operands are read from memory when they are needed, so that few registers are live.
    macro_rules! a {
        () => {
            register(base, at(pc).a)
        };
    }
    macro_rules! b {
        () => {
            register(base, at(pc).b)
        };
    }
    macro_rules! c {
        () => {
            register(base, at(pc).c)
        };
    }
    macro_rules! k {
        ($idx:expr) => {
            (*(*vm.frames.current).body)
                .constants
                .as_ptr()
                .add($idx as usize)
        };
    }
    macro_rules! next {
        () => {{
            pc = pc.add(1);
            continue;
        }};
    }
    // All failures leave the inner loop at one place, which keeps the code of the common cases small.
    macro_rules! fail {
        () => {{
            pc = pc.add(1);
            break;
        }};
    }
    macro_rules! check {
        ($done:expr) => {{
            if !$done {
                fail!()
            }
            next!()
        }};
    }
    macro_rules! jump {
        ($offset:expr) => {{
            pc = pc.offset($offset as isize + 1);
            continue;
        }};
    }
    // Enters the callee that `enter` and similar functions return, or fails. `pc` is at the last word of the call.
    macro_rules! go {
        ($place:expr) => {
            match $place {
                Some((to, frame)) => {
                    pc = to;
                    base = frame;
                    continue;
                }
                None => fail!(),
            }
        };
    }
    macro_rules! arithmetic {
        ($checked:ident, $float:tt) => {{
            let (left, right) = (b!(), c!());
            if slots::tag(left) == INT && slots::tag(right) == INT {
                let (value, overflow) = (slots::payload(left) as i64).$checked(slots::payload(right) as i64);
                if !overflow {
                    slots::put_int(a!(), value);
                    next!();
                }
            } else if slots::tag(left) == FLOAT && slots::tag(right) == FLOAT {
                let value = f64::from_bits(slots::payload(left)) $float f64::from_bits(slots::payload(right));
                slots::put_float(a!(), value);
                next!();
            }
            check!(vm.arithmetic(pc, base))
        }};
    }
    macro_rules! ints {
        ($checked:ident) => {{
            debug_assert!(slots::tag(a!()) == INT && slots::tag(b!()) == INT);
            debug_assert!(slots::tag(c!()) == INT);
            let (left, right) = (slots::payload(b!()) as i64, slots::payload(c!()) as i64);
            match left.$checked(right) {
                Some(value) => {
                    slots::set_int(a!(), value);
                    next!()
                }
                None => check!(vm.arithmetic(pc, base)),
            }
        }};
    }
    macro_rules! step {
        () => {{
            debug_assert!(slots::tag(a!()) == INT && slots::tag(b!()) == INT);
            (slots::payload(b!()) as i64).checked_add(i64::from(at(pc).c as i16))
        }};
    }
    // Adds in the simple case; evaluates to whether it did.
    macro_rules! add_int {
        () => {{
            let left = b!();
            let sum = if slots::tag(left) == INT {
                (slots::payload(left) as i64).checked_add(i64::from(at(pc).c as i16))
            } else {
                None
            };
            match sum {
                Some(sum) => {
                    slots::put_int(a!(), sum);
                    true
                }
                None => false,
            }
        }};
    }
    // Evaluates whether a relation of two registers holds.
    macro_rules! relation {
        ($left:expr, $right:expr, $operator:tt) => {{
            let (left, right) = ($left, $right);
            if slots::tag(left) == INT && slots::tag(right) == INT {
                (slots::payload(left) as i64) $operator (slots::payload(right) as i64)
            } else {
                match vm.relation(pc, base) {
                    FAILED => fail!(),
                    answer => answer == HOLDS,
                }
            }
        }};
    }
    macro_rules! relation_int {
        ($operator:tt) => {{
            let left = a!();
            if slots::tag(left) == INT {
                (slots::payload(left) as i64) $operator i64::from(at(pc).b as i16)
            } else {
                match vm.relation_int(pc, base) {
                    FAILED => fail!(),
                    answer => answer == HOLDS,
                }
            }
        }};
    }
    macro_rules! pay {
        () => {
            let (left, is_empty) = vm.fuel.overflowing_sub(1);
            vm.fuel = left;
            if is_empty && !vm.refuel(pc, base) {
                fail!()
            }
        };
    }
    macro_rules! equal {
        () => {{
            let (left, right) = (a!(), b!());
            match slots::tag(left) {
                INT if slots::tag(right) == INT => slots::payload(left) == slots::payload(right),
                KEYWORD => slots::tag(right) == KEYWORD && slots::id(left) == slots::id(right),
                _ => match vm.equality(left, right, pc, base) {
                    FAILED => fail!(),
                    answer => answer == HOLDS,
                },
            }
        }};
    }
    macro_rules! equal_int {
        () => {{
            let left = a!();
            match slots::tag(left) {
                INT => slots::payload(left) as i64 == i64::from(at(pc).b as i16),
                0 | KEYWORD => false,
                _ => {
                    let right = Value::Int(i64::from(at(pc).b as i16));
                    match vm.equality(left, &raw const right, pc, base) {
                        FAILED => fail!(),
                        answer => answer == HOLDS,
                    }
                }
            }
        }};
    }
    macro_rules! jump_if_wide {
        ($holds:expr) => {{
            if ($holds) == (at(pc).x != 0) {
                jump!(at(pc).wide() as i32)
            }
            next!()
        }};
    }
    macro_rules! jump_if {
        ($holds:expr) => {{
            if ($holds) == (at(pc).x & 1 != 0) {
                jump!(at(pc).c as i16)
            }
            next!()
        }};
    }
    // SAFETY: of the whole loop: `pc` stays within the body's code and registers and constants within their tables, as
    // the compiler emits and `verify` checks; every slot holds a valid value; the running closure is owned or borrowed
    // by the slot before its registers.
    unsafe {
        match vm.enter_first(window, count, ENTRY) {
            Some(place) => (pc, base) = place,
            None => {
                for idx in 0..=count {
                    slots::release(window.add(idx));
                }
                return Err(vm.take_failure());
            }
        }
        loop {
            loop {
                match at(pc).op {
                    Op::Move => {
                        slots::copy(a!(), b!());
                        next!()
                    }
                    Op::Take => {
                        slots::take(a!(), b!());
                        next!()
                    }
                    Op::Nil => {
                        slots::put_nil(a!());
                        next!()
                    }
                    Op::Bool => {
                        slots::put_bool(a!(), at(pc).x != 0);
                        next!()
                    }
                    Op::Int => {
                        slots::put_int(a!(), i64::from(at(pc).wide() as i32));
                        next!()
                    }
                    Op::Const => {
                        slots::copy(a!(), k!(at(pc).wide()));
                        next!()
                    }
                    Op::Captured => {
                        let captured = slots::running(base).captured.as_ptr();
                        slots::copy(a!(), captured.add(usize::from(at(pc).b)));
                        next!()
                    }
                    Op::Myself => {
                        let value = (*slots::borrowed(base.sub(1))).clone();
                        slots::put_value(a!(), value);
                        next!()
                    }
                    Op::Global => check!(vm.load_global(pc, base)),
                    Op::Define => check!(vm.define(pc, base)),
                    Op::CallNative => {
                        let window = a!().add(1);
                        let count = usize::from(at(pc).x);
                        vm.top = window.add(count);
                        let args = Args::new(std::slice::from_raw_parts_mut(window, count));
                        pc = pc.add(1);
                        vm.pc = pc.add(1);
                        let native = (*pc).native;
                        let result = ManuallyDrop::new(if meter::is_special() {
                            vm.call_special(native, args)
                        } else {
                            (native.run)(vm, args)
                        });
                        match &*result {
                            Ok(value) => {
                                for idx in 0..usize::from(at(pc.sub(1)).x) {
                                    slots::release(register(base, at(pc.sub(1)).a).add(1 + idx));
                                }
                                // Moved, so that the native's result is not dropped.
                                slots::put_made(register(base, at(pc.sub(1)).b), value);
                                next!()
                            }
                            Err(_) => {
                                if let Err(signal) = ManuallyDrop::into_inner(result) {
                                    vm.fail(signal);
                                }
                                fail!()
                            }
                        }
                    }
                    Op::CallMyself => {
                        let window = a!();
                        slots::borrow(window, base.sub(1));
                        go!(vm.enter(window, pc, pc))
                    }
                    Op::CallGlobal => {
                        let window = a!();
                        let call = pc;
                        pc = pc.add(1);
                        let var = &*(*pc).var;
                        let entry = var.entry();
                        if entry.params == usize::from(at(call).x) {
                            slots::borrow(window, var.root_slot());
                            go!(vm.enter_body(window, &*entry.body, call, pc))
                        }
                        go!(vm.call_global(base, window, call))
                    }
                    Op::Call => {
                        let window = a!();
                        if slots::tag(window) == FN {
                            go!(vm.enter(window, pc, pc))
                        }
                        check!(vm.call_window(window, pc, base))
                    }
                    Op::CallLocal => {
                        let (window, callee) = (a!(), c!());
                        if slots::tag(callee) == FN {
                            slots::borrow(window, callee);
                            go!(vm.enter(window, pc, pc))
                        }
                        slots::copy(window, callee);
                        check!(vm.call_window(window, pc, base))
                    }
                    Op::CallCaptured => {
                        let captured = slots::running(base).captured.as_ptr();
                        let (window, callee) = (a!(), captured.add(usize::from(at(pc).c)));
                        if slots::tag(callee) == FN {
                            slots::borrow(window, callee);
                            go!(vm.enter(window, pc, pc))
                        }
                        slots::copy(window, callee);
                        check!(vm.call_window(window, pc, base))
                    }
                    Op::Return => {
                        let frame = vm.frames.current;
                        if (*frame).flags != 0 {
                            if vm.return_slow(a!(), base, window) {
                                return Ok(());
                            }
                            base = (*frame.sub(1)).base;
                            pc = (*frame).pc;
                            continue;
                        }
                        let caller = frame.sub(1);
                        slots::take(register((*caller).base, (*frame).dst), a!());
                        vm.frames.current = caller;
                        for idx in &(*(*frame).body).owning {
                            slots::release(base.add(usize::from(*idx)));
                        }
                        slots::release_closure(base.sub(1));
                        base = (*caller).base;
                        pc = (*frame).pc;
                        continue;
                    }
                    Op::Jump => jump!(at(pc).wide() as i32),
                    Op::JumpBack => {
                        pay!();
                        jump!(at(pc).wide() as i32)
                    }
                    Op::JumpIf => jump_if_wide!(slots::is_truthy(a!())),
                    Op::JumpIfNil => jump_if_wide!(slots::tag(a!()) == 0),
                    Op::JumpLess => jump_if!(relation!(a!(), b!(), <)),
                    Op::JumpLessEqual => jump_if!(relation!(a!(), b!(), <=)),
                    Op::JumpEqual => jump_if!(equal!()),
                    Op::JumpLessInt => jump_if!(relation_int!(<)),
                    Op::JumpLessEqualInt => jump_if!(relation_int!(<=)),
                    Op::JumpGreaterInt => jump_if!(relation_int!(>)),
                    Op::JumpGreaterEqualInt => jump_if!(relation_int!(>=)),
                    Op::JumpEqualInt => jump_if!(equal_int!()),
                    Op::LoopIf => {
                        pay!();
                        jump_if_wide!(slots::is_truthy(a!()))
                    }
                    Op::LoopIfNil => {
                        pay!();
                        jump_if_wide!(slots::tag(a!()) == 0)
                    }
                    Op::LoopLess => {
                        pay!();
                        jump_if!(relation!(a!(), b!(), <))
                    }
                    Op::LoopLessEqual => {
                        pay!();
                        jump_if!(relation!(a!(), b!(), <=))
                    }
                    Op::LoopEqual => {
                        pay!();
                        jump_if!(equal!())
                    }
                    Op::LoopLessInt => {
                        pay!();
                        jump_if!(relation_int!(<))
                    }
                    Op::LoopLessEqualInt => {
                        pay!();
                        jump_if!(relation_int!(<=))
                    }
                    Op::LoopGreaterInt => {
                        pay!();
                        jump_if!(relation_int!(>))
                    }
                    Op::LoopGreaterEqualInt => {
                        pay!();
                        jump_if!(relation_int!(>=))
                    }
                    Op::LoopEqualInt => {
                        pay!();
                        jump_if!(equal_int!())
                    }
                    Op::Case => match vm.case_entry(pc, base) {
                        Some(entry) => jump!(entry),
                        None => fail!(),
                    },
                    Op::Add => arithmetic!(overflowing_add, +),
                    Op::Sub => arithmetic!(overflowing_sub, -),
                    Op::Mul => arithmetic!(overflowing_mul, *),
                    Op::AddInt => {
                        if add_int!() {
                            next!()
                        }
                        check!(vm.add_int(pc, base))
                    }
                    Op::AddIntLoopLess => {
                        if add_int!() {
                            pc = pc.add(1);
                            pay!();
                            jump_if!(relation!(a!(), b!(), <))
                        }
                        check!(vm.add_int(pc, base))
                    }
                    Op::AddInts => ints!(checked_add),
                    Op::SubInts => ints!(checked_sub),
                    Op::MulInts => ints!(checked_mul),
                    Op::StepInt => match step!() {
                        Some(value) => {
                            slots::set_int(a!(), value);
                            next!()
                        }
                        None => check!(vm.add_int(pc, base)),
                    },
                    Op::StepIntLoopLess => match step!() {
                        Some(value) => {
                            slots::set_int(a!(), value);
                            pc = pc.add(1);
                            pay!();
                            let right = b!();
                            if slots::tag(right) == INT {
                                if value < slots::payload(right) as i64 {
                                    jump!(at(pc).c as i16)
                                }
                                next!()
                            }
                            jump_if!(relation!(a!(), b!(), <))
                        }
                        None => check!(vm.add_int(pc, base)),
                    },
                    Op::Quick => {
                        let quick = pc;
                        pc = pc.add(1);
                        let (to, left) = (register(base, at(quick).a), register(base, at(quick).b));
                        let right = register(base, at(quick).c);
                        if (QUICK[usize::from(at(quick).x >> 2)].2)(to, left, right) {
                            next!()
                        }
                        check!(vm.native_of_registers(quick, base))
                    }
                    Op::Less => {
                        let holds = relation!(b!(), c!(), <);
                        slots::put_bool(a!(), holds);
                        next!()
                    }
                    Op::LessEqual => {
                        let holds = relation!(b!(), c!(), <=);
                        slots::put_bool(a!(), holds);
                        next!()
                    }
                    Op::Equal => match vm.equality(b!(), c!(), pc, base) {
                        FAILED => fail!(),
                        answer => {
                            slots::put_bool(a!(), answer == HOLDS);
                            next!()
                        }
                    },
                    Op::Not => {
                        let holds = !slots::is_truthy(b!());
                        slots::put_bool(a!(), holds);
                        next!()
                    }
                    Op::IsNil => {
                        let holds = slots::tag(b!()) == 0;
                        slots::put_bool(a!(), holds);
                        next!()
                    }
                    Op::Keyword => {
                        let keyword = pc;
                        pc = pc.add(1);
                        let coll = register(base, at(keyword).b);
                        if slots::tag(coll) == MAP
                            && let Some(found) = slots::map_entry(coll, at(keyword).x)
                            && slots::tag(&raw const found.0) == KEYWORD
                            && u64::from(slots::id(&raw const found.0)) == (*pc).id
                        {
                            slots::put_copy(register(base, at(keyword).a), &raw const found.1);
                            next!();
                        }
                        check!(vm.keyword(keyword, base))
                    }
                    Op::Vector => {
                        let value = Vm::make_vector(c!(), usize::from(at(pc).b));
                        slots::put_value(a!(), value);
                        next!()
                    }
                    Op::Map => check!(vm.make_map(pc, base)),
                    Op::Set => check!(vm.make_set(pc, base)),
                    Op::Closure => {
                        let captures = Vm::make_closure(pc, base, &*k!(at(pc).wide()));
                        jump!(captures)
                    }
                    Op::Patch => {
                        Vm::patch(a!(), at(pc).c, (*b!()).clone());
                        next!()
                    }
                    Op::Throw => {
                        vm.fail(Vm::thrown((*a!()).clone()));
                        fail!()
                    }
                    Op::Rethrow => {
                        let pending = std::mem::replace(&mut *a!(), Value::Nil);
                        vm.fail(Vm::rethrown(pending));
                        fail!()
                    }
                    Op::IsClass => {
                        let holds = Vm::is_class(&*b!(), &*k!(at(pc).c));
                        slots::put_bool(a!(), holds);
                        next!()
                    }
                    Op::WithMeta => {
                        Vm::give_meta(a!(), b!());
                        next!()
                    }
                    Op::Data => std::hint::unreachable_unchecked(),
                }
            }
            match vm.unwind(pc, base) {
                Some((to, frame)) => {
                    pc = to;
                    base = frame;
                }
                None => return Err(vm.take_failure()),
            }
        }
    }
}
