//! Finds the locals that always hold integers: those whose first value is an integer and whose next values are computed
//! from such locals by arithmetic, which throws if the result is not an integer.

use super::super::inline::Inline;
use super::super::node::{Kind, LocalId, Node, Ref, Use};
use super::Emitter;
use crate::value::Value;

impl Emitter {
    /// Tells whether an expression returns an integer or throws.
    pub(super) fn is_int(&self, node: &Node) -> bool {
        match &node.kind {
            Kind::Const(Value::Int(_)) => true,
            Kind::Ref(Use {
                place: Ref::Local(id),
                ..
            }) => self.ints[*id as usize],
            Kind::Inline { operation, args } => {
                let is_closed = match operation {
                    Inline::Add | Inline::Sub | Inline::Mul | Inline::Inc | Inline::Dec => true,
                    Inline::Quick(quick) => matches!(
                        quick.native.name,
                        "bit-and" | "bit-or" | "bit-xor" | "mod" | "quot" | "rem"
                    ),
                    _ => false,
                };
                is_closed && args.iter().all(|arg| self.is_int(arg))
            }
            _ => false,
        }
    }

    /// Finds the locals of a loop that hold integers in each round. The findings of `bind` hold in the first round.
    pub(super) fn find_ints(&mut self, bindings: &[(LocalId, Node)], body: &Node) {
        let Some(first) = bindings.first() else {
            return;
        };
        // Each pass removes locals; a removed local may cause others to be removed.
        while self.refute(first.0, body) {}
    }

    /// Removes locals of the loop whose next value may not be an integer; returns whether any were removed.
    fn refute(&mut self, first: LocalId, node: &Node) -> bool {
        let mut found = false;
        match &node.kind {
            Kind::Recur { targets, args } if targets.first() == Some(&first) => {
                for (target, arg) in targets.iter().zip(args) {
                    if self.ints[*target as usize] && !self.is_int(arg) {
                        self.ints[*target as usize] = false;
                        found = true;
                    }
                }
            }
            Kind::Let { bindings, body } => {
                for (id, value) in bindings {
                    found |= self.refute(first, value);
                    self.ints[*id as usize] = self.is_int(value);
                }
                return self.refute(first, body) || found;
            }
            _ => {}
        }
        node.for_each_part(&mut |part| found |= self.refute(first, part));
        found
    }
}
