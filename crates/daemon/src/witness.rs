//! A recording of what a followed policy saw and decided: `record = "FILE"`. JSON lines, for a bug report, or to hold the decisions against
//! the policy's own code elsewhere (the lab does).
//!
//! ```text
//! {"policy":"powerd","tick_ns":10000000,"cpus":4,"domains":[{"cpus":[0,1],"khz":[2400000,...],"low":400000,"high":2400000}, ...]}
//! {"at_ns":..., "start":true, "source":"battery", "celsius":null, "ticks":[[busy,idle,iowait], ...], "before":[...], "khz":[...]}
//! ```
//!
//! `ticks` are those of each CPU since the start of the machine; `khz` the speed of each domain from then on, `before` up to then.

use serde::Serialize;
use std::path::Path;
use wattwise_hw::cpus::proc_stat::Stat;
use wattwise_output::Log;
use wattwise_policy::{Platform, PowerSource};

#[derive(Serialize)]
struct WitnessDomain<'p> {
    cpus: &'p [u16],
    khz: Vec<u32>,
    low: u32,
    high: u32,
}

#[derive(Serialize)]
struct Begun<'p> {
    policy: &'p str,
    tick_ns: u64,
    cpus: u16,
    domains: Vec<WitnessDomain<'p>>,
}

/// One decision.
#[derive(Serialize)]
pub(crate) struct Decided {
    pub(crate) at_ns: u64,
    pub(crate) start: bool,
    pub(crate) source: &'static str,
    pub(crate) celsius: Option<f64>,
    pub(crate) ticks: Vec<[u64; 3]>,
    pub(crate) before: Vec<u32>,
    pub(crate) khz: Vec<u32>,
}

/// The recording. What cannot be written any more ends it, and nothing else.
pub(crate) struct Witness(Option<Log>);

impl Witness {
    /// A policy begins, perhaps after others.
    pub(crate) fn begin(
        file: Option<&Path>,
        policy: &str,
        tick_ns: u64,
        platform: &Platform,
        limits: &[(u32, u32)],
    ) -> Witness {
        let log = file.and_then(|file| {
            Log::create_new(file)
                .or_else(|_| Log::resume(file, std::fs::metadata(file)?.len()))
                .map_err(|e| crate::asks::say(&format!("{}: {e}; nothing is recorded", file.display())))
                .ok()
        });
        let mut witness = Witness(log);
        let domains = platform.domains.iter().zip(limits);
        let domains = domains.map(|(d, (low, high))| WitnessDomain {
            cpus: &d.cpus,
            khz: d.levels.iter().map(|l| l.khz.0).collect(),
            low: *low,
            high: *high,
        });
        witness.line(|| Begun { policy, tick_ns, cpus: platform.cpus, domains: domains.collect() });
        witness
    }

    /// Whether there is a recording.
    pub(crate) fn records(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a line, made only where there is a recording.
    pub(crate) fn line<T: Serialize>(&mut self, make: impl FnOnce() -> T) {
        let Some(log) = &mut self.0 else { return };
        let mut text = serde_json::to_vec(&make()).unwrap_or_default();
        text.push(b'\n');
        if let Err(e) = log.append(&text) {
            crate::asks::say(&format!("the recording ends here: {e}"));
            self.0 = None;
        }
    }
}

/// Ticks of each CPU; of one that is away none.
pub(crate) fn ticks(stat: &Stat, cpus: u16) -> Vec<[u64; 3]> {
    let of = |cpu: u16| stat.cpu(u32::from(cpu)).map_or([0; 3], |t| [t.busy, t.idle, t.iowait]);
    (0..cpus).map(of).collect()
}

/// In a word.
pub(crate) fn word(source: PowerSource) -> &'static str {
    match source {
        PowerSource::Unknown => "unknown",
        PowerSource::Mains => "mains",
        PowerSource::Battery => "battery",
    }
}
