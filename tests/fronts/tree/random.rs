//! Random trees with random answers: `flow.tree` and the plain implementation ask for the same, in the same order.

use flowstone_lang::Sandbox;
use flowstone_lang::Session;
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use serde_json::json;

use super::naive::{Shape, Tick, Tree};

/// A generator that gives the same numbers in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % count
    }

    pub fn tree(&mut self, depth: u32) -> Tree {
        let retries = match self.below(4) {
            0 => 1,
            1 => u32::try_from(self.below(3)).expect("small"),
            _ => 0,
        };
        let kind = if depth == 0 { 0 } else { self.below(5) };
        let shape = match kind {
            // A reference has no retries.
            0 if self.below(12) == 0 => return Tree::new(Shape::Cycle, 0),
            0 | 1 => {
                let count = 1 + self.below(3);
                Shape::Action((0..count).map(|_| self.below(2) == 0).collect())
            }
            kind => {
                let count = 1 + self.below(3);
                let children = (0..count).map(|_| self.tree(depth - 1)).collect();
                match kind {
                    2 => Shape::Sequence(children),
                    3 => Shape::Selector(children),
                    _ => Shape::Parallel(children),
                }
            }
        };
        Tree::new(shape, retries)
    }
}

/// Calls functions of `flow.tree`.
pub struct Ticks {
    session: Session,
}

impl Ticks {
    pub fn new() -> Ticks {
        Ticks {
            session: Session::new(),
        }
    }

    pub fn read(&self, edn: &str) -> Value {
        self.session
            .evaluate(&format!("(quote {edn})"))
            .expect("data")
    }

    pub fn start(&self, tree: &Value) -> Value {
        let options = self.read("{}");
        self.call("flow.tree/start", &[tree.clone(), options])
    }

    pub fn answered(&self, tree: &Value, state: &Value, answer: &str) -> Value {
        let args = [tree.clone(), state.clone(), self.read(answer)];
        self.call("flow.tree/answered", &args)
    }

    fn call(&self, name: &str, args: &[Value]) -> Value {
        let called = self.session.call(Sandbox::new(), name, args);
        called.unwrap_or_else(|failure| panic!("{name}: {failure}"))
    }
}

#[test]
fn random_trees_ask_for_the_same_as_the_plain_implementation() {
    let ticks = Ticks::new();
    let (mut requests, mut retried) = (0, 0);
    for seed in 0..1_500 {
        let mut dice = Dice::new(seed);
        let mut plain = dice.tree(3);
        let edn = plain.edn();
        let tree = ticks.read(&format!("{{:root {edn}}}"));
        let mut state = ticks.start(&tree);
        for _ in 0..200 {
            state = ticks.answered(&tree, &state, "{:op :next}");
            let expected = plain.tick();
            let said = to_json(&state).expect("data");
            let mut used = Vec::new();
            plain.used("", &mut used);
            let used: serde_json::Map<_, _> = used
                .into_iter()
                .map(|(path, count)| (path, json!(count)))
                .collect();
            assert_eq!(said["retry-count"], json!(used), "{seed}: {edn}");
            let (path, step) = match expected {
                Tick::Ask(path, step) => (path, step),
                Tick::Done => {
                    assert_eq!(said["status"], "complete", "{seed}: {edn}");
                    break;
                }
                Tick::Failure => {
                    assert_eq!(said["status"], "failed", "{seed}: {edn}");
                    break;
                }
            };
            let cursor = json!({"path": path, "step": step}).to_string();
            assert_eq!(said["cursor"], cursor.as_str(), "{seed}: {edn}");
            requests += 1;
            retried += used.len();
            let is_well = dice.below(3) > 0;
            plain.answer(&path, is_well);
            let answer = match (said["phase"].as_str(), is_well) {
                (Some("evaluating"), _) => format!("{{:op :eval :result {is_well}}}"),
                (_, true) => "{:op :submit :status \"success\"}".to_owned(),
                (_, false) => "{:op :submit :status \"failure\"}".to_owned(),
            };
            state = ticks.answered(&tree, &state, &answer);
        }
    }
    // Cases without requests and retries would show nothing.
    assert!(requests > 3_000 && retried > 500, "{requests} {retried}");
}
