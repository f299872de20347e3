//! Conditions and `case`.

use super::super::inline::Inline;
use super::super::node::{Kind, Node};
use super::Emitter;
use crate::value::{Result, Span, Value};
use crate::vm::code::Op;

impl Emitter {
    /// Emits a test and returns the jumps taken when its truth is `when`.
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

    /// Emits the parts of `and` (`decides` is false) or `or` (true) as a test.
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
        let is_numeric = operation != Inline::Equal;
        let left = self.operand_of(&args[0], is_numeric)?;
        let test = match small_int(&args[1]) {
            Some(int) => Test::with_int(operation, left, int, test),
            None => {
                let right = self.operand_of(&args[1], is_numeric)?;
                Test::of(operation, left, right, test)
            }
        };
        Ok(self.push_test(&test, when))
    }

    /// Emits a jump taken when the test's truth is `when`.
    pub(super) fn push_test(&mut self, test: &Test, when: bool) -> usize {
        self.site_of(test.span, test.callee, test.args.iter().copied(), 0);
        let x = u8::from(when != test.is_negated) | test.x;
        self.push(test.op, x, test.a, test.b, 0)
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
        if ends_in_recur(then) {
            self.patch_all(skip)?;
            return self.value(otherwise, to);
        }
        let done = self.push_wide(Op::Jump, 0, 0, 0);
        self.patch_all(skip)?;
        self.value(otherwise, to)?;
        self.patch(done)
    }

    /// Emits `and` or `or` as a value: that of the part that decides, or of the last.
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

    /// Emits a table of jumps: the first for the default, then one for each branch.
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

/// A test of a single instruction, without its offset.
pub(super) struct Test {
    pub op: Op,
    pub a: u16,
    pub b: u16,
    x: u8,
    /// Whether the jump is taken when the instruction's test fails.
    is_negated: bool,
    span: Span,
    /// The name of the core function that it implements, if any.
    callee: &'static str,
    /// The spans of the operands.
    args: Box<[Span]>,
}

impl Test {
    fn new(op: Op, operands: (u16, u16), x: u8, test: &Node) -> Test {
        let (callee, args) = match &test.kind {
            Kind::Inline { operation, args } => {
                (operation.name(), args.iter().map(|arg| arg.span).collect())
            }
            _ => ("", Box::default()),
        };
        Test {
            op,
            a: operands.0,
            b: operands.1,
            x,
            is_negated: false,
            span: test.span,
            callee,
            args,
        }
    }

    /// Returns a relation between two registers.
    pub(super) fn of(operation: Inline, left: u16, right: u16, test: &Node) -> Test {
        match operation {
            Inline::Less => Test::new(Op::JumpLess, (left, right), 0, test),
            Inline::LessEqual => Test::new(Op::JumpLessEqual, (left, right), 0, test),
            Inline::Greater => Test::new(Op::JumpLess, (right, left), 2, test),
            Inline::GreaterEqual => Test::new(Op::JumpLessEqual, (right, left), 2, test),
            _ => Test::new(Op::JumpEqual, (left, right), 0, test),
        }
    }

    /// Returns a relation between a register and a small integer.
    pub(super) fn with_int(operation: Inline, left: u16, int: i16, test: &Node) -> Test {
        let op = match operation {
            Inline::Less => Op::JumpLessInt,
            Inline::LessEqual => Op::JumpLessEqualInt,
            Inline::Greater => Op::JumpGreaterInt,
            Inline::GreaterEqual => Op::JumpGreaterEqualInt,
            _ => Op::JumpEqualInt,
        };
        Test::new(op, (left, int as u16), 0, test)
    }

    /// Returns the same test for a backward jump.
    pub(super) fn looping(&self) -> Test {
        Test {
            op: self.op.looping(),
            args: self.args.clone(),
            ..*self
        }
    }

    /// Returns a test of one register.
    pub(super) fn of_register(op: Op, register: u16, is_negated: bool, test: &Node) -> Test {
        Test {
            is_negated,
            ..Test::new(op, (register, 0), 0, test)
        }
    }
}

/// Returns the integer if it fits into an instruction.
pub(super) fn small_int(node: &Node) -> Option<i16> {
    match &node.kind {
        Kind::Const(Value::Int(int)) => i16::try_from(*int).ok(),
        _ => None,
    }
}

/// Tells whether the last action of a node is to return to the loop.
pub(super) fn ends_in_recur(node: &Node) -> bool {
    match &node.kind {
        Kind::Recur { .. } => true,
        Kind::Do(parts) => parts.last().is_some_and(ends_in_recur),
        Kind::Let { body, .. } => ends_in_recur(body),
        _ => false,
    }
}

pub(super) fn is_relation(operation: Inline) -> bool {
    matches!(
        operation,
        Inline::Less | Inline::LessEqual | Inline::Greater | Inline::GreaterEqual | Inline::Equal
    )
}
