//! Recorded programs in few bytes: the form in which a trace of ten million events fits in memory.
//!
//! Each op is one tag byte and up to two LEB128 numbers; a typical run or sleep takes 4 or 5 bytes.
//! Readers share the bytes, so ten policies replay one copy.
//!
//! | tag | op | numbers |
//! |---|---|---|
//! | 0 | `Run` without stall | cycles |
//! | 1 | `Run` | cycles, stall_ns |
//! | 2 | `SleepFor` | ns |
//! | 3 | `SleepUntil` | ns |
//! | 4 | `Io` | ns |
//! | 5 | `Block` | |
//! | 6 | `Wake` | task |
//! | 7 | `OnCpu` | cpu, ns since the last `OnCpu` |

use super::{Op, TaskId};
use std::sync::Arc;

/// Tag of `OnCpu`, the step that is looked for before it is taken.
const ON_CPU: u8 = 7;

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
        match op {
            Op::Run { .. } => {}
            Op::SleepFor(ns) => self.put(2, &[ns]),
            Op::SleepUntil(ns) => self.put(3, &[ns]),
            Op::Io(ns) => self.put(4, &[ns]),
            Op::Block => self.put(5, &[]),
            Op::Wake(TaskId(t)) => self.put(6, &[u64::from(t)]),
            Op::OnCpu { cpu, at_ns } => {
                // Times go up; one that does not is damage, and counts as no time at all.
                let passed = at_ns.saturating_sub(self.clock);
                self.clock += passed;
                self.put(ON_CPU, &[u64::from(cpu), passed]);
            }
            // No trace shows which lock was waited for: recordings have none.
            Op::Lock(_) | Op::Unlock(_) => {}
        }
    }

    fn flush(&mut self) {
        match self.run.take() {
            None | Some((0, 0)) => {}
            Some((cycles, 0)) => self.put(0, &[cycles]),
            Some((cycles, stall)) => self.put(1, &[cycles, stall]),
        }
    }

    fn put(&mut self, tag: u8, numbers: &[u64]) {
        self.bytes.push(tag);
        for &n in numbers {
            let mut n = n;
            while n >= 0x80 {
                self.bytes.push(n as u8 | 0x80);
                n >>= 7;
            }
            self.bytes.push(n as u8);
        }
        self.ops += 1;
    }

    /// Steps so far, a run in the making included.
    pub fn ops(&self) -> u64 {
        self.ops + u64::from(self.run.is_some())
    }

    /// The finished program.
    pub fn finish(mut self) -> Script {
        self.flush();
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

    /// Where and when the task is put on a CPU, if that is the step at `position`, which then moves on.
    #[inline]
    pub(crate) fn on_cpu(&self, position: &mut ScriptPosition) -> Option<(u16, u64)> {
        if self.bytes.get(position.byte) != Some(&ON_CPU) {
            return None;
        }
        position.byte += 1;
        let cpu = self.number(&mut position.byte) as u16;
        position.clock = position.clock.saturating_add(self.number(&mut position.byte));
        Some((cpu, position.clock))
    }

    /// The step at `position`, which moves on to the next one; `None` at the end.
    // Inlined so that whoever matches on the step jumps once, by its tag, and not again by the `Op`.
    #[inline(always)]
    pub fn step(&self, position: &mut ScriptPosition) -> Option<Op> {
        let at = &mut position.byte;
        let tag = *self.bytes.get(*at)?;
        *at += 1;
        Some(match tag {
            0 => Op::Run { cycles: self.number(at), stall_ns: 0 },
            1 => Op::Run { cycles: self.number(at), stall_ns: self.number(at) },
            2 => Op::SleepFor(self.number(at)),
            3 => Op::SleepUntil(self.number(at)),
            4 => Op::Io(self.number(at)),
            5 => Op::Block,
            6 => Op::Wake(TaskId(self.number(at) as u32)),
            _ => {
                let cpu = self.number(at) as u16;
                position.clock = position.clock.saturating_add(self.number(at));
                Op::OnCpu { cpu, at_ns: position.clock }
            }
        })
    }

    #[inline]
    fn number(&self, at: &mut usize) -> u64 {
        // Eight bytes at once where there are as many: a loop over a number's bytes is never foreseen.
        let next = self.bytes.get(*at..).and_then(|b| b.first_chunk());
        if let Some((value, len)) = next.and_then(|&word| number_in(u64::from_le_bytes(word))) {
            *at += len;
            return value;
        }
        let mut value = 0u64;
        let mut shift = 0;
        while let Some(&b) = self.bytes.get(*at) {
            *at += 1;
            value |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                break;
            }
            shift += 7;
        }
        value
    }
}

/// The LEB128 number that a little-endian word begins with, and its length; `None` when it goes on beyond.
#[inline]
fn number_in(word: u64) -> Option<(u64, usize)> {
    const LAST: u64 = 0x8080_8080_8080_8080;
    let last = !word & LAST;
    if last == 0 {
        return None;
    }
    // Everything up to the top bit of the last byte, without those bits; then the gaps that they leave are
    // closed between neighbours, pairs and fours.
    let bits = word & (last ^ (last - 1)) & !LAST;
    let bits = bits & 0x007f_007f_007f_007f | (bits & 0x7f00_7f00_7f00_7f00) >> 1;
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x3fff_0000_3fff_0000) >> 2;
    let bits = bits & 0x0fff_ffff | (bits & 0x0fff_ffff_0000_0000) >> 4;
    Some((bits, last.trailing_zeros() as usize / 8 + 1))
}

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
