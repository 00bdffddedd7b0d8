//! The protobuf wire format, as far as Perfetto's traces need it: numbers, what has a length, columns of numbers.
//!
//! By hand, for the reason that `replay/export/protobuf.rs` gives: it is a page, and a stranger's file reserves no memory by what
//! it claims. A message ends where it makes no sense any more.

/// A field's value.
pub(super) enum ProtoValue<'a> {
    Int(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to the first that makes no sense.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, ProtoValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = varint(self.0)?;
        let (value, rest) = match tag & 7 {
            0 => varint(rest).map(|(n, rest)| (ProtoValue::Int(n), rest))?,
            1 => rest.split_at_checked(8).map(|(b, rest)| (ProtoValue::Bytes(b), rest))?,
            2 => {
                let (length, rest) = varint(rest)?;
                rest.split_at_checked(usize::try_from(length).ok()?)
                    .map(|(b, rest)| (ProtoValue::Bytes(b), rest))?
            }
            5 => rest.split_at_checked(4).map(|(b, rest)| (ProtoValue::Bytes(b), rest))?,
            _ => return None,
        };
        self.0 = rest;
        (tag >> 3 > 0).then_some((tag >> 3, value))
    }
}

pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (n, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 127) << (7 * n).min(63);
        if byte & 128 == 0 {
            return Some((value, &bytes[n + 1..]));
        }
    }
    None
}

pub(super) fn int(message: &[u8], field: u64) -> Option<u64> {
    let mut ints = Fields(message).filter_map(|(f, value)| match value {
        ProtoValue::Int(n) if f == field => Some(n),
        _ => None,
    });
    ints.next()
}

/// Messages, texts or columns of a field.
pub(super) fn all(message: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    Fields(message).filter_map(move |(f, value)| match value {
        ProtoValue::Bytes(bytes) if f == field => Some(bytes),
        _ => None,
    })
}

pub(super) fn column(message: &[u8], field: u64) -> impl Iterator<Item = u64> {
    all(message, field).flat_map(|mut rest| {
        std::iter::from_fn(move || {
            let (n, after) = varint(rest)?;
            rest = after;
            Some(n)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of protobuf's own description of its encoding.
    #[test]
    fn messages_of_the_specification() {
        assert_eq!(int(b"\x08\x96\x01", 1), Some(150));
        assert_eq!(all(b"\x12\x07testing", 2).next(), Some(&b"testing"[..]));
        assert_eq!(all(b"\x1a\x03\x08\x96\x01", 3).map(|m| int(m, 1)).next(), Some(Some(150)));
        assert_eq!(column(b"\x32\x06\x03\x8e\x02\x9e\xa7\x05", 6).collect::<Vec<_>>(), [3, 270, 86942]);
        assert_eq!(
            varint(&[0xff; 9].into_iter().chain([1]).collect::<Vec<u8>>()).map(|(n, _)| n),
            Some(u64::MAX)
        );
    }

    #[test]
    fn what_makes_no_sense_ends_a_message() {
        for bytes in [
            &b"\x12\x07test"[..],
            b"\x08\x96",
            b"\x0b\x01",
            b"\x00\x01",
            &[0xff; 11],
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7fx",
        ] {
            assert!(Fields(bytes).next().is_none(), "{bytes:?}");
        }
    }
}
