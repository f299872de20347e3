//! Reading and writing registers by tag and payload.
//!
//! `Value` is `repr(C, u8)`: the tag is byte 0, the payload starts at byte 8. Writing both as plain
//! words keeps the machine's loop free of the drop glue that an assignment would bring.

use std::mem::MaybeUninit;

use crate::value::{Closure, Value, Var};

pub(super) const BOOL: u8 = 1;
pub(super) const INT: u8 = 2;
pub(super) const FLOAT: u8 = 3;
pub(super) const KEYWORD: u8 = 5;
/// From this tag on the payload is owned.
pub(super) const OWNED: u8 = 8;
pub(super) const FN: u8 = 10;
pub(super) const MAP: u8 = 12;

#[inline(always)]
pub(super) unsafe fn tag(slot: *const Value) -> u8 {
    // SAFETY: the caller's slot holds a value, whose first byte is its tag.
    unsafe { *slot.cast::<u8>() }
}

#[inline(always)]
pub(super) unsafe fn payload(slot: *const Value) -> u64 {
    // SAFETY: the caller's slot holds a value; its second word is its payload, and the tag says how much
    // of it is initialised: only asked for kinds that fill it.
    unsafe { *slot.cast::<u64>().add(1) }
}

/// The closure in a slot.
///
/// The lifetime is the caller's to keep: as long as the slot holds it.
#[inline(always)]
pub(super) unsafe fn closure<'a>(slot: *const Value) -> &'a Closure {
    // SAFETY: the caller knows that the slot holds a closure.
    unsafe {
        match &*slot {
            Value::Fn(closure) => closure,
            _ => std::hint::unreachable_unchecked(),
        }
    }
}

/// The var in a constant.
#[inline(always)]
pub(super) unsafe fn var<'a>(slot: *const Value) -> &'a Var {
    // SAFETY: the caller knows that the constant is a var.
    unsafe {
        match &*slot {
            Value::Var(var) => var,
            _ => std::hint::unreachable_unchecked(),
        }
    }
}

/// The id of a keyword or symbol.
#[inline(always)]
pub(super) unsafe fn id(slot: *const Value) -> u32 {
    // SAFETY: the caller's slot holds a keyword or symbol, whose 4 bytes of payload start at byte 8.
    unsafe { *slot.cast::<u32>().add(2) }
}

#[inline(always)]
pub(super) unsafe fn is_truthy(slot: *const Value) -> bool {
    // SAFETY: as above; a boolean is the byte at 8.
    unsafe {
        match tag(slot) {
            0 => false,
            BOOL => *slot.cast::<u8>().add(8) != 0,
            _ => true,
        }
    }
}

/// Makes a slot free of anything owned; its contents have no meaning then but may be overwritten.
#[inline(always)]
pub(super) unsafe fn release(slot: *mut Value) {
    // SAFETY: the caller's slot holds a value; what is owned is dropped exactly once, as nil takes its place.
    unsafe {
        if tag(slot) >= OWNED {
            drop_owned(slot);
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn drop_owned(slot: *mut Value) {
    // SAFETY: as in `release`. Nil is written first, so that a drop that runs code sees a valid slot.
    unsafe {
        let old = slot.read();
        slot.write(Value::Nil);
        drop(old);
    }
}

#[inline(always)]
unsafe fn put(slot: *mut Value, tag: u8, payload: u64) {
    // SAFETY: the caller's slot is a register; both words together are a value of that tag.
    unsafe {
        release(slot);
        *slot.cast::<u64>() = u64::from(tag);
        *slot.cast::<u64>().add(1) = payload;
    }
}

#[inline(always)]
pub(super) unsafe fn put_int(slot: *mut Value, int: i64) {
    // SAFETY: as in `put`.
    unsafe { put(slot, INT, int as u64) }
}

#[inline(always)]
pub(super) unsafe fn put_float(slot: *mut Value, float: f64) {
    // SAFETY: as in `put`.
    unsafe { put(slot, FLOAT, float.to_bits()) }
}

#[inline(always)]
pub(super) unsafe fn put_bool(slot: *mut Value, bool: bool) {
    // SAFETY: as in `put`.
    unsafe { put(slot, BOOL, u64::from(bool)) }
}

#[inline(always)]
pub(super) unsafe fn put_nil(slot: *mut Value) {
    // SAFETY: as in `put`.
    unsafe { put(slot, 0, 0) }
}

/// Copies both words of a value, each by itself: a register that was just written word by word would
/// make a load of 16 bytes wait for the stores.
#[inline(always)]
unsafe fn copy_words(to: *mut Value, from: *const Value) {
    // SAFETY: both are slots; a word may be partly uninitialised, which `MaybeUninit` allows.
    unsafe {
        let from = from.cast::<MaybeUninit<u64>>();
        let to = to.cast::<MaybeUninit<u64>>();
        let tag = from.read_volatile();
        let payload = from.add(1).read_volatile();
        to.write(tag);
        to.add(1).write(payload);
    }
}

/// Puts a value into a slot.
#[inline(always)]
pub(super) unsafe fn put_value(slot: *mut Value, value: Value) {
    // SAFETY: the caller's slot is a register; what it held is dropped first.
    unsafe {
        release(slot);
        slot.write(value);
    }
}

/// Makes a slot free of the closure that it most likely holds.
#[inline(always)]
pub(super) unsafe fn release_closure(slot: *mut Value) {
    // SAFETY: as in `release`; a closure is moved out before nil is written.
    unsafe {
        if tag(slot) == FN {
            let held = slot.read();
            slot.cast::<u64>().write(0);
            match held {
                Value::Fn(closure) => drop(closure),
                _ => std::hint::unreachable_unchecked(),
            }
        } else {
            release(slot);
        }
    }
}

/// Copies a value that most likely is a closure.
#[inline(always)]
pub(super) unsafe fn copy_closure(to: *mut Value, from: *const Value) {
    // SAFETY: as in `copy`.
    unsafe {
        match &*from {
            Value::Fn(closure) => {
                let closure = closure.clone();
                release(to);
                to.write(Value::Fn(closure));
            }
            _ => copy(to, from),
        }
    }
}

/// Moves the value of one slot to another; the first becomes nil.
#[inline(always)]
pub(super) unsafe fn take(to: *mut Value, from: *mut Value) {
    // SAFETY: both are registers; the words are copied and the source is made nil, so that there is one owner.
    unsafe {
        release(to);
        copy_words(to, from);
        *from.cast::<u64>() = 0;
    }
}

/// Copies the value of one slot to another.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut Value, from: *const Value) {
    // SAFETY: both are registers or constants; what is owned is counted by `clone`, the rest is copied as words.
    unsafe {
        release(to);
        if tag(from) >= OWNED {
            to.write((*from).clone());
        } else {
            copy_words(to, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Keyword;

    #[test]
    fn the_tags_are_those_of_the_enum() {
        let tag_of = |value: &Value| unsafe { tag(value) };
        assert_eq!(tag_of(&Value::Nil), 0);
        assert_eq!(tag_of(&Value::Bool(true)), BOOL);
        assert_eq!(tag_of(&Value::Int(1)), INT);
        assert_eq!(tag_of(&Value::Float(1.0)), FLOAT);
        assert_eq!(tag_of(&Value::Keyword(Keyword::new("a"))), KEYWORD);
        assert_eq!(tag_of(&Value::text("a")), OWNED);
        assert_eq!(tag_of(&Value::map([])), MAP);
        assert_eq!(FN, OWNED + 2);
    }
}
