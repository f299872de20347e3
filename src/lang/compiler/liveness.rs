//! Finds the last use of each local: that use may move the value, so that a collection can be changed in place and the
//! head of a sequence is not held.
//!
//! The walk runs against the order of evaluation; `live` are the locals that are used later.

use super::node::{Arm, FnNode, Kind, LocalId, Node, Ref, TryNode, Use};

/// A set of locals.
#[derive(Clone, Default)]
struct Live {
    words: Vec<u64>,
}

impl Live {
    fn contains(&self, id: LocalId) -> bool {
        self.words
            .get(id as usize / 64)
            .is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    fn insert(&mut self, id: LocalId) {
        let at = id as usize / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (id % 64);
    }

    fn remove(&mut self, id: LocalId) {
        if let Some(word) = self.words.get_mut(id as usize / 64) {
            *word &= !(1 << (id % 64));
        }
    }

    fn merge(&mut self, other: &Live) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }
}

/// Marks the last uses in one arity.
pub(super) fn mark(arm: &Arm) {
    let mut walk = Walk {
        loops: vec![Live::default()],
    };
    walk.node(&arm.body, &mut Live::default());
}

/// Marks the last uses in a top-level expression.
pub(super) fn mark_top(body: &Node) {
    let mut walk = Walk {
        loops: vec![Live::default()],
    };
    walk.node(body, &mut Live::default());
}

struct Walk {
    /// The live locals at the beginning of each enclosing loop, innermost last.
    loops: Vec<Live>,
}

impl Walk {
    fn node(&mut self, node: &Node, live: &mut Live) {
        match &node.kind {
            Kind::Const(_) | Kind::Global(_) => {}
            Kind::Ref(place) => self.place(place, live),
            Kind::If {
                test,
                then,
                otherwise,
            } => {
                let mut other = live.clone();
                self.node(then, live);
                self.node(otherwise, &mut other);
                live.merge(&other);
                self.node(test, live);
            }
            Kind::And(parts) | Kind::Or(parts) => self.alternatives(parts, live),
            Kind::Do(parts) | Kind::Vector(parts) | Kind::Map(parts) | Kind::Set(parts) => {
                self.parts(parts, live)
            }
            Kind::Let { bindings, body } => {
                self.node(body, live);
                self.bindings(bindings, live);
            }
            Kind::Loop { bindings, body } => {
                self.enter_loop(bindings, body, live);
                self.bindings(bindings, live);
            }
            Kind::Recur { args, .. } => {
                *live = self.loops.last().cloned().unwrap_or_default();
                self.parts(args, live);
            }
            Kind::Fn(function) => self.function(function, live),
            Kind::LetFn { functions, body } => {
                self.node(body, live);
                Self::together(functions, live);
            }
            Kind::Native { args, .. } => self.parts(args, live),
            Kind::Call { function, args } => self.call(function, args, live),
            Kind::Inline { args, .. } => self.operands(args, live),
            Kind::Keyword { coll, .. } => self.node(coll, live),
            Kind::Define { value, meta, .. } => {
                for part in meta.iter().chain(value) {
                    self.node(part, live);
                }
            }
            Kind::Throw(value) => self.node(value, live),
            Kind::Try(parts) => self.guarded(parts, live),
            Kind::Case {
                value,
                branches,
                default,
                ..
            } => {
                let after = live.clone();
                self.node(default, live);
                for branch in branches {
                    let mut other = after.clone();
                    self.node(branch, &mut other);
                    live.merge(&other);
                }
                self.node(value, live);
            }
            Kind::WithMeta { value, meta } => {
                self.node(meta, live);
                self.node(value, live);
            }
        }
    }

    /// Visits functions that refer to each other: none of these uses moves.
    fn together(functions: &[(LocalId, FnNode)], live: &mut Live) {
        for (_, function) in functions.iter().rev() {
            for capture in &function.captures {
                if let Ref::Local(id) = capture.place {
                    live.insert(id);
                }
            }
        }
        for (id, _) in functions {
            live.remove(*id);
        }
    }

    fn place(&mut self, place: &Use, live: &mut Live) {
        if let Ref::Local(id) = place.place {
            place.is_last.set(!live.contains(id));
            live.insert(id);
        }
    }

    /// A named callee is called in its register, after the arguments have been computed.
    fn call(&mut self, function: &Node, args: &[Node], live: &mut Live) {
        if matches!(function.kind, Kind::Ref(_)) {
            self.node(function, live);
            self.parts(args, live);
        } else {
            self.parts(args, live);
            self.node(function, live);
        }
    }

    fn parts(&mut self, parts: &[Node], live: &mut Live) {
        for part in parts.iter().rev() {
            self.node(part, live);
        }
    }

    /// Operands that are plain locals are read in their registers, after the others have been computed.
    fn operands(&mut self, args: &[Node], live: &mut Live) {
        let is_plain = |arg: &Node| matches!(arg.kind, Kind::Ref(_));
        for arg in args.iter().filter(|arg| is_plain(arg)) {
            self.node(arg, live);
        }
        for arg in args.iter().rev().filter(|arg| !is_plain(arg)) {
            self.node(arg, live);
        }
    }

    /// Visits parts each of which may be the last to be evaluated.
    fn alternatives(&mut self, parts: &[Node], live: &mut Live) {
        let after = live.clone();
        for part in parts.iter().rev() {
            live.merge(&after);
            self.node(part, live);
        }
    }

    fn bindings(&mut self, bindings: &[(LocalId, Node)], live: &mut Live) {
        for (id, value) in bindings.iter().rev() {
            live.remove(*id);
            self.node(value, live);
        }
    }

    fn enter_loop(&mut self, bindings: &[(LocalId, Node)], body: &Node, live: &mut Live) {
        let first = bindings.first().map_or(LocalId::MAX, |binding| binding.0);
        let mut again = live.clone();
        // Locals from outside that the body uses are used again in the next round.
        body.for_each_use(&mut |id| {
            if id < first {
                again.insert(id);
            }
        });
        live.merge(&again);
        self.loops.push(again);
        self.node(body, live);
        self.loops.pop();
    }

    fn function(&mut self, function: &FnNode, live: &mut Live) {
        if let Some(meta) = &function.meta {
            self.node(meta, live);
        }
        for capture in function.captures.iter().rev() {
            self.place(capture, live);
        }
    }

    /// Locals that a handler uses must outlive the whole body.
    fn guarded(&mut self, parts: &TryNode, live: &mut Live) {
        if let Some(finally) = &parts.finally {
            self.node(finally, live);
        }
        let after = live.clone();
        for (_, local, body) in &parts.catches {
            let mut other = after.clone();
            self.node(body, &mut other);
            other.remove(*local);
            live.merge(&other);
        }
        self.node(&parts.body, live);
    }
}
