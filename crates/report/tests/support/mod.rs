//! Made-up results for tests of the report and of the schema: synthetic throughout, drawn by a
//! small generator so that they are the same everywhere.
#![allow(dead_code, reason = "each test file uses its part")]

use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::result::{
    Answer, Comparison, Deciding, DecidingFigure, FigureRange, IdleResidency, InputFigure, Inputs, Interval,
    KindResponses, Latency, MissedTask, PolicyResult, Responses, SpeedResidency, Split, Uncertain,
    UncertainInput, WorkloadInfo,
};
use wattwise_advice::rule::Goal;
use wattwise_advice::time::{Judged, TimeKind};
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
    r.window_split_j = Split {
        busy_j: 0.0,
        stall_j: 0.0,
        idle_j: Vec::new(),
        leakage_j: 0.0,
        uncore_j: 0.0,
        memory_j: 0.0,
        platform_j: 0.0,
        undone_background_j: 0.0,
        suspended_j: 0.0,
    };
    details[0].timeline.power_w.fill(0.0);
    details[0].wake_histogram = vec![(0, 3)];
    (c, details)
}

/// One run of the nominal model: no replica, so no interval.
pub(crate) fn exact() -> (Comparison, Vec<PolicyDetail>) {
    let (mut c, details) = made_up(&POLICIES[..5], 4, 60.0);
    c.replicas = 0;
    c.deciding = None;
    for r in &mut c.results {
        let point = |i: &mut Interval| (i.low, i.high) = (i.median, i.median);
        let u = &mut r.uncertain;
        [&mut u.time, &mut u.energy_j, &mut u.time_ratio, &mut u.energy_ratio].into_iter().for_each(point);
    }
    (c, details)
}

/// Figures that a broken file could hold: no number anywhere that one could divide by.
pub(crate) fn without_numbers() -> (Comparison, Vec<PolicyDetail>) {
    let (mut c, details) = made_up(&POLICIES[..3], 2, 10.0);
    let none = Interval { median: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
    c.workload.background_share = f64::NAN;
    c.max_slowdown = None;
    for r in &mut c.results[1..] {
        r.uncertain =
            Uncertain { time: none, energy_j: none, time_ratio: none, energy_ratio: none, ..r.uncertain };
        (r.edp_js, r.slowdown, r.mean_w, r.best_share) = (f64::INFINITY, f64::NAN, f64::INFINITY, f64::NAN);
        r.wake_latency_us.p99 = f64::NAN;
    }
    for f in &mut c.inputs.machine_figures {
        f.range =
            Some(FigureRange { nominal: f64::NAN, low: 0.0, high: f64::INFINITY, unit: "W".to_owned() });
    }
    (c, details)
}

/// Pages that take a little longer than under the reference policy.
fn responses() -> Responses {
    let page = KindResponses {
        kind: "page".to_owned(),
        size_class: 3,
        joined: false,
        episodes: 6.0,
        p50_s: Some(0.45),
        p95_s: Some(0.61),
        reference_p50_s: Some(0.44),
        reference_p95_s: None,
        waiting_s: 2.9,
        reference_waiting_s: 2.8,
        mean_ratio: Some(1.03),
        p95_ratio: None,
        slower: false,
    };
    Responses {
        judged: true,
        excess: 1.03,
        floor_s: 0.005,
        waiting_s: 3.1,
        reference_waiting_s: 3.0,
        kinds: vec![page],
        ..Responses::default()
    }
}

/// Work without an end: responses are judged, and an unmarked recording is replayed.
pub(crate) fn interactive() -> (Comparison, Vec<PolicyDetail>) {
    let (mut c, details) = made_up(&POLICIES[..8], 2, 30.0);
    c.judged = Judged { kind: TimeKind::Response, why: "no foreground task ends".to_owned() };
    for r in &mut c.results {
        let x = r.slowdown;
        r.uncertain.time = Interval { median: x, low: 1.0 + (x - 1.0) * 0.6, high: 1.0 + (x - 1.0) * 1.5 };
        r.uncertain.time_ratio = r.uncertain.time;
    }
    c.answer.apply = None;
    c.answer.why_not = Some("no Linux kernel has this policy".to_owned());
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
        let elapsed_s = work_s * (1.0 + 0.4 * (1.0 - eager) * (1.0 - eager) + 0.02 * random.next());
        let bins = 2600 + (elapsed_s / work_s * 700.0) as usize;
        let timeline = timeline(&mut random, cpus, bins, elapsed_s, eager);
        let (result, wake_histogram) = figures(&mut random, policy, cpus, elapsed_s, eager, &timeline);
        results.push(result);
        details.push(PolicyDetail { policy: (*policy).to_owned(), timeline, wake_histogram });
    }
    let window_s = charge_window(&mut results);
    spread(&mut random, &mut results);
    let answer = answer(&mut results);
    let comparison = Comparison {
        schema: "wattwise-compare-3".to_owned(),
        machine: "thinkpad-synthetic".to_owned(),
        workload: workload(work_s),
        judged: Judged { kind: TimeKind::Makespan, why: "the work ends by itself".to_owned() },
        reference: policies[0].to_owned(),
        replicas: 64,
        stopped: false,
        goal: Goal::Energy,
        replicas_asked: None,
        max_slowdown: Some(0.1),
        standards: Vec::new(),
        default_standard: None,
        window_s,
        answer,
        deciding: Some(deciding(policies)),
        results,
        inputs: inputs(cpus),
    };
    (comparison, details)
}

/// All pay for the same time; returns it.
fn charge_window(results: &mut [PolicyResult]) -> f64 {
    let window_s = results.iter().map(|r| r.elapsed_s).fold(0.0, f64::max);
    let reference_s = results[0].elapsed_s;
    for r in results {
        r.slowdown = r.elapsed_s / reference_s;
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
    window_s
}

/// Intervals: wide for what all share, narrow for the ratios.
fn spread(random: &mut Random, results: &mut [PolicyResult]) {
    let (base_j, base_s) = (results[0].window_energy_j, results[0].elapsed_s);
    for r in &mut *results {
        let own = 0.005 + 0.04 * random.next();
        let around =
            |x: f64, by: f64| Interval { median: x, low: x * (1.0 - by), high: x * (1.0 + 1.2 * by) };
        r.uncertain = Uncertain {
            time: around(r.elapsed_s, 0.05),
            energy_j: around(r.window_energy_j, 0.12),
            time_ratio: around(r.elapsed_s / base_s, own / 3.0),
            energy_ratio: around(if base_j > 0.0 { r.window_energy_j / base_j } else { 1.0 }, own),
            ..r.uncertain
        };
        r.admissible = r.slowdown < 1.1;
        r.within_share = if r.admissible { 1.0 } else { 0.0 };
    }
    let same = Interval { median: 1.0, low: 1.0, high: 1.0 };
    let own = &mut results[0].uncertain;
    (own.time_ratio, own.energy_ratio) = (same, same);
}

/// The thriftiest leads; who is near it ties.
fn answer(results: &mut [PolicyResult]) -> Answer {
    let energy = |r: &PolicyResult| r.uncertain.energy_ratio.median;
    let admissible = |r: &&PolicyResult| r.admissible;
    let least = results.iter().filter(admissible).map(energy).fold(f64::INFINITY, f64::min);
    let mut tied = Vec::new();
    for r in results.iter_mut().filter(|r| r.admissible) {
        r.tied = r.uncertain.energy_ratio.low < least * 1.01;
        r.best_share = if r.tied { 0.3 } else { 0.0 };
        if r.tied {
            tied.push(r.policy.clone());
        }
    }
    let recommended = tied.remove(0);
    let named = tied.is_empty();
    Answer {
        text: format!("Best: {recommended}. Saves 9.0 to 14 % energy, 0.5 to 1.1 % slower than performance."),
        winner: named.then(|| recommended.clone()),
        recommended,
        tied,
        apply: Some("wattwise set --governor ondemand".to_owned()),
        lifts: Vec::new(),
        why_not: None,
        preferred: None,
        tried: None,
        against_reference: None,
        nearly: Vec::new(),
    }
}

fn deciding(policies: &[&str]) -> Deciding {
    let figure = |what: &str, share: f64, by: &str| DecidingFigure {
        what: what.to_owned(),
        share,
        low: share * 0.5,
        high: (share * 1.6).min(1.0),
        by: by.to_owned(),
    };
    Deciding {
        between: [policies[0].to_owned(), policies[policies.len() - 1].to_owned()],
        figures: vec![
            figure("idle.C1.watts", 0.41, "cpuidle residencies beside RAPL"),
            figure("uncore.watts", 0.18, "RAPL’s package domain less its core domain"),
            figure("phase of the tick", 0.09, "more replicas, or runs on the machine: wattwise ab"),
        ],
    }
}

fn workload(work_s: f64) -> WorkloadInfo {
    WorkloadInfo {
        name: "build-small".to_owned(),
        source: "made up for tests, shaped like a compiler run".to_owned(),
        cpus: 4,
        duration_s: work_s,
        events: 184_231,
        foreground: "the command make and what it started".to_owned(),
        background_share: 0.07,
        clock: "2400 MHz, measured while recording".to_owned(),
        memory: "unknown: 0 to 40 % of the run time, drawn".to_owned(),
        others_share: Some(0.07),
    }
}

fn machine_figures() -> Vec<InputFigure> {
    let figure =
        |what: &str, source: &str, confidence: &str, range: Option<[f64; 3]>, unit: &str| InputFigure {
            what: what.to_owned(),
            source: source.to_owned(),
            confidence: confidence.to_owned(),
            range: range.map(|[nominal, low, high]| FigureRange {
                nominal,
                low,
                high,
                unit: unit.to_owned(),
            }),
        };
    let mut all = vec![
        figure(
            "package.tdp_w",
            "synthetic data sheet, table 5-2",
            "datasheet",
            Some([35.0, 34.0, 36.0]),
            "W",
        ),
        figure(
            "speed.levels[0].volts",
            "synthetic data sheet, table 5-3",
            "datasheet",
            Some([1.2, 1.16, 1.24]),
            "V",
        ),
        figure(
            "speed.levels[5].volts",
            "synthetic data sheet, table 5-3",
            "datasheet",
            Some([0.8, 0.78, 0.82]),
            "V",
        ),
        figure(
            "speed.transition_us",
            "made-up measurement on the bench, median of 1000",
            "measured",
            Some([10.0, 8.0, 13.0]),
            "us",
        ),
        figure(
            "idle.C6.exit_us",
            "fitted so that the made-up study's figure 3 comes out",
            "fitted",
            Some([104.0, 60.0, 170.0]),
            "us",
        ),
        figure(
            "idle.C1.watts",
            "nobody knows; half of the lowest speed's",
            "guess",
            Some([0.7, 0.42, 1.15]),
            "W",
        ),
        figure("platform_w", "made-up wall measurement with the screen off", "measured", None, ""),
    ];
    for i in 0..20 {
        all.push(figure(
            &format!("speed.matrix[{}][{}]_us", i / 5, i % 5),
            "synthetic data sheet, table 7",
            if i % 9 == 4 { "fitted" } else { "datasheet" },
            Some([12.5, 3.75, 12.5]),
            "us",
        ));
    }
    all
}

fn inputs(cpus: usize) -> Inputs {
    Inputs {
        own_machine: false,
        root: None,
        machine_summary: format!(
            "{cpus} CPUs in one package, 600 MHz to 2.4 GHz, C1 to C6, 53 Wh (synthetic)"
        ),
        machine_figures: machine_figures(),
        uncertain: vec![UncertainInput {
            what: "workload.memory_bound".to_owned(),
            unit: String::new(),
            nominal: 0.2,
            low: 0.0,
            high: 0.4,
            by: "recording on a machine with performance counters".to_owned(),
        }],
        idle_policy: "menu".to_owned(),
        warnings: vec![
            "12 wake-ups had no waker in the trace; they keep their recorded times.".to_owned(),
            "The trace has no speeds: cycles were taken at 2.4 GHz.".to_owned(),
        ],
        version: "0.1.0".to_owned(),
    }
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
    let (speed, idle) = residencies(timeline, bin_s);
    let wakes = wake_ups(random, eager);
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
        above_idle_j: energy_j * 0.4,
        mean_w: energy_j / elapsed_s,
        edp_js: energy_j * elapsed_s,
        slowdown: 1.0,
        missed: 0.0,
        over_own_time: false,
        uncertain: Uncertain::default(),
        within_share: 1.0,
        admissible: true,
        best_share: 0.0,
        raced_out_after: None,
        tied: false,
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
            leakage_j: 0.0,
            uncore_j: 1.7 * elapsed_s,
            memory_j: 0.0,
            platform_j: 4.5 * elapsed_s,
            undone_background_j: 0.0,
            suspended_j: 0.0,
        },
        provenance: "modelled".to_owned(),
        approximation: None,
        responses: Some(responses()),
        other_responses: responses(),
        missed_by_task: vec![MissedTask {
            task: "clock".to_owned(),
            share: 0.02,
            reference_share: 0.01,
            slower: false,
        }],
    };
    (result, wakes.iter().collect())
}

fn wake_ups(random: &mut Random, eager: f64) -> Histogram {
    let mut wakes = Histogram::default();
    for _ in 0..20_000 {
        // A floor, a tail, and for lazy policies a hump at the sampling period.
        let tail = -(1.0 - random.next()).ln();
        let hump = if random.next() > 0.97 { 4e5 * (1.2 - eager) * random.next() } else { 0.0 };
        wakes.record((2_500.0 + tail * tail * 9_000.0 * (1.6 - eager) + hump) as u64);
    }
    wakes
}

/// CPU-seconds at each speed and in each state.
fn residencies(timeline: &Timeline, bin_s: f64) -> ([f64; KHZ.len()], [f64; STATES.len()]) {
    let mut speed = [0.0; KHZ.len()];
    let mut idle = [0.0; STATES.len()];
    for lane in &timeline.lanes {
        for ((khz, awake), depth) in lane.khz.iter().zip(&lane.awake).zip(&lane.depth) {
            let awake = f64::from(*awake);
            speed[KHZ.iter().position(|k| k == khz).unwrap_or(0)] += awake * bin_s;
            idle[if depth.is_nan() { 0 } else { depth.round() as usize }] += (1.0 - awake) * bin_s;
        }
    }
    (speed, idle)
}
