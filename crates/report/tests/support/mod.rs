//! Made-up results for tests of the report and of the schema: synthetic throughout, drawn by a
//! small generator so that they are the same everywhere.
#![allow(dead_code, reason = "each test file uses its part")]

use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::result::{
    Best, Comparison, IdleResidency, InputFigure, Inputs, Latency, PolicyResult, SpeedResidency, Split,
    WorkloadInfo,
};
use wattwise_figure::Histogram;
use wattwise_sim::outcome::{Lane, Timeline};

/// What a reader would type for [`usual`].
pub(crate) const COMMAND: &str = "wattwise compare build-small --machine thinkpad-synthetic --policy performance \
                           --policy 'ondemand:up_threshold=80' --report report.html";

const KHZ: [u32; 6] = [2_400_000, 2_000_000, 1_700_000, 1_400_000, 1_000_000, 600_000];
const STATES: [&str; 4] = ["C1", "C1E", "C3", "C6"];
const POLICIES: [&str; 12] = [
    "performance",
    "powersave",
    "ondemand:up_threshold=80,sampling_ms=10",
    "ondemand:up_threshold=95,sampling_ms=100",
    "conservative:down=20,up=80",
    "schedutil",
    "schedutil:rate_limit_us=2000",
    "fixed:khz=1400000",
    "fixed:khz=1700000",
    "race-to-idle:teo",
    "openbsd:perfpol=auto",
    "interactive+coreidle:cpus=2",
];

/// xorshift: made-up data need no better.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Twelve policies on four CPUs.
pub(crate) fn usual() -> (Comparison, Vec<PolicyDetail>) {
    made_up(&POLICIES, 4, 60.0)
}

/// One policy, 224 CPUs, no energy at all, names that want to break out of the page.
pub(crate) fn extreme() -> (Comparison, Vec<PolicyDetail>) {
    let name = "</script><script>alert(1)</script> „größe“ 測試 🔋 & <b>\"x\"</b> '--'";
    let (mut c, mut details) = made_up(&[name], 224, 3600.0 * 30.0);
    c.machine = name.to_owned();
    c.workload.name = name.to_owned();
    c.inputs.warnings = vec![name.to_owned()];
    c.inputs.machine_figures[0].source = name.to_owned();
    let r = &mut c.results[0];
    (r.energy_j, r.window_energy_j, r.mean_w, r.edp_js) = (0.0, 0.0, 0.0, 0.0);
    r.window_split_j =
        Split { busy_j: 0.0, stall_j: 0.0, idle_j: Vec::new(), uncore_j: 0.0, platform_j: 0.0 };
    details[0].timeline.power_w.fill(0.0);
    details[0].wake_histogram = vec![(0, 3)];
    (c, details)
}

fn made_up(policies: &[&str], cpus: usize, work_s: f64) -> (Comparison, Vec<PolicyDetail>) {
    let mut random = Random(0x5eed);
    let mut results = Vec::new();
    let mut details = Vec::new();
    for (i, policy) in policies.iter().enumerate() {
        // How eagerly it speeds up: decides everything else.
        let eager = match i {
            0 => 1.0,
            1 => 0.0,
            _ => 0.25 + 0.7 * random.next(),
        };
        let elapsed_s = work_s * (1.0 + 0.9 * (1.0 - eager) * (1.0 - eager) + 0.02 * random.next());
        let bins = 2600 + (elapsed_s / work_s * 700.0) as usize;
        let timeline = timeline(&mut random, cpus, bins, elapsed_s, eager);
        let (result, wake_histogram) = figures(&mut random, policy, cpus, elapsed_s, eager, &timeline);
        results.push(result);
        details.push(PolicyDetail { policy: (*policy).to_owned(), timeline, wake_histogram });
    }
    let window_s = results.iter().map(|r| r.elapsed_s).fold(0.0, f64::max);
    let fastest = results.iter().map(|r| r.elapsed_s).fold(f64::INFINITY, f64::min);
    for r in &mut results {
        r.slowdown = r.elapsed_s / fastest;
        let tail = (window_s - r.elapsed_s) * 6.2;
        let split = &mut r.window_split_j;
        split.platform_j += tail * 0.6;
        split.uncore_j += tail * 0.2;
        split.idle_j[3].1 += tail * 0.2;
        r.window_energy_j = split.busy_j
            + split.stall_j
            + split.idle_j.iter().map(|s| s.1).sum::<f64>()
            + split.uncore_j
            + split.platform_j;
    }
    let best = results
        .iter()
        .filter(|r| r.slowdown < 1.1)
        .min_by(|a, b| a.window_energy_j.total_cmp(&b.window_energy_j))
        .unwrap_or(&results[0])
        .policy
        .clone();
    let figure = |what: &str, source: &str, confidence: &str| InputFigure {
        what: what.to_owned(),
        source: source.to_owned(),
        confidence: confidence.to_owned(),
    };
    let mut machine_figures = vec![
        figure("package.tdp_w", "synthetic data sheet, table 5-2", "datasheet"),
        figure("speed.levels[0].volts", "synthetic data sheet, table 5-3", "datasheet"),
        figure("speed.levels[5].volts", "synthetic data sheet, table 5-3", "datasheet"),
        figure("speed.transition_us", "made-up measurement on the bench, median of 1000", "measured"),
        figure("idle.C6.exit_us", "fitted so that the made-up study's figure 3 comes out", "fitted"),
        figure("idle.C1.watts", "nobody knows; half of the lowest speed's", "guess"),
        figure("platform_w", "made-up wall measurement with the screen off", "measured"),
    ];
    for i in 0..20 {
        machine_figures.push(figure(
            &format!("speed.matrix[{}][{}]_us", i / 5, i % 5),
            "synthetic data sheet, table 7",
            if i % 9 == 4 { "fitted" } else { "datasheet" },
        ));
    }
    let comparison = Comparison {
        schema: "wattwise-compare-1".to_owned(),
        machine: "thinkpad-synthetic".to_owned(),
        workload: WorkloadInfo {
            name: "build-small".to_owned(),
            source: "made up for tests, shaped like a compiler run".to_owned(),
            cpus: 4,
            duration_s: work_s,
            events: 184_231,
        },
        window_s,
        best: Best {
            why: "Least energy over the window among the policies that slow the work by less than 10 %."
                .to_owned(),
            policy: best,
        },
        results,
        inputs: Inputs {
            machine_summary: format!(
                "{cpus} CPUs in one package, 600 MHz to 2.4 GHz, C1 to C6, 53 Wh (synthetic)"
            ),
            machine_figures,
            idle_policy: "menu".to_owned(),
            warnings: vec![
                "12 wake-ups had no waker in the trace; they keep their recorded times.".to_owned(),
                "The trace has no speeds: cycles were taken at 2.4 GHz.".to_owned(),
            ],
            version: "0.1.0".to_owned(),
        },
    };
    (comparison, details)
}

/// Phases of work of random length; speed follows load as eagerly as the policy is.
fn timeline(random: &mut Random, cpus: usize, bins: usize, elapsed_s: f64, eager: f64) -> Timeline {
    let mut power_w = vec![6.2f32; bins];
    let mut lanes = Vec::new();
    for cpu in 0..cpus {
        let mut lane = Lane::default();
        let (mut load, mut left, mut speed) = (0.5, 0usize, 0.6e6);
        for watts in &mut power_w {
            if left == 0 {
                left = 20 + (random.next() * 300.0) as usize;
                load = if random.next() < 0.4 { 0.04 } else { (0.3 + random.next()).min(1.0) };
                load /= 1.0 + cpu as f64 % 4.0 * 0.4;
            }
            left -= 1;
            let jitter = 0.85 + 0.3 * random.next();
            let goal = 0.6e6 + 1.8e6 * (load * 1.6).min(1.0) * (0.15 + 0.85 * eager);
            speed += (goal - speed) * (0.02 + 0.3 * eager);
            let khz = KHZ.into_iter().min_by_key(|k| (f64::from(*k) - speed).abs() as u64).unwrap_or(KHZ[0]);
            let awake = (load * jitter * 2.4e6 / f64::from(khz) * 0.7).clamp(0.0, 1.0);
            lane.khz.push(khz);
            lane.awake.push(awake as f32);
            let depth = (3.4 * (1.0 - awake) * (0.7 + 0.4 * random.next())).min(3.0);
            lane.depth.push(if awake >= 1.0 { f32::NAN } else { depth as f32 });
            *watts += (awake * (f64::from(khz) / 2.4e6).powi(3) * 7.5 + 0.15) as f32;
        }
        lanes.push(lane);
    }
    Timeline { bin_ns: (elapsed_s * 1e9 / bins as f64) as u64, power_w, lanes }
}

fn figures(
    random: &mut Random,
    policy: &str,
    cpus: usize,
    elapsed_s: f64,
    eager: f64,
    timeline: &Timeline,
) -> (PolicyResult, Vec<(u64, u64)>) {
    let bin_s = timeline.bin_ns as f64 / 1e9;
    let energy_j: f64 = timeline.power_w.iter().map(|w| f64::from(*w) * bin_s).sum();
    let mut speed = [0.0; KHZ.len()];
    let mut idle = [0.0; STATES.len()];
    for lane in &timeline.lanes {
        for ((khz, awake), depth) in lane.khz.iter().zip(&lane.awake).zip(&lane.depth) {
            let awake = f64::from(*awake);
            speed[KHZ.iter().position(|k| k == khz).unwrap_or(0)] += awake * bin_s;
            idle[if depth.is_nan() { 0 } else { depth.round() as usize }] += (1.0 - awake) * bin_s;
        }
    }
    let mut wakes = Histogram::default();
    for _ in 0..20_000 {
        // A floor, a tail, and for lazy policies a hump at the sampling period.
        let tail = -(1.0 - random.next()).ln();
        let hump = if random.next() > 0.97 { 4e5 * (1.2 - eager) * random.next() } else { 0.0 };
        wakes.record((2_500.0 + tail * tail * 9_000.0 * (1.6 - eager) + hump) as u64);
    }
    let us = |q| wakes.quantile(q) as f64 / 1e3;
    let cores_j = energy_j - 6.2 * elapsed_s;
    let idle_w = [0.7, 0.5, 0.3, 0.1];
    let idle_j: Vec<(String, f64)> = STATES
        .iter()
        .zip(idle)
        .zip(idle_w)
        .map(|((n, s), w)| ((*n).to_owned(), s * w / cpus as f64))
        .collect();
    let spent: f64 = idle_j.iter().map(|i| i.1).sum();
    let result = PolicyResult {
        policy: policy.to_owned(),
        elapsed_s,
        energy_j,
        window_energy_j: energy_j,
        mean_w: energy_j / elapsed_s,
        edp_js: energy_j * elapsed_s,
        slowdown: 1.0,
        wake_latency_us: Latency { p50: us(0.5), p99: us(0.99), max: wakes.max() as f64 / 1e3 },
        transitions: timeline
            .lanes
            .iter()
            .map(|l| l.khz.windows(2).filter(|w| w[0] != w[1]).count() as u64)
            .sum(),
        speed_residency: KHZ.iter().zip(speed).map(|(&khz, s)| SpeedResidency { khz, s }).collect(),
        idle_residency: STATES
            .iter()
            .zip(idle)
            .map(|(n, s)| IdleResidency { state: (*n).to_owned(), s })
            .collect(),
        window_split_j: Split {
            busy_j: (cores_j - spent).max(0.0) * 0.94,
            stall_j: (cores_j - spent).max(0.0) * 0.06,
            idle_j,
            uncore_j: 1.7 * elapsed_s,
            platform_j: 4.5 * elapsed_s,
        },
        provenance: "modelled".to_owned(),
    };
    (result, wakes.iter().collect())
}
