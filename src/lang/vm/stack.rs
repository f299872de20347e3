//! Registers: segments of slots that never move, so that a pointer to a frame stays valid.

use crate::value::Value;

const FIRST: usize = 512;
const LARGEST: usize = 1 << 20;

/// The registers of a machine. Every slot always holds a valid value.
#[derive(Default)]
pub(super) struct Stack {
    segments: Vec<Box<[Value]>>,
    current: usize,
}

impl Stack {
    /// Returns the first slot of all.
    pub fn start(&mut self) -> *mut Value {
        if self.segments.is_empty() {
            self.segments.push(segment(FIRST));
        }
        self.segments[0].as_mut_ptr()
    }

    /// Returns the end of the current segment.
    pub fn end(&mut self) -> *mut Value {
        self.segments[self.current].as_mut_ptr_range().end
    }

    /// Goes on to the next segment, which has room for `needed` slots, and returns its start.
    pub fn advance(&mut self, needed: usize) -> *mut Value {
        self.current += 1;
        if self.segments.len() == self.current || self.segments[self.current].len() < needed {
            // What lies further on is not in use: a larger one takes its place.
            self.segments.truncate(self.current);
            let last = self.segments.last().map_or(FIRST, |last| last.len());
            self.segments
                .push(segment(needed.max((last * 2).min(LARGEST))));
        }
        self.segments[self.current].as_mut_ptr()
    }

    /// Goes back to the segment before.
    pub fn retreat(&mut self) {
        self.current -= 1;
    }
}

fn segment(slots: usize) -> Box<[Value]> {
    (0..slots).map(|_| Value::Nil).collect()
}
