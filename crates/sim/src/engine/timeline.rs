//! Speed, state and power over time, in bins that grow with the run.
//!
//! A bin is the difference of two readings of the accounts: its means are exact, and keeping a
//! timeline costs one event a bin, nothing in between.

use super::{Simulation, Source};
use crate::outcome::{Lane, Timeline};
use wattwise_model::machine::Machine;

/// Length of the first bins in ns.
const FIRST_BIN_NS: u64 = 100_000;

/// A CPU's readings at the last bin.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    awake_ns: f64,
    idle_ns: f64,
    /// Depth times time.
    depth_ns: f64,
    khz_ns: f64,
}

/// The timeline in the making.
pub(super) struct Recorder {
    bins: Timeline,
    at: u64,
    joules: f64,
    readings: Vec<Reading>,
}

impl Recorder {
    /// Bins of a length that a run of `span_ns` fills to at most the half: runs outgrow their span.
    pub(super) fn new(span_ns: u64, machine: &Machine) -> Recorder {
        let mut bin_ns = FIRST_BIN_NS;
        while bin_ns * (Timeline::MAX_BINS as u64) / 2 < span_ns {
            bin_ns *= 2;
        }
        Recorder {
            bins: Timeline { bin_ns, power_w: Vec::new(), lanes: vec![Lane::default(); machine.cpus.len()] },
            at: 0,
            joules: 0.0,
            readings: vec![Reading::default(); machine.cpus.len()],
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
}

impl Simulation<'_> {
    /// A bin is full.
    pub(super) fn close_bin(&mut self) {
        self.settle();
        let joules = self.total_joules();
        let Some(mut t) = self.timeline.take() else { return };
        let ns = (self.now - t.at) as f64;
        t.at = self.now;
        t.bins.power_w.push(((joules - t.joules) / (ns * 1e-9)) as f32);
        t.joules = joules;
        for (c, lane) in t.bins.lanes.iter_mut().enumerate() {
            let s = &self.cpus[c];
            let kind = &self.machine.kinds[usize::from(s.kind)];
            let (awake, idle) = self.cpu_times(c);
            let now = Reading {
                awake_ns: awake as f64,
                idle_ns: idle.iter().sum::<u64>() as f64,
                depth_ns: idle.iter().enumerate().map(|(d, &n)| d as f64 * n as f64).sum(),
                khz_ns: self.cores[usize::from(s.core)].khz_ns(kind),
            };
            let was = std::mem::replace(&mut t.readings[c], now);
            lane.khz.push(((now.khz_ns - was.khz_ns) / ns).round() as u32);
            lane.awake.push(((now.awake_ns - was.awake_ns) / ns) as f32);
            let idle = now.idle_ns - was.idle_ns;
            let depth = if idle > 0.0 { (now.depth_ns - was.depth_ns) / idle } else { f64::NAN };
            lane.depth.push(depth as f32);
        }
        if t.bins.power_w.len() >= crate::outcome::Timeline::MAX_BINS {
            t.halve();
        }
        let (source, next) = (self.source(Source::Bins), t.next_ns());
        self.calendar.set(source, next);
        self.timeline = Some(t);
    }
}
