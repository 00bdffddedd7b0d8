//! Speed, state and power over time, in bins that grow with the run.
//!
//! A bin is the difference of two readings of the accounts: its means are exact, and keeping a
//! timeline costs one event a bin, nothing in between.

use crate::outcome::{Lane, Timeline};

/// Length of the first bins in ns.
const FIRST_BIN_NS: u64 = 100_000;

/// A CPU's accounts at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Time awake.
    pub(crate) awake_ns: f64,
    /// Time in C-states.
    pub(crate) idle_ns: f64,
    /// Depth times time.
    pub(crate) depth_ns: f64,
    /// Speed of its clock times time.
    pub(crate) khz_ns: f64,
}

/// The timeline in the making.
pub(super) struct Recorder {
    bins: Timeline,
    at: u64,
    joules: f64,
    /// At the last bin's end.
    readings: Vec<Reading>,
}

impl Recorder {
    /// Bins of a length that a run of `span_ns` fills to at most the half: runs outgrow their span.
    pub(super) fn new(span_ns: u64, cpus: usize) -> Recorder {
        let mut bin_ns = FIRST_BIN_NS;
        while bin_ns * (Timeline::MAX_BINS as u64) / 2 < span_ns {
            bin_ns *= 2;
        }
        Recorder {
            bins: Timeline { bin_ns, power_w: Vec::new(), lanes: vec![Lane::default(); cpus] },
            at: 0,
            joules: 0.0,
            readings: vec![Reading::default(); cpus],
        }
    }

    /// When the present bin ends.
    pub(super) fn next_ns(&self) -> u64 {
        self.at + self.bins.bin_ns
    }

    pub(super) fn finish(&self) -> Timeline {
        self.bins.clone()
    }

    /// Twice the length, half the number.
    fn halve(&mut self) {
        let pairs = |v: &mut Vec<f32>| {
            *v = v
                .chunks(2)
                .map(|p| match p {
                    [a, b] if a.is_nan() => *b,
                    [a, b] if b.is_nan() => *a,
                    p => p.iter().sum::<f32>() / p.len() as f32,
                })
                .collect();
        };
        self.bins.bin_ns *= 2;
        pairs(&mut self.bins.power_w);
        for lane in &mut self.bins.lanes {
            pairs(&mut lane.awake);
            pairs(&mut lane.depth);
            lane.khz = lane.khz.chunks(2).map(|p| p.iter().sum::<u32>() / p.len() as u32).collect();
        }
    }

    /// A bin is full.
    pub(super) fn close_bin(&mut self, now: u64, joules: f64, read: impl Fn(usize) -> Reading) {
        let ns = (now - self.at) as f64;
        self.at = now;
        self.bins.power_w.push(((joules - self.joules) / (ns * 1e-9)) as f32);
        self.joules = joules;
        for (c, lane) in self.bins.lanes.iter_mut().enumerate() {
            let now = read(c);
            let was = std::mem::replace(&mut self.readings[c], now);
            lane.khz.push(((now.khz_ns - was.khz_ns) / ns).round() as u32);
            lane.awake.push(((now.awake_ns - was.awake_ns) / ns) as f32);
            let idle = now.idle_ns - was.idle_ns;
            let depth = if idle > 0.0 { (now.depth_ns - was.depth_ns) / idle } else { f64::NAN };
            lane.depth.push(depth as f32);
        }
        if self.bins.power_w.len() >= Timeline::MAX_BINS {
            self.halve();
        }
    }
}
