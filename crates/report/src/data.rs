//! The data that a report carries for its script.
//!
//! A timeline has up to 4096 bins, four series a CPU: as decimal JSON a dozen policies would fill
//! tens of megabytes. What is drawn is at most a few hundred pixels high and 256 shades deep, so
//! that is what is kept: lanes as one byte a bin, power as two, base64. Lanes that are equal
//! (CPUs of one frequency domain, CPUs that slept throughout) are stored once.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use wattwise_sim::outcome::{Lane, Timeline};

use crate::compare::groups::time_not_judged;
use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::result::{Comparison, PolicyResult};
use wattwise_advice::say;

/// Bytes that all lanes of a report may take before base64; beyond it bins merge.
/// 4 CPUs under 12 policies keep all 4096 bins.
const LANE_BYTES: usize = 900_000;

/// Bins that every lane keeps however many there are: what a phone can show.
const LEAST_BINS: usize = 256;

/// In a depth lane: never idle in this bin.
const NEVER_IDLE: u8 = 255;

/// Everything, as `compare.js` reads it.
#[derive(Serialize)]
struct Data<'a> {
    comparison: &'a Comparison,
    /// Policies whose energy is over a longer time than the reference policy's.
    longer: Vec<&'a str>,
    /// Policies that were left after too few replicas to judge their time.
    not_judged: Vec<&'a str>,
    /// Byte 255 of a speed lane, in kHz.
    khz_max: u32,
    /// Byte 254 of a depth lane: the index of the deepest state seen.
    depth_max: f32,
    details: Vec<Detail<'a>>,
    /// Base64 arrays, named by index.
    pool: Vec<String>,
}

#[derive(Serialize)]
struct Detail<'a> {
    policy: &'a str,
    bin_ns: u64,
    /// Word 65535 of the power series, in watts.
    power_max_w: f32,
    power: usize,
    bins: usize,
    lane_bin_ns: u64,
    lane_bins: usize,
    /// Speed, awake share (255 is all), depth: indices into the pool.
    lanes: Vec<[usize; 3]>,
    wake_ns: Vec<u64>,
    wake_count: Vec<u64>,
}

/// The JSON, safe between script tags.
pub(super) fn json(comparison: &Comparison, details: &[PolicyDetail]) -> String {
    let lanes = || details.iter().flat_map(|d| &d.timeline.lanes);
    let khz_max = lanes().flat_map(|l| &l.khz).copied().max().unwrap_or(0);
    let depth_max =
        lanes().flat_map(|l| &l.depth).copied().filter(|d| d.is_finite()).fold(0.0, f32::max).max(1.0);
    let target = (LANE_BYTES / (3 * lanes().count()).max(1)).clamp(LEAST_BINS, Timeline::MAX_BINS);

    let mut pool = Pool::default();
    let details = details
        .iter()
        .map(|d| {
            let t = &d.timeline;
            let bins = t.power_w.len();
            let merge = bins.div_ceil(target).max(1);
            let power_max_w = t
                .power_w
                .iter()
                .copied()
                .filter(|w| w.is_finite())
                .fold(0.0, f32::max)
                .max(f32::MIN_POSITIVE);
            let power = t
                .power_w
                .iter()
                .flat_map(|w| ((w / power_max_w * 65535.0).round() as u16).to_le_bytes())
                .collect();
            Detail {
                policy: &d.policy,
                bin_ns: t.bin_ns,
                power_max_w,
                power: pool.put(power),
                bins,
                lane_bin_ns: t.bin_ns * merge as u64,
                lane_bins: bins.div_ceil(merge),
                lanes: t.lanes.iter().map(|l| lane(l, merge, khz_max, depth_max, &mut pool)).collect(),
                wake_ns: d.wake_histogram.iter().map(|w| w.0).collect(),
                wake_count: d.wake_histogram.iter().map(|w| w.1).collect(),
            }
        })
        .collect();
    let named = |of: &dyn Fn(&PolicyResult) -> bool| {
        comparison.results.iter().filter(|r| of(r)).map(|r| r.policy.as_str()).collect()
    };
    let longer = named(&|r| say::energy_ratio(comparison, r).is_none());
    let not_judged = named(&|r| time_not_judged(comparison, r));
    let data = Data { comparison, longer, not_judged, khz_max, depth_max, details, pool: pool.arrays };
    wattwise_page::script_json(&data).expect("strings, numbers and lists serialise")
}

/// Merges and quantises one CPU.
fn lane(lane: &Lane, merge: usize, khz_max: u32, depth_max: f32, pool: &mut Pool) -> [usize; 3] {
    let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len().max(1) as f32;
    // `as u8` saturates and takes NaN to 0.
    let byte = |share: f32| (share * 255.0).round() as u8;
    let khz = lane
        .khz
        .chunks(merge)
        .map(|c| c.iter().map(|&k| k as f32).sum::<f32>() / c.len() as f32)
        .map(|k| byte(k / khz_max.max(1) as f32))
        .collect();
    let awake = lane.awake.chunks(merge).map(|c| byte(mean(c))).collect();
    let depth = lane
        .depth
        .chunks(merge)
        .zip(lane.awake.chunks(merge))
        .map(|(depth, awake)| {
            // A bin's depth counts by how long the CPU idled in it.
            let (mut sum, mut weight) = (0.0, 0.0);
            for (d, a) in depth.iter().zip(awake).filter(|(d, _)| d.is_finite()) {
                let idle = (1.0 - a).max(1e-6);
                sum += d * idle;
                weight += idle;
            }
            if weight == 0.0 {
                NEVER_IDLE
            } else {
                (sum / weight / depth_max * 254.0).round().min(254.0) as u8
            }
        })
        .collect();
    [pool.put(khz), pool.put(awake), pool.put(depth)]
}

/// Arrays, each once.
#[derive(Default)]
struct Pool {
    arrays: Vec<String>,
    seen: HashMap<String, usize>,
}

impl Pool {
    fn put(&mut self, bytes: Vec<u8>) -> usize {
        let text = STANDARD.encode(bytes);
        if let Some(&at) = self.seen.get(&text) {
            return at;
        }
        self.seen.insert(text.clone(), self.arrays.len());
        self.arrays.push(text);
        self.arrays.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_merge_by_idle_time_and_equal_ones_are_stored_once() {
        let mut pool = Pool::default();
        let cpu = Lane {
            khz: vec![1000, 2000, 2000],
            awake: vec![1.0, 0.0, 1.0],
            depth: vec![f32::NAN, 2.0, f32::NAN],
        };
        let first = lane(&cpu, 2, 2000, 2.0, &mut pool);
        assert_eq!(first, lane(&cpu, 2, 2000, 2.0, &mut pool));
        let bytes = |i: usize| STANDARD.decode(&pool.arrays[i]).unwrap();
        assert_eq!(bytes(first[0]), [191, 255]);
        assert_eq!(bytes(first[1]), [128, 255]);
        assert_eq!(bytes(first[2]), [254, NEVER_IDLE]);
    }
}
