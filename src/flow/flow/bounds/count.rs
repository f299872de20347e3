//! How many items a collection has at most, and which number a form is, as far as they are written out.

use flowstone_lang::value::Value;

use super::{Analysis, Meaning, Names, find};
use crate::forms::{items, quoted};

/// Functions that return at most the items of their last argument.
const OF_LAST: &[&str] = &[
    "drop",
    "drop-while",
    "filter",
    "filterv",
    "keep",
    "keep-indexed",
    "map-indexed",
    "partition-all",
    "partition-by",
    "remove",
    "sort-by",
    "take-nth",
    "take-while",
    "group-by",
];
/// Functions that return at most the items of their first argument.
const OF_FIRST: &[&str] = &[
    "butlast",
    "dedupe",
    "distinct",
    "doall",
    "frequencies",
    "keys",
    "next",
    "not-empty",
    "pop",
    "rest",
    "reverse",
    "rseq",
    "seq",
    "set",
    "shuffle",
    "sort",
    "vals",
    "vec",
];
/// Maximum depth of calls that are looked into.
const DEPTH: usize = 20;

impl Analysis<'_> {
    /// Returns the maximum number of items of the value of a form, if it is known.
    pub(super) fn count(&self, form: &Value, names: &Names) -> Option<u64> {
        self.count_at(form, names, 0)
    }

    fn count_at(&self, form: &Value, names: &Names, depth: usize) -> Option<u64> {
        if depth > DEPTH {
            return None;
        }
        if let Some(symbol) = form.as_symbol() {
            return match find(names, symbol)? {
                Meaning::Items(count) => Some(*count),
                Meaning::Function(..) | Meaning::Number(_) | Meaning::Other => None,
            };
        }
        let size = |length: usize| u64::try_from(length).ok();
        match form {
            Value::Nil => Some(0),
            Value::Vector(vector) => size(vector.len()),
            Value::Map(map) => size(map.len()),
            Value::Set(set) => size(set.len()),
            Value::Text(text) => size(text.chars().count()),
            Value::List(_) => match quoted(form) {
                Some(inner) => match &inner {
                    Value::List(list) => size(list.iter().count()),
                    other => self.count_at(other, names, depth + 1),
                },
                None => self.of_call(form, names, depth + 1),
            },
            _ => None,
        }
    }

    fn of_call(&self, form: &Value, names: &Names, depth: usize) -> Option<u64> {
        let parts = items(form)?;
        let (head, args) = parts.split_first()?;
        let head = head.as_symbol()?;
        if find(names, head).is_some() || head.namespace().is_some_and(|it| &*it != "clojure.core")
        {
            return None;
        }
        let name = head.name();
        let count = |form: &Value| self.count_at(form, names, depth);
        let number = |form: &Value| self.number(form, names);
        match (&*name, args) {
            ("range", [_, ..]) => self.range(args, names),
            ("take" | "take-last", [most, coll]) => {
                let most = u64::try_from(number(most)?.max(0)).ok()?;
                Some(count(coll).map_or(most, |count| count.min(most)))
            }
            ("repeat" | "repeatedly", [most, _]) => u64::try_from(number(most)?.max(0)).ok(),
            ("map" | "mapv" | "pmap", [_, colls @ ..]) => colls.iter().filter_map(count).min(),
            ("concat", colls) => {
                let counts = colls.iter().map(count);
                counts.sum::<Option<u64>>()
            }
            ("cons", [_, coll]) => count(coll)?.checked_add(1),
            ("conj", [coll, more @ ..]) => {
                count(coll)?.checked_add(u64::try_from(more.len()).ok()?)
            }
            ("vector" | "list" | "hash-set", all) => u64::try_from(all.len()).ok(),
            ("into", [to, from]) => count(to)?.checked_add(count(from)?),
            ("if", [_, one, other]) => Some(count(one)?.max(count(other)?)),
            ("if", [_, one]) => count(one),
            ("for", [clauses, _]) => self.clauses(clauses, names, depth),
            (name, [.., last]) if OF_LAST.contains(&name) && args.len() > 1 => count(last),
            (name, [first]) if OF_FIRST.contains(&name) => count(first),
            _ => None,
        }
    }

    fn range(&self, args: &[Value], names: &Names) -> Option<u64> {
        let numbers: Option<Vec<i64>> = args.iter().map(|arg| self.number(arg, names)).collect();
        let (start, end, step) = match numbers?[..] {
            [end] => (0, end, 1),
            [start, end] => (start, end, 1),
            [start, end, step] if step != 0 => (start, end, step),
            _ => return None,
        };
        let (length, step) = match step > 0 {
            true => (i128::from(end) - i128::from(start), i128::from(step)),
            false => (i128::from(start) - i128::from(end), -i128::from(step)),
        };
        u64::try_from((length.max(0) + step - 1) / step).ok()
    }

    /// Returns the maximum number of items of a `for`.
    fn clauses(&self, clauses: &Value, names: &Names, depth: usize) -> Option<u64> {
        let pairs = items(clauses)?;
        let mut product: u64 = 1;
        let mut names = names.clone();
        for pair in pairs.chunks(2) {
            if let [pattern, coll] = pair {
                if pattern.as_keyword().is_none() {
                    product = product.checked_mul(self.count_at(coll, &names, depth)?)?;
                }
                // The names of a `:let` stand in the second place.
                names = super::hidden(
                    &names,
                    if pattern.as_keyword().is_some() {
                        coll
                    } else {
                        pattern
                    },
                );
            }
        }
        Some(product)
    }

    /// Returns the whole number that a form is.
    pub(super) fn number(&self, form: &Value, names: &Names) -> Option<i64> {
        if let Some(symbol) = form.as_symbol() {
            return match find(names, symbol)? {
                Meaning::Number(number) => Some(*number),
                Meaning::Function(..) | Meaning::Items(_) | Meaning::Other => None,
            };
        }
        match form {
            Value::Int(number) => Some(*number),
            Value::List(_) => {
                let parts = items(form)?;
                let [head, coll] = &parts[..] else {
                    return None;
                };
                let is_count = head.as_symbol().is_some_and(|head| head.is("count"));
                // Only a written collection has exactly this number of items.
                let is_written = matches!(coll, Value::Vector(_) | Value::Set(_) | Value::Map(_));
                let count = self.count(coll, names).filter(|_| is_count && is_written)?;
                i64::try_from(count).ok()
            }
            _ => None,
        }
    }
}
