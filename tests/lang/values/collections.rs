//! Vectors and maps compared with an oracle, their order, and dropping deep values.

use flowstone_lang::value::{
    Atom, Class, Exception, Lazy, LazyState, List, Object, PMap, PVec, SeqView, Value,
};
use proptest::prelude::*;

use super::{read, show};

#[test]
fn order_of_maps_and_sets_is_that_of_clojure() {
    let disjoined = {
        let Value::Set(set) = Value::set((0..100).map(Value::Int)) else {
            unreachable!()
        };
        let mut items = set.items().clone();
        (0..100).step_by(3).for_each(|item| {
            items.remove(&Value::Int(item));
        });
        show(&Value::set(items.iter().cloned()))
    };
    let all = [
        show(&Value::set((0..12).map(Value::Int))),
        show(&read("#{3 1 2}")),
        show(&read("#{:a :b :c :d :e}")),
        show(&Value::set((0..40).map(Value::Int))),
        show(&Value::set((0..60).map(|idx| Value::Int(idx * 1_000_003)))),
        show(&Value::map(('a'..='l').map(|char| {
            (
                Value::keyword(&char.to_string()),
                Value::Int(i64::from(char as u32)),
            )
        }))),
        show(&Value::map((0..50).map(|idx| {
            (Value::from(format!("key{idx}")), Value::Int(idx))
        }))),
        show(&Value::set(
            [
                "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
            ]
            .map(Value::from),
        )),
        show(&read(
            "#{nil 0 false true \"\" [] {} #{} :a a \\a 1.5 1/2 1.5M 100000000000000000000N \"Aa\" \"BB\" \"AaAa\" \"BBBB\" \"AaBB\"}",
        )),
        disjoined,
        show(&Value::map((0..20).map(|idx| {
            let key = Value::vector([Value::Int(idx), Value::from(idx.to_string())]);
            (key, Value::map([(Value::keyword("n"), Value::Int(idx))]))
        }))),
    ];
    let expected: Vec<&str> = include_str!("order.txt").lines().collect();
    assert_eq!(all.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn order_does_not_depend_on_history() {
    let forwards = Value::set((0..400).map(Value::Int));
    let backwards = Value::set((0..400).rev().map(Value::Int));
    assert_eq!(show(&forwards), show(&backwards));
}

#[derive(Debug, Clone)]
enum Change {
    Push(i64),
    Pop,
    Set(usize, i64),
    Slice(usize, usize),
    /// Keeps a copy, which later operations must not change.
    Share,
    Fill(u16),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => any::<i64>().prop_map(Change::Push),
        3 => Just(Change::Pop),
        3 => (any::<usize>(), any::<i64>()).prop_map(|(idx, int)| Change::Set(idx, int)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(start, end)| Change::Slice(start, end)),
        2 => Just(Change::Share),
        1 => (0u16..1200).prop_map(Change::Fill),
    ]
}

fn agrees(ours: &PVec, oracle: &imbl::Vector<i64>) {
    let oracle: Vec<i64> = oracle.iter().copied().collect();
    let int = |value: &Value| value.as_int().unwrap();
    assert_eq!(ours.iter().map(int).collect::<Vec<_>>(), oracle);
    let mut backwards: Vec<_> = ours.iter().rev().map(int).collect();
    backwards.reverse();
    assert_eq!(backwards, oracle);
    for (idx, expected) in oracle.iter().enumerate() {
        assert_eq!(ours.get(idx).and_then(Value::as_int), Some(*expected));
    }
    assert!(ours.get(oracle.len()).is_none());
    let mut chunks = Vec::new();
    while chunks.len() < ours.len() {
        chunks.extend(ours.chunk_at(chunks.len()).iter().map(int));
    }
    assert_eq!(chunks, oracle);
}

fn apply(ours: &mut PVec, oracle: &mut imbl::Vector<i64>, change: Change) {
    match change {
        Change::Push(int) => {
            ours.push(Value::Int(int));
            oracle.push_back(int);
        }
        Change::Pop => assert_eq!(
            ours.pop().and_then(|value| value.as_int()),
            oracle.pop_back()
        ),
        Change::Set(idx, int) if !oracle.is_empty() => {
            let idx = idx % oracle.len();
            ours.set(idx, Value::Int(int));
            oracle.set(idx, int);
        }
        Change::Slice(start, end) => {
            let (start, end) = (start % (oracle.len() + 1), end % (oracle.len() + 1));
            let (start, end) = (start.min(end), start.max(end));
            *ours = ours.slice(start, end);
            *oracle = oracle.slice(start..end);
        }
        Change::Fill(count) => {
            for int in 0..i64::from(count) {
                ours.push(Value::Int(int));
                oracle.push_back(int);
            }
        }
        Change::Set(..) | Change::Share => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn vectors_agree_with_imbl(changes in prop::collection::vec(change(), 0..60)) {
        let (mut ours, mut oracle) = (PVec::new(), imbl::Vector::new());
        let mut shared = Vec::new();
        for change in changes {
            if matches!(change, Change::Share) {
                shared.push((ours.clone(), oracle.clone()));
            }
            apply(&mut ours, &mut oracle, change);
        }
        agrees(&ours, &oracle);
        for (ours, oracle) in &shared {
            agrees(ours, oracle);
        }
    }

    #[test]
    fn maps_agree_with_a_tree_map(
        changes in prop::collection::vec((0u8..4, 0i64..300, any::<i64>()), 0..400),
        collide in any::<bool>(),
    ) {
        // Strings composed of `Aa` and `BB` have equal hashes.
        let key = |idx: i64| if collide {
            let text: String = (0..9).map(|bit| if idx >> bit & 1 == 1 { "Aa" } else { "BB" }).collect();
            Value::from(text)
        } else {
            Value::Int(idx)
        };
        let (mut ours, mut oracle) = (PMap::new(), std::collections::BTreeMap::new());
        let mut shared = Vec::new();
        for (what, idx, int) in changes {
            match what {
                0 | 1 => {
                    ours.insert(key(idx), Value::Int(int));
                    oracle.insert(idx, int);
                }
                2 => {
                    let removed = ours.remove(&key(idx)).and_then(|value| value.as_int());
                    assert_eq!(removed, oracle.remove(&idx));
                }
                _ => shared.push((ours.clone(), oracle.clone())),
            }
        }
        shared.push((ours, oracle));
        for (ours, oracle) in &shared {
            assert_eq!(ours.len(), oracle.len());
            assert_eq!(ours.iter().count(), oracle.len());
            for idx in 0..300 {
                let found = ours.get(&key(idx)).and_then(Value::as_int);
                assert_eq!(found, oracle.get(&idx).copied());
            }
        }
    }
}

#[test]
fn deep_values_are_dropped_without_recursion() {
    const DEPTH: usize = 300_000;
    let wraps: [fn(Value) -> Value; 9] = [
        |inner| Value::vector([inner]),
        |inner| Value::vector([Value::Nil, Value::Nil, Value::Nil, Value::Nil, inner]),
        |inner| Value::list([inner]),
        |inner| List::cons(Value::Nil, inner),
        |inner| Value::map([(Value::keyword("a"), inner)]),
        |inner| SeqView::chunk(vec![inner], Value::Nil),
        |inner| Object::Reduced(inner).into(),
        |inner| Value::Atom(std::rc::Rc::new(Atom::new(inner))),
        |inner| Lazy::native(move |_| Ok(inner)),
    ];
    for wrap in wraps {
        drop((0..DEPTH).fold(Value::Nil, |inner, _| wrap(inner)));
    }
    drop((0..5_000_000).fold(Value::Nil, |inner, _| Value::list([inner])));
    let causes = (0..100_000).fold(Value::Nil, |inner, _| {
        Exception::new(Class::EXCEPTION, "", "x")
            .caused_by(inner)
            .into()
    });
    drop(causes);
}

#[test]
fn deep_sets_and_realised_sequences_are_dropped_without_recursion() {
    // A set hashes its items, so these are not built from the inside out.
    let lazy = (0..1_000_000).fold(Value::Nil, |inner, _| {
        let lazy = Lazy::native(|_| Ok(Value::Nil));
        if let Value::Lazy(lazy) = &lazy {
            lazy.state
                .replace(LazyState::Done(List::cons(inner, Value::Nil)));
        }
        lazy
    });
    drop(lazy);
    let mixed = (0..1000).fold(Value::Nil, |inner, _| Value::set([inner]));
    drop(mixed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn sorted_maps_agree_with_a_tree_map(
        changes in prop::collection::vec((0u8..4, 0i64..100, any::<i64>()), 0..400),
    ) {
        let (mut ours, mut oracle) = (PMap::sorted_by(Value::Nil), std::collections::BTreeMap::new());
        let mut shared = Vec::new();
        for (what, key, int) in changes {
            match what {
                0 | 1 => {
                    ours.insert(Value::Int(key), Value::Int(int));
                    oracle.insert(key, int);
                }
                2 => {
                    let removed = ours.remove(&Value::Int(key)).and_then(|value| value.as_int());
                    assert_eq!(removed, oracle.remove(&key));
                }
                _ => shared.push((ours.clone(), oracle.clone())),
            }
        }
        shared.push((ours, oracle));
        for (ours, oracle) in &shared {
            let entries: Vec<_> = ours
                .iter()
                .filter_map(|(key, value)| Some((key.as_int()?, value.as_int()?)))
                .collect();
            let expected: Vec<_> = oracle.iter().map(|(key, value)| (*key, *value)).collect();
            assert_eq!(entries, expected);
            let sorted = ours.sorted().expect("it stays sorted");
            for (idx, (key, _)) in expected.iter().enumerate() {
                assert_eq!(sorted.position(&Value::Int(*key)), Some(idx));
                assert_eq!(sorted.iter_from(idx).len(), expected.len() - idx);
            }
        }
    }
}
