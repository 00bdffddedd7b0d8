//! Which windows tell most.

use crate::fit::{Unknowns, parts_metered, variance};
use crate::layout::Layout;
use crate::window::{Observation, Part, Taken, Window};
use wattwise_figure::Random;
use wattwise_model::machine::MachineModel;

/// Which parts of the machine are metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meters {
    /// The cores of each package.
    pub cores: bool,
    /// The packages.
    pub package: bool,
    /// Their memory.
    pub memory: bool,
    /// The machine, by its firmware or its battery.
    pub machine: bool,
}

impl Meters {
    /// Whether there is none, but of the memory.
    pub fn is_empty(self) -> bool {
        !(self.cores || self.package || self.machine)
    }
}

/// What a window would be, if the machine did just what it is asked to.
fn ideal(
    window: &Window,
    seconds: f64,
    machine: &MachineModel,
    layout: &Layout,
    meters: Meters,
) -> Observation {
    let packages = layout.packages.len() as f64;
    let mut shallowest = usize::MAX;
    let mut working = false;
    let taken = window.parts.iter().enumerate().map(|(k, part)| {
        let kind = &machine.kinds[k];
        let all = layout.packages.iter().map(|p| p[k].len()).sum::<usize>() as f64;
        let busy = (part.cores as f64 * packages).min(all) * part.share;
        let mut t = Taken {
            one: vec![0.0; kind.levels.len()],
            all: vec![0.0; kind.levels.len()],
            idle: vec![0.0; kind.idle.len()],
        };
        if part.all_threads {
            t.all[part.level] = busy
        } else {
            t.one[part.level] = busy
        }
        t.idle[part.deepest.min(kind.idle.len() - 1)] = all - busy;
        working |= busy > 0.0;
        shallowest = shallowest.min(part.deepest);
        t
    });
    let taken = taken.collect();
    let states = &machine.packages[0].idle;
    let mut asleep = vec![0.0; states.len()];
    let state = states.iter().rposition(|s| usize::from(s.needs) <= shallowest).filter(|_| !working);
    state.into_iter().for_each(|s| asleep[s] = packages);
    let some = |metered: bool| metered.then_some(0.0);
    Observation {
        window: window.clone(),
        at_s: 0.0,
        seconds,
        celsius: None,
        taken,
        awake: if state.is_some() { 0.0 } else { packages },
        asleep,
        cores_w: some(meters.cores),
        package_w: some(meters.package),
        memory_w: some(meters.memory),
        machine_w: some(meters.machine),
        reached: vec![true; window.parts.len()],
        own_s: 0.0,
    }
}

/// Every window that may be chosen.
fn candidates(machine: &MachineModel, layout: &Layout) -> Vec<Window> {
    let deepest = |k: usize| machine.kinds[k].idle.len() - 1;
    let kinds = machine.kinds.len();
    let rest = |k: usize, at: usize| Part {
        cores: 0,
        all_threads: false,
        share: 1.0,
        level: machine.kinds[k].levels.len() - 1,
        deepest: at.min(deepest(k)),
    };
    let most = (0..kinds).map(deepest).max().unwrap_or(0);
    let mut out = Vec::new();
    for state in 0..=most {
        out.push(Window { parts: (0..kinds).map(|k| rest(k, state)).collect() });
        for busy in 0..kinds {
            let all = layout.packages[0][busy].len();
            let mut counts = vec![1, all.div_ceil(2), all];
            counts.dedup();
            let threads = layout.packages[0][busy].first().map_or(1, Vec::len);
            // One core is always awake beside the states that are looked at.
            let levels = 0..machine.kinds[busy].levels.len();
            for (cores, level) in counts.iter().flat_map(|c| levels.clone().map(move |l| (*c, l))) {
                for all_threads in [false, true].into_iter().take(threads.min(2)) {
                    let mut parts: Vec<Part> = (0..kinds).map(|k| rest(k, state)).collect();
                    parts[busy] = Part { cores, all_threads, level, ..parts[busy].clone() };
                    out.push(Window { parts });
                }
            }
        }
    }
    out
}

/// Windows chosen one at a time, by what those before have left open.
pub(crate) struct WindowDesign {
    unknowns: Unknowns,
    candidates: Vec<Window>,
    /// What each candidate would tell: by meter, the variance of its noise and how the power changes with the unknowns.
    rows: Vec<Vec<(f64, Vec<f64>)>>,
    /// Candidates that the machine cannot do: a limit of power or heat is in the way.
    out_of_reach: Vec<bool>,
    covariance: Vec<f64>,
    chosen: usize,
}

/// Every so many windows the first one comes again, to see what drifts.
const REFERENCE_EVERY: usize = 10;

impl WindowDesign {
    /// For a machine with these meters and windows of so many seconds.
    pub(crate) fn new(
        machine: &MachineModel,
        layout: &Layout,
        meters: Meters,
        window_s: f64,
    ) -> WindowDesign {
        // Which windows tell most does not depend on drifts.
        let unknowns = Unknowns::of(machine, 0.0, meters.memory);
        let candidates = candidates(machine, layout);
        let rows = candidates
            .iter()
            .map(|w| told(&unknowns, &ideal(w, window_s, machine, layout, meters)))
            .collect();
        let covariance = unknowns.prior_covariance(&unknowns.prior);
        WindowDesign {
            out_of_reach: vec![false; candidates.len()],
            unknowns,
            candidates,
            rows,
            covariance,
            chosen: 0,
        }
    }

    /// The next window: the one that would narrow what is open most (D-optimal), by what was seen so far.
    pub(crate) fn next(&mut self, seen: &[Observation]) -> Option<Window> {
        for o in &seen[self.chosen.min(seen.len())..] {
            let n = self.unknowns.len();
            told(&self.unknowns, o)
                .iter()
                .for_each(|(variance, slope)| learn(&mut self.covariance, slope, *variance, n));
            self.rule_out(o);
        }
        self.chosen = seen.len();
        if self.chosen % REFERENCE_EVERY == REFERENCE_EVERY - 1 {
            return seen.first().map(|o| o.window.clone());
        }
        let n = self.unknowns.len();
        let gain = |rows: &Vec<(f64, Vec<f64>)>| -> f64 {
            rows.iter()
                .map(|(variance, slope)| (1.0 + spread(&self.covariance, slope, n) / variance).ln())
                .sum()
        };
        let open = self.rows.iter().enumerate().filter(|(at, _)| !self.out_of_reach[*at]);
        let best =
            open.map(|(at, rows)| (at, gain(rows))).max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        best.map(|(at, _)| self.candidates[at].clone())
    }

    /// Where a kind did not reach its speed, it will not with more cores or at a higher one.
    fn rule_out(&mut self, o: &Observation) {
        for (k, part) in o.window.parts.iter().enumerate().filter(|(k, _)| !o.reached[*k]) {
            let harder = |w: &Window| {
                let other = &w.parts[k];
                other.cores >= part.cores
                    && other.level <= part.level
                    && other.all_threads >= part.all_threads
            };
            let candidates = self.candidates.iter().map(harder);
            self.out_of_reach.iter_mut().zip(candidates).for_each(|(out, harder)| *out |= harder);
        }
    }
}

/// What an observation tells: by meter, the variance of its noise and how the power changes with the unknowns.
fn told(unknowns: &Unknowns, o: &Observation) -> Vec<(f64, Vec<f64>)> {
    parts_metered(o)
        .map(|part| {
            let (watts, slope) = unknowns.predict(o, part, 0.0, &unknowns.prior);
            (variance(watts, o.seconds), slope)
        })
        .collect()
}

/// Mixes of work that no fit has seen: several kinds at once, each at a speed of its own, some busy for part of the time.
pub fn mixes(machine: &MachineModel, layout: &Layout, count: usize, seed: u64) -> Vec<Window> {
    let mut random = Random::new(seed);
    let mut below = |n: usize| (random.bits() % n.max(1) as u64) as usize;
    let mut part = |k: usize| {
        let (kind, cores) = (&machine.kinds[k], layout.packages[0][k].len());
        let threads = layout.packages[0][k].first().map_or(1, Vec::len);
        let all_threads = threads > 1 && below(2) == 1;
        Part {
            cores: below(cores + 1),
            all_threads,
            // How threads of a core that are busy for part of the time overlap, no counter tells.
            share: if all_threads { 1.0 } else { [1.0, 1.0, 0.7, 0.4][below(4)] },
            level: below(kind.levels.len()),
            deepest: below(kind.idle.len()),
        }
    };
    let mut mix = || Window { parts: (0..machine.kinds.len()).map(&mut part).collect() };
    let works = |w: &Window| w.parts.iter().any(|p| p.cores > 0);
    // At rest there is little but the meter's noise to be off by.
    (0..count)
        .map(|_| {
            loop {
                let window = mix();
                if works(&window) {
                    break window;
                }
            }
        })
        .collect()
}

fn spread(covariance: &[f64], slope: &[f64], n: usize) -> f64 {
    let open: Vec<usize> = (0..n).filter(|i| slope[*i] != 0.0).collect();
    open.iter().map(|i| open.iter().map(|j| slope[*i] * covariance[i * n + j] * slope[*j]).sum::<f64>()).sum()
}

/// A covariance after one more measurement (Sherman and Morrison).
fn learn(covariance: &mut [f64], slope: &[f64], variance: f64, n: usize) {
    let open: Vec<usize> = (0..n).filter(|i| slope[*i] != 0.0).collect();
    let against: Vec<f64> =
        (0..n).map(|i| open.iter().map(|j| covariance[i * n + j] * slope[*j]).sum()).collect();
    let scale = variance + open.iter().map(|i| slope[*i] * against[*i]).sum::<f64>();
    for i in 0..n {
        for j in 0..n {
            covariance[i * n + j] -= against[i] * against[j] / scale;
        }
    }
}
