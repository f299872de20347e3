//! The order of `compare`: nil first, numbers by value, names and strings by text, vectors by length and then item by
//! item. All other values have no order.

use std::cmp::Ordering;
use std::rc::Rc;

use super::number::compare_numbers;
use super::{
    Class, Exception, Force, Named, Object, PrintOptions, Result, Unforced, Value, Vector, meter,
    print_value,
};

/// Compares two values as `compare` does.
///
/// # Errors
/// When the two have no order, and any exception thrown while a lazy part is computed.
pub fn compare(force: &mut dyn Force, left: &Value, right: &Value) -> Result<Ordering> {
    Ok(compare_exact(force, left, right)?.cmp(&0))
}

/// Compares two values and returns the number that Clojure's `compare` returns: for strings, names and
/// characters a distance, else -1, 0 or 1.
///
/// # Errors
/// As [`compare`].
pub fn compare_exact(force: &mut dyn Force, left: &Value, right: &Value) -> Result<i64> {
    let mut open: Vec<OpenPair> = Vec::new();
    let mut step = compare_one(left, right)?;
    let mut work = 0_u32;
    loop {
        work = work.wrapping_add(1);
        if work.is_multiple_of(MANY) {
            force.charge(MANY)?;
        }
        match step {
            Step::Differs(difference) if difference != 0 => return Ok(difference),
            Step::Differs(_) => {}
            Step::Into(left, right) => open.push(OpenPair { left, right, at: 0 }),
        }
        let Some(pair) = open.last_mut() else {
            if work > FEW {
                force.charge(work % MANY)?;
            }
            return Ok(0);
        };
        step = match (pair.left.get(pair.at), pair.right.get(pair.at)) {
            (Some(left), Some(right)) => {
                pair.at += 1;
                compare_one(left, right)?
            }
            _ => {
                open.pop();
                Step::Differs(0)
            }
        };
    }
}

/// Number of items that are compared between two payments.
const MANY: u32 = 1024;
/// Work below this is not worth paying for when the comparison ends.
const FEW: u32 = 32;

/// Two vectors of equal length, compared up to `at`.
struct OpenPair {
    left: Rc<Vector>,
    right: Rc<Vector>,
    at: usize,
}

enum Step {
    Differs(i64),
    Into(Rc<Vector>, Rc<Vector>),
}

fn compare_one(left: &Value, right: &Value) -> Result<Step> {
    let difference = match (left, right) {
        (Value::Int(left), Value::Int(right)) => sign(left.cmp(right)),
        (Value::Nil, Value::Nil) => 0,
        (Value::Nil, _) => -1,
        (_, Value::Nil) => 1,
        (Value::Text(left), Value::Text(right)) => compare_text(left, right)?,
        (Value::Keyword(left), Value::Keyword(right)) => {
            if left == right {
                0
            } else {
                compare_names(&left.parts(), &right.parts())
            }
        }
        (Value::Char(left), Value::Char(right)) => {
            i64::from(*left as u32) - i64::from(*right as u32)
        }
        (Value::Bool(left), Value::Bool(right)) => sign(left.cmp(right)),
        (Value::Vector(left), Value::Vector(right)) => {
            if Rc::ptr_eq(left, right) {
                return Ok(Step::Differs(0));
            }
            if left.len() == right.len() {
                return Ok(Step::Into(left.clone(), right.clone()));
            }
            sign(left.len().cmp(&right.len()))
        }
        (Value::Object(one), Value::Object(other)) => match (&**one, &**other) {
            (Object::Inst(left), Object::Inst(right)) => sign(left.cmp(right)),
            // Java compares the halves of a UUID as signed numbers.
            (Object::Uuid(left), Object::Uuid(right)) => {
                let halves = |bits: &u128| ((bits >> 64) as i64, *bits as i64);
                sign(halves(left).cmp(&halves(right)))
            }
            (Object::HostObject(one), Object::HostObject(other)) => match one.compare(&**other) {
                Some(order) => sign(order),
                None => return Err(no_order(left, right)),
            },
            _ => return Err(no_order(left, right)),
        },
        _ => match (left.as_symbol(), right.as_symbol()) {
            (Some(left), Some(right)) if left == right => 0,
            (Some(left), Some(right)) => compare_names(&left.parts(), &right.parts()),
            _ => match compare_numbers(left, right) {
                Some(order) => sign(order),
                None => return Err(no_order(left, right)),
            },
        },
    };
    Ok(Step::Differs(difference))
}

fn sign(order: Ordering) -> i64 {
    order as i64
}

/// Compares like Java's `String.compareTo`: the distance of the first characters that differ, or of the lengths.
///
/// # Errors
/// When a limit of the evaluation is reached.
fn compare_text(left: &str, right: &str) -> Result<i64> {
    let same = same_bytes(left.as_bytes(), right.as_bytes())?;
    Ok(difference(left, right, same))
}

/// Number of bytes that are compared between two payments.
const BLOCK: usize = 1 << 16;
/// Number of compared bytes that cost one unit of work.
const BYTES_A_UNIT: usize = 256;

/// Returns the length in bytes of the common prefix.
fn same_bytes(left: &[u8], right: &[u8]) -> Result<usize> {
    let mut same = 0;
    // Texts that differ early, as most do, cost nothing.
    for (left, right) in left.chunks(BLOCK).zip(right.chunks(BLOCK)) {
        let least = left.len().min(right.len());
        if left[..least] != right[..least] {
            let pairs = left.iter().zip(right);
            return Ok(same + pairs.take_while(|(left, right)| left == right).count());
        }
        same += least;
        if least > BYTES_A_UNIT {
            meter::spend((least / BYTES_A_UNIT) as u32)?;
        }
    }
    Ok(same)
}

/// Like [`compare_text`], for names, which are short.
fn plain_distance(left: &str, right: &str) -> i64 {
    let pairs = left.bytes().zip(right.bytes());
    difference(
        left,
        right,
        pairs.take_while(|(left, right)| left == right).count(),
    )
}

/// Returns the difference of two texts whose first `same` bytes are equal.
fn difference(left: &str, right: &str, same: usize) -> i64 {
    if same == left.len() && same == right.len() {
        return 0;
    }
    let mut start = same;
    while !(left.is_char_boundary(start) && right.is_char_boundary(start)) {
        start -= 1;
    }
    let mut left = left[start..].encode_utf16();
    let mut right = right[start..].encode_utf16();
    loop {
        match (left.next(), right.next()) {
            (Some(left), Some(right)) if left == right => {}
            (Some(left), Some(right)) => return i64::from(left) - i64::from(right),
            (Some(_), None) => return 1 + left.count() as i64,
            (None, Some(_)) => return -1 - right.count() as i64,
            (None, None) => return 0,
        }
    }
}

fn compare_names(left: &Named, right: &Named) -> i64 {
    match (&left.namespace, &right.namespace) {
        (None, Some(_)) => return -1,
        (Some(_), None) => return 1,
        (Some(left), Some(right)) => {
            let difference = plain_distance(left, right);
            if difference != 0 {
                return difference;
            }
        }
        (None, None) => {}
    }
    plain_distance(&left.name, &right.name)
}

#[cold]
fn no_order(left: &Value, right: &Value) -> super::Signal {
    let show = |value: &Value| {
        let mut text = String::new();
        // The value is already computed, so printing it cannot fail.
        let _ = print_value(&mut text, &mut Unforced, value, PrintOptions::BRIEF);
        if value.is_nil() {
            text
        } else {
            format!("{text} ({})", value.kind())
        }
    };
    Exception::new(
        Class::CLASS_CAST,
        "E0320",
        format!("cannot compare {} with {}", show(left), show(right)),
    )
    .hint("numbers, strings, characters, keywords, symbols, booleans, vectors, instants and uuids have an order, each among its own kind")
    .into()
}
