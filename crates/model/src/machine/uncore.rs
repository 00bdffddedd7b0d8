//! What of a package follows its fastest core: the uncore's clock, and with it the memory's low and high state.
//!
//! - *Step.* While the fastest core runs at `step_mhz` or faster, package and memory draw more, whatever the other cores do.
//!   Found in the rows of a Xeon with 2 x 16 CPUs under six governors (EDChui/GreenLab, data/run_table.csv): one of the package's CPUs
//!   at 2500 MHz and the others at 800 cost 5.6 of the 6.8 W that all of them at 2500 cost, and three times the memory's energy; CPUs
//!   of the other package, up to 3200 MHz, cost nothing.
//! - *Delay.* The uncore's clock changes some 10 ms after the cores' (Schoene, Ilsche, Bielert, Gocht and Hackenberg, arXiv
//!   1905.12468, on Skylake-SP). How long the high state lasts after the last fast core has gone is not published.
//! - *Ramp.* On other processors the uncore's clock follows the cores' bin by bin (Haswell-EP): `follow_w`.
//! - A core in a deep C-state has no clock and no say.

use super::CoreKind;
use super::bounds::{us, watts, within};
use super::tables::File;

/// What of a package follows its fastest core.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncore {
    /// More with the fastest core at the package's highest speed, in proportion to its clock below, in watts.
    pub follow_w: f64,
    /// More in the high state, in watts.
    pub step_w: f64,
    /// From the first fast core to the high state, in ns.
    pub delay_ns: u64,
    /// From the last fast core to the low state, in ns.
    pub hold_ns: u64,
    /// A core votes while it is awake or in a C-state of at most this index.
    pub votes: u8,
    /// The speeds of all kinds of core, in kHz, fastest first.
    pub khz: Vec<u32>,
    /// How many of them are fast.
    pub fast: usize,
    /// Where each kind's levels are among them.
    pub at: Vec<Vec<u16>>,
}

/// The file's, for these kinds of core.
pub(super) fn of(file: &File, kinds: &[CoreKind]) -> Result<Option<Uncore>, String> {
    let Some(t) = &file.uncore else { return Ok(None) };
    let (follow_w, step_w) = (watts("uncore.follow_w", t.follow_w)?, watts("uncore.step_w", t.step_w)?);
    if step_w > 0.0 && t.step_mhz.is_none() {
        return Err("uncore.step_w: expected step_mhz beside it, the clock from which it is drawn".into());
    }
    let votes = match &t.votes {
        // The hardware's first state.
        None => usize::from(kinds[0].idle.first().is_some_and(|s| s.polls())),
        Some(name) => kinds[0].idle.iter().position(|s| s.name == *name).ok_or_else(|| {
            let names: Vec<&str> = kinds[0].idle.iter().map(|s| s.name.as_str()).collect();
            format!("uncore.votes = '{name}': expected a C-state of the first kind: {}", names.join(", "))
        })?,
    };
    let mut khz: Vec<u32> = kinds.iter().flat_map(|k| k.levels.iter().map(|l| l.khz)).collect();
    khz.sort_unstable_by(|a, b| b.cmp(a));
    khz.dedup();
    let from = t.step_mhz.map(|mhz| within("uncore.step_mhz", mhz, 1.0, 100_000.0, "MHz")).transpose()?;
    let fast = from.map_or(0, |mhz| khz.iter().filter(|&&k| f64::from(k) >= mhz * 1e3).count());
    let place = |k: &CoreKind| k.levels.iter().map(|l| khz.partition_point(|&s| s > l.khz) as u16).collect();
    Ok(Some(Uncore {
        follow_w,
        step_w,
        delay_ns: us("uncore.delay_us", t.delay_us)?,
        hold_ns: us("uncore.hold_us", t.hold_us)?,
        votes: votes as u8,
        at: kinds.iter().map(place).collect(),
        khz,
        fast,
    }))
}
