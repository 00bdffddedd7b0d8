//! zstd streams (RFC 8878) in and out, for recordings and captures.
//!
//! By default they are read and written by `ruzstd`, which needs no C compiler: reading takes several times as long as
//! with the C library and files come out some 30 % larger. The feature `zstd` takes the C library instead; packages
//! and published speeds are built with it. One thing only the C library can do: give back what a stream holds before
//! its frame ends ([`Pieces`]).
//!
//! The ground floor: it uses no other crate of wattwise.
#![forbid(unsafe_code)]

use std::io::{self, Read, Write};

/// A zstd frame's first bytes: little-endian 0xFD2FB528 (RFC 8878, 3.1.1).
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

#[cfg(feature = "zstd")]
mod with_c {
    use super::*;
    use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

    /// What a stream of frames holds.
    ///
    /// # Errors
    /// When no decoder can be had; damage is told by reading.
    pub fn unpack<'r>(from: impl Read + 'r) -> io::Result<impl Read + 'r> {
        zstd::stream::read::Decoder::new(from)
    }

    /// Packs all of `from` at a level from 1 (fast) to 19 (small), with a checksum.
    ///
    /// # Errors
    /// What reading or writing says.
    pub fn pack(mut from: impl Read, into: impl Write, level: i32) -> io::Result<()> {
        let mut stream = zstd::Encoder::new(into, level)?;
        stream.include_checksum(true)?;
        io::copy(&mut from, &mut stream)?;
        stream.finish()?.flush()
    }

    /// Unpacks a frame that comes in pieces, each of which ends at a flushed block.
    pub struct Pieces(Decoder<'static>);

    impl Pieces {
        /// At the start of a frame; `None` where it cannot be had.
        pub fn new() -> Option<Pieces> {
            Decoder::new().ok().map(Pieces)
        }

        /// Unpacks a piece, at most `step` bytes at a time: appends them and calls `take`, which may use up what is
        /// there. False where the piece is damaged or `take` says so.
        pub fn feed(
            &mut self,
            piece: &[u8],
            step: usize,
            into: &mut Vec<u8>,
            mut take: impl FnMut(&mut Vec<u8>) -> bool,
        ) -> bool {
            let mut from = InBuffer::around(piece);
            loop {
                let have = into.len();
                into.resize(have + step, 0);
                let mut to = OutBuffer::around_pos(&mut into[..], have);
                let outcome = self.0.run(&mut from, &mut to);
                let filled = to.pos();
                into.truncate(filled);
                if outcome.is_err() || !take(into) {
                    return false;
                }
                if filled < have + step && from.pos() == piece.len() {
                    return true;
                }
            }
        }
    }
}

#[cfg(not(feature = "zstd"))]
mod in_rust {
    use super::*;
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder, StreamingDecoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    /// What a stream of frames holds.
    ///
    /// # Errors
    /// When its first frame has no valid head; later damage is told by reading.
    pub fn unpack<'r>(from: impl Read + 'r) -> io::Result<impl Read + 'r> {
        let from = Ahead { from, byte: None, ended: false };
        let frame = StreamingDecoder::new(from).map_err(io::Error::other)?;
        Ok(Frames { frame: Some(frame), cut: None })
    }

    /// A frame's last block, without content, and a checksum (RFC 8878, 3.1.1.2).
    const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

    /// A stream of which one byte may have been read ahead, to see whether there is more.
    struct Ahead<R> {
        from: R,
        byte: Option<u8>,
        /// Its end was met.
        ended: bool,
    }

    impl<R: Read> Read for Ahead<R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match (self.byte.take(), into.first_mut()) {
                (Some(byte), Some(first)) => {
                    *first = byte;
                    Ok(1)
                }
                (byte, _) => {
                    self.byte = byte;
                    let n = self.from.read(into)?;
                    self.ended |= n == 0 && !into.is_empty();
                    Ok(n)
                }
            }
        }
    }

    /// One frame after the other.
    struct Frames<R: Read> {
        frame: Option<StreamingDecoder<Ahead<R>, FrameDecoder>>,
        /// The stream ends within the frame, which is told once all that it holds has been read.
        cut: Option<io::Error>,
    }

    impl<R: Read> Read for Frames<R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            loop {
                let Some(mut frame) = self.frame.take() else { return Ok(0) };
                let n = match frame.read(into) {
                    // The decoder keeps a window of what it has, up to the last block: of a frame that is cut short, this one.
                    Err(cut) if frame.get_ref().ended && self.cut.is_none() => {
                        self.cut = Some(cut);
                        _ = frame.decoder.decode_blocks(LAST_BLOCK, BlockDecodingStrategy::UptoBlocks(1));
                        frame.read(into)?
                    }
                    read => read?,
                };
                if n > 0 || into.is_empty() {
                    self.frame = Some(frame);
                    return Ok(n);
                }
                if let Some(cut) = self.cut.take() {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, cut));
                }
                let (told, found) =
                    (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
                if told.is_some() && told != found {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum does not fit"));
                }
                let mut rest = frame.into_inner();
                let mut head = [0];
                if rest.read(&mut head)? == 0 {
                    return Ok(0);
                }
                rest.byte = Some(head[0]);
                self.frame = Some(StreamingDecoder::new(rest).map_err(io::Error::other)?);
            }
        }
    }

    /// Packs all of `from`; the level is the fastest, whatever is asked for.
    ///
    /// # Errors
    /// What reading or writing says.
    pub fn pack(mut from: impl Read, mut into: impl Write, _level: i32) -> io::Result<()> {
        let mut plain = Vec::new();
        from.read_to_end(&mut plain)?;
        into.write_all(&compress_to_vec(plain.as_slice(), CompressionLevel::Fastest))?;
        into.flush()
    }

    /// Not to be had without the C library.
    pub enum Pieces {}

    impl Pieces {
        /// `None`: this build has no decoder that gives back a frame's beginning before its end.
        pub fn new() -> Option<Pieces> {
            None
        }

        /// Never called.
        pub fn feed(
            &mut self,
            _: &[u8],
            _: usize,
            _: &mut Vec<u8>,
            _: impl FnMut(&mut Vec<u8>) -> bool,
        ) -> bool {
            match *self {}
        }
    }
}

#[cfg(not(feature = "zstd"))]
pub use in_rust::{Pieces, pack, unpack};
#[cfg(feature = "zstd")]
pub use with_c::{Pieces, pack, unpack};

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..300_000_u32).flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 20).to_le_bytes()).collect()
    }

    #[test]
    fn what_is_packed_comes_back() {
        let mut packed = Vec::new();
        pack(text().as_slice(), &mut packed, 3).expect("packs");
        assert_eq!(packed[..4], MAGIC);
        let mut back = Vec::new();
        unpack(packed.as_slice()).expect("a frame").read_to_end(&mut back).expect("unpacks");
        assert!(back == text(), "{} bytes came back of {}", back.len(), text().len());
    }

    #[test]
    fn frames_follow_each_other() {
        let mut packed = Vec::new();
        for part in ["one, ", "two"] {
            pack(part.as_bytes(), &mut packed, 3).expect("packs");
        }
        let mut back = String::new();
        unpack(packed.as_slice()).expect("a frame").read_to_string(&mut back).expect("unpacks");
        assert_eq!(back, "one, two");
    }

    /// Blocks have 128 KiB at most (RFC 8878, 3.1.1.2.4): no more than one is missing.
    #[test]
    fn what_a_cut_stream_holds_comes_out_before_the_error() {
        let mut bits = 1_u64;
        // Packs to a half, everywhere alike.
        let mut letter = || {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (bits >> 60) as u8
        };
        let whole: Vec<u8> = (0..1 << 20).map(|_| letter()).collect();
        let mut packed = Vec::new();
        pack(whole.as_slice(), &mut packed, 3).expect("packs");
        for eighths in 1..8 {
            let mut back = Vec::new();
            let mut stream = unpack(&packed[..packed.len() * eighths / 8]).expect("a frame");
            assert!(stream.read_to_end(&mut back).is_err() && whole.starts_with(&back), "{eighths}");
            let least = (whole.len() * eighths / 8).saturating_sub(130 << 10);
            assert!(back.len() >= least, "{eighths}: {} of {least}", back.len());
        }
    }

    #[test]
    fn damage_is_an_error_not_less_data() {
        let mut packed = Vec::new();
        pack(text().as_slice(), &mut packed, 3).expect("packs");
        let read = |bytes: &[u8]| unpack(bytes).and_then(|mut r| r.read_to_end(&mut Vec::new()));
        assert!(read(&packed[..packed.len() / 2]).is_err(), "cut short");
        let last = packed.len() - 1;
        packed[last] ^= 1;
        assert!(read(&packed).is_err(), "the checksum is wrong");
        assert!(read(b"PERFILE2").is_err(), "no frame at all");
    }
}
