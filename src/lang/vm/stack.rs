//! Registers: segments of slots that never move, so that a pointer to a frame stays valid. Frames: the state of each
//! call that has not returned.

use super::code::{Body, Word};
use crate::value::Value;

/// Number of slots in a machine's first segment; below, for a machine that may be one of thousands that wait.
const FIRST: usize = 512;
const FIRST_SMALL: usize = 64;
/// Minimum number of slots in the second segment.
const SECOND: usize = 512;
const LARGEST: usize = 1 << 20;

/// The initial memory of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Usual,
    /// Takes little memory; deeper calls are slightly slower.
    Small,
}

/// The registers of a machine. Every slot always holds a valid value.
#[derive(Default)]
pub(super) struct Stack {
    segments: Vec<Box<[Value]>>,
    current: usize,
}

impl Stack {
    /// Returns the first slot of the first segment.
    pub(super) fn start(&mut self, size: Size) -> *mut Value {
        if self.segments.is_empty() {
            self.segments.push(segment(match size {
                Size::Usual => FIRST,
                Size::Small => FIRST_SMALL,
            }));
        }
        self.segments[0].as_mut_ptr()
    }

    /// Returns the end of the current segment.
    pub(super) fn end(&mut self) -> *mut Value {
        self.segments[self.current].as_mut_ptr_range().end
    }

    /// Switches to the next segment, which has room for `needed` slots, and returns its start.
    pub(super) fn advance(&mut self, needed: usize) -> *mut Value {
        self.current += 1;
        if self.segments.len() == self.current || self.segments[self.current].len() < needed {
            // Later segments are not in use, so a larger one replaces them.
            self.segments.truncate(self.current);
            let last = self.segments.last().map_or(FIRST, |last| last.len());
            let usual = (last * 2).clamp(SECOND, LARGEST);
            self.segments.push(segment(needed.max(usual)));
        }
        self.segments[self.current].as_mut_ptr()
    }

    /// Switches back to the previous segment.
    pub(super) fn retreat(&mut self) {
        self.current -= 1;
    }
}

fn segment(slots: usize) -> Box<[Value]> {
    (0..slots).map(|_| Value::Nil).collect()
}

/// Flag of a frame that returns to Rust.
pub(super) const ENTRY: u16 = 1;
/// Flag of a frame whose registers begin a segment.
pub(super) const SWITCHED: u16 = 2;

/// A call that has not returned.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// The first register. The slot before it holds the running closure.
    pub base: *mut Value,
    /// The running code.
    pub body: *const Body,
    /// The instruction at which the caller continues.
    pub pc: *mut Word,
    /// The caller's register for the result, as an offset in bytes.
    pub dst: u16,
    pub flags: u16,
}

const NO_FRAME: Frame = Frame {
    base: std::ptr::null_mut(),
    body: std::ptr::null(),
    pc: std::ptr::null_mut(),
    dst: 0,
    flags: 0,
};

const FRAMES: usize = 32;
const FRAMES_SMALL: usize = 8;

/// The frames of a machine. The first has no code, so that each real frame is preceded by another.
pub(super) struct Frames {
    all: Vec<Frame>,
    first: *mut Frame,
    pub current: *mut Frame,
    /// The last frame that there is room for.
    pub last: *mut Frame,
}

impl Frames {
    pub(super) fn new(size: Size) -> Frames {
        let mut frames = Frames {
            all: Vec::new(),
            first: std::ptr::null_mut(),
            current: std::ptr::null_mut(),
            last: std::ptr::null_mut(),
        };
        let count = match size {
            Size::Usual => FRAMES,
            Size::Small => FRAMES_SMALL,
        };
        frames.resize(count, 0);
        frames
    }

    fn resize(&mut self, count: usize, depth: usize) {
        self.all.resize(count, NO_FRAME);
        let range = self.all.as_mut_ptr_range();
        self.first = range.start;
        // SAFETY: both are within the list: the depth is below its former length.
        unsafe {
            self.current = range.start.add(depth);
            self.last = range.end.sub(1);
        }
    }

    /// Returns the number of calls that have not returned.
    pub(super) fn depth(&self) -> usize {
        // SAFETY: both point into the list.
        unsafe { self.current.offset_from_unsigned(self.first) }
    }

    /// Makes room for more frames, up to `most`; returns false if the maximum is reached.
    pub(super) fn grow(&mut self, most: usize) -> bool {
        let depth = self.depth();
        if depth >= most {
            return false;
        }
        if self.current == self.last {
            self.resize((self.all.len() * 2).min(most + 1), depth);
        }
        true
    }

    /// Returns the frame that is `up` calls above the current one; `None` past the first.
    pub(super) fn up(&self, up: usize) -> Option<Frame> {
        if up >= self.depth() {
            return None;
        }
        // SAFETY: it lies between the first and the current one.
        Some(unsafe { *self.current.sub(up) })
    }
}
