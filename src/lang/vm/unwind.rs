//! How a failure finds its handler, and what it learns on the way.

use std::rc::Rc;

use super::Vm;
use super::code::{Body, Instruction};
use super::exec::ENTRY;
use super::slots;
use crate::value::{Exception, Frame as TraceFrame, Object, Signal, Span, Value};

/// How many calls a trace shows.
const TRACE: usize = 64;

impl Vm {
    /// Leaves frames until one has a handler for the signal; returns where to go on, or the signal when
    /// the function that was called from Rust is left.
    #[cold]
    #[inline(never)]
    pub(super) fn unwind(
        &mut self,
        signal: Signal,
        mut pc: *mut Instruction,
        mut base: *mut Value,
    ) -> Result<(*mut Instruction, *mut Value), Signal> {
        if let Signal::Throw(exception) = &signal {
            self.locate(exception, pc, base);
        }
        loop {
            // SAFETY: `pc` and `base` are those of a frame of this machine: the current one, or a saved one.
            unsafe {
                if !pc.is_null() && !self.body.is_null() {
                    let body: &Body = &*self.body;
                    let at = pc.offset_from(body.start()) as u32 - 1;
                    let found = body.handlers.iter().find(|handler| {
                        handler.start <= at
                            && at < handler.end
                            && match &signal {
                                Signal::Throw(_) => true,
                                Signal::Stop(stop) => handler.is_finally && stop.runs_finally(),
                            }
                    });
                    if let Some(handler) = found {
                        *base.add(usize::from(handler.register)) = match signal {
                            Signal::Throw(exception) => Value::Exception(exception),
                            Signal::Stop(stop) => Value::from(Object::Stop((*stop).clone())),
                        };
                        return Ok((body.start().add(handler.target as usize), base));
                    }
                    for idx in 0..body.registers {
                        slots::release(base.add(usize::from(idx)));
                    }
                    slots::release(base.sub(1));
                }
                let Some(frame) = self.frames.pop() else {
                    return Err(signal);
                };
                self.leave(frame.body, frame.flags);
                if frame.flags & ENTRY != 0 {
                    return Err(signal);
                }
                base = frame.base;
                pc = frame.pc;
            }
        }
    }

    /// Tells a fresh exception where it was thrown and through which calls.
    fn locate(&mut self, exception: &Rc<Exception>, pc: *mut Instruction, base: *mut Value) {
        if !exception.origin.borrow().trace.is_empty() {
            return;
        }
        let mut trace = Vec::new();
        let mut argument = exception.argument;
        let mut at = (pc, base, self.body);
        let mut frames = self.frames.iter().rev();
        while trace.len() < TRACE {
            if let Some(frame) = frame_of(at.0, at.1, at.2, argument) {
                trace.push(frame);
            }
            argument = None;
            match frames.next() {
                Some(frame) => at = (frame.pc, frame.base, frame.body),
                None => break,
            }
        }
        let mut origin = exception.origin.borrow_mut();
        let first = trace
            .iter()
            .map(|frame| frame.span)
            .find(|span| span.is_some());
        if let Some(span) = first {
            origin.span.get_or_insert(span);
        }
        origin.trace = trace;
    }
}

/// Describes one frame: the function and the call in it, or the argument of that call.
fn frame_of(
    pc: *mut Instruction,
    base: *mut Value,
    body: *const Body,
    argument: Option<u32>,
) -> Option<TraceFrame> {
    if pc.is_null() || body.is_null() {
        return None;
    }
    // SAFETY: the frame is of this machine and its function is held by the slot before its registers.
    let (site, function) = unsafe {
        let at = pc.offset_from((*body).start()) as u32 - 1;
        let function = match &*base.sub(1) {
            Value::Fn(closure) => closure.proto.name.clone(),
            _ => Rc::from("?"),
        };
        ((*body).site(at), function)
    };
    let span = site.map_or(Span::NONE, |site| {
        let argument = argument
            .and_then(|argument| site.args.get(argument as usize))
            .copied();
        argument.unwrap_or(Span::NONE).or(site.span)
    });
    Some(TraceFrame { function, span })
}
