//! Nodes to instructions: registers for locals and temporaries, windows for calls.
//!
//! Locals and temporaries are stacked: all registers from `next` on are free. A call's function and arguments are
//! computed directly in a window at the top, where the callee's registers begin.

mod branch;
mod call;
mod function;
mod guard;
mod ints;
mod repeat;

use std::rc::Rc;

use super::error;
use super::node::{Kind, LocalId, Node, Ref, Use};
use crate::value::{Result, Span, Value};
use crate::vm::code::{Body, BodyParts, Handler, Instruction, MAX_REGISTERS, Op, Site};

/// The name, parameters and locals of a body.
pub(super) struct Shape<'a> {
    pub name: &'a Rc<str>,
    pub params: &'a [LocalId],
    pub rest: Option<LocalId>,
    pub locals: u32,
}

/// The result of emission.
pub(super) struct Emitted {
    pub body: Body,
    /// Whether running the code may reach a step.
    pub may_step: bool,
}

/// Emits the code of one arity.
pub(super) fn emit(node: &Node, shape: &Shape<'_>) -> Result<Emitted> {
    let mut emitter = Emitter {
        code: Vec::new(),
        constants: Vec::new(),
        sites: Vec::new(),
        handlers: Vec::new(),
        registers: vec![u16::MAX; shape.locals as usize],
        next: 0,
        most: 0,
        loops: Vec::new(),
        may_step: false,
        span: node.span,
        owning: Vec::new(),
        numeric: None,
        ints: vec![false; shape.locals as usize],
        next_int: None,
    };
    for local in shape.params.iter().copied().chain(shape.rest) {
        let register = emitter.temporary()?;
        emitter.registers[local as usize] = register;
        emitter.owns(register);
    }
    emitter.body(node)?;
    let owning = (0..emitter.most)
        .filter(|register| emitter.owning.get(usize::from(*register)) == Some(&true))
        .collect();
    let parts = BodyParts {
        name: shape.name.clone(),
        owning,
        constants: emitter.constants,
        registers: emitter.most.max(1),
        params: shape.params.len() as u16,
        is_variadic: shape.rest.is_some(),
        sites: emitter.sites,
        handlers: emitter.handlers,
    };
    Ok(Emitted {
        body: Body::new(emitter.code, parts),
        may_step: emitter.may_step,
    })
}

/// The state of emission.
struct Emitter {
    code: Vec<Instruction>,
    constants: Vec<Value>,
    sites: Vec<Site>,
    handlers: Vec<Handler>,
    /// The register of each local.
    registers: Vec<u16>,
    next: u16,
    most: u16,
    /// The enclosing loops, innermost last.
    loops: Vec<repeat::Loop>,
    may_step: bool,
    span: Span,
    /// Whether each register may own a value when the function returns.
    owning: Vec<bool>,
    /// The locals that are known to hold integers.
    ints: Vec<bool>,
    /// The register of an integer local that is being assigned its next value.
    next_int: Option<u16>,
    /// The register whose value is an operand of arithmetic, which is a number unless an exception is thrown.
    numeric: Option<u16>,
}

impl Emitter {
    fn owns(&mut self, register: u16) {
        let at = usize::from(register);
        if self.owning.len() <= at {
            self.owning.resize(at + 1, false);
        }
        self.owning[at] = true;
    }

    /// Records that an instruction stores a value in a register that must be dropped.
    fn note(&mut self, op: Op, a: u16, b: u16) {
        let to = match op {
            Op::Call
            | Op::CallLocal
            | Op::CallCaptured
            | Op::CallGlobal
            | Op::CallNative
            | Op::CallMyself => b,
            Op::Move
            | Op::Take
            | Op::Const
            | Op::Captured
            | Op::Myself
            | Op::Global
            | Op::Define
            | Op::Keyword
            | Op::Vector
            | Op::Map
            | Op::Set
            | Op::Closure
            | Op::WithMeta => a,
            Op::Quick => a,
            _ => return,
        };
        if self.numeric != Some(to) {
            self.owns(to);
        }
    }

    fn push(&mut self, op: Op, x: u8, a: u16, b: u16, c: u16) -> usize {
        self.note(op, a, b);
        let idx = self.code.len();
        self.code.push(Instruction { op, x, a, b, c });
        if op.has_data() {
            self.code.push(Instruction {
                c,
                ..Instruction::DATA
            });
        }
        if let Some(site) = self.sites.last_mut().filter(|site| site.pc == idx as u32) {
            site.op = op;
            // A failure is looked up by the last word of the instruction.
            site.pc += u32::from(op.has_data());
        }
        idx
    }

    fn push_wide(&mut self, op: Op, x: u8, a: u16, wide: u32) -> usize {
        self.push(op, x, a, wide as u16, (wide >> 16) as u16)
    }

    /// Takes the next free register.
    fn temporary(&mut self) -> Result<u16> {
        let register = self.next;
        if register >= MAX_REGISTERS {
            return Err(error(
                "E0223",
                self.span,
                "this function is too large: it needs more than 4,000 registers",
            )
            .into());
        }
        self.next += 1;
        self.most = self.most.max(self.next);
        Ok(register)
    }

    /// Returns the index of a constant.
    fn constant(&mut self, value: &Value) -> u32 {
        let simple = matches!(
            value,
            Value::Keyword(_) | Value::Int(_) | Value::Native(_) | Value::Var(_)
        );
        let same = |known: &Value| match (known, value) {
            (Value::Keyword(left), Value::Keyword(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Native(left), Value::Native(right)) => std::ptr::eq(*left, *right),
            (Value::Var(left), Value::Var(right)) => Rc::ptr_eq(left, right),
            _ => false,
        };
        let known = simple
            .then(|| self.constants.iter().position(same))
            .flatten();
        known.unwrap_or_else(|| {
            self.constants.push(value.clone());
            self.constants.len() - 1
        }) as u32
    }

    /// Returns the index of a constant in the 16 bits that an instruction has for it.
    fn short_constant(&mut self, value: &Value) -> Result<u16> {
        u16::try_from(self.constant(value)).map_err(|_| {
            error(
                "E0223",
                self.span,
                "this function is too large: it has more than 65,535 constants",
            )
            .into()
        })
    }

    /// Records the place of the next instruction in the source.
    fn site(&mut self, span: Span, args: impl Iterator<Item = Span>) {
        let args: Box<[Span]> = args.collect();
        self.sites.push(Site {
            pc: self.code.len() as u32,
            op: Op::Data,
            span,
            head: Span::NONE,
            args,
            callee: "",
            native: None,
            shift: 0,
        });
    }

    /// Records the place of the call that the next instruction makes, and of its function.
    fn site_of_call(&mut self, span: Span, head: Span, args: &[Node]) {
        self.site(span, args.iter().map(|arg| arg.span));
        if let Some(site) = self.sites.last_mut() {
            site.head = head;
        }
    }

    /// Records the place of a call of a native; `shift` arguments of the call are in the first operand.
    fn site_of_native(&mut self, span: Span, callee: &'static str, args: &[Node], shift: u8) {
        self.site_of(span, callee, args.iter().map(|arg| arg.span), shift);
    }

    fn site_of(
        &mut self,
        span: Span,
        callee: &'static str,
        args: impl Iterator<Item = Span>,
        shift: u8,
    ) {
        self.site(span, args);
        if let Some(site) = self.sites.last_mut() {
            (site.callee, site.shift) = (callee, shift);
        }
    }

    fn local(&self, id: LocalId) -> u16 {
        self.registers[id as usize]
    }

    /// Sets the target of a forward jump to the current position.
    fn patch(&mut self, at: usize) -> Result<()> {
        let offset = self.code.len() as i64 - at as i64 - 1;
        self.set_offset(at, offset)
    }

    fn set_offset(&mut self, at: usize, offset: i64) -> Result<()> {
        if self.code[at].op.is_wide_jump() {
            self.code[at].set_wide(offset as i32 as u32);
            return Ok(());
        }
        let short = i16::try_from(offset).map_err(|_| {
            error(
                "E0223",
                self.span,
                "this function is too large: a branch is too long",
            )
        })?;
        self.code[at].c = short as u16;
        Ok(())
    }

    fn patch_all(&mut self, jumps: Vec<usize>) -> Result<()> {
        jumps.into_iter().try_for_each(|jump| self.patch(jump))
    }

    /// Emits an expression in tail position of the function.
    fn tail(&mut self, node: &Node) -> Result<()> {
        let mark = self.next;
        match &node.kind {
            Kind::If {
                test,
                then,
                otherwise,
            } => {
                let skip = self.condition(test, false)?;
                self.tail(then)?;
                self.patch_all(skip)?;
                self.tail(otherwise)?;
            }
            Kind::Do(parts) => {
                let (last, before) = parts.split_last().expect("a `do` node has parts");
                before.iter().try_for_each(|part| self.effect(part))?;
                self.tail(last)?;
            }
            Kind::Let { bindings, body } => {
                self.bind(bindings)?;
                self.tail(body)?;
            }
            Kind::Recur { .. } => {
                self.recur(node)?;
            }
            _ => {
                let register = self.operand(node)?;
                self.push(Op::Return, 0, register, 0, 0);
            }
        }
        self.next = mark;
        Ok(())
    }

    /// Emits an expression whose value is not used.
    fn effect(&mut self, node: &Node) -> Result<()> {
        let mark = self.next;
        match &node.kind {
            Kind::Const(_) | Kind::Ref(_) => {}
            _ => {
                let register = self.temporary()?;
                self.value(node, register)?;
            }
        }
        self.next = mark;
        Ok(())
    }

    /// Returns the register that holds a value: that of a local, or a new temporary.
    fn operand(&mut self, node: &Node) -> Result<u16> {
        if let Kind::Ref(Use {
            place: Ref::Local(id),
            ..
        }) = &node.kind
        {
            return Ok(self.local(*id));
        }
        let register = self.temporary()?;
        self.value(node, register)?;
        Ok(register)
    }

    fn operand_of(&mut self, node: &Node, is_numeric: bool) -> Result<u16> {
        if is_numeric {
            self.number(node)
        } else {
            self.operand(node)
        }
    }

    /// Like [`Emitter::operand`], for operands of arithmetic.
    fn number(&mut self, node: &Node) -> Result<u16> {
        if let Kind::Ref(Use {
            place: Ref::Local(id),
            ..
        }) = &node.kind
        {
            return Ok(self.local(*id));
        }
        let register = self.temporary()?;
        let outer = self.numeric.replace(register);
        let result = self.value(node, register);
        self.numeric = outer;
        result.map(|()| register)
    }

    /// Emits an expression into a register, which is below all temporaries that this needs.
    fn value(&mut self, node: &Node, to: u16) -> Result<()> {
        let outer = self.span;
        self.span = node.span.or(outer);
        let mark = self.next;
        self.value_here(node, to)?;
        self.next = mark;
        self.span = outer;
        Ok(())
    }

    fn value_here(&mut self, node: &Node, to: u16) -> Result<()> {
        match &node.kind {
            Kind::Const(value) => self.load(value, to),
            Kind::Ref(place) => self.load_ref(place, to),
            Kind::Global(var) => {
                let constant = self.constant(&Value::Var(var.clone()));
                self.site(node.span, std::iter::empty());
                self.push_wide(Op::Global, 0, to, constant);
            }
            Kind::If { .. } => self.if_value(node, to)?,
            Kind::And(parts) => self.connective(parts, to, false)?,
            Kind::Or(parts) => self.connective(parts, to, true)?,
            Kind::Do(parts) => {
                let (last, before) = parts.split_last().expect("a `do` node has parts");
                before.iter().try_for_each(|part| self.effect(part))?;
                self.value(last, to)?;
            }
            Kind::Let { bindings, body } => {
                self.bind(bindings)?;
                self.value(body, to)?;
            }
            Kind::Loop { bindings, body } => {
                self.bind(bindings)?;
                self.find_ints(bindings, body);
                self.repeat(body, Some(to))?;
            }
            Kind::Recur { .. } => self.recur(node)?,
            Kind::Fn(function) => self.closure(function, to)?,
            Kind::LetFn { functions, body } => self.letfn(functions, body, to)?,
            Kind::Call { function, args } => self.call(function, args, node.span, to)?,
            Kind::Native { native, args } => self.native(native, args, node.span, to)?,
            Kind::Inline { operation, args } => self.inline(*operation, args, node.span, to)?,
            Kind::Keyword { key, coll } => {
                let coll = self.operand(coll)?;
                let constant = self.short_constant(&Value::Keyword(*key))?;
                self.site(node.span, std::iter::empty());
                self.push(Op::Keyword, 0, to, coll, constant);
            }
            Kind::Define { var, value, meta } => {
                self.define(var, value.as_deref(), meta.as_deref(), to)?
            }
            Kind::Vector(parts) => self.collection(Op::Vector, parts, node.span, to)?,
            Kind::Map(parts) => self.collection(Op::Map, parts, node.span, to)?,
            Kind::Set(parts) => self.collection(Op::Set, parts, node.span, to)?,
            Kind::Throw(value) => {
                let register = self.operand(value)?;
                self.site(node.span, std::iter::once(value.span));
                self.push(Op::Throw, 0, register, 0, 0);
            }
            Kind::Try(parts) => self.guarded(parts, to)?,
            Kind::Case {
                value,
                table,
                branches,
                default,
            } => self.case(value, table, branches, default, to)?,
            Kind::WithMeta { value, meta } => {
                let register = self.temporary()?;
                self.value(value, register)?;
                let extra = self.temporary()?;
                self.value(meta, extra)?;
                self.push(Op::WithMeta, 0, register, extra, 0);
                self.push(Op::Take, 0, to, register, 0);
            }
        }
        Ok(())
    }

    fn load(&mut self, value: &Value, to: u16) {
        match value {
            Value::Nil => self.push(Op::Nil, 0, to, 0, 0),
            Value::Bool(bool) => self.push(Op::Bool, u8::from(*bool), to, 0, 0),
            Value::Int(int) if i32::try_from(*int).is_ok() => {
                self.push_wide(Op::Int, 0, to, *int as i32 as u32)
            }
            value => {
                let constant = self.constant(value);
                self.push_wide(Op::Const, 0, to, constant)
            }
        };
    }

    fn load_ref(&mut self, place: &Use, to: u16) {
        match place.place {
            Ref::Local(id) => {
                let from = self.local(id);
                if from != to {
                    let op = self.move_of(id, place);
                    self.push(op, 0, to, from, 0);
                }
            }
            Ref::Captured(idx) => {
                self.push(Op::Captured, 0, to, idx, 0);
            }
            Ref::Myself => {
                self.push(Op::Myself, 0, to, 0, 0);
            }
        }
    }

    /// Returns the instruction that moves or copies a local for a use. An integer local is always copied.
    fn move_of(&self, id: LocalId, place: &Use) -> Op {
        if place.is_last.get() && !self.ints[id as usize] {
            Op::Take
        } else {
            Op::Move
        }
    }

    fn bind(&mut self, bindings: &[(LocalId, Node)]) -> Result<()> {
        for (id, value) in bindings {
            let register = self.temporary()?;
            self.value(value, register)?;
            self.registers[*id as usize] = register;
            self.ints[*id as usize] = self.is_int(value);
        }
        Ok(())
    }

    fn collection(&mut self, op: Op, parts: &[Node], span: Span, to: u16) -> Result<()> {
        let from = self.next;
        for part in parts {
            let register = self.temporary()?;
            self.value(part, register)?;
        }
        let count = u16::try_from(parts.len()).expect("registers bound the number of parts");
        self.site(span, std::iter::empty());
        self.push(op, 0, to, count, from);
        Ok(())
    }
}
