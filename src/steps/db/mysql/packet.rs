//! The parts of a packet of MySQL.

/// Reads a packet from its beginning. Each method returns `None` if the packet is too short.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(packet: &'a [u8]) -> Reader<'a> {
        Reader { rest: packet }
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (found, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(found)
    }

    /// Reads an integer of that many bytes, at most 8, the lowest first.
    pub(super) fn int(&mut self, count: usize) -> Option<u64> {
        let mut all = [0; 8];
        all[..count].copy_from_slice(self.bytes(count)?);
        Some(u64::from_le_bytes(all))
    }

    /// Reads an integer whose first byte tells its length.
    pub(super) fn number(&mut self) -> Option<u64> {
        match self.byte()? {
            0xfc => self.int(2),
            0xfd => self.int(3),
            0xfe => self.int(8),
            0xfb | 0xff => None,
            small => Some(u64::from(small)),
        }
    }

    /// Reads bytes that are preceded by their number.
    pub(super) fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.bytes(usize::try_from(count).ok()?)
    }

    /// Reads bytes up to a zero.
    pub(super) fn up_to_zero(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        let found = self.bytes(end)?;
        self.byte()?;
        Some(found)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Writes bytes preceded by their number.
pub(super) fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        count @ 0..=250 => out.push(u8::try_from(count).unwrap_or_default()),
        count @ 251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&count.to_le_bytes()[..2]);
        }
        count => {
            out.push(0xfd);
            out.extend_from_slice(&count.to_le_bytes()[..3]);
        }
    }
    out.extend_from_slice(bytes);
}
