//! H. Yun, COREIDLE framework (2011): light load kept on few CPUs, so that the others sleep deeply.
//!
//! Two loads on a notebook of two cores with two threads each, under Linux 3.1's scheduler as it comes, with
//! `sched_mc_power_savings` and `sched_smt_power_savings` at 1, and under the study's governor. The study had no
//! meter: it weighted turbostat's residencies with a power for each state. The same formula is used here on the
//! model's residencies, and beside it the model's own accounts, which know cores and not the mean of the CPUs.
//!
//! Both loads are generated. The bundled recordings of the two programs come from a machine of two CPUs, today's
//! kernel and programs of today: how many clients ran and how often a thread woke is the study's, how long each
//! step takes is set by one residency for each load (`FITTED`).

use crate::{Basis, Bench, Figure, Study, StudyError, figure_table, number, rows};
use rayon::prelude::*;
use wattwise_figure::mean_sd;
use wattwise_model::residency::package_watts;
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, TaskId, Workload};
use wattwise_page::{Bars, Section, Table};
use wattwise_sim::outcome::Outcome;

const RESIDENCY: &str = include_str!("../../../studies/coreidle_residency.csv");
const POWER: &str = include_str!("../../../studies/coreidle_power.csv");

/// The machine's highest speed, at which the study's governor held it.
const KHZ: u32 = 2_900_000;
/// The governor is given this long to come to rest: the study's had been on before its loads began.
const SETTLE_NS: u64 = 3_000_000_000;
/// The time looked at: cyclictest was watched for 5 s; tbench for 20 s, which would say the same.
const WATCH_NS: u64 = 5_000_000_000;

/// Runs of each load: the modelled spread is over these.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// CPU time of one of cyclictest's wake-ups, in ns, its own and its tracing's: fitted to the mean C0 of the default.
const WAKE_NS: f64 = 17_600.0;
/// How long each of trace-cmd's recorders sleeps: its default (`-s 1000`).
const RECORDER_NS: u64 = 1_000_000;
/// CPU time of one request and its reply, client and server together, in ns: as `workloads/ping-pong.toml`.
const ROUND_NS: f64 = 30_000.0;
/// Share of it that is spent after the other side was woken: fitted to the mean C0 of the default.
const TAIL: f64 = 0.395;

const FITTED: [&str; 4] = [
    "cyclictest: CPU time of a wake-up (17.6 us), to the mean C0 under the default scheduler (7.58 %).",
    "tbench: share of a request's CPU time in which client and server may overlap (0.395), to the mean C0 under the \
     default scheduler (36.78 %).",
    "tbench: megabytes a request, to the default scheduler's throughput (225.55 MB/s).",
    "The machine: the power of C0 to C7 is the study's appendix, the C-states' latencies are the kernel's table. Nothing \
     else was set to a figure of the study: residencies in C1 to C7, powers, and whatever sched_mc and coreidle change \
     are predictions.",
];

/// The study's word for a scheduler, and ours.
const SCHEDULERS: [(&str, &str); 3] = [
    ("default", "performance+affine"),
    ("sched_mc", "performance+sched_mc"),
    ("coreidle-ondemand", "performance+affine+coreidle-ondemand"),
];

/// The states of the study's table, as its columns go.
const STATES: [&str; 5] = ["C0", "C1", "C3", "C6", "C7"];
/// Power of a package in each of [`STATES`], in watts: the study's appendix; it counts C6 as nothing.
const STATE_W: [f64; 5] = [90.0, 63.0, 55.0, 0.0, 20.0];
/// Their columns in the residency table.
const COLUMNS: [usize; 5] = [4, 7, 8, 9, 10];

fn task(name: String, seed: u64, start_ns: u64, steps: Vec<Step>) -> Task {
    Task {
        name,
        nice: 0,
        realtime: false,
        born: true,
        program: Program::Pattern(Pattern {
            steps,
            start: Dist::Fixed(start_ns),
            rounds: u64::MAX,
            until_ns: SETTLE_NS + WATCH_NS,
            seed,
            reference_khz: KHZ,
            memory_share: 0.0,
        }),
    }
}

fn load(name: &str, tasks: Vec<Task>) -> Workload {
    Workload {
        name: name.to_owned(),
        source: "a study's load".to_owned(),
        tasks,
        jobs: Vec::new(),
        locks: 0,
        recorded: None,
        span_ns: SETTLE_NS + WATCH_NS,
    }
}

/// Half to one and a half times so many ns at the highest speed.
fn work(ns: f64) -> Step {
    let cycles = ns * f64::from(KHZ) * 1e-6;
    Step::Run(Dist::Uniform((cycles * 0.5) as u64, (cycles * 1.5) as u64))
}

/// `cyclictest -y other -t 30 -i 200`: a thread every 200 us, the next every 700, and so on to 14.7 ms. turbostat watched
/// a `trace-cmd record` beside it, which has a process for each CPU that empties its buffer.
fn cyclictest(seed: u64) -> Workload {
    let thread = |i: u64| {
        let steps = vec![Step::Period(200_000 + 500_000 * i), work(WAKE_NS)];
        task(format!("cyclictest-{i}"), seed * 100 + i, i * 37_000 * seed, steps)
    };
    let recorder = |i: u64| {
        let steps = vec![Step::Period(RECORDER_NS), work(WAKE_NS)];
        task(format!("trace-cmd-{i}"), seed * 100 + 30 + i, i * 241_000 + seed * 11_000, steps)
    };
    load("cyclictest", (0..30).map(thread).chain((0..4).map(recorder)).collect())
}

/// `tbench 1`: a client that asks, a server that answers; each goes on for a while after it has woken the other.
fn tbench(seed: u64) -> Workload {
    let [head, tail] = [1.0 - TAIL, TAIL].map(|share| share * ROUND_NS / 2.0);
    let client = vec![work(head), Step::Wake(TaskId(1)), work(tail), Step::Block];
    let server = vec![Step::Block, work(head), Step::Wake(TaskId(0)), work(tail)];
    let tasks =
        vec![task("client".into(), seed * 100, 0, client), task("server".into(), seed * 100 + 1, 0, server)];
    load("tbench", tasks)
}

/// What was seen of one load under one scheduler.
struct Seen {
    /// Share of time of each CPU in each of [`STATES`].
    shares: Vec<Vec<f64>>,
    /// By the model's own accounts.
    watts: f64,
    requests_s: f64,
    worst_ms: f64,
}

impl Seen {
    /// By the study's formula.
    fn formula_w(&self) -> f64 {
        package_watts(&self.shares, &STATE_W)
    }
}

/// turbostat's view: C0 is a thread's and counts while its clock runs, deeper states are the core's, and C1 is what is
/// left: entering and leaving states too.
fn shares(bench: &Bench, from: &Outcome, to: &Outcome) -> Vec<Vec<f64>> {
    let span = (to.elapsed_ns - from.elapsed_ns) as f64;
    let states = &bench.machine.kinds[0].idle;
    let row = |(c, cpu): (usize, &wattwise_model::machine::Cpu)| {
        let core = usize::from(cpu.core);
        let deep = |name: &str| {
            let at = states.iter().position(|s| s.name == name);
            at.map_or(0.0, |i| (to.cores[core][i] - from.cores[core][i]) as f64 / span)
        };
        let mut row = STATES.map(deep);
        row[0] = (to.cpus[c].busy_ns - from.cpus[c].busy_ns) as f64 / span;
        row[1] = (1.0 - row[0] - row[2..].iter().sum::<f64>()).max(0.0);
        row.to_vec()
    };
    bench.machine.cpus.iter().enumerate().map(row).collect()
}

fn see(bench: &Bench, workload: &Workload, policy: &str) -> Result<Seen, StudyError> {
    let mut sim = bench.simulation(workload, policy, |_| {})?;
    let from = sim.run_until(SETTLE_NS);
    let to = sim.run_until(SETTLE_NS + WATCH_NS);
    let seconds = WATCH_NS as f64 * 1e-9;
    Ok(Seen {
        shares: shares(bench, &from, &to),
        watts: (to.energy.total_j() - from.energy.total_j()) / seconds,
        requests_s: (to.cycles - from.cycles) / (ROUND_NS * f64::from(KHZ) * 1e-6) / seconds,
        worst_ms: to.wake_latency.max() as f64 * 1e-6,
    })
}

/// One load under one scheduler, on all seeds.
struct Case {
    load: &'static str,
    scheduler: &'static str,
    runs: Vec<Seen>,
}

impl Case {
    fn mean(&self, of: impl Fn(&Seen) -> f64) -> (f64, f64) {
        mean_sd(&self.runs.iter().map(of).collect::<Vec<_>>())
    }

    /// Mean share of time in a state, of one CPU or (`None`) of all, in %.
    fn percent(&self, cpu: Option<usize>, state: usize) -> (f64, f64) {
        self.mean(|s| {
            let of = |c: usize| s.shares[c][state] * 100.0;
            match cpu {
                Some(c) => of(c),
                None => (0..s.shares.len()).map(of).sum::<f64>() / s.shares.len() as f64,
            }
        })
    }

    /// Its row in the published powers: watts, MB/s, MB/s a watt, longest latency in ms.
    fn published(&self) -> [Option<f64>; 4] {
        let row = rows(POWER).find(|r| r[0] == self.load && r[1] == self.scheduler);
        let cell = |i: usize| row.as_ref().map(|r| number(r[i])).filter(|x| x.is_finite());
        [2, 3, 4, 5].map(cell)
    }
}

fn cases(bench: &Bench) -> Result<Vec<Case>, StudyError> {
    type Make = fn(u64) -> Workload;
    let loads: [(&'static str, Make); 2] = [("cyclictest", cyclictest), ("tbench", tbench)];
    let all: Vec<_> =
        loads.into_iter().flat_map(|load| SCHEDULERS.map(|scheduler| (load, scheduler))).collect();
    all.into_par_iter()
        .map(|((load, make), (scheduler, policy))| {
            let runs = SEEDS
                .iter()
                .map(|&seed| see(bench, &make(seed), policy))
                .collect::<Result<_, StudyError>>()?;
            Ok(Case { load, scheduler, runs })
        })
        .collect()
}

/// Figures of one load under one scheduler; `first` is the load under the default scheduler.
fn figures_of(case: &Case, first: &Case) -> Vec<Figure> {
    let published = case.published();
    let is_default = case.scheduler == "default";
    let figure = |what: &str, unit, published, (modelled, sd): (f64, f64), basis| Figure {
        what: format!("{}, {}: {what}", case.load, case.scheduler),
        unit,
        published,
        published_sd: None,
        modelled,
        modelled_sd: Some(sd),
        basis,
    };
    let mut out = Vec::new();
    let table = rows(RESIDENCY).find(|r| r[0] == case.load && r[1] == case.scheduler && r[3] == "all");
    for (i, (state, column)) in STATES.iter().zip(COLUMNS).enumerate() {
        let basis = if is_default && i == 0 { Basis::Fitted } else { Basis::Predicted };
        let known = table.as_ref().map(|r| number(r[column]));
        out.push(figure(&format!("mean {state}"), "%", known, case.percent(None, i), basis));
    }
    out.push(figure(
        "power by the study's formula",
        "W",
        published[0],
        case.mean(Seen::formula_w),
        Basis::Predicted,
    ));
    out.push(figure("power by the model's accounts", "W", None, case.mean(|s| s.watts), Basis::Predicted));
    if !is_default {
        // Seed by seed: both saw the same work.
        let savings: Vec<f64> = case
            .runs
            .iter()
            .zip(&first.runs)
            .map(|(s, d)| (1.0 - s.formula_w() / d.formula_w()) * 100.0)
            .collect();
        let known = published[0].zip(first.published()[0]).map(|(p, d)| (1.0 - p / d) * 100.0);
        out.push(figure("saving against the default", "%", known, mean_sd(&savings), Basis::Predicted));
    }
    if case.load == "tbench" {
        let megabytes = first.published()[1].unwrap_or(f64::NAN) / first.mean(|s| s.requests_s).0;
        let basis = if is_default { Basis::Construction } else { Basis::Predicted };
        let rate = |s: &Seen| s.requests_s * megabytes;
        out.push(figure("throughput", "MB/s", published[1], case.mean(rate), basis));
        let per_watt = case.mean(|s| rate(s) / s.formula_w());
        out.push(figure("throughput a watt", "MB/s/W", published[2], per_watt, Basis::Predicted));
        let worst = case.mean(|s| s.worst_ms);
        out.push(figure("longest latency", "ms", published[3], worst, Basis::Predicted));
    }
    out
}

/// turbostat's table with the model's figures beside.
fn residency_table(cases: &[Case]) -> Table {
    let mut out = Vec::new();
    for row in rows(RESIDENCY) {
        let Some(case) = cases.iter().find(|c| c.load == row[0] && c.scheduler == row[1]) else { continue };
        let cpu = row[3].parse().ok();
        let mut cells = vec![format!("{}, {}, CPU {}", row[0], row[1], row[3])];
        for (i, column) in COLUMNS.into_iter().enumerate() {
            cells.push(row[column].to_owned());
            cells.push(format!("{:.2}", case.percent(cpu, i).0));
        }
        out.push(cells);
    }
    let head = STATES.iter().flat_map(|s| [(*s).to_owned(), "model".to_owned()]);
    Table {
        title: "Residency of each CPU, %: published, and beside it as modelled".into(),
        head: std::iter::once(String::new()).chain(head).collect(),
        rows: out,
        note: "turbostat's view: C0 is the thread's, C3 to C7 are the core's, C1 is the rest. Modelled: mean of four \
               runs. Which core is the busier one is chance, in the study too."
            .into(),
    }
}

/// Reruns the study.
///
/// # Errors
/// When the machine model or a policy is missing.
pub fn run() -> Result<Study, StudyError> {
    let bench = Bench::new("core-i5-2gen")?;
    let cases = cases(&bench)?;
    let mut figures = Vec::new();
    let mut groups = Vec::new();
    for case in &cases {
        let first = cases.iter().find(|c| c.load == case.load).unwrap_or(case);
        figures.extend(figures_of(case, first));
        let ends = |(mean, sd): (f64, f64)| (mean, Some((mean - sd, mean + sd)));
        groups.push((
            format!("{}, {}", case.load, case.scheduler),
            vec![
                case.published()[0].map(|w| (w, None)),
                Some(ends(case.mean(Seen::formula_w))),
                Some(ends(case.mean(|s| s.watts))),
            ],
        ));
    }
    let differences = differences(&figures);
    let fitted: Vec<String> = FITTED.map(str::to_owned).to_vec();
    let table = residency_table(&cases);
    let page = vec![
        Section::Text {
            title: "What was done".into(),
            body: format!(
                "Two loads run for {} s on the model core-i5-2gen, after {} s in which the governor comes to rest, under \
                 Linux 3.1's wake-up rule (default), that with sched_mc_power_savings=1 (sched_mc), and with \
                 coreidle-ondemand. Modelled; nothing was measured here.",
                WATCH_NS / 1_000_000_000,
                SETTLE_NS / 1_000_000_000
            ),
        },
        Section::Bars(Bars {
            title: "Power".into(),
            unit: "W".into(),
            series: ["published", "modelled, study's formula", "modelled, own accounts"]
                .map(String::from)
                .to_vec(),
            groups,
            note: "The study's formula weights a power for each state with the mean residency of the CPUs."
                .into(),
        }),
        figure_table(&figures),
        Section::Table(table.clone()),
        Section::Text { title: "Fitted".into(), body: fitted.join("\n\n") },
        Section::Text { title: "What differs, and why".into(), body: differences.join("\n\n") },
    ];
    Ok(Study {
        name: "coreidle",
        title: "COREIDLE (study 002): light load kept on few cores",
        figures,
        tables: vec![table],
        fitted,
        differences,
        page,
    })
}

/// Sentences on what the figures show; numbers are taken from them.
fn differences(figures: &[Figure]) -> Vec<String> {
    let of = |what: &str| {
        let found = figures.iter().find(|f| f.what == what);
        found.map_or((f64::NAN, f64::NAN), |f| (f.published.unwrap_or(f64::NAN), f.modelled))
    };
    let saving =
        |load: &str, scheduler: &str| of(&format!("{load}, {scheduler}: saving against the default"));
    let (cyc, cyc_mc) = (saving("cyclictest", "coreidle-ondemand"), saving("cyclictest", "sched_mc"));
    let (tb, tb_mc) = (saving("tbench", "coreidle-ondemand"), saving("tbench", "sched_mc"));
    let c7 = of("cyclictest, default: mean C7");
    let rate = (of("tbench, default: throughput"), of("tbench, coreidle-ondemand: throughput"));
    let per_watt =
        (of("tbench, default: throughput a watt"), of("tbench, coreidle-ondemand: throughput a watt"));
    let gain = |a: f64, b: f64| (b / a - 1.0) * 100.0;
    vec![
        format!(
            "cyclictest: coreidle-ondemand saves {:.1} % of the power, published {:.1} %: {:.2} of it. The model's default \
             sleeps more deeply than the study's ({:.1} % in C7, published {:.1} %), so there is less to save: its menu \
             governor knows when the next timer of a CPU is due, and nothing else wakes one. trace-cmd's recorders, a process \
             a CPU every millisecond, are in the load since a first run without them, fitted in the same way, had given \
             19.4 %: the study's command line shows that they ran.",
            cyc.1,
            cyc.0,
            cyc.1 / cyc.0,
            c7.1,
            c7.0
        ),
        format!(
            "sched_mc saves {:+.1} % (cyclictest) and {:+.1} % (tbench) against the default, published {:+.1} and {:+.1} %: \
             little in both, and cyclictest's sign is not predicted. At level 1, which the study set, the kernel leaves \
             wake-ups as they are and changes only its balance; what the model's tbench gains is that the balance no \
             longer pulls client and server apart.",
            cyc_mc.1, tb_mc.1, cyc_mc.0, tb_mc.0
        ),
        format!(
            "tbench: coreidle-ondemand saves {:.1} %, published {:.1} %, and the throughput changes by {:+.1} %, published \
             {:+.1} %; a watt carries {:+.1} % more, published {:+.1} %. The model's client and server are as fast on two \
             cores as on one: it knows no cache that a request must cross, and a wake-up on another core costs it C1's \
             2 us. And its default leaves the idle core in C1 for longer than the study's did.",
            tb.1,
            tb.0,
            gain(rate.0.1, rate.1.1),
            gain(rate.0.0, rate.1.0),
            gain(per_watt.0.1, per_watt.1.1),
            gain(per_watt.0.0, per_watt.1.0)
        ),
        "Longest latency: the study's is tbench's own, of a request, on a machine with a desktop on it; the model's is the \
         longest wait of a task for its CPU, and nothing else runs there. They do not compare."
            .to_owned(),
        "The formula and the model's own accounts agree where the threads of a core are alike. The formula charges a core \
         for the mean of its threads; the accounts give the first busy thread the greater part (machines/core-i5-2gen.toml)."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fits hold, coreidle saves in both loads, and cyclictest's saving is within a third of the study's.
    #[test]
    fn savings_have_the_studys_sign_and_size() {
        let study = run().expect("bundled");
        let of =
            |what: &str| study.figures.iter().find(|f| f.what == what).unwrap_or_else(|| panic!("{what}"));
        for f in study.figures.iter().filter(|f| f.basis == Basis::Fitted) {
            assert!(f.deviation().expect("published").abs() < 0.02, "{f:?}");
        }
        let saving = of("cyclictest, coreidle-ondemand: saving against the default");
        assert!(saving.deviation().expect("published").abs() < 1.0 / 3.0, "{saving:?}");
        assert!(of("tbench, coreidle-ondemand: saving against the default").modelled > 0.0);
        // sched_mc does little, as published, whatever its sign.
        let saving = |load: &str, s: &str| of(&format!("{load}, {s}: saving against the default"));
        for load in ["cyclictest", "tbench"] {
            let (little, much) = (saving(load, "sched_mc"), saving(load, "coreidle-ondemand"));
            assert!(little.modelled.abs() < much.modelled / 3.0, "{little:?} {much:?}");
            let published = |f: &Figure| f.published.expect("published");
            assert!(published(little).abs() < published(much) / 3.0, "{little:?} {much:?}");
        }
        let per_watt = |s: &str| of(&format!("tbench, {s}: throughput a watt")).modelled;
        assert!(per_watt("coreidle-ondemand") > per_watt("default"));
        assert_eq!(study.tables[0].rows.len(), rows(RESIDENCY).count());
    }

    /// Where the study's own residencies go through the formula, its powers come out: the columns are the right ones.
    #[test]
    fn the_formula_gives_the_studys_powers_from_its_residencies() {
        for power in rows(POWER) {
            let of = |r: Vec<&str>| COLUMNS.map(|c| number(r[c]) / 100.0).to_vec();
            let shares: Vec<Vec<f64>> = rows(RESIDENCY)
                .filter(|r| r[0] == power[0] && r[1] == power[1] && r[3] != "all")
                .map(of)
                .collect();
            assert!((package_watts(&shares, &STATE_W) - number(power[2])).abs() < 0.05, "{power:?}");
        }
    }
}
