//! The protobuf wire format, as far as a trace needs it: varints, doubles, and what has a length.
//!
//! By hand, since it is these three and has not changed since 2008: a library would bring a derive, a build step or a
//! runtime for a page of code, and take every packet through a structure of its own. `scripts/perfetto.sh` has the
//! official messages of Perfetto read what is written here.

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// A field's wire type: the low three bits of its tag.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A field of an integer or enum type.
    pub(super) fn int(&mut self, field: u64, value: u64) -> &mut Message {
        self.raw(field << 3 | VARINT);
        self.raw(value);
        self
    }

    /// A field of type double.
    pub(super) fn double(&mut self, field: u64, value: f64) -> &mut Message {
        self.raw(field << 3 | FIXED64);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    /// A field of type string or bytes.
    pub(super) fn text(&mut self, field: u64, value: &str) -> &mut Message {
        self.length_of(field, value.as_bytes());
        self
    }

    /// A field that is a message.
    pub(super) fn message(&mut self, field: u64, fill: impl FnOnce(&mut Message)) -> &mut Message {
        let mut inner = Message::default();
        fill(&mut inner);
        self.length_of(field, &inner.bytes);
        self
    }

    fn length_of(&mut self, field: u64, bytes: &[u8]) {
        self.raw(field << 3 | LENGTH);
        self.raw(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the format's own description (protobuf.dev, "Encoding").
    #[test]
    fn messages_are_as_described() {
        let mut m = Message::default();
        assert_eq!(m.int(1, 150).bytes(), [0x08, 0x96, 0x01]);
        let mut m = Message::default();
        assert_eq!(m.text(2, "testing").bytes(), b"\x12\x07testing");
        let mut m = Message::default();
        m.message(3, |inner| {
            inner.int(1, 150);
        });
        assert_eq!(m.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut m = Message::default();
        assert_eq!(m.double(1, 1.0).bytes(), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        let mut m = Message::default();
        m.int(1, u64::MAX);
        assert_eq!(m.bytes().len(), 11);
    }
}
