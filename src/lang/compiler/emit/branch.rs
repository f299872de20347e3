//! Conditions, loops, `case`.

use super::super::inline::Inline;
use super::super::node::{Kind, Node};
use super::Emitter;
use crate::value::{Result, Value};
use crate::vm::code::Op;

impl Emitter {
    /// Emits a test and returns the jumps that are taken when its truth is `when`.
    pub(super) fn condition(&mut self, test: &Node, when: bool) -> Result<Vec<usize>> {
        let mark = self.next;
        let jumps = match &test.kind {
            Kind::Const(value) => {
                if value.is_truthy() == when {
                    vec![self.push_wide(Op::Jump, 0, 0, 0)]
                } else {
                    Vec::new()
                }
            }
            Kind::Inline {
                operation: Inline::Not,
                args,
            } => self.condition(&args[0], !when)?,
            Kind::Inline {
                operation: operation @ (Inline::IsNil | Inline::IsSome),
                args,
            } => {
                let register = self.operand(&args[0])?;
                let nil = (*operation == Inline::IsNil) == when;
                vec![self.push_wide(Op::JumpIfNil, u8::from(nil), register, 0)]
            }
            Kind::Inline { operation, args } if args.len() == 2 && is_relation(*operation) => {
                vec![self.relation_jump(*operation, args, test, when)?]
            }
            Kind::And(parts) => self.chain(parts, when, false)?,
            Kind::Or(parts) => self.chain(parts, when, true)?,
            _ => {
                let register = self.operand(test)?;
                vec![self.push_wide(Op::JumpIf, u8::from(when), register, 0)]
            }
        };
        self.next = mark;
        Ok(jumps)
    }

    /// The parts of `and` (`decides` is false) or `or` (true) as a test.
    fn chain(&mut self, parts: &[Node], when: bool, decides: bool) -> Result<Vec<usize>> {
        let (last, before) = parts.split_last().expect("a connective has parts");
        let mut taken = Vec::new();
        let mut passed = Vec::new();
        for part in before {
            let jumps = self.condition(part, decides)?;
            if when == decides {
                taken.extend(jumps)
            } else {
                passed.extend(jumps)
            }
        }
        taken.extend(self.condition(last, when)?);
        self.patch_all(passed)?;
        Ok(taken)
    }

    fn relation_jump(
        &mut self,
        operation: Inline,
        args: &[Node],
        test: &Node,
        when: bool,
    ) -> Result<usize> {
        let expected = u8::from(when);
        let is_numeric = operation != Inline::Equal;
        if let Kind::Const(Value::Int(int)) = &args[1].kind
            && let Ok(int) = i16::try_from(*int)
        {
            let op = match operation {
                Inline::Less => Op::JumpLessInt,
                Inline::LessEqual => Op::JumpLessEqualInt,
                Inline::Greater => Op::JumpGreaterInt,
                Inline::GreaterEqual => Op::JumpGreaterEqualInt,
                _ => Op::JumpEqualInt,
            };
            let left = self.operand_of(&args[0], is_numeric)?;
            self.site_of_native(test.span, operation.name(), args, 0);
            return Ok(self.push(op, expected, left, int as u16, 0));
        }
        let left = self.operand_of(&args[0], is_numeric)?;
        let right = self.operand_of(&args[1], is_numeric)?;
        self.site_of_native(test.span, operation.name(), args, 0);
        Ok(match operation {
            Inline::Less => self.push(Op::JumpLess, expected, left, right, 0),
            Inline::LessEqual => self.push(Op::JumpLessEqual, expected, left, right, 0),
            Inline::Greater => self.push(Op::JumpLess, expected | 2, right, left, 0),
            Inline::GreaterEqual => self.push(Op::JumpLessEqual, expected | 2, right, left, 0),
            _ => self.push(Op::JumpEqual, expected, left, right, 0),
        })
    }

    pub(super) fn if_value(&mut self, node: &Node, to: u16) -> Result<()> {
        let Kind::If {
            test,
            then,
            otherwise,
        } = &node.kind
        else {
            return Ok(());
        };
        let skip = self.condition(test, false)?;
        self.value(then, to)?;
        if matches!(then.kind, Kind::Recur { .. }) {
            self.patch_all(skip)?;
            return self.value(otherwise, to);
        }
        let done = self.push_wide(Op::Jump, 0, 0, 0);
        self.patch_all(skip)?;
        self.value(otherwise, to)?;
        self.patch(done)
    }

    /// `and` and `or` as a value: that of the part that decides, or of the last.
    pub(super) fn connective(&mut self, parts: &[Node], to: u16, decides: bool) -> Result<()> {
        let (last, before) = parts.split_last().expect("a connective has parts");
        let mut done = Vec::new();
        for part in before {
            self.value(part, to)?;
            done.push(self.push_wide(Op::JumpIf, u8::from(decides), to, 0));
        }
        self.value(last, to)?;
        self.patch_all(done)
    }

    /// Gives the loop's locals their next values and jumps back. A value goes straight into its register
    /// when no later one needs what was there.
    pub(super) fn recur(&mut self, node: &Node) -> Result<()> {
        let Kind::Recur { targets, args } = &node.kind else {
            return Ok(());
        };
        let mark = self.next;
        let mut moves = Vec::new();
        for (idx, (target, arg)) in targets.iter().zip(args).enumerate() {
            let register = self.local(*target);
            let mut needed = false;
            for later in &args[idx + 1..] {
                later.for_each_use(&mut |id| needed |= id == *target);
            }
            if needed {
                let temporary = self.temporary()?;
                self.value(arg, temporary)?;
                moves.push((register, temporary));
            } else {
                self.value_or_stay(arg, register)?;
            }
        }
        for (register, temporary) in moves {
            self.push(Op::Take, 0, register, temporary, 0);
        }
        self.next = mark;
        let start = self.loops.last().copied().unwrap_or(0);
        self.site(node.span, std::iter::empty());
        let jump = self.push_wide(Op::JumpBack, 0, 0, 0);
        self.set_offset(jump, start as i64 - jump as i64 - 1)
    }

    /// A value for a loop local. Computed aside unless that is one instruction: a failure in the middle
    /// must not leave the local half changed for a handler, and parts may still read it.
    fn value_or_stay(&mut self, arg: &Node, register: u16) -> Result<()> {
        match &arg.kind {
            Kind::Const(_)
            | Kind::Ref(_)
            | Kind::Inline { .. }
            | Kind::Call { .. }
            | Kind::Native { .. } => self.value(arg, register),
            _ => {
                let mark = self.next;
                let temporary = self.temporary()?;
                self.value(arg, temporary)?;
                self.push(Op::Take, 0, register, temporary, 0);
                self.next = mark;
                Ok(())
            }
        }
    }

    /// A table of jumps: the first for the default, then one for each branch.
    pub(super) fn case(
        &mut self,
        value: &Node,
        table: &Value,
        branches: &[Node],
        default: &Node,
        to: u16,
    ) -> Result<()> {
        let register = self.operand(value)?;
        let constant = self.constant(table);
        self.push_wide(Op::Case, 0, register, constant);
        let jumps: Vec<usize> = (0..=branches.len())
            .map(|_| self.push_wide(Op::Jump, 0, 0, 0))
            .collect();
        let mut done = Vec::new();
        for (jump, branch) in jumps.iter().zip(std::iter::once(default).chain(branches)) {
            self.patch(*jump)?;
            self.value(branch, to)?;
            done.push(self.push_wide(Op::Jump, 0, 0, 0));
        }
        self.patch_all(done)
    }
}

fn is_relation(operation: Inline) -> bool {
    matches!(
        operation,
        Inline::Less | Inline::LessEqual | Inline::Greater | Inline::GreaterEqual | Inline::Equal
    )
}
