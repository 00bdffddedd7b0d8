//! The same matrix on a machine model: MCS, with what its waiters do.
//!
//! Figures that no machine file holds stand here, each with its source. Four were fitted, to one published
//! figure each; the study's page (`wattwise reproduce powerctl`) says which and what is left to predict.

use wattwise_figure::Provenance;
use wattwise_lockbench::judge;
use wattwise_lockbench::section::Section;
use wattwise_lockbench::{Bench, LockMatrix, Place, Record, SCHEMA, jain};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Dist;
use wattwise_sim::lock::{Costs, LockOutcome, LockSetup, Lowered, Waiting, run as simulate};

/// Acquisitions counted in each cell.
const ACQUISITIONS: u64 = 2000;

/// A cost with where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct CostFigure {
    /// What.
    pub what: &'static str,
    /// The machine it is for; empty: all.
    pub machine: &'static str,
    /// How it was had: `measured`, `fitted`, `guess`.
    pub confidence: &'static str,
    /// Where, or to what.
    pub source: &'static str,
}

/// Every cost's origin.
pub const COSTS: &[CostFigure] = &[
    CostFigure {
        what: "a call that changes a state: 1.27 us",
        machine: "",
        confidence: "measured",
        source: "study 004, figure 3.4: a P-state request by system call; taken for T-states too",
    },
    CostFigure {
        what: "a hand-over to a spinning waiter: 0.15 us (xeon-4210), 0.06 us (i7-4510u)",
        machine: "",
        confidence: "guess",
        source: "a transfer of a cache line and the store after it, between sockets at worst or through one L3",
    },
    CostFigure {
        what: "a call that enters MWAIT, and its return: 0.1 us each",
        machine: "",
        confidence: "guess",
        source: "a system call without work, before the mitigations of 2018",
    },
    CostFigure {
        what: "futex: 2 us to wake, 10 us from the core's waking to the sleeper's running",
        machine: "",
        confidence: "guess",
        source: "usual figures of a server: interrupt, scheduler, return",
    },
    CostFigure {
        what: "spin-then-park spins for 150 us at full speed",
        machine: "xeon-4210",
        confidence: "fitted",
        source: "counted in iterations; with the clock at an eighth it must last through the waits of 5 threads and no \
                 longer through those of more: the study finds 5 best and a drop beyond",
    },
    CostFigure {
        what: "power of a spinning thread over C1: 0.35 of a working one's",
        machine: "xeon-4210",
        confidence: "fitted",
        source: "to +16 % efficiency (spin, T 12.5 %, 366/3.7 us, 20 threads)",
    },
    CostFigure {
        what: "the uncore saves 0.31 while all awake cores of its package run below 2.05 GHz",
        machine: "xeon-4210",
        confidence: "fitted",
        source: "to +13 % efficiency (spin, P3, 366/3.7 us, 5 threads), which the study cannot explain. That the uncore's \
                 clock follows the cores' is known of this family; the share and the step are assumed",
    },
    CostFigure {
        what: "packages with a thread do not idle between its waits; threads alternate between packages",
        machine: "xeon-4210",
        confidence: "guess",
        source: "a server's other work; Linux numbers CPUs so on most of them",
    },
    CostFigure {
        what: "power of a spinning thread over C1: 0.75 of a working one's; it leaves its sibling the whole rate",
        machine: "i7-4510u",
        confidence: "fitted",
        source: "to +50 % efficiency (C2, 366/3.7 us); PAUSE takes some 10 cycles there, 140 on Skylake. It also gives the \
                 peak at 366/366 us",
    },
    CostFigure {
        what: "power of a core in C1: 0.4 W",
        machine: "i7-4510u",
        confidence: "guess",
        source: "the machine's file guesses 1 W at full voltage; MWAIT in C1 lets the voltage go",
    },
    CostFigure {
        what: "leaving MWAIT takes 2.7 us in every C-state, at that state's power",
        machine: "i7-4510u",
        confidence: "fitted",
        source: "to -44 % throughput (C1, 3.7/3.7 us); for deeper states the same, since the study finds 44 to 47 % in all",
    },
];

/// The costs of a machine's locks.
pub fn costs(machine: &str) -> Costs {
    let common = Costs {
        handover_ns: 150.0,
        call_ns: 1270.0,
        device_ns: 100.0,
        wake_ns: 2000.0,
        schedule_ns: 10_000.0,
        budget_ns: 150_000.0,
        spin_power: 0.35,
        spin_sibling: 0.95,
        mwait_exit_ns: None,
        halted_w: None,
        package_idle: true,
        slow_uncore: None,
    };
    match machine {
        "xeon-4210" => Costs { package_idle: false, slow_uncore: Some((2_050_000, 0.31)), ..common },
        "i7-4510u" => Costs {
            handover_ns: 60.0,
            spin_power: 0.75,
            spin_sibling: 1.0,
            mwait_exit_ns: Some(2700.0),
            halted_w: Some(0.4),
            ..common
        },
        _ => common,
    }
}

/// What a waiter does, in words: `spin`, `tstate-12.5+spin-then-park`, `pstate-3+spin`, `mwait-C1E`.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitPolicy {
    /// As written.
    pub name: String,
    waiting: Waiting,
    lowered: Lowered,
}

impl WaitPolicy {
    /// Reads a name for a machine.
    pub fn parse(name: &str, machine: &MachineModel) -> Result<WaitPolicy, String> {
        let kind = &machine.kinds[0];
        let names = || kind.idle.iter().map(|s| format!("mwait-{}", s.name)).collect::<Vec<_>>().join(", ");
        let bad = || {
            format!(
                "{name:?}: expected mcs:WAIT, mcs:tstate-PERCENT+WAIT or mcs:pstate-N+WAIT (N from 1 to {}), with WAIT one \
                 of spin, park, spin-then-park, {}",
                kind.levels.len(),
                names()
            )
        };
        let rest = name.strip_prefix("mcs:").ok_or_else(bad)?;
        let (state, wait) = rest.split_once('+').map_or((None, rest), |(s, w)| (Some(s), w));
        let waiting = match wait {
            "spin" => Waiting::Spin,
            "park" => Waiting::Park,
            "spin-then-park" => Waiting::SpinThenPark,
            _ => {
                let state = wait.strip_prefix("mwait-").ok_or_else(bad)?;
                Waiting::Mwait(kind.idle.iter().position(|s| s.name == state).ok_or_else(bad)?)
            }
        };
        let lowered = match state {
            None => Lowered::Nothing,
            Some(state) => {
                let duty = state.strip_prefix("tstate-").and_then(|p| p.parse::<f64>().ok());
                // P0 is the turbo entry: with boost off the same clock as P1, which is the first level.
                let level = state.strip_prefix("pstate-").and_then(|n| n.parse::<usize>().ok());
                match (duty, level) {
                    (Some(percent), _) if (6.0..100.0).contains(&percent) => Lowered::Duty(percent / 100.0),
                    (_, Some(n)) if (1..=kind.levels.len()).contains(&n) => Lowered::Level(n - 1),
                    _ => return Err(bad()),
                }
            }
        };
        Ok(WaitPolicy { name: name.to_owned(), waiting, lowered })
    }
}

/// What study 004 ran on a machine.
pub fn usual(machine: &MachineModel) -> Vec<String> {
    let names: &[&str] = match machine.name.as_str() {
        "i7-4510u" => &["mcs:spin", "mcs:mwait-C1", "mcs:mwait-C1E", "mcs:mwait-C3", "mcs:mwait-C6"],
        _ => &[
            "mcs:spin",
            "mcs:spin-then-park",
            "mcs:park",
            "mcs:tstate-12.5+spin",
            "mcs:tstate-50+spin",
            "mcs:tstate-12.5+spin-then-park",
            "mcs:pstate-3+spin",
            "mcs:pstate-3+spin-then-park",
        ],
    };
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn ns(section: Section) -> Dist {
    let ns = |us: f64| (us * 1000.0).round() as u64;
    match section {
        Section::Fixed(us) => Dist::Fixed(ns(us)),
        Section::Uniform(low, high) => Dist::Uniform(ns(low), ns(high)),
        // The model draws from bounded distributions: even with the same mean.
        Section::Exponential(mean) => Dist::Uniform(0, ns(mean * 2.0)),
    }
}

/// One cell. Where the packages would draw more than the machine's limit for long, the clock goes up and down between the two
/// levels whose mean keeps to it, as it does over many of a limit's time constants.
pub fn cell(machine: &MachineModel, policy: &WaitPolicy, place: Place, seed: u64) -> LockOutcome {
    cell_at(machine, costs(&machine.name), policy, place, seed)
}

/// The same at other costs than the machine's.
pub fn cell_at(
    machine: &MachineModel,
    costs: Costs,
    policy: &WaitPolicy,
    place: Place,
    seed: u64,
) -> LockOutcome {
    let at = |cap: usize| {
        simulate(&LockSetup {
            machine,
            costs,
            threads: place.threads,
            cs: ns(place.cs_us),
            ncs: ns(place.ncs_us),
            waiting: policy.waiting,
            lowered: policy.lowered,
            acquisitions: ACQUISITIONS,
            cap,
            seed,
        })
    };
    let watts = |o: &LockOutcome| o.energy_j / o.elapsed_s;
    let mut faster = at(0);
    let Some(limit) = limit_w(machine).filter(|limit| watts(&faster) > *limit) else { return faster };
    for cap in 1..machine.kinds[0].levels.len() {
        let slower = at(cap);
        if watts(&slower) <= limit {
            return mixed(&faster, &slower, limit);
        }
        faster = slower;
    }
    faster
}

/// What the packages may draw together for long, in W, where the machine's file has limits.
fn limit_w(machine: &MachineModel) -> Option<f64> {
    machine.packages.iter().map(|p| p.limit.map(|l| l.long_w)).sum()
}

/// As long as the slower run, of which a share at the faster one's pace: so much that the mean power is the limit.
fn mixed(faster: &LockOutcome, slower: &LockOutcome, limit_w: f64) -> LockOutcome {
    let (high, low) = (faster.energy_j / faster.elapsed_s, slower.energy_j / slower.elapsed_s);
    let share = (limit_w - low) / (high - low);
    let of = |a: f64, b: f64| {
        (share * a / faster.elapsed_s + (1.0 - share) * b / slower.elapsed_s) * slower.elapsed_s
    };
    let acquired = faster.acquired.iter().zip(&slower.acquired);
    LockOutcome {
        elapsed_s: slower.elapsed_s,
        acquired: acquired.map(|(&a, &b)| of(a as f64, b as f64).round() as u64).collect(),
        energy_j: of(faster.energy_j, slower.energy_j),
        cpu_s: of(faster.cpu_s, slower.cpu_s),
        waits_ns: slower.waits_ns.clone(),
    }
}

/// Runs the plan's sections and threads on a model; threads beyond its CPUs are left out, with a note.
pub fn run(machine: &MachineModel, plan: &LockMatrix, policies: &[WaitPolicy]) -> Bench {
    let fits = |n: &&usize| **n <= machine.cpus.len();
    let mut jobs = Vec::new();
    for repeat in 0..plan.repeats {
        for &threads in plan.threads.iter().filter(fits) {
            for &cs_us in &plan.cs {
                for &ncs_us in &plan.ncs {
                    let place = Place { threads, cs_us, ncs_us };
                    if !takes_no_time(place) {
                        jobs.extend(policies.iter().map(|p| (repeat, p, place)));
                    }
                }
            }
        }
    }
    let one = |&(repeat, policy, place): &(usize, &WaitPolicy, Place)| {
        record(repeat, &policy.name, place, &cell(machine, policy, place, plan.seed + repeat as u64))
    };
    let records: Vec<Record> = wattwise_threads::map(&jobs, one);
    let mut notes = vec![
        "A model: one thread a CPU, MCS in order of asking. Energy is the packages', as RAPL shows it."
            .to_owned(),
    ];
    let left_out: Vec<String> = plan.threads.iter().filter(|n| !fits(n)).map(usize::to_string).collect();
    if !left_out.is_empty() {
        notes.push(format!("Left out: {} threads, more than the model's CPUs.", left_out.join(", ")));
    }
    let (empty, alone) = (Section::Fixed(0.0), plan.threads.contains(&1));
    if alone && plan.cs.contains(&empty) && plan.ncs.contains(&empty) {
        notes.push(
            "Left out: one thread with empty sections. A lock that nobody else holds costs nothing in the model.".to_owned(),
        );
    }
    if plan.cs.iter().chain(&plan.ncs).any(|s| matches!(s, Section::Exponential(_))) {
        notes.push("Exponential sections are drawn evenly from 0 to twice the mean here.".to_owned());
    }
    notes.extend(
        COSTS
            .iter()
            .filter(|c| c.machine.is_empty() || c.machine == machine.name)
            .map(|c| format!("{} ({}): {}.", c.what, c.confidence, c.source)),
    );
    let by = || Provenance::Modelled { by: format!("wattwise-sim on {}", machine.name) };
    Bench {
        schema: SCHEMA.into(),
        machine: machine.name.clone(),
        figures: by(),
        energy: by(),
        seed: plan.seed,
        repeats: plan.repeats,
        pinned: true,
        notes,
        cells: judge::cells(&records),
        records,
        verdict: None,
    }
}

/// One thread that has nothing to do between its acquisitions: the model has no rate for it.
fn takes_no_time(place: Place) -> bool {
    place.threads == 1 && [place.cs_us, place.ncs_us] == [Section::Fixed(0.0); 2]
}

fn record(repeat: usize, lock: &str, place: Place, o: &LockOutcome) -> Record {
    let total: u64 = o.acquired.iter().sum();
    let quantile = |q: f64| {
        let at = ((o.waits_ns.len() as f64 * q) as usize).min(o.waits_ns.len().saturating_sub(1));
        o.waits_ns.get(at).map_or(0.0, |ns| ns * 1e-3)
    };
    Record {
        repeat,
        lock: lock.to_owned(),
        place,
        window_s: o.elapsed_s,
        acquisitions_per_s: total as f64 / o.elapsed_s,
        cpus: o.cpu_s / o.elapsed_s,
        cpu_s_per_acquisition: o.cpu_s / total as f64,
        jain: jain(&o.acquired),
        wait_p50_us: quantile(0.5),
        wait_p99_us: quantile(0.99),
        wait_p999_us: quantile(0.999),
        wait_max_us: quantile(1.0),
        energy_j: Some(o.energy_j),
        acquisitions_per_j: Some(total as f64 / o.energy_j),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;

    #[test]
    fn every_figure_of_a_matrix_is_a_number() {
        let machine = library::machine("xeon-4210").expect("bundled");
        let empty = vec![Section::Fixed(0.0), Section::Fixed(1.0)];
        let plan = LockMatrix {
            threads: vec![1, 2],
            cs: empty.clone(),
            ncs: empty,
            repeats: 1,
            seed: 1,
            locks: Vec::new(),
            time: std::time::Duration::ZERO,
            pin: true,
        };
        let spin = [WaitPolicy::parse("mcs:spin", &machine).expect("valid")];
        let bench = run(&machine, &plan, &spin);
        assert_eq!(bench.records.len(), 7, "of 8 places one has no rate");
        for r in &bench.records {
            let figures = [
                r.acquisitions_per_s,
                r.cpus,
                r.cpu_s_per_acquisition,
                r.acquisitions_per_j.unwrap_or(f64::NAN),
            ];
            assert!(figures.iter().all(|x| x.is_finite() && *x > 0.0), "{r:?}");
        }
        assert!(bench.notes.iter().any(|n| n.contains("empty sections")), "{:?}", bench.notes);
    }

    #[test]
    fn policies_are_read_and_mistakes_explained() {
        let machine = library::machine("xeon-4210").expect("bundled");
        for name in usual(&machine).iter().map(String::as_str).chain(["mcs:mwait-C6", "mcs:pstate-15+park"]) {
            assert_eq!(WaitPolicy::parse(name, &machine).expect("valid").name, name);
        }
        for wrong in ["spin", "mcs:", "mcs:tstate-0+spin", "mcs:pstate-16+spin", "mcs:mwait-C9", "mcs:x+spin"]
        {
            let why = WaitPolicy::parse(wrong, &machine).expect_err(wrong);
            assert!(why.contains("expected mcs:") && why.contains("mwait-C1E"), "{why}");
        }
    }
}
