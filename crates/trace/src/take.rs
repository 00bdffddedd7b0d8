//! Numbers and strings off the front of a byte slice, in either byte order.

/// Bytes in the order of the recording machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    #[inline]
    pub(crate) fn u16(self, b: &[u8]) -> Option<u16> {
        let b = *b.first_chunk()?;
        Some(if self == ByteOrder::Little { u16::from_le_bytes(b) } else { u16::from_be_bytes(b) })
    }
    #[inline]
    pub(crate) fn u32(self, b: &[u8]) -> Option<u32> {
        let b = *b.first_chunk()?;
        Some(if self == ByteOrder::Little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) })
    }
    #[inline]
    pub(crate) fn u64(self, b: &[u8]) -> Option<u64> {
        let b = *b.first_chunk()?;
        Some(if self == ByteOrder::Little { u64::from_le_bytes(b) } else { u64::from_be_bytes(b) })
    }
}

/// Takes numbers and strings off the front of a byte slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Take<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) order: ByteOrder,
}

impl<'a> Take<'a> {
    pub(crate) fn bytes(&mut self, n: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(usize::try_from(n).ok()?)?;
        self.rest = rest;
        Some(head)
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.bytes(2).and_then(|b| self.order.u16(b))
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes(4).and_then(|b| self.order.u32(b))
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes(8).and_then(|b| self.order.u64(b))
    }
    /// perf's strings: a length, and as many bytes, of which those from the first zero on are none of it.
    pub(crate) fn perf_string(&mut self) -> Option<String> {
        let length = self.u32()?;
        let text = self.bytes(u64::from(length))?;
        let text = text.split(|&b| b == 0).next().unwrap_or(&[]);
        Some(String::from_utf8_lossy(text).into_owned())
    }
    /// Up to a zero byte, which is taken too.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&b| b == 0)?;
        let head = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(head)
    }
}
