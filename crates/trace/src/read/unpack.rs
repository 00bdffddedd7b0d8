//! What a recording may be packed in, told by its first bytes: each kind a line of the table.
//!
//! Streams are unpacked as they are read, so that a bomb meets the budget and not the disk's end. What would need a further
//! library for a rare kind is named by `foreign`, with the command that unpacks it.

use std::io::{self, Read};

/// How a stream is packed, and where in the file it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    kind: PackingKind,
    pub(crate) begins: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackingKind {
    Zstd,
    Gzip,
    Xz,
    Bzip2,
    /// `atrace -z` has it after a line of its own.
    Zlib,
    /// Text of Windows: PowerShell's `>` writes it.
    Utf16 {
        big: bool,
    },
}

/// Where a kind's stream begins in a file that starts so; `None` where it is not of that kind.
type Begins = fn(&[u8]) -> Option<usize>;

const KINDS: [(PackingKind, Begins); 7] = [
    (PackingKind::Zstd, |start| start.starts_with(&wattwise_packed::MAGIC).then_some(0)),
    // RFC 1952: magic and the only method.
    (PackingKind::Gzip, |start| start.starts_with(&[0x1f, 0x8b, 8]).then_some(0)),
    (PackingKind::Xz, |start| start.starts_with(b"\xfd7zXZ\0").then_some(0)),
    // `BZh`, the size of a block, the mark of the first one.
    (PackingKind::Bzip2, |start| {
        let is = start.starts_with(b"BZh") && start.get(4..10) == Some(b"1AY&SY");
        (is && start[3].is_ascii_digit()).then_some(0)
    }),
    (PackingKind::Zlib, |start| {
        const HEAD: &[u8] = b"TRACE:\n";
        let within = &start[..start.len().min(1 << 10)];
        let after = within.windows(HEAD.len()).position(|w| w == HEAD).map(|at| at + HEAD.len());
        [Some(0), after].into_iter().flatten().find(|at| is_zlib(&start[*at..]))
    }),
    (PackingKind::Utf16 { big: false }, |start| utf16(start, [0xff, 0xfe], 1)),
    (PackingKind::Utf16 { big: true }, |start| utf16(start, [0xfe, 0xff], 0)),
];

/// RFC 1950: method 8 with a window of 32 KiB, a check of two bytes, no dictionary.
fn is_zlib(start: &[u8]) -> bool {
    matches!(start, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..]) && start.len() > 6 && !start[..6].is_ascii()
}

/// A mark of the order, or plain letters with a zero beside each.
fn utf16(start: &[u8], mark: [u8; 2], zeros: usize) -> Option<usize> {
    const PAIRS: usize = 16;
    if start.starts_with(&mark) {
        // Four bytes a letter have the same mark and zeros after it.
        return (!start.starts_with(&[0xff, 0xfe, 0, 0])).then_some(2);
    }
    let pairs = start.chunks_exact(2).take(PAIRS);
    let plain =
        |pair: &[u8]| pair[zeros] == 0 && matches!(pair[1 - zeros], b'\t' | b'\n' | b'\r' | b' '..=b'~');
    (pairs.len() == PAIRS && pairs.clone().all(plain)).then_some(0)
}

/// How a file that starts so is packed.
pub(crate) fn packed(start: &[u8]) -> Option<Packed> {
    KINDS.iter().find_map(|(kind, begins)| begins(start).map(|at| Packed { kind: *kind, begins: at as u64 }))
}

/// Most that an xz stream may ask for in memory: `xz -9` has a dictionary of 64 MiB.
const MOST_XZ_KIB: u32 = 256 << 10;

impl Packed {
    /// What a stream holds that has been brought to where it begins.
    pub(crate) fn unpack<'r>(self, from: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
        Ok(match self.kind {
            PackingKind::Zstd => Box::new(wattwise_packed::unpack(from)?),
            PackingKind::Gzip => Box::new(flate2::read::MultiGzDecoder::new(from)),
            PackingKind::Xz => {
                let from = io::BufReader::with_capacity(64 << 10, from);
                Box::new(InPieces(lzma_rust2::XzReader::new_mem_limit(from, true, MOST_XZ_KIB)))
            }
            PackingKind::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(from)),
            PackingKind::Zlib => Box::new(flate2::read::ZlibDecoder::new(from)),
            PackingKind::Utf16 { big } => {
                Box::new(Utf8 { from, big, rest: Vec::new(), out: Vec::new(), given: 0 })
            }
        })
    }
}

/// A stream read a little at a time, for a decoder that at a stream's end gives an error in the place of what it has.
struct InPieces<R>(R);

impl<R: Read> Read for InPieces<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = into.len().min(4 << 10);
        self.0.read(&mut into[..n])
    }
}

/// UTF-16 as UTF-8; what is no letter becomes U+FFFD.
struct Utf8<R> {
    from: R,
    big: bool,
    /// Bytes that may go on: half a unit, or the first of a pair of them.
    rest: Vec<u8>,
    out: Vec<u8>,
    given: usize,
}

impl<R: Read> Utf8<R> {
    /// More text; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 << 10];
        let n = self.from.read(&mut chunk)?;
        self.rest.extend_from_slice(&chunk[..n]);
        let unit = |pair: &[u8]| {
            let pair = [pair[0], pair[1]];
            if self.big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        };
        let mut units: Vec<u16> = self.rest.chunks_exact(2).map(unit).collect();
        // The first half of a pair waits for the second.
        if n > 0 && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
            units.pop();
        }
        self.rest.drain(..2 * units.len());
        self.out.clear();
        self.given = 0;
        for letter in char::decode_utf16(units) {
            let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(n > 0)
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() {
            if !self.fill()? && self.out.is_empty() {
                return Ok(0);
            }
        }
        let n = into.len().min(self.out.len() - self.given);
        into[..n].copy_from_slice(&self.out[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(bytes: &[u8]) -> Option<String> {
        let packed = packed(bytes)?;
        let mut text = String::new();
        // Reads of one byte: no border of a read may matter.
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let n = into.len().min(1);
                self.0.read(&mut into[..n])
            }
        }
        packed.unpack(Slow(&bytes[packed.begins as usize..])).ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    }

    #[test]
    fn text_of_two_bytes_a_letter() {
        let text = "# tracer: nop\n größer 日本 𝄞 and more than sixteen letters\n";
        let bytes = |big: bool| -> Vec<u8> {
            text.encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
        };
        for big in [false, true] {
            let mark: &[u8] = if big { &[0xfe, 0xff] } else { &[0xff, 0xfe] };
            assert_eq!(through(&[mark, &bytes(big)].concat()).as_deref(), Some(text), "{big}");
            // Without a mark, where the beginning is plain.
            let plain: Vec<u8> = bytes(big)[..32].repeat(4);
            assert_eq!(through(&plain).map(|t| t.len()), Some(64), "{big}");
        }
        // Half a letter at the end, halves of pairs in a wrong order.
        assert_eq!(through(b"\xff\xfea\0b").as_deref(), Some("a"));
        assert_eq!(through(b"\xff\xfe\x00\xdca\0\x00\xd8").as_deref(), Some("\u{fffd}a\u{fffd}"));
    }

    #[test]
    fn what_is_not_packed_stays() {
        for start in [
            &b""[..],
            b"# tracer: nop\n",
            b"PERFILE2",
            b"x^2 is text",
            b"BZh9: a name",
            b"TRACE:\n# tracer: nop",
            b"\xff\xfe\0\0#\0\0\0",
            b"a\0b\0",
        ] {
            assert_eq!(packed(start), None, "{start:?}");
        }
    }
}
