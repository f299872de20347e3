//! Iteration over the items of a vector, one leaf at a time from either end.

use std::iter::FusedIterator;

use super::PVec;
use crate::value::Value;

/// The items of a vector, in order.
#[derive(Clone)]
pub struct VecIter<'a> {
    items: &'a PVec,
    /// The remaining items are `front`, the items from `at` up to `end`, and `back`.
    front: std::slice::Iter<'a, Value>,
    at: usize,
    end: usize,
    back: std::slice::Iter<'a, Value>,
}

impl<'a> VecIter<'a> {
    pub(super) fn new(items: &'a PVec) -> VecIter<'a> {
        VecIter {
            items,
            front: [].iter(),
            at: 0,
            end: items.len(),
            back: [].iter(),
        }
    }

    #[cold]
    fn refill_front(&mut self) -> Option<&'a Value> {
        if self.at >= self.end {
            return self.back.next();
        }
        let chunk = self.items.chunk_at(self.at);
        let chunk = &chunk[..chunk.len().min(self.end - self.at)];
        self.at += chunk.len();
        self.front = chunk.iter();
        self.front.next()
    }

    #[cold]
    fn refill_back(&mut self) -> Option<&'a Value> {
        if self.at >= self.end {
            return self.front.next_back();
        }
        // Leaves begin at every 32nd item of the whole vector, of which this may be a slice: find the last one.
        let mut start = self.end.saturating_sub(32).max(self.at);
        let mut chunk = self.items.chunk_at(start);
        while start + chunk.len() < self.end {
            start += chunk.len();
            chunk = self.items.chunk_at(start);
        }
        self.back = chunk[..self.end - start].iter();
        self.end = start;
        self.back.next_back()
    }
}

impl<'a> Iterator for VecIter<'a> {
    type Item = &'a Value;

    #[inline]
    fn next(&mut self) -> Option<&'a Value> {
        match self.front.next() {
            Some(item) => Some(item),
            None => self.refill_front(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.front.len() + (self.end - self.at) + self.back.len();
        (left, Some(left))
    }
}

impl<'a> DoubleEndedIterator for VecIter<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<&'a Value> {
        match self.back.next_back() {
            Some(item) => Some(item),
            None => self.refill_back(),
        }
    }
}

impl ExactSizeIterator for VecIter<'_> {}
impl FusedIterator for VecIter<'_> {}
