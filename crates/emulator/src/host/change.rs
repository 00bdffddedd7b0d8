//! A change of speed that takes its time: the hardware shows the old speed until it is in force.
//!
//! A described machine says how long (`cpufreq.change_us`); one that does not changes at once.

use std::collections::BTreeMap;
use std::fmt::Write;

/// How long a change takes, by the speeds from and to in kHz, in ns.
pub(crate) type Changes = BTreeMap<(u32, u32), u64>;

/// A line for each: from and to in kHz, ns.
pub(crate) fn text(changes: &Changes) -> String {
    changes.iter().fold(String::new(), |mut text, ((from, to), ns)| {
        _ = writeln!(text, "{from} {to} {ns}");
        text
    })
}

/// A change under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnderWay {
    /// What the hardware still runs at, in kHz.
    from: u32,
    /// When the new speed is in force.
    until_ns: u64,
}

impl UnderWay {
    /// That which begins now; none where it takes no time.
    pub(super) fn begin(changes: &Changes, from: u32, to: u32, now_ns: u64) -> Option<UnderWay> {
        Some(UnderWay { from, until_ns: now_ns + changes.get(&(from, to))? })
    }

    /// The speed that is still in force, in kHz.
    pub(super) fn still(self, now_ns: u64) -> Option<u32> {
        (now_ns < self.until_ns).then_some(self.from)
    }
}
