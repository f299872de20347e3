//! Checks compiled code in debug builds: registers, constants and jumps must be in range.

use super::code::{Body, Op};
use crate::value::Value;

/// Panics if a body would make the machine read or jump out of bounds: a bug of the compiler.
#[expect(clippy::too_many_lines, reason = "one arm a kind of operands")]
pub(super) fn verify(body: &Body) {
    let code = body.instructions();
    let register = |idx: u16| assert!(idx < body.registers, "register {idx} in {body:?}");
    let constant = |idx: u32| {
        assert!(
            (idx as usize) < body.constants.len(),
            "constant {idx} in {body:?}"
        )
    };
    let jump = |pc: usize, offset: i64| {
        let target = pc as i64 + 1 + offset;
        assert!(
            target >= 0 && target < code.len() as i64,
            "jump from {pc} in {body:?}"
        );
    };
    assert!(
        matches!(
            code.last().map(|last| last.op),
            Some(Op::Return | Op::Jump | Op::JumpBack | Op::Throw | Op::Rethrow)
        ),
        "code runs off its end: {body:?}"
    );
    for (pc, instruction) in code.iter().enumerate() {
        assert!(
            !instruction.op.has_data() || code.get(pc + 1).is_some_and(|next| next.op == Op::Data),
            "no data after {pc} in {body:?}"
        );
        match instruction.op {
            Op::Jump | Op::JumpBack => jump(pc, i64::from(instruction.wide() as i32)),
            Op::JumpIf | Op::JumpIfNil | Op::LoopIf | Op::LoopIfNil => {
                register(instruction.a);
                jump(pc, i64::from(instruction.wide() as i32));
            }
            Op::JumpLess
            | Op::JumpLessEqual
            | Op::JumpEqual
            | Op::LoopLess
            | Op::LoopLessEqual
            | Op::LoopEqual => {
                register(instruction.a);
                register(instruction.b);
                jump(pc, i64::from(instruction.c as i16));
            }
            Op::JumpLessInt
            | Op::JumpLessEqualInt
            | Op::JumpGreaterInt
            | Op::JumpGreaterEqualInt
            | Op::JumpEqualInt
            | Op::LoopLessInt
            | Op::LoopLessEqualInt
            | Op::LoopGreaterInt
            | Op::LoopGreaterEqualInt
            | Op::LoopEqualInt => {
                register(instruction.a);
                jump(pc, i64::from(instruction.c as i16));
            }
            Op::Const | Op::Global | Op::Define | Op::Closure | Op::Case => {
                register(instruction.a);
                constant(instruction.wide());
            }
            Op::Call | Op::CallMyself | Op::CallCaptured => {
                register(instruction.a + u16::from(instruction.x));
                register(instruction.b);
            }
            Op::CallLocal => {
                register(instruction.a + u16::from(instruction.x));
                register(instruction.b);
                register(instruction.c);
            }
            Op::Data => assert!(
                pc > 0 && code[pc - 1].op.has_data(),
                "data at {pc} in {body:?}"
            ),
            Op::CallGlobal | Op::CallNative => {
                register(instruction.a + u16::from(instruction.x));
                register(instruction.b);
                constant(u32::from(instruction.c));
            }
            Op::Keyword | Op::IsClass => {
                register(instruction.a);
                register(instruction.b);
                constant(u32::from(instruction.c));
                let wanted = matches!(
                    (&instruction.op, &body.constants[usize::from(instruction.c)]),
                    (Op::Keyword, Value::Keyword(_)) | (Op::IsClass, Value::Object(_))
                );
                assert!(wanted, "constant of {pc} in {body:?}");
            }
            Op::Vector | Op::Map | Op::Set => {
                register(instruction.a);
                assert!(
                    instruction.c + instruction.b <= body.registers,
                    "registers of {pc} in {body:?}"
                );
            }
            Op::Add
            | Op::Sub
            | Op::Mul
            | Op::AddInts
            | Op::SubInts
            | Op::MulInts
            | Op::Quick
            | Op::Less
            | Op::LessEqual
            | Op::Equal => {
                register(instruction.a);
                register(instruction.b);
                register(instruction.c);
            }
            Op::AddIntLoopLess | Op::StepIntLoopLess => {
                register(instruction.a);
                register(instruction.b);
                let is_free = instruction.op == Op::AddIntLoopLess;
                let follows = code.get(pc + 1).is_some_and(|next| {
                    let is_same = next.a == instruction.a && next.x & 1 == 1;
                    next.op == Op::LoopLess && (is_free || is_same)
                });
                assert!(follows, "no loop after {pc} in {body:?}");
            }
            Op::Move
            | Op::Take
            | Op::AddInt
            | Op::StepInt
            | Op::Not
            | Op::IsNil
            | Op::Patch
            | Op::WithMeta => {
                register(instruction.a);
                register(instruction.b);
            }
            Op::Nil
            | Op::Bool
            | Op::Int
            | Op::Captured
            | Op::Myself
            | Op::Return
            | Op::Throw
            | Op::Rethrow => {
                register(instruction.a);
            }
        }
    }
}
