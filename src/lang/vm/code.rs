//! Bytecode as data: 8-byte instructions over registers, with their constants and tables.

use std::cell::{OnceCell, UnsafeCell};
use std::rc::Rc;

use crate::value::{HeldText, Native, SourceId, Sources, Span, Value, Var};

/// The operation of an instruction. `a`, `b`, `c` are its operands, `x` the small one; `R` are the registers of the
/// frame, `K` the constants of the body. Offsets are relative to the next instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Op {
    /// R\[a] = a copy of R\[b]
    Move,
    /// R\[a] = R\[b], which becomes nil
    Take,
    /// R\[a] = nil
    Nil,
    /// R\[a] = x != 0
    Bool,
    /// R\[a] = the 32-bit integer in b, c
    Int,
    /// R\[a] = K\[b, c]
    Const,
    /// R\[a] = the captured value b of the closure
    Captured,
    /// R\[a] = the running closure
    Myself,
    /// R\[a] = the value of the var K\[b, c]
    Global,
    /// The var K\[b, c] gets the root value R\[a]; R\[a] = the var
    Define,
    /// R\[b] = R\[a](R\[a+1] .. R\[a+x])
    Call,
    /// R\[b] = R\[c](R\[a+1] .. R\[a+x]): the callee is not moved
    CallLocal,
    /// R\[b] = the captured value c, called with R\[a+1] .. R\[a+x]
    CallCaptured,
    /// R\[b] = the var K\[c], called with R\[a+1] .. R\[a+x]; the next word points at the var
    CallGlobal,
    /// R\[b] = the native K\[c], called with R\[a+1] .. R\[a+x]; the next word points at the native
    CallNative,
    /// R\[b] = the running closure, called with R\[a+1] .. R\[a+x]
    CallMyself,
    /// return R\[a]
    Return,
    /// jump to the offset in b, c
    Jump,
    /// jump backwards to the offset in b, c, paying fuel
    JumpBack,
    /// jump to the offset in b, c if R\[a] is truthy (x = 1) or not (x = 0)
    JumpIf,
    /// jump to the offset in b, c if R\[a] is nil (x = 1) or not (x = 0)
    JumpIfNil,
    /// jump to the offset in c if (R\[a] < R\[b]) is x
    JumpLess,
    /// jump to the offset in c if (R\[a] <= R\[b]) is x
    JumpLessEqual,
    /// jump to the offset in c if (R\[a] = R\[b]) is x
    JumpEqual,
    /// jump to the offset in c if (R\[a] < the integer b) is x
    JumpLessInt,
    /// jump to the offset in c if (R\[a] <= the integer b) is x
    JumpLessEqualInt,
    /// jump to the offset in c if (R\[a] > the integer b) is x
    JumpGreaterInt,
    /// jump to the offset in c if (R\[a] >= the integer b) is x
    JumpGreaterEqualInt,
    /// jump to the offset in c if (R\[a] = the integer b) is x
    JumpEqualInt,
    /// `JumpIf` backwards, paying fuel whether or not it is taken, like all below
    LoopIf,
    /// as `JumpIfNil`
    LoopIfNil,
    /// as `JumpLess`
    LoopLess,
    /// as `JumpLessEqual`
    LoopLessEqual,
    /// as `JumpEqual`
    LoopEqual,
    /// as `JumpLessInt`
    LoopLessInt,
    /// as `JumpLessEqualInt`
    LoopLessEqualInt,
    /// as `JumpGreaterInt`
    LoopGreaterInt,
    /// as `JumpGreaterEqualInt`
    LoopGreaterEqualInt,
    /// as `JumpEqualInt`
    LoopEqualInt,
    /// jump to the table entry for R\[a]: K\[b, c] maps constants to entries, which follow as jumps; the first entry is
    /// the default
    Case,
    Add,
    Sub,
    Mul,
    /// R\[a] = R\[b] + the integer c
    AddInt,
    /// `AddInt`, and the `LoopLess` that follows
    AddIntLoopLess,
    /// `Add` of three registers that hold integers
    AddInts,
    /// `Sub` of three registers that hold integers
    SubInts,
    /// `Mul` of three registers that hold integers
    MulInts,
    /// `AddInt` of two registers that hold integers
    StepInt,
    /// `StepInt`, and the `LoopLess` that follows, which compares the same register and jumps if it is less
    StepIntLoopLess,
    /// R\[a] = the native that the next word points at, called with R\[b] and R\[c], or with R\[b] if c is the same. x
    /// has the index of its common case, and whether this is the last use of b and c
    Quick,
    /// R\[a] = R\[b] < R\[c]
    Less,
    LessEqual,
    Equal,
    Not,
    IsNil,
    /// R\[a] = the entry of R\[b] under the keyword K\[c]; x caches its position, the next word has the keyword's id
    Keyword,
    /// R\[a] = a vector of the b registers from c on, which become nil
    Vector,
    /// R\[a] = a map of the b registers from c on, which become nil
    Map,
    /// R\[a] = a set of the b registers from c on, which become nil
    Set,
    /// R\[a] = a closure over the function K\[b, c]; its captures follow as moves
    Closure,
    /// the captured value c of the closure in R\[a] = R\[b]
    Patch,
    Throw,
    /// continue with the exception or stop in R\[a] as if there had been no handler
    Rethrow,
    /// R\[a] = whether the exception in R\[b] is of the class K\[c]
    IsClass,
    /// set the metadata of R\[a] to R\[b]
    WithMeta,
    /// Data of the instruction before; never executed.
    Data,
}

impl Op {
    /// Tells whether a word of data follows.
    pub(crate) fn has_data(self) -> bool {
        matches!(
            self,
            Op::CallGlobal | Op::CallNative | Op::Keyword | Op::Quick
        )
    }

    /// Returns the paying backward form of a comparing jump.
    pub(crate) fn looping(self) -> Op {
        match self {
            Op::JumpIf => Op::LoopIf,
            Op::JumpIfNil => Op::LoopIfNil,
            Op::JumpLess => Op::LoopLess,
            Op::JumpLessEqual => Op::LoopLessEqual,
            Op::JumpEqual => Op::LoopEqual,
            Op::JumpLessInt => Op::LoopLessInt,
            Op::JumpLessEqualInt => Op::LoopLessEqualInt,
            Op::JumpGreaterInt => Op::LoopGreaterInt,
            Op::JumpGreaterEqualInt => Op::LoopGreaterEqualInt,
            Op::JumpEqualInt => Op::LoopEqualInt,
            other => other,
        }
    }

    /// Tells whether the offset of a jump is in b and c; otherwise it is in c.
    pub(crate) fn is_wide_jump(self) -> bool {
        matches!(
            self,
            Op::Jump | Op::JumpBack | Op::JumpIf | Op::JumpIfNil | Op::LoopIf | Op::LoopIfNil
        )
    }

    /// Returns whether each of a, b and c is a register.
    fn registers(self) -> (bool, bool, bool) {
        match self {
            Op::Nil
            | Op::Bool
            | Op::Int
            | Op::Const
            | Op::Captured
            | Op::Myself
            | Op::Global
            | Op::Define
            | Op::Return
            | Op::JumpIf
            | Op::JumpIfNil
            | Op::JumpLessInt
            | Op::JumpLessEqualInt
            | Op::JumpGreaterInt
            | Op::JumpGreaterEqualInt
            | Op::JumpEqualInt
            | Op::LoopIf
            | Op::LoopIfNil
            | Op::LoopLessInt
            | Op::LoopLessEqualInt
            | Op::LoopGreaterInt
            | Op::LoopGreaterEqualInt
            | Op::LoopEqualInt
            | Op::Case
            | Op::Closure
            | Op::Throw
            | Op::Rethrow => (true, false, false),
            Op::Move
            | Op::Take
            | Op::Call
            | Op::CallCaptured
            | Op::CallGlobal
            | Op::CallNative
            | Op::CallMyself
            | Op::JumpLess
            | Op::JumpLessEqual
            | Op::JumpEqual
            | Op::LoopLess
            | Op::LoopLessEqual
            | Op::LoopEqual
            | Op::AddInt
            | Op::AddIntLoopLess
            | Op::StepInt
            | Op::StepIntLoopLess
            | Op::Not
            | Op::IsNil
            | Op::Keyword
            | Op::Patch
            | Op::IsClass
            | Op::WithMeta => (true, true, false),
            Op::CallLocal
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::AddInts
            | Op::SubInts
            | Op::MulInts
            | Op::Quick
            | Op::Less
            | Op::LessEqual
            | Op::Equal => (true, true, true),
            Op::Vector | Op::Map | Op::Set => (true, false, true),
            Op::Jump | Op::JumpBack | Op::Data => (false, false, false),
        }
    }
}

/// Maximum number of registers of a body: an operand holds the offset of a register in bytes.
pub(crate) const MAX_REGISTERS: u16 = 4_000;

const _: () = assert!(MAX_REGISTERS as usize * size_of::<Value>() <= u16::MAX as usize);

/// One instruction. In a [`Body`] the operands that are registers are offsets in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Instruction {
    pub op: Op,
    pub x: u8,
    pub a: u16,
    pub b: u16,
    pub c: u16,
}

const _: () = assert!(size_of::<Instruction>() == 8);

impl Instruction {
    /// Represents a word of data until the body is created: the constant at c.
    pub(crate) const DATA: Instruction = Instruction {
        op: Op::Data,
        x: 0,
        a: 0,
        b: 0,
        c: 0,
    };

    /// Returns b and c as one number.
    #[inline(always)]
    pub(crate) fn wide(self) -> u32 {
        u32::from(self.b) | (u32::from(self.c) << 16)
    }

    /// Maps the operands that are registers.
    fn map_registers(&mut self, map: impl Fn(u16) -> u16) {
        let (a, b, c) = self.op.registers();
        for (is_register, operand) in [(a, &mut self.a), (b, &mut self.b), (c, &mut self.c)] {
            if is_register {
                *operand = map(*operand);
            }
        }
    }

    /// Sets b and c as one number.
    pub(crate) fn set_wide(&mut self, wide: u32) {
        self.b = wide as u16;
        self.c = (wide >> 16) as u16;
    }
}

/// An instruction, or the data after one.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Word {
    pub instruction: Instruction,
    pub var: *const Var,
    pub native: &'static Native,
    /// The id of a keyword.
    pub id: u64,
}

const _: () = assert!(size_of::<Word>() == 8);

/// The place of a call in the source, for errors.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The index of the last word of the instruction.
    pub pc: u32,
    /// The operation of the instruction.
    pub op: Op,
    pub span: Span,
    /// The span of the form in function position.
    pub head: Span,
    /// The spans of the arguments, if they are known.
    pub args: Box<[Span]>,
    /// The name of the native that the instruction calls or implements; empty if it is not known.
    pub callee: &'static str,
    /// The native, if the instruction calls one.
    pub native: Option<&'static crate::value::Native>,
    /// Number of arguments of the whole call before the first operand, if the call was folded.
    pub shift: u8,
}

/// A range of instructions and the handler of their exceptions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handler {
    pub start: u32,
    pub end: u32,
    pub target: u32,
    /// The register that receives the exception or the stop.
    pub register: u16,
    /// Whether this is a `finally`, which also runs on cancellation.
    pub is_finally: bool,
}

/// The code of one arity of a function.
pub(crate) struct Body {
    /// In a cell, because look-ups cache positions in their instruction.
    code: UnsafeCell<Box<[Word]>>,
    /// The function's name, for traces.
    pub name: Rc<str>,
    pub constants: Box<[Value]>,
    pub registers: u16,
    /// The size of the registers in bytes.
    pub room: usize,
    /// The registers that may own a value when the function returns; the others hold numbers.
    pub owning: Box<[u16]>,
    /// Fixed parameters; with `is_variadic` one more register holds the rest.
    pub params: u16,
    pub is_variadic: bool,
    /// The places of calls, sorted by pc.
    pub sites: Box<[Site]>,
    /// The exception handlers, innermost first.
    pub handlers: Box<[Handler]>,
    /// The texts that the sites refer to, kept for errors.
    sources: OnceCell<Box<[HeldText]>>,
}

impl Body {
    pub(crate) fn new(code: Vec<Instruction>, parts: BodyParts) -> Body {
        let words = code.iter().map(|instruction| {
            if instruction.op == Op::Data {
                return data(&parts.constants[usize::from(instruction.c)]);
            }
            let mut instruction = *instruction;
            instruction.map_registers(|register| register * size_of::<Value>() as u16);
            Word { instruction }
        });
        let body = Body {
            code: UnsafeCell::new(words.collect()),
            name: parts.name,
            constants: parts.constants.into(),
            registers: parts.registers,
            room: usize::from(parts.registers) * size_of::<Value>(),
            owning: parts.owning.into(),
            params: parts.params,
            is_variadic: parts.is_variadic,
            sites: parts.sites.into(),
            handlers: parts.handlers.into(),
            sources: OnceCell::new(),
        };
        #[cfg(debug_assertions)]
        super::verify::verify(&body);
        body
    }

    /// Keeps the texts that this code and its nested functions refer to alive, as long as the code exists.
    pub(crate) fn keep_sources(&self, sources: &Sources) {
        let mut ids: Vec<SourceId> = Vec::new();
        for site in &self.sites {
            if site.span.is_some() && !ids.contains(&site.span.source) {
                ids.push(site.span.source);
            }
        }
        let mut held = Vec::new();
        ids.into_iter().for_each(|id| sources.hold(id, &mut held));
        // Set once, because code is compiled once.
        let _ = self.sources.set(held.into());
        for constant in &self.constants {
            if let Value::Fn(template) = constant {
                let bodies = template.proto.bodies();
                bodies
                    .filter(|body| body.sources.get().is_none())
                    .for_each(|body| body.keep_sources(sources));
            }
        }
    }

    /// Returns the first instruction.
    #[inline(always)]
    pub(crate) fn start(&self) -> *mut Word {
        // SAFETY: no reference into the slice outlives a single access; the VM writes only the hint `x`
        // of a `Keyword` instruction, through the pointer that this returns.
        unsafe { (*self.code.get()).as_mut_ptr() }
    }

    /// Returns a copy of the instructions, registers by number.
    pub(crate) fn instructions(&self) -> Vec<Instruction> {
        // SAFETY: as in `start`; the copy is complete before anything else runs.
        let words = unsafe { (*self.code.get()).to_vec() };
        let mut code: Vec<Instruction> = Vec::with_capacity(words.len());
        for word in words {
            if code.last().is_some_and(|last| last.op.has_data()) {
                code.push(Instruction::DATA);
                continue;
            }
            // SAFETY: the word is not data, since the one before announces none.
            let mut instruction = unsafe { word.instruction };
            instruction.map_registers(|offset| offset / size_of::<Value>() as u16);
            code.push(instruction);
        }
        code
    }

    /// Returns the number of the word before `pc`; `None` if it is not in this body.
    pub(crate) fn number(&self, pc: *const Word) -> Option<u32> {
        let after = (pc.addr()).checked_sub(self.start().addr())? / size_of::<Word>();
        // SAFETY: only the length is read.
        let count = unsafe { (&*self.code.get()).len() };
        (1..=count).contains(&after).then(|| after as u32 - 1)
    }

    /// Returns the place of the instruction at `pc`.
    pub(crate) fn site(&self, pc: u32) -> Option<&Site> {
        let idx = self.sites.binary_search_by_key(&pc, |site| site.pc);
        idx.ok().map(|idx| &self.sites[idx])
    }
}

/// Returns the word for the constant of an instruction with a data word. The body holds the constant.
fn data(constant: &Value) -> Word {
    match constant {
        Value::Var(var) => Word {
            var: Rc::as_ptr(var),
        },
        Value::Native(native) => Word { native },
        Value::Keyword(keyword) => Word {
            id: u64::from(keyword.id()),
        },
        other => unreachable!("an instruction with data has no constant like {other:?}"),
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (pc, instruction) in self.instructions().iter().enumerate() {
            writeln!(out, "{pc:4} {instruction:?}")?;
        }
        Ok(())
    }
}

/// The parts of a [`Body`] other than its instructions.
pub(crate) struct BodyParts {
    pub name: Rc<str>,
    pub constants: Vec<Value>,
    pub registers: u16,
    pub owning: Vec<u16>,
    pub params: u16,
    pub is_variadic: bool,
    pub sites: Vec<Site>,
    pub handlers: Vec<Handler>,
}

/// The code that a call with a given number of arguments enters.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The number of parameters; `usize::MAX` if there is no such code.
    pub params: usize,
    /// The code, which the function holds.
    pub body: *const Body,
}

pub(crate) const NO_ENTRY: Entry = Entry {
    params: usize::MAX,
    body: std::ptr::null(),
};

/// A compiled function: its arities.
pub struct Proto {
    pub(crate) name: Rc<str>,
    /// The fixed arities by number of parameters: `fixed[n]` takes n.
    pub(crate) fixed: Box<[Option<Rc<Body>>]>,
    pub(crate) variadic: Option<Rc<Body>>,
    /// Whether calling it may reach a step; false only if that is certain.
    pub(crate) may_step: bool,
    /// The first fixed arity, which most calls enter without a search.
    entry: Entry,
}

impl Proto {
    pub(crate) fn new(
        name: Rc<str>,
        fixed: Box<[Option<Rc<Body>>]>,
        variadic: Option<Rc<Body>>,
        may_step: bool,
    ) -> Proto {
        let entry = fixed
            .iter()
            .enumerate()
            .find_map(|(params, body)| {
                let body = Rc::as_ptr(body.as_ref()?);
                Some(Entry { params, body })
            })
            .unwrap_or(NO_ENTRY);
        Proto {
            name,
            fixed,
            variadic,
            may_step,
            entry,
        }
    }

    /// Returns the code of the first fixed arity.
    #[inline(always)]
    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    /// Returns the code of a fixed arity.
    #[inline(always)]
    pub(crate) fn fixed_body(&self, count: usize) -> Option<*const Body> {
        if self.entry.params == count {
            return Some(self.entry.body);
        }
        Some(Rc::as_ptr(self.fixed.get(count)?.as_ref()?))
    }

    /// Returns the code of every arity.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Rc<Body>> {
        self.fixed.iter().flatten().chain(&self.variadic)
    }

    /// Returns the function's name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells whether calling it may reach a step; false only if that is certain.
    pub fn may_step(&self) -> bool {
        self.may_step
    }

    /// Tells whether it can be called with `count` arguments.
    pub fn takes(&self, count: usize) -> bool {
        self.body(count).is_some()
    }

    /// Returns the code for a number of arguments.
    #[inline(always)]
    pub(crate) fn body(&self, count: usize) -> Option<&Rc<Body>> {
        match self.fixed.get(count) {
            Some(Some(body)) => Some(body),
            _ => self
                .variadic
                .as_ref()
                .filter(|body| count >= usize::from(body.params)),
        }
    }

    /// Returns the number of arguments before the rest parameter, if it has one.
    pub(crate) fn fixed_before_rest(&self) -> Option<usize> {
        Some(usize::from(self.variadic.as_ref()?.params))
    }

    /// Returns the maximum number of arguments; `None` if there is no maximum.
    pub(crate) fn most_arguments(&self) -> Option<usize> {
        match self.variadic {
            Some(_) => None,
            None => Some(self.fixed.len().saturating_sub(1)),
        }
    }

    /// Describes the accepted numbers of arguments.
    pub fn arity_text(&self) -> String {
        let mut counts: Vec<String> = Vec::new();
        for (count, body) in self.fixed.iter().enumerate() {
            if body.is_some() {
                counts.push(count.to_string());
            }
        }
        if let Some(body) = &self.variadic {
            counts.push(format!("{} or more", body.params));
        }
        let plural = if counts.len() == 1 && counts[0] == "1" {
            ""
        } else {
            "s"
        };
        format!("{} argument{plural}", counts.join(" or "))
    }
}

impl std::fmt::Debug for Proto {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "fn {}", self.name)?;
        for body in self.fixed.iter().flatten().chain(&self.variadic) {
            writeln!(out, "{body:?}")?;
        }
        Ok(())
    }
}
