//! Calls of closures through windows, of natives, and of core functions that are instructions.

use std::rc::Rc;

use super::super::inline::{Inline, Quick, calls_nothing};
use super::super::node::{Kind, Node, Ref};
use super::Emitter;
use crate::value::{Native, Result, Span, Value, Var};
use crate::vm::code::Op;

impl Emitter {
    /// Computes arguments in a window and returns its first register, which is the function's.
    fn window(&mut self, args: &[Node]) -> Result<u16> {
        let window = self.temporary()?;
        for arg in args {
            let register = self.temporary()?;
            self.value(arg, register)?;
        }
        Ok(window)
    }

    pub(super) fn call(
        &mut self,
        function: &Node,
        args: &[Node],
        span: Span,
        to: u16,
    ) -> Result<()> {
        self.may_step = true;
        let count = args.len() as u8;
        let head = function.span;
        if let Kind::Global(var) = &function.kind {
            let constant = self.short_constant(&Value::Var(var.clone()))?;
            let window = self.window(args)?;
            self.site_of_call(span, head, args);
            self.push(Op::CallGlobal, count, window, to, constant);
            return Ok(());
        }
        if let Kind::Ref(place) = &function.kind {
            // The callee is not moved: the caller holds it until it returns.
            let window = self.window(args)?;
            self.site_of_call(span, head, args);
            match place.place {
                Ref::Local(id) => {
                    let callee = self.local(id);
                    self.push(Op::CallLocal, count, window, to, callee)
                }
                Ref::Captured(idx) => self.push(Op::CallCaptured, count, window, to, idx),
                Ref::Myself => self.push(Op::CallMyself, count, window, to, 0),
            };
            return Ok(());
        }
        let window = self.temporary()?;
        self.value(function, window)?;
        for arg in args {
            let register = self.temporary()?;
            self.value(arg, register)?;
        }
        self.site_of_call(span, head, args);
        self.push(Op::Call, count, window, to, 0);
        Ok(())
    }

    pub(super) fn native(
        &mut self,
        native: &'static Native,
        args: &[Node],
        span: Span,
        to: u16,
    ) -> Result<()> {
        if !calls_nothing(native.name) {
            self.may_step = true;
        }
        let constant = self.short_constant(&Value::Native(native))?;
        let window = self.window(args)?;
        self.site_of_native(span, native.name, args, 0);
        if let Some(site) = self.sites.last_mut() {
            site.native = Some(native);
        }
        self.push(Op::CallNative, args.len() as u8, window, to, constant);
        Ok(())
    }

    pub(super) fn inline(
        &mut self,
        operation: Inline,
        args: &[Node],
        span: Span,
        to: u16,
    ) -> Result<()> {
        if let Inline::Quick(quick) = operation {
            return self.quick(quick, args, span, to);
        }
        let (name, shift) = (operation.name(), folded(operation, args, span));
        let small = |node: &Node| match &node.kind {
            Kind::Const(Value::Int(int)) => i16::try_from(*int).ok().filter(|int| *int != i16::MIN),
            _ => None,
        };
        let by = match operation {
            Inline::Inc => Some((1, 2)),
            Inline::Dec => Some((-1, 3)),
            Inline::Add => small(&args[1]).map(|int| (int, 0)),
            Inline::Sub => small(&args[1]).map(|int| (-int, 1)),
            _ => None,
        };
        let is_numeric = !matches!(
            operation,
            Inline::Not | Inline::IsNil | Inline::IsSome | Inline::Equal
        );
        let stays_int = self.next_int == Some(to) && args.iter().all(|arg| self.is_int(arg));
        let left = self.operand_of(&args[0], is_numeric)?;
        if let Some((by, kind)) = by {
            self.site_of_native(span, name, args, shift);
            let op = if stays_int { Op::StepInt } else { Op::AddInt };
            self.push(op, kind, to, left, by as u16);
            return Ok(());
        }
        // Constants and the results of operations are in registers that hold integers by then.
        let op = match operation {
            Inline::Add if stays_int => Op::AddInts,
            Inline::Sub if stays_int => Op::SubInts,
            Inline::Mul if stays_int => Op::MulInts,
            Inline::Not => Op::Not,
            Inline::IsNil | Inline::IsSome => Op::IsNil,
            Inline::Add | Inline::Inc => Op::Add,
            Inline::Sub | Inline::Dec => Op::Sub,
            Inline::Mul => Op::Mul,
            Inline::Less | Inline::Greater => Op::Less,
            Inline::LessEqual | Inline::GreaterEqual => Op::LessEqual,
            Inline::Equal | Inline::Quick(_) => Op::Equal,
        };
        let Some(right) = args.get(1) else {
            self.push(op, 0, to, left, 0);
            if operation == Inline::IsSome {
                self.push(Op::Not, 0, to, to, 0);
            }
            return Ok(());
        };
        let right = self.operand_of(right, is_numeric)?;
        self.site_of_native(span, name, args, shift);
        match operation {
            Inline::Greater | Inline::GreaterEqual => self.push(op, 2, to, right, left),
            _ => self.push(op, 0, to, left, right),
        };
        Ok(())
    }

    /// Calls a native with its arguments in their registers.
    fn quick(&mut self, quick: Quick, args: &[Node], span: Span, to: u16) -> Result<()> {
        if !calls_nothing(quick.native.name) {
            self.may_step = true;
        }
        let constant = self.short_constant(&Value::Native(quick.native))?;
        let left = self.operand(&args[0])?;
        let right = match args.get(1) {
            Some(right) => self.operand(right)?,
            None => left,
        };
        let dead = |arg: Option<&Node>| match arg.map(|arg| &arg.kind) {
            Some(Kind::Ref(place)) => match place.place {
                Ref::Local(id) => place.is_last.get() && !self.ints[id as usize],
                Ref::Captured(_) | Ref::Myself => true,
            },
            _ => true,
        };
        let is_same = args.len() == 2 && left == right;
        let x =
            u8::from(dead(args.first()) && !is_same) | u8::from(dead(args.get(1)) && !is_same) << 1;
        self.site_of_native(span, quick.native.name, args, 0);
        if let Some(site) = self.sites.last_mut() {
            site.native = Some(quick.native);
        }
        let at = self.push(Op::Quick, quick.idx << 2 | x, to, left, right);
        self.code[at + 1].c = constant;
        Ok(())
    }

    pub(super) fn define(
        &mut self,
        var: &Rc<Var>,
        value: Option<&Node>,
        meta: Option<&Node>,
        to: u16,
    ) -> Result<()> {
        let constant = self.constant(&Value::Var(var.clone()));
        match value {
            Some(value) => {
                let register = self.temporary()?;
                self.value(value, register)?;
                self.push_wide(Op::Define, 0, register, constant);
                if meta.is_none() {
                    self.push(Op::Take, 0, to, register, 0);
                }
            }
            None => {
                self.push_wide(Op::Const, 0, to, constant);
            }
        }
        if let Some(meta) = meta {
            let register = self.temporary()?;
            self.push_wide(Op::Const, 0, register, constant);
            let extra = self.temporary()?;
            self.value(meta, extra)?;
            self.push(Op::WithMeta, 0, register, extra, 0);
            self.push(Op::Take, 0, to, register, 0);
        }
        Ok(())
    }
}

/// Counts the arguments of a call that are folded into the first operand, apart from that operand itself.
fn folded(operation: Inline, args: &[Node], span: Span) -> u8 {
    let mut count = 0_u8;
    let mut first = args.first();
    while let Some(node) = first {
        match &node.kind {
            Kind::Inline {
                operation: inner,
                args,
            } if *inner == operation
                && operation.folds()
                && node.span == span
                && args.len() == 2 =>
            {
                count = count.saturating_add(1);
                first = args.first();
            }
            _ => break,
        }
    }
    count
}
