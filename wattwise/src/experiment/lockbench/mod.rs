//! Locks under load: threads x sections x locks x waiting policies, measured here or on a machine model.
//!
//! Study 004 asks what a waiting thread should do with its core; Lockbench's answer is a table of throughput and
//! joules over threads and lengths of sections. This is that table, with what either left out: CPU time, fairness,
//! how long threads waited, and an interval for every difference.
//!
//! The locks of one cell (threads, sections) run one after another, in a random order; the cells too, in each
//! repeat anew. What drifts with the machine is thus shared by the locks of a cell, and differences are judged
//! within cells: by the ratios of one repeat, with Student's interval over the repeats.

pub mod judge;
pub mod measure;
pub mod model;
pub mod page;
pub mod section;

use crate::hw::root::Root;
use crate::meter::{Meter, now};
use measure::{Counts, Job, Subject};
use section::Section;
use serde::Serialize;
use std::time::Duration;
use wattwise_figure::Provenance;
use wattwise_figure::Random;
use wattwise_model::machine::Machine;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Locks.
    pub subjects: Vec<Subject>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Critical sections.
    pub cs: Vec<Section>,
    /// Non-critical sections.
    pub ncs: Vec<Section>,
    /// Of each measurement.
    pub time: Duration,
    /// Of the whole.
    pub repeats: usize,
    /// Of orders and lengths.
    pub seed: u64,
    /// Thread i on CPU i modulo CPUs.
    pub pin: bool,
}

impl Plan {
    /// Measurements in all.
    pub fn measurements(&self) -> usize {
        self.repeats * self.subjects.len() * self.threads.len() * self.cs.len() * self.ncs.len()
    }

    /// (threads, cs, ncs, place among the subjects) of one repeat, in its order.
    fn order(&self, repeat: usize) -> Vec<(usize, Section, Section, usize)> {
        let mut random = Random::new(self.seed ^ (repeat as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut cells = Vec::new();
        for &threads in &self.threads {
            for &cs in &self.cs {
                cells.extend(self.ncs.iter().map(|&ncs| (threads, cs, ncs)));
            }
        }
        random.shuffle(&mut cells);
        let mut order = Vec::new();
        for (threads, cs, ncs) in cells {
            let mut subjects: Vec<usize> = (0..self.subjects.len()).collect();
            random.shuffle(&mut subjects);
            order.extend(subjects.into_iter().map(|s| (threads, cs, ncs, s)));
        }
        order
    }
}

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// Threads.
    pub threads: usize,
    /// Critical section, us.
    #[cfg_attr(test, schemars(with = "String"))]
    pub cs_us: Section,
    /// Non-critical section, us.
    #[cfg_attr(test, schemars(with = "String"))]
    pub ncs_us: Section,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// Which repeat, from 0.
    pub repeat: usize,
    /// The lock with its waiting policy.
    pub lock: String,
    /// Where in the table.
    #[serde(flatten)]
    pub place: Place,
    /// Length of the window, s.
    pub window_s: f64,
    /// Throughput.
    pub acquisitions_per_s: f64,
    /// CPU time over time: how many CPUs the process kept busy, waiting included.
    pub cpus: f64,
    /// CPU time for one acquisition, s.
    pub cpu_s_per_acquisition: f64,
    /// Jain's index of the threads' acquisitions: 1 when all got as many, 1/threads when one got all.
    pub jain: f64,
    /// Half of the waits were shorter, us.
    pub wait_p50_us: f64,
    /// 99 % were shorter, us.
    pub wait_p99_us: f64,
    /// 99.9 % were shorter, us.
    pub wait_p999_us: f64,
    /// The longest, us.
    pub wait_max_us: f64,
    /// Energy over the window, J, where there is a figure.
    pub energy_j: Option<f64>,
    /// Acquisitions a joule.
    pub acquisitions_per_j: Option<f64>,
}

/// Everything that came out.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bench {
    /// Name and version of this shape.
    pub schema: &'static str,
    /// Where: this machine or a model.
    pub machine: String,
    /// How throughput, times and fairness came about.
    pub figures: Provenance,
    /// How energy came about.
    pub energy: Provenance,
    /// Of orders and lengths.
    pub seed: u64,
    /// Repeats of the whole.
    pub repeats: usize,
    /// Whether threads were bound to CPUs.
    pub pinned: bool,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
    /// Each measurement in the order in which it was made.
    pub records: Vec<Record>,
    /// Each lock in each place, over the repeats.
    pub cells: Vec<judge::Cell>,
    /// What holds of one lock against the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<judge::Verdict>,
}

/// Name and version of [`Bench`] as JSON.
pub const SCHEMA: &str = "wattwise-bench-locks-1";

/// Joules of a process where nothing is metered: its CPU time at the watts of a machine's model.
#[derive(Clone, Debug)]
pub struct Pricing {
    busy_w: f64,
    idle_w: f64,
    base_w: f64,
    cpus: f64,
    by: String,
}

impl Pricing {
    /// By a model's highest speed, first C-state and uncore. The platform is left out, as RAPL does.
    pub fn of(machine: &Machine) -> Pricing {
        let kind = &machine.kinds[0];
        let threads = machine.cores.first().map_or(1, |c| c.cpus.len()).max(1) as f64;
        let level = kind.levels.first().map_or(0.0, |l| l.busy_w);
        let idle = kind.idle.first().and_then(|s| s.watts.first()).copied().unwrap_or(0.0);
        Pricing {
            busy_w: level / threads,
            idle_w: idle / threads,
            base_w: machine.packages.iter().map(|p| p.uncore_w).sum(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from) as f64,
            by: format!(
                "CPU time at the watts of {} (highest speed, C1 when idle, waiting as dear as working)",
                machine.name
            ),
        }
    }

    fn joules(&self, cpu_s: f64, seconds: f64) -> f64 {
        let idle_s = (self.cpus * seconds - cpu_s).max(0.0);
        self.base_w * seconds + self.busy_w * cpu_s + self.idle_w * idle_s
    }
}

/// Runs a plan on this machine; `done` hears after each measurement how many there have been.
pub fn run(plan: &Plan, root: &dyn Root, pricing: &Pricing, mut done: impl FnMut(usize)) -> Bench {
    let mut meter = Meter::open(root);
    meter.self_test(Duration::from_millis(100), std::thread::sleep);
    let mut energy = if meter.is_empty() {
        Provenance::Modelled { by: pricing.by.clone() }
    } else {
        meter.energy().provenance
    };
    let mut records = Vec::with_capacity(plan.measurements());
    for repeat in 0..plan.repeats {
        for (threads, cs, ncs, subject) in plan.order(repeat) {
            let subject = &plan.subjects[subject];
            // The same lengths for every lock of a cell.
            let seed = plan.seed.wrapping_add(repeat as u64 * 1_000_003);
            let job = Job { threads, cs, ncs, time: plan.time, pin: plan.pin, seed };
            meter.begin(now());
            let metered_from = now().monotonic_s;
            let counts = measure::run(subject, &job);
            meter.sample(now());
            let whole_s = now().monotonic_s - metered_from;
            let joules = if meter.is_empty() {
                Some(pricing.joules(counts.cpu_s, counts.seconds))
            } else {
                let read = meter.energy();
                energy = read.provenance;
                // The meter ran from before the threads began until after their end, at the same power.
                read.joules.map(|j| j * counts.seconds / whole_s)
            };
            records.push(record(
                repeat,
                subject.name(),
                Place { threads, cs_us: cs, ncs_us: ncs },
                &counts,
                joules,
            ));
            done(records.len());
        }
    }
    let mut notes = vec![
        "Sections last as long as the time-stamp counter says; steps of more than 1 us between its reads, in which \
         somebody else had the core, are left out."
            .to_owned(),
    ];
    if matches!(energy, Provenance::Modelled { .. }) {
        let why: Vec<String> = meter.unavailable.iter().map(|u| format!("{}: {}", u.what, u.why)).collect();
        let why = if why.is_empty() { "no meter was found".to_owned() } else { why.join("; ") };
        notes.push(format!("Energy is modelled, since nothing meters it here ({why})."));
    }
    notes.extend(plan.subjects.iter().filter_map(Subject::caveat));
    let cells = judge::cells(&records);
    Bench {
        schema: SCHEMA,
        machine: "this machine".to_owned(),
        figures: Provenance::Measured { by: "the time-stamp counter and the process's CPU time".to_owned() },
        energy,
        seed: plan.seed,
        repeats: plan.repeats,
        pinned: plan.pin,
        notes,
        records,
        cells,
        verdict: None,
    }
}

fn record(repeat: usize, lock: &str, place: Place, counts: &Counts, energy_j: Option<f64>) -> Record {
    let total: u64 = counts.acquired.iter().sum();
    Record {
        repeat,
        lock: lock.to_owned(),
        place,
        window_s: counts.seconds,
        acquisitions_per_s: total as f64 / counts.seconds,
        cpus: counts.cpu_s / counts.seconds,
        cpu_s_per_acquisition: counts.cpu_s / total.max(1) as f64,
        jain: jain(&counts.acquired),
        wait_p50_us: counts.waits.quantile(0.5),
        wait_p99_us: counts.waits.quantile(0.99),
        wait_p999_us: counts.waits.quantile(0.999),
        wait_max_us: counts.waits.longest(),
        energy_j,
        acquisitions_per_j: energy_j.filter(|j| *j > 0.0).map(|j| total as f64 / j),
    }
}

/// Jain's index (Jain, Chiu, Hawe 1984); nothing acquired is fair.
pub fn jain(acquired: &[u64]) -> f64 {
    let sum: f64 = acquired.iter().map(|n| *n as f64).sum();
    let squares: f64 = acquired.iter().map(|n| (*n as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (acquired.len() as f64 * squares) }
}

impl Bench {
    /// One line a measurement.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "repeat,lock,threads,cs_us,ncs_us,window_s,acquisitions_per_s,cpus,cpu_s_per_acquisition,jain,\
             wait_p50_us,wait_p99_us,wait_p999_us,wait_max_us,energy_j,acquisitions_per_j\n",
        );
        let maybe = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.6e}"));
        for r in &self.records {
            out += &format!(
                "{},{},{},{},{},{:.6},{:.1},{:.4},{:.6e},{:.5},{:.3},{:.3},{:.3},{:.1},{},{}\n",
                r.repeat,
                r.lock,
                r.place.threads,
                r.place.cs_us,
                r.place.ncs_us,
                r.window_s,
                r.acquisitions_per_s,
                r.cpus,
                r.cpu_s_per_acquisition,
                r.jain,
                r.wait_p50_us,
                r.wait_p99_us,
                r.wait_p999_us,
                r.wait_max_us,
                maybe(r.energy_j),
                maybe(r.acquisitions_per_j),
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_1_for_equals_and_a_share_for_one() {
        assert_eq!(jain(&[5, 5, 5]), 1.0);
        assert_eq!(jain(&[9, 0, 0]), 1.0 / 3.0);
        assert_eq!(jain(&[0, 0]), 1.0);
    }

    #[test]
    fn the_locks_of_a_cell_run_side_by_side_in_changing_order() {
        let subjects = ["std", "glibc", "adaptive"].map(|s| Subject::parse(s).expect("known")).to_vec();
        let plan = Plan {
            subjects,
            threads: vec![1, 2],
            cs: vec![Section::Fixed(0.0), Section::Fixed(1.0)],
            ncs: vec![Section::Fixed(0.0)],
            time: Duration::from_millis(1),
            repeats: 20,
            seed: 3,
            pin: false,
        };
        let mut firsts = [0; 3];
        for repeat in 0..plan.repeats {
            let order = plan.order(repeat);
            assert_eq!(order.len(), 12);
            for cell in order.chunks(3) {
                assert!(cell.iter().all(|c| (c.0, c.1) == (cell[0].0, cell[0].1)));
                let mut subjects: Vec<usize> = cell.iter().map(|c| c.3).collect();
                firsts[subjects[0]] += 1;
                subjects.sort_unstable();
                assert_eq!(subjects, [0, 1, 2]);
            }
        }
        assert!(firsts.iter().all(|n| *n > 10), "{firsts:?}");
        assert_eq!(plan.order(4), plan.order(4));
    }
}
