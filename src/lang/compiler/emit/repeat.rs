//! Loops. If the body is an `if` whose test is one instruction, `recur` repeats that test and jumps directly to the
//! branch: a round costs one jump.

use super::super::inline::Inline;
use super::super::node::{Kind, LocalId, Node, Ref, Use};
use super::Emitter;
use super::branch::{Test, ends_in_recur, is_relation, small_int};
use crate::value::{Result, Span};
use crate::vm::code::Op;

/// A loop that is being emitted.
pub(super) struct Loop {
    /// The position of its first instruction.
    start: usize,
    branches: Option<Branches>,
}

/// The `if` that forms the body of a loop.
struct Branches {
    test: Test,
    then: usize,
    /// The position of the other branch; `None` while `then` is being emitted.
    otherwise: Option<usize>,
    /// Jumps out of `then` to the other branch.
    leaving: Vec<usize>,
}

impl Loop {
    pub(super) fn at(start: usize) -> Loop {
        Loop {
            start,
            branches: None,
        }
    }
}

impl Emitter {
    /// Emits the body of a function, which is a loop if it contains a `recur`.
    pub(super) fn body(&mut self, body: &Node) -> Result<()> {
        if recurs(body) {
            return self.repeat(body, None);
        }
        self.loops.push(Loop::at(self.code.len()));
        self.tail(body)?;
        self.loops.pop();
        Ok(())
    }

    /// Emits the body of a loop whose locals have their first values: into a register, or in tail position of the
    /// function.
    pub(super) fn repeat(&mut self, body: &Node, to: Option<u16>) -> Result<()> {
        if let Kind::If {
            test,
            then,
            otherwise,
        } = &body.kind
            && let Some(test) = self.repeatable(test)?
        {
            self.inverted(test, then, otherwise, to)?;
        } else {
            self.loops.push(Loop::at(self.code.len()));
            self.branch(body, to)?;
        }
        self.loops.pop();
        Ok(())
    }

    fn branch(&mut self, node: &Node, to: Option<u16>) -> Result<()> {
        match to {
            Some(to) => self.value(node, to),
            None => self.tail(node),
        }
    }

    fn inverted(
        &mut self,
        test: Test,
        then: &Node,
        otherwise: &Node,
        to: Option<u16>,
    ) -> Result<()> {
        let start = self.code.len();
        let skip = self.push_test(&test, false);
        self.loops.push(Loop {
            start,
            branches: Some(Branches {
                test,
                then: self.code.len(),
                otherwise: None,
                leaving: Vec::new(),
            }),
        });
        self.branch(then, to)?;
        let mut leaving = self
            .branches()
            .map(|branches| std::mem::take(&mut branches.leaving))
            .unwrap_or_default();
        let mut done = None;
        if to.is_some() && !ends_in_recur(then) {
            done = Some(self.push_wide(Op::Jump, 0, 0, 0));
        } else if ends_in_recur(then) && leaving.last() == Some(&(self.code.len() - 1)) {
            // The other branch follows directly.
            self.code.pop();
            leaving.pop();
        }
        self.patch(skip)?;
        self.patch_all(leaving)?;
        let here = self.code.len();
        if let Some(branches) = self.branches() {
            branches.otherwise = Some(here);
        }
        self.branch(otherwise, to)?;
        done.map_or(Ok(()), |done| self.patch(done))
    }

    /// Returns the branches of the innermost loop.
    fn branches(&mut self) -> Option<&mut Branches> {
        self.loops.last_mut()?.branches.as_mut()
    }

    /// Returns the test if it is one instruction that can be repeated. Loop-invariant operands are computed here,
    /// before the loop.
    fn repeatable(&mut self, test: &Node) -> Result<Option<Test>> {
        Ok(match &test.kind {
            Kind::Ref(_) => self
                .standing(test)?
                .map(|register| Test::of_register(Op::JumpIf, register, false, test)),
            Kind::Inline {
                operation: operation @ (Inline::IsNil | Inline::IsSome | Inline::Not),
                args,
            } => self.standing(&args[0])?.map(|register| match operation {
                Inline::IsNil => Test::of_register(Op::JumpIfNil, register, false, test),
                Inline::IsSome => Test::of_register(Op::JumpIfNil, register, true, test),
                _ => Test::of_register(Op::JumpIf, register, true, test),
            }),
            Kind::Inline { operation, args } if args.len() == 2 && is_relation(*operation) => {
                let Some(left) = self.standing(&args[0])? else {
                    return Ok(None);
                };
                match small_int(&args[1]) {
                    Some(int) => Some(Test::with_int(*operation, left, int, test)),
                    None => self
                        .standing(&args[1])?
                        .map(|right| Test::of(*operation, left, right, test)),
                }
            }
            _ => None,
        })
    }

    /// Returns a register that holds an operand in each round.
    fn standing(&mut self, node: &Node) -> Result<Option<u16>> {
        match &node.kind {
            Kind::Ref(Use {
                place: Ref::Local(id),
                ..
            }) => Ok(Some(self.local(*id))),
            Kind::Const(_)
            | Kind::Ref(Use {
                place: Ref::Captured(_),
                ..
            }) => {
                let register = self.temporary()?;
                self.value(node, register)?;
                Ok(Some(register))
            }
            _ => Ok(None),
        }
    }

    /// Assigns the loop's locals their next values and jumps back.
    pub(super) fn recur(&mut self, node: &Node) -> Result<()> {
        let Kind::Recur { targets, args } = &node.kind else {
            return Ok(());
        };
        let mark = self.next;
        match schedule(targets, args) {
            Some(order) => {
                for idx in order {
                    self.next_value(targets[idx], &args[idx])?;
                }
            }
            None => self.next_values(targets, args)?,
        }
        self.next = mark;
        self.back(node.span)
    }

    /// Computes the next value of a local into its register.
    fn next_value(&mut self, target: LocalId, arg: &Node) -> Result<()> {
        let register = self.local(target);
        self.next_int = self.ints[target as usize].then_some(register);
        let result = self.value(arg, register);
        self.next_int = None;
        result
    }

    /// Computes the values in source order. A value is computed directly in its register if no later value needs the
    /// old content.
    fn next_values(&mut self, targets: &[LocalId], args: &[Node]) -> Result<()> {
        let mut moves = Vec::new();
        for (idx, (target, arg)) in targets.iter().zip(args).enumerate() {
            let register = self.local(*target);
            if args[idx + 1..].iter().any(|later| uses(later, *target)) {
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
        Ok(())
    }

    /// Computes a value for a loop local. It is computed in a temporary unless it is one instruction: a failure
    /// part-way must not leave the local half changed for a handler, and parts may still read it.
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

    fn back(&mut self, span: Span) -> Result<()> {
        let at = self.code.len();
        let to_start = |start: usize, at: usize| start as i64 - at as i64 - 1;
        let Some(current) = self.loops.last_mut() else {
            return Ok(());
        };
        let Some(branches) = &mut current.branches else {
            let start = current.start;
            self.site(span, std::iter::empty());
            let jump = self.push_wide(Op::JumpBack, 0, 0, 0);
            return self.set_offset(jump, to_start(start, at));
        };
        // Jumps to the branch that is being emitted; the other one is rarer and usually leaves the loop.
        let when = branches.otherwise.is_none();
        let near = branches.otherwise.unwrap_or(branches.then);
        let far = branches.otherwise.map(|_| branches.then);
        let test = branches.test.looping();
        if test.op == Op::LoopLess
            && let Some(last) = self.code.last_mut()
        {
            match last.op {
                Op::AddInt => last.op = Op::AddIntLoopLess,
                Op::StepInt if when && last.a == test.a => last.op = Op::StepIntLoopLess,
                _ => {}
            }
        }
        let back = self.push_test(&test, when);
        self.set_offset(back, to_start(near, back))?;
        let jump = self.push_wide(Op::Jump, 0, 0, 0);
        match far {
            Some(then) => self.set_offset(jump, to_start(then, jump)),
            None => {
                if let Some(branches) = self.branches() {
                    branches.leaving.push(jump);
                }
                Ok(())
            }
        }
    }
}

/// Tells whether a function's body contains a `recur` to it.
fn recurs(node: &Node) -> bool {
    match &node.kind {
        Kind::Recur { .. } => true,
        Kind::Do(parts) => parts.last().is_some_and(recurs),
        Kind::Let { body, .. } | Kind::LetFn { body, .. } => recurs(body),
        Kind::If {
            then, otherwise, ..
        } => recurs(then) || recurs(otherwise),
        Kind::And(parts) | Kind::Or(parts) => parts.last().is_some_and(recurs),
        Kind::Case {
            branches, default, ..
        } => branches.iter().any(recurs) || recurs(default),
        _ => false,
    }
}

fn uses(node: &Node, local: LocalId) -> bool {
    let mut found = false;
    node.for_each_use(&mut |id| found |= id == local);
    found
}

/// Returns an order in which each value can be computed directly in its register, if there is one. Only for values
/// whose order is observable by failures alone.
fn schedule(targets: &[LocalId], args: &[Node]) -> Option<Vec<usize>> {
    if !args.iter().all(is_plain) {
        return None;
    }
    let mut order = Vec::with_capacity(args.len());
    let mut left: Vec<usize> = (0..args.len()).collect();
    while !left.is_empty() {
        let at = left.iter().position(|idx| {
            left.iter()
                .all(|other| other == idx || !must_precede(targets, args, *other, *idx))
        })?;
        order.push(left.remove(at));
    }
    Some(order)
}

/// Tells whether a value must be computed before another is stored in its register.
fn must_precede(targets: &[LocalId], args: &[Node], first: usize, second: usize) -> bool {
    if uses(&args[first], targets[second]) {
        return true;
    }
    // The other value moves a local that this one reads.
    match &args[second].kind {
        Kind::Ref(Use {
            place: Ref::Local(id),
            is_last,
        }) => is_last.get() && *id != targets[second] && uses(&args[first], *id),
        _ => false,
    }
}

fn is_plain(node: &Node) -> bool {
    match &node.kind {
        Kind::Const(_) | Kind::Ref(_) => true,
        Kind::Inline { operation, args } => {
            !matches!(operation, Inline::Equal | Inline::Quick(_)) && args.iter().all(is_plain)
        }
        _ => false,
    }
}
