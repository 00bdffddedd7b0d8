//! What clock a recording's cycles are counted with.
//!
//! | what is known | the clock | how sure |
//! |---|---|---|
//! | cycles counted with each switch | these, whatever else is known | [`ClockOrigin::Measured`] |
//! | `cpu_frequency` events | theirs, from each on | [`ClockOrigin::Events`] |
//! | `--recorded-khz` | that | [`ClockOrigin::Stated`] |
//! | our recorder measured it | that | [`ClockOrigin::Measured`] |
//! | the processor's name | its base clock | [`ClockOrigin::Described`]: up to its highest clock |
//! | nothing | [`DEFAULT_KHZ`] | [`ClockOrigin::Unknown`] |
//!
//! The events do not tell the truth on every machine: where the processor chooses its clock (HWP, CPPC)
//! the kernel writes none, so that they are missing rather than wrong.

use crate::events::TraceRead;
use crate::options::ImportOptions;
use wattwise_model::machine;
use wattwise_model::workload::ClockOrigin;

/// A clock that nobody stated: then a cycle is a nanosecond, and a 1 GHz core replays in recorded time.
pub const DEFAULT_KHZ: u32 = 1_000_000;

/// Processors whose names tell no clock: a part of the name, base and highest clock in MHz. From the vendors' data
/// sheets (Intel ARK, AMD product pages); of hybrids the large cores' clocks.
const PROCESSORS: [(&str, u32, u32); 24] = [
    ("i5-1240P", 1700, 4400),
    ("i7-1260P", 2100, 4700),
    ("i7-1280P", 1800, 4800),
    ("i7-1270P", 2200, 4800),
    ("i5-1345U", 1600, 4700),
    ("i7-1355U", 1700, 5000),
    ("i7-1365U", 1800, 5200),
    ("i5-12600K", 3700, 4900),
    ("i7-12700K", 3600, 5000),
    ("i9-12900K", 3200, 5200),
    ("i5-13600K", 3500, 5100),
    ("i7-13700K", 3400, 5400),
    ("i9-13900K", 3000, 5800),
    ("Platinum 8480+", 2000, 3800),
    ("Ryzen 7 5800X", 3800, 4700),
    ("Ryzen 9 5950X", 3400, 4900),
    ("Ryzen 7 5700U", 1800, 4300),
    ("Ryzen 7 7840U", 3300, 5100),
    ("Ryzen 9 7940HS", 4000, 5200),
    ("Ryzen 9 7950X", 4500, 5700),
    ("EPYC 7742", 2250, 3400),
    ("EPYC 7763", 2450, 3500),
    ("EPYC 9554", 3100, 3750),
    ("EPYC 9654", 2400, 3700),
];

/// Highest clock of its base clock where only that is known: between 1.2 of desktops and 2.6 of the thriftiest laptops.
const USUAL_TURBO: f64 = 1.5;

/// What a miss of the last cache costs that no clock shortens: some 80 ns to memory on laptops and servers of the last
/// ten years, of which running ahead hides about a half. (A guess: how much is hidden depends on the program.)
const MISS_NS: u64 = 40;

/// Clocks outside of these are no clock: a stint of a few hundred ns, or damage.
const SOUND_KHZ: std::ops::RangeInclusive<u64> = 50_000..=10_000_000;

/// What a CPU's counters show at a moment, or between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockCounts {
    pub(super) at: u64,
    pub(super) cycles: u64,
    pub(super) misses: u64,
}

/// What was counted between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stint {
    pub(super) ns: u64,
    pub(super) cycles: u64,
    misses: u64,
}

impl ClockCounts {
    /// `None`: the counters went back, so they were set anew.
    pub(super) fn since(&self, before: &ClockCounts) -> Option<Stint> {
        Some(Stint {
            ns: self.at.checked_sub(before.at)?,
            cycles: self.cycles.checked_sub(before.cycles)?,
            misses: self.misses.checked_sub(before.misses)?,
        })
    }
}

impl Stint {
    /// The clock, where the stint was long enough to tell.
    pub(super) fn khz(&self) -> Option<u32> {
        let khz = u128::from(self.cycles) * 1_000_000 / u128::from(self.ns.max(1));
        let khz = u64::try_from(khz).ok().filter(|khz| self.ns >= 10_000 && SOUND_KHZ.contains(khz))?;
        u32::try_from(khz).ok()
    }

    /// Time that waited for memory; never all of it, for something must have missed.
    pub(super) fn stall_ns(&self) -> u64 {
        self.misses.saturating_mul(MISS_NS).min(self.ns / 10 * 9)
    }
}

/// The clock, as far as it is known by now.
#[derive(Debug)]
pub(super) struct Clocks {
    khz: u32,
    origin: ClockOrigin,
    /// What cpufreq said of some CPUs at the beginning, in kHz.
    first: Vec<Option<u32>>,
    /// Of all stints.
    counted_ns: u64,
    counted_cycles: u64,
    misses: bool,
}

impl Clocks {
    pub(super) fn new(options: &ImportOptions) -> Clocks {
        let origin = if options.khz.is_some() { ClockOrigin::Stated } else { ClockOrigin::Unknown };
        Clocks {
            khz: options.khz.unwrap_or(DEFAULT_KHZ),
            origin,
            first: Vec::new(),
            counted_ns: 0,
            counted_cycles: 0,
            misses: false,
        }
    }

    pub(super) fn header(&mut self, read: &TraceRead) {
        if self.origin == ClockOrigin::Stated {
            return;
        }
        if let Some(khz) = read.notes.khz {
            (self.khz, self.origin) = (khz, ClockOrigin::Measured);
        } else if let Some((base_khz, top_khz)) = read.cpu_name.as_deref().and_then(described) {
            (self.khz, self.origin) = (base_khz, ClockOrigin::Described { base_khz, top_khz });
        }
        for &(cpu, khz) in &read.notes.cpu_khz {
            let cpu = usize::from(cpu);
            if self.first.len() <= cpu {
                self.first.resize(cpu + 1, None);
            }
            self.first[cpu] = Some(khz);
        }
    }

    /// A CPU's clock before any event.
    pub(super) fn first(&self, cpu: usize) -> u32 {
        self.first.get(cpu).copied().flatten().unwrap_or(self.khz)
    }

    /// A `cpu_frequency` event.
    pub(super) fn event(&mut self) {
        self.origin = ClockOrigin::Events;
    }

    /// Cycles were counted while a task ran.
    pub(super) fn counted(&mut self, stint: &Stint) {
        self.counted_ns = self.counted_ns.saturating_add(stint.ns);
        self.counted_cycles = self.counted_cycles.saturating_add(stint.cycles);
        self.misses |= stint.misses > 0;
    }

    pub(super) fn misses_counted(&self) -> bool {
        self.misses
    }

    /// The mean of the clock that was counted, else the one that is known.
    pub(super) fn khz(&self) -> u32 {
        let all = Stint { ns: self.counted_ns, cycles: self.counted_cycles, misses: 0 };
        all.khz().unwrap_or(self.khz)
    }

    pub(super) fn origin(&self) -> ClockOrigin {
        if self.counted_cycles > 0 { ClockOrigin::Measured } else { self.origin }
    }

    pub(super) fn warning(&self) -> Option<String> {
        match self.origin() {
            ClockOrigin::Unknown => Some(format!(
                "The recording does not tell its CPUs' clock; {} kHz is assumed, which `--recorded-khz` overrides.",
                self.khz
            )),
            ClockOrigin::Described { base_khz, top_khz } if base_khz < top_khz => Some(format!(
                "The recording does not tell its CPUs' clock, only that the processor has {base_khz} to {top_khz} kHz; \
                 the lower is assumed, which `--recorded-khz` overrides."
            )),
            _ => None,
        }
    }
}

/// Base and highest clock of a processor, in kHz: from its name, a machine file or the table.
fn described(cpu_name: &str) -> Option<(u32, u32)> {
    let named = clock_in(cpu_name);
    let listed = PROCESSORS.iter().find(|(part, ..)| machine::is_part_of_name(part, cpu_name));
    let model = machine::processors::of_processor(cpu_name);
    let top = model.and_then(|m| m.kinds.iter().filter_map(|k| k.levels.first()).map(|l| l.khz).max());
    let base = named.or(listed.map(|(_, base, _)| base * 1000))?;
    let usual = || (f64::from(base) * USUAL_TURBO) as u32;
    let top = top.or(listed.map(|(.., top)| top * 1000)).unwrap_or_else(usual);
    Some((base, top.max(base)))
}

/// The clock in a processor's name: "Intel(R) Xeon(R) CPU E5-2697 v3 @ 2.60GHz".
fn clock_in(cpu_name: &str) -> Option<u32> {
    let clock = cpu_name.rsplit_once('@')?.1.trim();
    let (number, unit) = match clock.strip_suffix("GHz") {
        Some(number) => (number, 1e6),
        None => (clock.strip_suffix("MHz")?, 1e3),
    };
    let khz = number.trim().parse::<f64>().ok()? * unit;
    (1_000.0..=100e6).contains(&khz).then_some(khz.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_in_names() {
        assert_eq!(clock_in("Intel(R) Xeon(R) CPU E5-2697 v3 @ 2.60GHz"), Some(2_600_000));
        assert_eq!(clock_in("Pentium @ 600 MHz"), Some(600_000));
        for none in ["AMD EPYC 7763", "x @ GHz", "x @ 1e300GHz", "x @ -1GHz", "@"] {
            assert_eq!(clock_in(none), None, "{none}");
        }
    }

    #[test]
    fn a_range_comes_from_the_name_a_machine_or_the_table() {
        for (name, range) in [
            ("Intel(R) Core(TM) i7-4510U CPU @ 2.00GHz", Some((2_000_000, 3_100_000))),
            ("12th Gen Intel(R) Core(TM) i5-1240P", Some((1_700_000, 4_400_000))),
            ("AMD EPYC 7763 64-Core Processor", Some((2_450_000, 3_500_000))),
            ("Intel(R) Xeon(R) Processor @ 2.60GHz", Some((2_600_000, 3_900_000))),
            ("Somebody's CPU @ 1.00GHz", Some((1_000_000, 1_500_000))),
            ("AMD EPYC", None),
        ] {
            assert_eq!(described(name), range, "{name}");
        }
    }
}
