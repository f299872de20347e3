//! Search for the handler of a failure, which adds places and calls on the way.

use std::rc::Rc;

use super::Vm;
use super::code::{Body, Op, Site};
use super::exec::{Base, Pc};
use super::slow::Place;
use super::stack::ENTRY;
use crate::value::meter;
use crate::value::{
    Class, Culprit, Exception, Frame as TraceFrame, Object, Origin, Signal, Span, Value,
};

/// Maximum number of calls in a trace.
const TRACE: usize = 64;

impl Vm {
    /// Leaves frames until one has a handler for the failure; returns its position. Returns `None` and keeps the
    /// failure if the function that was called from Rust is left.
    #[cold]
    #[inline(never)]
    pub(super) fn unwind(&mut self, mut pc: Pc, mut base: Base) -> Option<Place> {
        let mut signal = self.take_failure();
        match &mut signal {
            Signal::Throw(exception) => self.locate(exception, pc),
            Signal::Stop(_) => self.locate_stop(pc),
        }
        loop {
            // SAFETY: `pc` and `base` are those of the current frame of this machine.
            unsafe {
                let frame = *self.frames.current;
                let body: &Body = &*frame.body;
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
                    if let Signal::Stop(_) = &signal {
                        meter::begin_finally();
                    }
                    *base.add(usize::from(handler.register)) = match signal {
                        Signal::Throw(exception) => Value::Exception(exception),
                        Signal::Stop(stop) => Value::from(Object::Stop((*stop).clone())),
                    };
                    return Some((body.start().add(handler.target as usize), base));
                }
                self.leave(base);
                if frame.flags & ENTRY != 0 {
                    self.failure = Some(signal);
                    return None;
                }
                base = (*self.frames.current).base;
                pc = frame.pc;
            }
        }
    }

    /// Adds to a fresh exception where it was thrown, through which calls, and the value at fault.
    fn locate(&mut self, exception: &mut Rc<Exception>, pc: Pc) {
        if !exception.origin.borrow().trace.is_empty() {
            return;
        }
        let mut trace = self.trace(pc);
        let site = self.body().and_then(|body| body.site(body.number(pc)?));
        if let Some(site) = site
            && let Some(fresh) = Rc::get_mut(exception)
        {
            blame(fresh, site);
            if let Some(span) = fresh
                .fault
                .as_ref()
                .filter(|_| fresh.origin.borrow().natives.is_empty())
                .and_then(|fault| site.culprit(fault.at))
                && let Some(frame) = trace.first_mut()
            {
                frame.span = span.or(frame.span);
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

    /// Records the position of a program that is being stopped, if this is the first frame that it leaves.
    fn locate_stop(&self, pc: Pc) {
        let mut stopped = self.world().stopped.borrow_mut();
        if stopped.is_none() {
            let trace = self.trace(pc);
            let span = trace
                .iter()
                .map(|frame| frame.span)
                .find(|span| span.is_some());
            *stopped = Some(Origin {
                span,
                trace,
                ..Origin::default()
            });
        }
    }

    /// Returns the active calls, innermost first.
    fn trace(&self, pc: Pc) -> Vec<TraceFrame> {
        let mut pc = pc;
        let mut trace = Vec::new();
        let mut up = 0;
        while let Some(frame) = self.frames.up(up)
            && trace.len() < TRACE
        {
            trace.extend(frame_of(pc, frame.body));
            pc = frame.pc;
            up += 1;
        }
        trace
    }

    /// Returns the running code, if any.
    ///
    /// The caller must ensure the lifetime: as long as the frame exists.
    pub(super) fn body<'a>(&self) -> Option<&'a Body> {
        // SAFETY: the body of a frame is held by the closure that runs in it.
        self.frames.up(0).map(|frame| unsafe { &*frame.body })
    }
}

/// Adds the callee at fault, and clears the list of called natives if the failure is the callee's own.
fn blame(fresh: &mut Exception, site: &Site) {
    let natives = fresh.origin.get_mut().natives.len();
    // A native called by another one had other arguments than those at this place.
    let is_direct = match site.op {
        Op::Call | Op::CallLocal | Op::CallCaptured | Op::CallGlobal => natives <= 1,
        _ => natives == 0,
    };
    if !is_direct {
        if !site.callee.is_empty() {
            fresh.origin.get_mut().natives.push(site.callee.into());
        }
        return;
    }
    match site.native {
        Some(native) => fresh.blame_native(native, site.args.len()),
        None if !site.callee.is_empty() => fresh.blame(site.callee, u32::from(site.shift)),
        None => {}
    }
    let natives = &mut fresh.origin.get_mut().natives;
    natives.clear();
    if fresh.class == Class::ARITY && site.native.is_some() {
        // A function that the native called takes another number of arguments.
        natives.extend(["".into(), site.callee.into()]);
    }
}

impl Site {
    /// Returns the place of the part of the call that is at fault.
    fn culprit(&self, at: Culprit) -> Option<Span> {
        match at {
            Culprit::Function => Some(self.head),
            Culprit::Collection => None,
            Culprit::Argument(idx) => {
                // The first operand represents all arguments that are folded into it.
                let idx = (idx as usize).saturating_sub(usize::from(self.shift));
                self.args.get(idx).copied()
            }
        }
    }
}

/// Describes one frame: the function and the call in it.
fn frame_of(pc: Pc, body: *const Body) -> Option<TraceFrame> {
    // SAFETY: the body of a frame is held by the closure that runs in it.
    let body = unsafe { body.as_ref() }?;
    let site = body.site(body.number(pc)?);
    Some(TraceFrame {
        function: body.name.clone(),
        span: site.map_or(Span::NONE, |site| site.span),
    })
}
