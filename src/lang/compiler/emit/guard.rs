//! `try`: handlers are ranges of instructions; `finally` is emitted on each path that leaves it.

use super::super::node::TryNode;
use super::Emitter;
use crate::value::Result;
use crate::vm::code::{Handler, Op};

impl Emitter {
    pub(super) fn guarded(&mut self, parts: &TryNode, to: u16) -> Result<()> {
        // The result is kept in a temporary until everything is done: a handler may still need the old value of `to`.
        let result = self.temporary()?;
        let caught = self.temporary()?;
        let mut done = Vec::new();
        // The code covered by `finally`: the body and each catch, without the copies of `finally` itself.
        let mut covered = Vec::new();
        let start = self.code.len();
        self.value(&parts.body, result)?;
        let end = self.code.len();
        covered.push((start, end));
        self.finally(parts)?;
        done.push(self.push_wide(Op::Jump, 0, 0, 0));
        if !parts.catches.is_empty() {
            self.handler((start, end), caught, false);
            let dispatch = self.code.len();
            self.catches(parts, caught, result, &mut done, &mut covered)?;
            covered.push((dispatch, dispatch));
        }
        if parts.finally.is_some() {
            for range in covered {
                self.handler(range, caught, true);
            }
            self.finally(parts)?;
            self.push(Op::Rethrow, 0, caught, 0, 0);
        }
        self.patch_all(done)?;
        self.push(Op::Take, 0, to, result, 0);
        Ok(())
    }

    /// Directs failures in a range to the next instruction.
    fn handler(&mut self, range: (usize, usize), register: u16, is_finally: bool) {
        if range.0 == range.1 {
            return;
        }
        let target = self.code.len() as u32;
        let (start, end) = (range.0 as u32, range.1 as u32);
        self.owns(register);
        self.handlers.push(Handler {
            start,
            end,
            target,
            register,
            is_finally,
        });
    }

    fn catches(
        &mut self,
        parts: &TryNode,
        caught: u16,
        result: u16,
        done: &mut Vec<usize>,
        covered: &mut Vec<(usize, usize)>,
    ) -> Result<()> {
        for (class, local, body) in &parts.catches {
            let start = self.code.len();
            let mut skip = None;
            if let Some(class) = class {
                let holds = self.temporary()?;
                let constant = self.short_constant(class)?;
                self.push(Op::IsClass, 0, holds, caught, constant);
                skip = Some(self.push_wide(Op::JumpIf, 0, holds, 0));
            }
            let register = self.temporary()?;
            self.registers[*local as usize] = register;
            self.push(Op::Move, 0, register, caught, 0);
            self.value(body, result)?;
            covered.push((start, self.code.len()));
            self.finally(parts)?;
            done.push(self.push_wide(Op::Jump, 0, 0, 0));
            if let Some(skip) = skip {
                self.patch(skip)?;
            }
        }
        let start = self.code.len();
        self.push(Op::Rethrow, 0, caught, 0, 0);
        covered.push((start, self.code.len()));
        Ok(())
    }

    fn finally(&mut self, parts: &TryNode) -> Result<()> {
        parts
            .finally
            .as_ref()
            .map_or(Ok(()), |finally| self.effect(finally))
    }
}
