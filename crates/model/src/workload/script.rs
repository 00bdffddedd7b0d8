//! Recorded programs in few bytes: the form in which a trace of ten million events fits in memory.
//!
//! Each op is a head byte, its tag in the low half and the length of its number in bytes in the high half,
//! then the number, least byte first; a typical run or sleep takes 3 or 4 bytes. A number is read as the
//! eight bytes that begin where it does, cut to its length: no loop, no branch. So that there are always
//! eight, a finished program ends with as many zeros after its last op. Readers share the bytes, so ten
//! policies replay one copy.
//!
//! | tag | op | number | after it |
//! |---|---|---|---|
//! | 0 | the end | | |
//! | 1 | `Run` without stall | cycles | |
//! | 2 | `Run` | cycles | the length of stall_ns in a byte, then stall_ns |
//! | 3 | `SleepFor` | ns | |
//! | 4 | `SleepUntil` | ns | |
//! | 5 | `Io` | ns | |
//! | 6 | `Block` | | |
//! | 7 | `Wake` | task | |
//! | 8 | `OnCpu` | ns since the last `OnCpu` | the CPU in two bytes |

use super::{Op, TaskId};
use std::sync::Arc;

/// Tag of `OnCpu`, the step that is looked for before it is taken.
const ON_CPU: u8 = 8;

/// Bits of a head byte that hold the tag; the length is above them.
const TAG_BITS: u32 = 4;

/// What a finished program ends with: an end, and enough for the longest number to begin at any byte before.
const END: [u8; 8] = [0; 8];

/// A finished program; cloning shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    bytes: Arc<[u8]>,
    ops: u64,
}

/// A program in the making.
#[derive(Clone, Debug, Default)]
pub struct ScriptBuilder {
    bytes: Vec<u8>,
    ops: u64,
    /// Time of the last `OnCpu`.
    clock: u64,
    /// A run that may still grow: consecutive runs are one.
    run: Option<(u64, u64)>,
    /// The last step that is no run is a block.
    blocked: bool,
}

/// Reads a script from its start.
#[derive(Clone, Debug)]
pub struct ScriptReader {
    script: Script,
    at: ScriptPosition,
}

/// A place in a script; the default is its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptPosition {
    byte: usize,
    clock: u64,
}

impl ScriptBuilder {
    /// An empty program.
    pub fn new() -> ScriptBuilder {
        ScriptBuilder::default()
    }

    /// Appends a step. Empty runs vanish and neighbouring runs merge.
    pub fn push(&mut self, op: Op) {
        if let Op::Run { cycles, stall_ns } = op {
            let (c, s) = self.run.unwrap_or((0, 0));
            self.run = Some((c.saturating_add(cycles), s.saturating_add(stall_ns)));
            return;
        }
        self.flush();
        self.blocked = op == Op::Block;
        match op {
            Op::Run { .. } => {}
            Op::SleepFor(ns) => self.put(3, ns),
            Op::SleepUntil(ns) => self.put(4, ns),
            Op::Io(ns) => self.put(5, ns),
            Op::Block => self.put(6, 0),
            Op::Wake(TaskId(t)) => self.put(7, u64::from(t)),
            Op::OnCpu { cpu, at_ns } => {
                // Times go up; one that does not is damage, and counts as no time at all.
                let passed = at_ns.saturating_sub(self.clock);
                self.clock += passed;
                self.put(ON_CPU, passed);
                self.bytes.extend_from_slice(&cpu.to_le_bytes());
            }
            // No trace shows which lock was waited for: recordings have none.
            Op::Lock(_) | Op::Unlock(_) => {}
        }
    }

    fn flush(&mut self) {
        match self.run.take() {
            None | Some((0, 0)) => {}
            Some((cycles, 0)) => {
                self.blocked = false;
                self.put(1, cycles);
            }
            Some((cycles, stall)) => {
                self.blocked = false;
                self.put(2, cycles);
                self.bytes.push(length(stall) as u8);
                self.number(stall);
            }
        }
    }

    /// Appends an op's head and its number.
    fn put(&mut self, tag: u8, n: u64) {
        self.bytes.push(tag | (length(n) as u8) << TAG_BITS);
        self.number(n);
        self.ops += 1;
    }

    fn number(&mut self, n: u64) {
        self.bytes.extend_from_slice(&n.to_le_bytes()[..length(n)]);
    }

    /// Steps so far, a run in the making included.
    pub fn ops(&self) -> u64 {
        self.ops + u64::from(self.run.is_some())
    }

    /// Whether the last step is a block.
    pub fn ends_blocked(&self) -> bool {
        self.blocked && matches!(self.run, None | Some((0, 0)))
    }

    /// The finished program.
    pub fn finish(mut self) -> Script {
        self.flush();
        self.bytes.extend_from_slice(&END);
        Script { bytes: self.bytes.into(), ops: self.ops }
    }
}

impl Script {
    /// Number of steps.
    pub fn ops(&self) -> u64 {
        self.ops
    }
    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
    /// A reader at the first step.
    pub fn reader(&self) -> ScriptReader {
        ScriptReader { script: self.clone(), at: ScriptPosition::default() }
    }

    /// Whether no step is left at `position`.
    pub fn is_over(&self, position: ScriptPosition) -> bool {
        self.bytes.get(position.byte).is_none_or(|head| head % (1 << TAG_BITS) == 0)
    }

    /// Where and when the task is put on a CPU, if that is the step at `position`, which then moves on.
    #[inline]
    pub fn on_cpu(&self, position: &mut ScriptPosition) -> Option<(u16, u64)> {
        let head = *self.bytes.get(position.byte)?;
        if head % (1 << TAG_BITS) != ON_CPU {
            return None;
        }
        position.byte += 1;
        Some(self.place_and_time(usize::from(head >> TAG_BITS), position))
    }

    /// The step at `position`, which moves on to the next one; `None` at the end.
    // Inlined so that whoever matches on the step jumps once, by its tag, and not again by the `Op`.
    #[inline(always)]
    pub fn step(&self, position: &mut ScriptPosition) -> Option<Op> {
        let head = *self.bytes.get(position.byte)?;
        let len = usize::from(head >> TAG_BITS);
        let at = &mut position.byte;
        *at += 1;
        Some(match head % (1 << TAG_BITS) {
            0 => {
                *at -= 1;
                return None;
            }
            1 => Op::Run { cycles: self.number(len, at), stall_ns: 0 },
            2 => {
                let cycles = self.number(len, at);
                let len = self.number(1, at) as usize;
                Op::Run { cycles, stall_ns: self.number(len, at) }
            }
            3 => Op::SleepFor(self.number(len, at)),
            4 => Op::SleepUntil(self.number(len, at)),
            5 => Op::Io(self.number(len, at)),
            6 => Op::Block,
            7 => Op::Wake(TaskId(self.number(len, at) as u32)),
            _ => {
                let (cpu, at_ns) = self.place_and_time(len, position);
                Op::OnCpu { cpu, at_ns }
            }
        })
    }

    /// What follows the head of an `OnCpu`, of whose time the length is known.
    #[inline]
    fn place_and_time(&self, len: usize, position: &mut ScriptPosition) -> (u16, u64) {
        let passed = self.number(len, &mut position.byte);
        position.clock = position.clock.saturating_add(passed);
        (self.number(2, &mut position.byte) as u16, position.clock)
    }

    /// The number of `len` bytes at `at`, which moves on.
    #[inline]
    fn number(&self, len: usize, at: &mut usize) -> u64 {
        let word = self.bytes.get(*at..).and_then(|b| b.first_chunk()).map_or(0, |&w| u64::from_le_bytes(w));
        *at += len;
        word & LOW_BYTES[len % LOW_BYTES.len()]
    }
}

/// How many bytes a number takes.
fn length(n: u64) -> usize {
    (u64::BITS - n.leading_zeros()).div_ceil(8) as usize
}

/// Masks of a word's first bytes, by their number; as many as a head's length can say.
const LOW_BYTES: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut len = 0;
    while len < 8 {
        masks[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    masks
};

impl Iterator for ScriptReader {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        self.script.step(&mut self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_survives_the_bytes() {
        let ops = [
            Op::Run { cycles: 1, stall_ns: 0 },
            Op::SleepFor(u64::MAX),
            Op::Run { cycles: 127, stall_ns: 128 },
            Op::SleepUntil(300),
            Op::Io(1 << 40),
            Op::Block,
            Op::Wake(TaskId(70_000)),
            Op::OnCpu { cpu: 1023, at_ns: 0 },
            Op::OnCpu { cpu: 0, at_ns: 1 << 50 },
            Op::Run { cycles: u64::MAX, stall_ns: u64::MAX },
        ];
        let mut b = ScriptBuilder::new();
        ops.iter().for_each(|&o| b.push(o));
        let script = b.finish();
        assert_eq!(script.ops(), ops.len() as u64);
        assert_eq!(script.reader().collect::<Vec<_>>(), ops);
    }

    #[test]
    fn numbers_of_every_length_at_every_distance_from_the_end() {
        for bits in 0..64 {
            let values = [1u64 << bits, (1 << bits) - 1, 0x5555_5555_5555_5555 >> (63 - bits)];
            for after in 0..9 {
                let mut b = ScriptBuilder::new();
                values.iter().for_each(|&v| b.push(Op::Io(v)));
                (0..after).for_each(|_| b.push(Op::Block));
                let read: Vec<Op> = b.finish().reader().take(3).collect();
                assert_eq!(read, values.map(Op::Io), "{bits} {after}");
            }
        }
    }

    #[test]
    fn runs_merge_and_empty_ones_vanish() {
        let mut b = ScriptBuilder::new();
        b.push(Op::Run { cycles: 0, stall_ns: 0 });
        b.push(Op::Block);
        b.push(Op::Run { cycles: 5, stall_ns: 1 });
        b.push(Op::Run { cycles: 6, stall_ns: 2 });
        let all: Vec<Op> = b.finish().reader().collect();
        assert_eq!(all, [Op::Block, Op::Run { cycles: 11, stall_ns: 3 }]);
    }
}
