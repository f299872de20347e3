//! Reading and writing registers by tag and payload.
//!
//! `Value` is `repr(C, u8)`: the tag is byte 0, the payload starts at byte 8. Writing both as plain words keeps the
//! machine's loop free of the drop glue that an assignment would bring.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::rc::Rc;

use crate::value::{Closure, Result, Signal, Value};

pub(super) const BOOL: u8 = 1;
pub(super) const INT: u8 = 2;
pub(super) const FLOAT: u8 = 3;
pub(super) const KEYWORD: u8 = 5;
/// The first tag whose payload is owned.
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
    // SAFETY: the caller's slot holds a value; its second word is its payload, and the tag determines how much of it is
    // initialised: only called for kinds that fill it.
    unsafe { *slot.cast::<u64>().add(1) }
}

/// Returns the running closure of the frame whose registers begin at `base`.
///
/// The slot before owns it or borrows it: a borrowed value has the tag of an integer, so that it is not dropped, and
/// its owner keeps it alive.
#[inline(always)]
pub(super) unsafe fn running<'a>(base: *const Value) -> &'a Closure {
    // SAFETY: the payload of that slot is a closure's; the reference refers to the pointer's target, not to the copy of
    // the pointer, which is never dropped.
    unsafe {
        match &*borrowed(base.sub(1)) {
            Value::Fn(closure) => &*Rc::as_ptr(closure),
            _ => std::hint::unreachable_unchecked(),
        }
    }
}

/// Returns the closure in a slot as a value, without counting a reference, whether or not the slot owns it.
#[inline(always)]
pub(super) unsafe fn borrowed(slot: *const Value) -> ManuallyDrop<Value> {
    // SAFETY: tag and payload together are a closure; it is not dropped here.
    unsafe {
        debug_assert!(matches!(tag(slot), FN | INT));
        let mut value = MaybeUninit::<Value>::uninit();
        let words = value.as_mut_ptr().cast::<MaybeUninit<u64>>();
        words.write(MaybeUninit::new(u64::from(FN)));
        words
            .add(1)
            .write(slot.cast::<MaybeUninit<u64>>().add(1).read());
        ManuallyDrop::new(value.assume_init())
    }
}

/// Writes a borrowed closure to the slot before the registers of its frame. See [`running`].
#[inline(always)]
pub(super) unsafe fn borrow(window: *mut Value, from: *const Value) {
    // SAFETY: the caller's slots are a register and one that holds a closure, or borrows one.
    unsafe {
        debug_assert!(matches!(tag(from), FN | INT));
        release(window);
        let payload = from.cast::<MaybeUninit<u64>>().add(1).read();
        let to = window.cast::<MaybeUninit<u64>>();
        to.write(MaybeUninit::new(u64::from(INT)));
        to.add(1).write(payload);
    }
}

/// Returns the id of a keyword or symbol.
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

/// Drops the owned content of a slot, whose value is then unspecified and may be overwritten.
#[inline(always)]
pub(super) unsafe fn release(slot: *mut Value) {
    // SAFETY: the caller's slot holds a value; an owned value is dropped exactly once, as nil replaces it.
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

/// Changes the integer in a slot that holds one.
#[inline(always)]
pub(super) unsafe fn set_int(slot: *mut Value, int: i64) {
    // SAFETY: the caller's slot holds an integer, which owns nothing.
    unsafe {
        debug_assert!(tag(slot) == INT);
        *slot.cast::<u64>().add(1) = int as u64;
    }
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

/// Copies both words of a value separately: a 16-byte load of a register that was just written word by word would stall
/// on the stores.
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

/// Copies a value that was just created: the tag as a byte, and a boolean as one byte, as they were written. A load
/// that is wider than the preceding store would stall.
#[inline(always)]
unsafe fn copy_made(to: *mut Value, from: *const Value) {
    // SAFETY: as in `copy_words`; the bytes between tag and payload have no meaning.
    unsafe {
        let tag = from.cast::<u8>().read_volatile();
        let to = to.cast::<MaybeUninit<u64>>();
        to.write(MaybeUninit::new(u64::from(tag)));
        let payload = if tag == BOOL {
            MaybeUninit::new(u64::from(from.cast::<u8>().add(8).read_volatile()))
        } else {
            from.cast::<MaybeUninit<u64>>().add(1).read_volatile()
        };
        to.add(1).write(payload);
    }
}

/// Moves the value of a register out; the register becomes nil.
#[inline(always)]
pub(super) unsafe fn take_out(slot: *mut Value) -> Value {
    // SAFETY: as in `take`, to a place that is uninitialised.
    unsafe {
        let mut out = MaybeUninit::<Value>::uninit();
        copy_words(out.as_mut_ptr(), slot);
        *slot.cast::<u64>() = 0;
        out.assume_init()
    }
}

/// Moves a value into a slot.
#[inline(always)]
pub(super) unsafe fn put_value(slot: *mut Value, value: Value) {
    // SAFETY: the caller's slot is a register; its old value is dropped first. The value is moved, as its original is
    // never dropped.
    unsafe {
        release(slot);
        let value = ManuallyDrop::new(value);
        copy_made(slot, &raw const *value);
    }
}

/// Moves a value that was just created into a slot; the caller forgets the original.
#[inline(always)]
pub(super) unsafe fn put_made(slot: *mut Value, made: *const Value) {
    // SAFETY: the caller's slot is a register; its old value is dropped first.
    unsafe {
        release(slot);
        copy_made(slot, made);
    }
}

/// Releases the closure in the slot before a frame's registers.
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

/// Returns the entry at an index of the map in a slot, if the map is small.
///
/// The caller must ensure the lifetime: as long as the slot holds the map.
#[inline(always)]
pub(super) unsafe fn map_entry<'a>(slot: *const Value, idx: u8) -> Option<&'a (Value, Value)> {
    // SAFETY: the caller knows that the slot holds a map.
    unsafe {
        match &*slot {
            Value::Map(map) => map.entries().array_entry(usize::from(idx)),
            _ => std::hint::unreachable_unchecked(),
        }
    }
}

/// Copies a value into a slot, even if the value is a part of the slot's old value.
#[inline(always)]
pub(super) unsafe fn put_copy(to: *mut Value, from: *const Value) {
    // SAFETY: the value is counted and read before the slot's old value is dropped.
    unsafe {
        count(from);
        let words = from.cast::<MaybeUninit<u64>>();
        let (tag, payload) = (words.read(), words.add(1).read());
        release(to);
        let to = to.cast::<MaybeUninit<u64>>();
        to.write(tag);
        to.add(1).write(payload);
    }
}

/// Copies the value of one slot to another.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut Value, from: *const Value) {
    // SAFETY: both are registers or constants.
    unsafe {
        release(to);
        count(from);
        copy_words(to, from);
    }
}

/// Counts one more reference to the owned value of a slot, for a copy of its words.
#[inline(always)]
unsafe fn count(slot: *const Value) {
    // SAFETY: the caller's slot holds a value. The clone is not read: reading it at once, in larger pieces than it was
    // written in, would stall.
    unsafe {
        if tag(slot) >= OWNED {
            std::mem::forget((*slot).clone());
        }
    }
}

/// Stores the result of a native in a slot, or returns the failure.
#[inline(always)]
pub(super) unsafe fn put_result(slot: *mut Value, result: Result<Value>) -> Option<Signal> {
    let result = ManuallyDrop::new(result);
    match &*result {
        Ok(value) => {
            // SAFETY: as in `put_value`: the value is moved, as its original is never dropped.
            unsafe {
                release(slot);
                copy_made(slot, value);
            }
            None
        }
        Err(_) => ManuallyDrop::into_inner(result).err(),
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
