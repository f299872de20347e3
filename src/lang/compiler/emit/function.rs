//! Functions compiled to closures.

use std::rc::Rc;

use super::super::node::{FnNode, LocalId, Node, Ref, Use};
use super::{Emitter, Shape, emit};
use crate::value::{Closure, Result, Value};
use crate::vm::code::{Op, Proto};

/// Compiles a function to a closure without captured values, the template of its instances.
fn template(function: &FnNode) -> Result<Value> {
    let mut fixed = Vec::new();
    let mut variadic = None;
    let mut may_step = false;
    for arm in &function.arities {
        let shape = Shape {
            name: &function.name,
            params: &arm.params,
            rest: arm.rest,
            locals: arm.locals,
        };
        let emitted = emit(&arm.body, &shape)?;
        may_step |= emitted.may_step;
        let body = Rc::new(emitted.body);
        if arm.rest.is_some() {
            variadic = Some(body);
            continue;
        }
        if fixed.len() <= arm.params.len() {
            fixed.resize(arm.params.len() + 1, None);
        }
        fixed[arm.params.len()] = Some(body);
    }
    let proto = Proto::new(function.name.clone(), fixed.into(), variadic, may_step);
    let captured = function.captures.iter().map(|_| Value::Nil).collect();
    Ok(Value::Fn(Rc::new(Closure {
        proto: Rc::new(proto),
        captured,
        meta: Value::Nil,
    })))
}

impl Emitter {
    pub(super) fn closure(&mut self, function: &FnNode, to: u16) -> Result<()> {
        let template = template(function)?;
        let constant = self.constant(&template);
        let Some(meta) = &function.meta else {
            if function.captures.is_empty() {
                self.push_wide(Op::Const, 0, to, constant);
            } else {
                self.instance(function, constant, to);
            }
            return Ok(());
        };
        let register = self.temporary()?;
        let extra = self.temporary()?;
        self.value(meta, extra)?;
        self.instance(function, constant, register);
        self.push(Op::WithMeta, 0, register, extra, 0);
        self.push(Op::Take, 0, to, register, 0);
        Ok(())
    }

    fn instance(&mut self, function: &FnNode, constant: u32, to: u16) {
        self.push_wide(Op::Closure, 0, to, constant);
        for capture in &function.captures {
            self.capture(capture);
        }
    }

    /// Emits one of the moves after a `Closure` instruction.
    fn capture(&mut self, capture: &Use) {
        match capture.place {
            Ref::Local(id) => {
                let op = self.move_of(id, capture);
                let register = self.local(id);
                self.push(op, 0, 0, register, 0);
            }
            Ref::Captured(idx) => {
                self.push(Op::Captured, 0, 0, idx, 0);
            }
            Ref::Myself => {
                self.push(Op::Myself, 0, 0, 0, 0);
            }
        }
    }

    /// Emits functions that refer to each other: all are created first, then the references are set.
    pub(super) fn letfn(
        &mut self,
        functions: &[(LocalId, FnNode)],
        body: &Node,
        to: u16,
    ) -> Result<()> {
        for (id, _) in functions {
            let register = self.temporary()?;
            self.registers[*id as usize] = register;
            self.push(Op::Nil, 0, register, 0, 0);
        }
        for (id, function) in functions {
            let template = template(function)?;
            let constant = self.constant(&template);
            let register = self.local(*id);
            self.instance(function, constant, register);
        }
        for (id, function) in functions {
            for (idx, capture) in function.captures.iter().enumerate() {
                if let Ref::Local(captured) = capture.place
                    && functions.iter().any(|function| function.0 == captured)
                {
                    let (closure, other) = (self.local(*id), self.local(captured));
                    self.push(Op::Patch, 0, closure, other, idx as u16);
                }
            }
        }
        self.value(body, to)
    }
}
