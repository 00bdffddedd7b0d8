//! H. Yun, COREIDLE framework (2011): light load kept on few CPUs, so that the others sleep deeply.
//!
//! Two loads on a notebook of two cores with two threads each, under Linux 3.1's scheduler as it comes, with
//! `sched_mc_power_savings` and `sched_smt_power_savings` at 1, and under the study's governor. The study had no
//! meter: it weighted turbostat's residencies with a power for each state. The same formula is used here on the
//! model's residencies, and beside it the model's own accounts, which know cores and not the mean of the CPUs.
//!
//! Both loads are generated. The bundled recordings of the two programs come from a machine of two CPUs, today's
//! kernel and programs of today: how many clients ran and how often a thread woke is the study's, how long each
//! step takes is set by residencies of the default scheduler (`FITTED`).
//!
//! What Linux 3.1 and the machine do beside the load decides how deep the cores sleep: the kernel's way into idle and out of it
//! takes CPU time; its threads and interrupts wake idle CPUs; the processor demotes deep requests while sleeps are short, and
//! starts slowly from C1E.

mod clock;
mod ours;

use crate::{Basis, Figure, Study, StudyBench, StudyError, figure_table, number, open, rows, table};
use clock::{ClockWatch, Waking};
use std::cell::RefCell;
use std::rc::Rc;
use wattwise_figure::mean_sd;
use wattwise_model::residency::package_watts;
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, TaskId, Workload};
use wattwise_page::{Bars, Section, Table};
use wattwise_policy::idle::demotion::Demotion;
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{IdleWork, Interrupt};

const RESIDENCY: &str = include_str!("../../../../studies/coreidle_residency.csv");
const PRINTED: &str = include_str!("../../../../studies/figures/coreidle.csv");
const POWER: &str = include_str!("../../../../studies/coreidle_power.csv");

/// The machine's highest speed, at which the study's governor held it.
const KHZ: u32 = 2_900_000;
/// The governor is given this long to come to rest: the study's had been on before its loads began. And threads that a CPU with
/// time to spare takes from others have gone to their places.
const SETTLE_NS: u64 = 10_000_000_000;

/// How long a load is looked at: cyclictest was watched for 5 s, tbench ran for 20 s.
fn watch_ns(load: &str) -> u64 {
    if load == "cyclictest" { 5_000_000_000 } else { LONGEST_WATCH_NS }
}

/// The longer of the two.
const LONGEST_WATCH_NS: u64 = 20_000_000_000;

/// Runs of each load: the modelled spread is over these.
const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// How long each of trace-cmd's recorders sleeps: its default (`-s 1000`).
const RECORDER_NS: u64 = 1_000_000;
/// CPU time of one request and its reply, client and server together, in ns: as `workloads/ping-pong.toml`.
const ROUND_NS: f64 = 30_000.0;

/// The numbers that were set to figures of the study; `FITTED` says which.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers {
    /// CPU time of one of cyclictest's wake-ups, its own and its tracing's, in ns.
    pub wake_ns: f64,
    /// CPU time of the kernel's way into idle, in ns; the way out takes as long.
    pub idle_ns: f64,
    /// Share of a request's CPU time that a side spends after it has woken the other.
    pub tail: f64,
    /// Mean sleep below which the processor makes C3 of deeper requests, in ns.
    pub demote_ns: u64,
    /// Time at the lowest clock after a core's wake-up, in ns.
    pub ramp_ns: f64,
    /// Time between two wake-ups of each CPU by what else the machine does, in ns.
    pub other_ns: u64,
    /// Tenths of a load that a task counts as which ran at the last tick.
    pub load_tenths: u32,
}

impl Numbers {
    /// As fitted.
    pub const FITTED: Numbers = Numbers {
        wake_ns: 9_200.0,
        idle_ns: 4_500.0,
        tail: 0.28,
        demote_ns: 1_000_000,
        ramp_ns: 5_800.0,
        other_ns: 15_000_000,
        load_tenths: 1,
    };
}

const FITTED: [&str; 11] = [
    "cyclictest: CPU time of a wake-up (9.2 us), to the mean C0 under the default scheduler (7.58 %). It also gives C0 of each \
     CPU, under the other two as well.",
    "The kernel's way into idle and out of it (4.5 us each), and the share of a request that a side of tbench spends after it \
     has woken the other (0.28): to tbench's mean C0 under the default scheduler (36.78 %) and under coreidle (29.95 %). They \
     give tbench's throughput under coreidle, its powers, and part of cyclictest's C0.",
    "tbench: megabytes a request, to the default scheduler's throughput (225.55 MB/s).",
    "Demotion: the processor makes C3 of deeper requests while sleeps are below 1 ms on average, to cyclictest's mean C7 under \
     the default scheduler (1.35 %). It gives C3 and C7 of each CPU in all six tables.",
    "Load of a task in menu's multiplier (1 tenth, a quarter of a task's weight: what is left of it where a session's tasks are \
     grouped, CONFIG_SCHED_AUTOGROUP, on four CPUs): to cyclictest's mean C3 under the default scheduler (20.37 %). A kernel without \
     groups has 5, and then the mean C3 is 4 %. It gives C1 and C3 of each CPU under the other schedulers.",
    "Clock: time at the lowest speed after a core has woken from C1E (5.8 us), to cyclictest's mean GHz under the default \
     scheduler (2.31). It gives the clock of every CPU in all six tables. The highest (2.9 GHz) was read off tbench's default.",
    "Interrupts of what else runs (one in 15 ms a CPU, 20 us each), to C0 of coreidle's idle core under cyclictest (0.28 and \
     0.07 %). They give that core's C7, and how soon an idle core leaves C1 after a pair has gone.",
    "Read off the tables, so counted as fitted where they were read: that coreidle's governor rounds to the nearest number of CPUs \
     (tbench, coreidle: one CPU has most of the load).",
    "The tick, 1000 Hz as in x86's default configuration, was chosen after 250 Hz had been seen to leave tbench's pair on one core for \
     longer than published (tbench, default: C0, C1 and C7 of each CPU). At ticks idle cores are told to look for work, which is \
     how often the pair moves under the other schedulers, and what the idle core is awake for.",
    "trace-cmd's recorders in cyclictest's load: added since the study's command line shows them, and after the published \
     saving was known.",
    "The machine: the power of C0 to C7 is the study's appendix, the C-states' latencies are the kernel's table.",
];

/// The study's word for a scheduler, and ours.
const SCHEDULERS: [(&str, &str); 3] = [
    ("default", "performance+menu-3.1+affine"),
    ("sched_mc", "performance+menu-3.1+sched_mc"),
    ("coreidle-ondemand", "performance+menu-3.1+affine+coreidle-ondemand:full=100,round=nearest"),
];

/// The states of the study's table, as its columns go.
const STATES: [&str; 5] = ["C0", "C1", "C3", "C6", "C7"];
/// Power of a package in each of [`STATES`], in watts: the study's appendix; it counts C6 as nothing.
const STATE_W: [f64; 5] = [90.0, 63.0, 55.0, 0.0, 20.0];
/// The words of [`STATES`] in turbostat's head.
const COLUMN_WORDS: [&str; 5] = ["c0", "c1", "c3", "c6", "c7"];
/// turbostat's TSC column: the base clock, in GHz.
const TSC_GHZ: f64 = 2.29;
/// Their columns in the residency table.
const COLUMNS: [usize; 5] = [4, 7, 8, 9, 10];

fn task(name: String, seed: u64, start_ns: u64, steps: Vec<Step>) -> Task {
    let pattern = Pattern {
        steps,
        start: Dist::Fixed(start_ns),
        rounds: u64::MAX,
        until_ns: SETTLE_NS + LONGEST_WATCH_NS,
        seed,
        reference_khz: KHZ,
        memory_share: 0.0,
    };
    Task::new(name, Program::Pattern(pattern))
}

fn load(name: &str, tasks: Vec<Task>) -> Workload {
    Workload::new(name, "a study's load", tasks, SETTLE_NS + watch_ns(name))
}

/// Half to one and a half times so many ns at the highest speed.
fn work(ns: f64) -> Step {
    let cycles = ns * f64::from(KHZ) * 1e-6;
    Step::Run(Dist::Uniform((cycles * 0.5) as u64, (cycles * 1.5) as u64))
}

/// `cyclictest -y other -t 30 -i 200`: a thread every 200 us, the next every 700, and so on to 14.7 ms. turbostat watched
/// a `trace-cmd record` beside it, which has a process for each CPU that empties its buffer.
fn cyclictest(n: &Numbers, seed: u64) -> Workload {
    let thread = |i: u64| {
        let steps = vec![Step::Period(200_000 + 500_000 * i), work(n.wake_ns)];
        task(format!("cyclictest-{i}"), seed * 100 + i, i * 37_000 * seed, steps)
    };
    let recorder = |i: u64| {
        let steps = vec![Step::Period(RECORDER_NS), work(n.wake_ns)];
        task(format!("trace-cmd-{i}"), seed * 100 + 30 + i, i * 241_000 + seed * 11_000, steps)
    };
    load("cyclictest", (0..30).map(thread).chain((0..4).map(recorder)).collect())
}

/// `tbench 1`: a client that asks, a server that answers; each goes on for a while after it has woken the other.
fn tbench(n: &Numbers, seed: u64) -> Workload {
    let [head, tail] = [1.0 - n.tail, n.tail].map(|share| share * ROUND_NS / 2.0);
    let client = vec![work(head), Step::Wake(TaskId(1)), work(tail), Step::Block];
    let server = vec![Step::Block, work(head), Step::Wake(TaskId(0)), work(tail)];
    let tasks =
        vec![task("client".into(), seed * 100, 0, client), task("server".into(), seed * 100 + 1, 0, server)];
    load("tbench", tasks)
}

/// What was seen of one load under one scheduler.
struct CoreidleSeen {
    /// Share of time of each CPU in each of [`STATES`].
    shares: Vec<Vec<f64>>,
    /// Mean clock of each CPU while it is awake, in GHz.
    ghz: Vec<f64>,
    /// By the model's own accounts.
    watts: f64,
    requests_s: f64,
    worst_ms: f64,
}

impl CoreidleSeen {
    /// By the study's formula.
    fn formula_w(&self) -> f64 {
        package_watts(&self.shares, &STATE_W)
    }
}

/// turbostat's view: C0 is a thread's and counts while its clock runs, deeper states are the core's, and C1 is what is
/// left: entering and leaving states too.
fn shares(bench: &StudyBench, from: &Outcome, to: &Outcome) -> Vec<Vec<f64>> {
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

/// What wakes each CPU beside the load. Interrupts (timers, the desktop, turbostat) are why an idle CPU thinks again about how deep
/// it sleeps; their rate is fitted to how long the study's idle core was awake. And the kernel's own threads, bound to their CPU:
/// statistics of memory each second (`vmstat_update`), slabs every two (`cache_reap`).
fn housekeeping(cpus: usize, every_ns: u64) -> Vec<Interrupt> {
    const TAKES_NS: u64 = 20_000;
    const THREADS_NS: [u64; 2] = [1_000_000_000, 2_000_000_000];
    let end_ns = SETTLE_NS + LONGEST_WATCH_NS;
    let row = |every_ns: u64, first_ns: u64, thread: bool| {
        (0..end_ns / every_ns).flat_map(move |i| {
            (0..cpus).map(move |c| Interrupt {
                at_ns: every_ns * i + every_ns / cpus as u64 * c as u64 + first_ns,
                cpu: c as u16,
                ns: TAKES_NS,
                thread,
            })
        })
    };
    let mut all: Vec<Interrupt> = row(every_ns, 77_000, false).collect();
    all.extend(row(THREADS_NS[0], 3_101_000, true).chain(row(THREADS_NS[1], 131_303_000, true)));
    all.sort_by_key(|i| i.at_ns);
    all
}

fn see(
    bench: &StudyBench,
    n: &Numbers,
    workload: &Workload,
    policy: &str,
) -> Result<CoreidleSeen, StudyError> {
    let housekeeping = housekeeping(bench.machine.cpus.len(), n.other_ns);
    let waking = Rc::new(RefCell::new(Waking::new(bench.machine.cpus.len(), SETTLE_NS)));
    let mut sim = bench.simulation(workload, policy, |s| {
        s.watcher = Some(Box::new(ClockWatch(Rc::clone(&waking))));
        let ns = n.idle_ns as u64;
        s.interrupts = &housekeeping;
        s.idle_work = IdleWork { enter_ns: ns, leave_ns: ns };
    })?;
    let watch_ns = watch_ns(&workload.name);
    let from = sim.run_until(SETTLE_NS);
    let to = sim.run_until(SETTLE_NS + watch_ns);
    let highest_ghz = f64::from(KHZ) * 1e-6;
    let ghz =
        bench.machine.cpus.iter().map(|c| {
            waking.borrow().ghz(usize::from(c.core), (highest_ghz, n.ramp_ns), SETTLE_NS + watch_ns)
        });
    let seconds = watch_ns as f64 * 1e-9;
    Ok(CoreidleSeen {
        shares: shares(bench, &from, &to),
        ghz: ghz.collect(),
        watts: (to.energy.total_j() - from.energy.total_j()) / seconds,
        requests_s: (to.cycles - from.cycles) / (ROUND_NS * f64::from(KHZ) * 1e-6) / seconds,
        worst_ms: to.wake_latency.max() as f64 * 1e-6,
    })
}

/// One load under one scheduler, on all seeds.
struct CoreidleCase {
    load: &'static str,
    scheduler: &'static str,
    runs: Vec<CoreidleSeen>,
}

impl CoreidleCase {
    fn mean(&self, of: impl Fn(&CoreidleSeen) -> f64) -> (f64, f64) {
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

fn cases(bench: &StudyBench, n: &Numbers) -> Result<Vec<CoreidleCase>, StudyError> {
    type Make = fn(&Numbers, u64) -> Workload;
    let loads: [(&'static str, Make); 2] = [("cyclictest", cyclictest), ("tbench", tbench)];
    let all: Vec<_> =
        loads.into_iter().flat_map(|load| SCHEDULERS.map(|scheduler| (load, scheduler))).collect();
    wattwise_threads::map(all, |((load, make), (scheduler, policy))| {
        let policy = policy.replace("menu-3.1", &format!("menu-3.1:load={}", n.load_tenths));
        let runs = SEEDS
            .iter()
            .map(|&seed| see(bench, n, &make(n, seed), &policy))
            .collect::<Result<_, StudyError>>()?;
        Ok(CoreidleCase { load, scheduler, runs })
    })
}

/// Figures of one load under one scheduler; `first` is the load under the default scheduler.
fn figures_of(case: &CoreidleCase, first: &CoreidleCase) -> Vec<Figure> {
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
        case.mean(CoreidleSeen::formula_w),
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
        let rate = |s: &CoreidleSeen| s.requests_s * megabytes;
        out.push(figure("throughput", "MB/s", published[1], case.mean(rate), basis));
        let per_watt = case.mean(|s| rate(s) / s.formula_w());
        out.push(figure("throughput a watt", "MB/s/W", published[2], per_watt, Basis::Predicted));
        let worst = case.mean(|s| s.worst_ms);
        out.push(figure("longest latency", "ms", published[3], worst, Basis::Predicted));
    }
    out
}

/// For each load and seed the power under the default scheduler and under coreidle, by the study's formula.
fn powers(cases: &[CoreidleCase]) -> Vec<(&'static str, f64, f64)> {
    let under =
        |load: &str, scheduler: &str| cases.iter().find(|c| c.load == load && c.scheduler == scheduler);
    let loads = ["cyclictest", "tbench"].into_iter();
    loads
        .filter_map(|load| Some((load, under(load, SCHEDULERS[0].0)?, under(load, SCHEDULERS[2].0)?)))
        .flat_map(|(load, d, c)| {
            d.runs.iter().zip(&c.runs).map(move |(d, c)| (load, d.formula_w(), c.formula_w()))
        })
        .collect()
}

/// turbostat's table with the model's figures beside.
fn residency_table(cases: &[CoreidleCase]) -> Table {
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
        note: "turbostat's view: C0 is the thread's, C3 to C7 are the core's, C1 is the rest. Modelled: mean of eight \
               runs. Which core is the busier one is chance, in the study too."
            .into(),
    }
}

/// Reruns the study.
///
/// # Errors
/// When the machine model or a policy is missing.
pub fn run() -> Result<Study, StudyError> {
    run_with(&Numbers::FITTED)
}

/// Reruns it with other numbers.
///
/// # Errors
/// When the machine model or a policy is missing.
pub fn run_with(n: &Numbers) -> Result<Study, StudyError> {
    let mut bench = StudyBench::new("core-i5-2gen")?;
    let c3 = bench.machine.kinds[0].idle.iter().position(|s| s.name == "C3").unwrap_or(0);
    bench.demotion = Some(Demotion { to: c3 as u8, short_ns: n.demote_ns });
    let cases = cases(&bench, n)?;
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
                Some(ends(case.mean(CoreidleSeen::formula_w))),
                Some(ends(case.mean(|s| s.watts))),
            ],
        ));
    }
    let (printed, score) = ours::printed(&cases, &figures);
    let open = open::coreidle::questions(&powers(&cases));
    let differences = differences(&figures);
    let fitted: Vec<String> = FITTED.map(str::to_owned).to_vec();
    let residencies = residency_table(&cases);
    let page = vec![
        Section::Text {
            title: "What was done".into(),
            body: format!(
                "Two loads run for {} and {} s on the model core-i5-2gen, after {} s in which the governor comes to rest, under \
                 Linux 3.1's wake-up rule (default), that with sched_mc_power_savings=1 (sched_mc), and with \
                 coreidle-ondemand. Modelled; nothing was measured here.",
                watch_ns("cyclictest") / 1_000_000_000,
                watch_ns("tbench") / 1_000_000_000,
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
        Section::Table(residencies.clone()),
        Section::Text { title: "Fitted".into(), body: fitted.join("\n\n") },
        Section::Text { title: "What differs, and why".into(), body: differences.join("\n\n") },
        open::section(&open),
        table::printed(&printed),
    ];
    Ok(Study {
        name: "coreidle",
        title: "COREIDLE (study 002): light load kept on few cores",
        figures: printed,
        score,
        results: figures,
        tables: vec![residencies],
        charts: Vec::new(),
        fitted,
        differences,
        open,
        page,
    })
}

/// A figure as published, and as modelled with its spread.
#[derive(Clone, Copy)]
struct FigurePair {
    published: f64,
    modelled: f64,
}

/// Share of the published figure below which a difference wants no explanation.
const TELLING: f64 = 0.1;
/// A scheduler changes little where it changes less than this share of what coreidle-ondemand does.
const LITTLE: f64 = 1.0 / 3.0;
/// The power's figures have one decimal, in W.
const SAME_W: f64 = 0.1;

impl FigurePair {
    fn below(self) -> bool {
        self.modelled < self.published - TELLING * self.published.abs()
    }

    fn above(self) -> bool {
        self.modelled > self.published + TELLING * self.published.abs()
    }

    /// Changes in per cent from one figure to another, published and modelled.
    fn gain(from: FigurePair, to: FigurePair) -> FigurePair {
        let gain = |a: f64, b: f64| (b / a - 1.0) * 100.0;
        FigurePair {
            published: gain(from.published, to.published),
            modelled: gain(from.modelled, to.modelled),
        }
    }
}

/// The figure of that name, where it was published.
fn pair(figures: &[Figure], what: &str) -> Option<FigurePair> {
    let f = figures.iter().find(|f| f.what == what)?;
    Some(FigurePair { published: f.published?, modelled: f.modelled })
}

fn saving(figures: &[Figure], load: &str, scheduler: &str) -> Option<FigurePair> {
    pair(figures, &format!("{load}, {scheduler}: saving against the default"))
}

/// Sentences on what the figures show, from them: a reason is there only where they show what it explains.
fn differences(figures: &[Figure]) -> Vec<String> {
    let parts = [cyclictest_saving, sched_mc_saving, tbench_saving, longest_latency, own_accounts];
    parts.iter().filter_map(|part| part(figures)).collect()
}

fn cyclictest_saving(figures: &[Figure]) -> Option<String> {
    let saved = saving(figures, "cyclictest", "coreidle-ondemand")?;
    let deep = pair(figures, "cyclictest, default: mean C7")?;
    let mut told = format!(
        "cyclictest: coreidle-ondemand saves {:.1} % of the power, published {:.1} %: {:.2} of it.",
        saved.modelled,
        saved.published,
        saved.modelled / saved.published
    );
    if saved.below() && deep.above() {
        told += &format!(
            " The model's default sleeps more deeply than the study's ({:.1} % in C7, published {:.1} %), so there is less \
             to save.",
            deep.modelled, deep.published
        );
    }
    Some(told)
}

fn sched_mc_saving(figures: &[Figure]) -> Option<String> {
    let loads = ["cyclictest", "tbench"];
    let [cyclictest, tbench] = loads.map(|load| saving(figures, load, "sched_mc"));
    let (cyclictest, tbench) = (cyclictest?, tbench?);
    let mut told = format!(
        "sched_mc saves {:+.1} % (cyclictest) and {:+.1} % (tbench) against the default, published {:+.1} and {:+.1} %.",
        cyclictest.modelled, tbench.modelled, cyclictest.published, tbench.published
    );
    let much = loads.map(|load| saving(figures, load, "coreidle-ondemand"));
    let little = |(some, much): (&FigurePair, &Option<FigurePair>)| {
        much.is_some_and(|much| some.modelled.abs() < LITTLE * much.modelled.abs())
    };
    if [cyclictest, tbench].iter().zip(&much).all(little) {
        told += " That is little in both: at level 1, which the study set, the kernel leaves wake-ups as they are and \
                 changes only where new tasks go and its balance.";
    }
    for (load, p) in loads.iter().zip([cyclictest, tbench]) {
        if p.modelled * p.published < 0.0 {
            told += &format!(" {load}'s sign is not predicted.");
        }
    }
    Some(told)
}

fn tbench_saving(figures: &[Figure]) -> Option<String> {
    let saved = saving(figures, "tbench", "coreidle-ondemand")?;
    let gain = |what: &str| {
        let of = |scheduler: &str| pair(figures, &format!("tbench, {scheduler}: {what}"));
        Some(FigurePair::gain(of("default")?, of("coreidle-ondemand")?))
    };
    let (rate, per_watt) = (gain("throughput")?, gain("throughput a watt")?);
    let mut told = format!(
        "tbench: coreidle-ondemand saves {:.1} %, published {:.1} %, and the throughput changes by {:+.1} %, published \
         {:+.1} %; a watt carries {:+.1} %, published {:+.1} %.",
        saved.modelled, saved.published, rate.modelled, rate.published, per_watt.modelled, per_watt.published
    );
    if rate.modelled > 0.0 && rate.published > 0.0 {
        told += " On one CPU a hand-over takes no way into idle and out of it, and the two sides do not share a core's units.";
    }
    Some(told)
}

fn longest_latency(figures: &[Figure]) -> Option<String> {
    let off = |(scheduler, _): &(&str, &str)| {
        pair(figures, &format!("tbench, {scheduler}: longest latency"))
            .is_some_and(|p| p.below() || p.above())
    };
    SCHEDULERS.iter().any(off).then(|| {
        "Longest latency: the study's is tbench's own, of a request, on a machine with a desktop on it; the model's is the \
         longest wait of a task for its CPU, and nothing else runs there. They do not compare."
            .to_owned()
    })
}

fn own_accounts(figures: &[Figure]) -> Option<String> {
    let apart = |f: &Figure| {
        let case = f.what.strip_suffix(": power by the study's formula")?;
        let own = figures.iter().find(|o| o.what == format!("{case}: power by the model's accounts"))?;
        Some((case.to_owned(), own.modelled - f.modelled))
    };
    let (case, most) = figures.iter().filter_map(apart).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    if most.abs() < SAME_W {
        return Some(format!("The formula and the model's own accounts agree within {SAME_W} W everywhere."));
    }
    let mut told =
        format!("The model's own accounts differ from the formula by up to {most:+.1} W ({case}).");
    if most > 0.0 {
        told += " The formula charges a core for the mean of its threads; the accounts give the first busy thread the \
                 greater part (machines/core-i5-2gen.toml).";
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made-up figures of both loads: saving, and what the sentences explain it by; published and modelled.
    #[derive(Clone, Copy)]
    struct Made {
        cyclictest: (f64, f64),
        deep: (f64, f64),
        sched_mc: [(f64, f64); 2],
        tbench: (f64, f64),
        /// Throughput under coreidle-ondemand; 200 under the default.
        rate: (f64, f64),
        latency: (f64, f64),
        /// The accounts' power; 50 by the formula.
        accounts: f64,
    }

    /// The study's figures, and about the model's.
    const APART: Made = Made {
        cyclictest: (30.3, 24.8),
        deep: (1.4, 14.0),
        sched_mc: [(-2.0, 0.6), (1.4, 4.2)],
        tbench: (5.9, 17.8),
        rate: (244.0, 200.6),
        latency: (6.7, 0.1),
        accounts: 50.6,
    };

    /// Sentences from made-up figures.
    fn told(made: Made) -> String {
        let figure = |what: &str, (published, modelled): (f64, f64)| Figure {
            what: what.to_owned(),
            unit: "",
            published: Some(published),
            published_sd: None,
            modelled,
            modelled_sd: Some(2.0),
            basis: Basis::Predicted,
        };
        let figures = [
            figure("cyclictest, coreidle-ondemand: saving against the default", made.cyclictest),
            figure("cyclictest, default: mean C7", made.deep),
            figure("cyclictest, sched_mc: saving against the default", made.sched_mc[0]),
            figure("tbench, sched_mc: saving against the default", made.sched_mc[1]),
            figure("tbench, coreidle-ondemand: saving against the default", made.tbench),
            figure("tbench, default: throughput", (200.0, 200.0)),
            figure("tbench, coreidle-ondemand: throughput", made.rate),
            figure("tbench, default: throughput a watt", (4.0, 4.0)),
            figure("tbench, coreidle-ondemand: throughput a watt", (5.0, 5.0)),
            figure("tbench, coreidle-ondemand: longest latency", made.latency),
            figure("cyclictest, default: power by the study's formula", (50.0, 50.0)),
            figure("cyclictest, default: power by the model's accounts", (f64::NAN, made.accounts)),
        ];
        differences(&figures).join("\n")
    }

    const LESS_TO_SAVE: &str = "sleeps more deeply than the study's (14.0 % in C7, published 1.4 %)";
    const LITTLE_IN_BOTH: &str = "That is little in both";
    const SIGN: &str = "cyclictest's sign is not predicted";
    const ONE_CPU: &str = "On one CPU a hand-over takes no way into idle";
    const LATENCY: &str = "They do not compare";
    const ACCOUNTS: &str = "give the first busy thread the greater part";
    const REASONS: [&str; 6] = [LESS_TO_SAVE, LITTLE_IN_BOTH, SIGN, ONE_CPU, LATENCY, ACCOUNTS];

    #[test]
    fn every_reason_is_told_where_the_figures_show_it() {
        let told = told(APART);
        for reason in REASONS {
            assert!(told.contains(reason), "{reason}: {told}");
        }
        assert!(told.contains("saves 24.8 % of the power, published 30.3 %: 0.82 of it."), "{told}");
        assert!(told.contains("differ from the formula by up to +0.6 W (cyclictest, default)"), "{told}");
    }

    /// Each reason by itself: without its figures it is not told, and all others are.
    #[test]
    fn no_reason_is_told_that_the_figures_do_not_show() {
        let cases: [(Made, &[&str]); 9] = [
            (Made { cyclictest: (30.3, 29.0), ..APART }, &[LESS_TO_SAVE]),
            (Made { cyclictest: (30.3, 35.0), ..APART }, &[LESS_TO_SAVE]),
            (Made { deep: (14.0, 14.0), ..APART }, &[LESS_TO_SAVE]),
            (Made { sched_mc: [(-2.0, -0.6), (1.4, 4.2)], ..APART }, &[SIGN]),
            (Made { sched_mc: [(-2.0, 12.0), (1.4, 4.2)], ..APART }, &[LITTLE_IN_BOTH]),
            (Made { rate: (244.0, 190.0), ..APART }, &[ONE_CPU]),
            (Made { latency: (6.7, 6.5), ..APART }, &[LATENCY]),
            (Made { accounts: 50.01, ..APART }, &[ACCOUNTS]),
            (Made { accounts: 49.0, ..APART }, &[ACCOUNTS]),
        ];
        for (made, gone) in cases {
            let told = told(made);
            for reason in REASONS {
                assert_eq!(told.contains(reason), !gone.contains(&reason), "{gone:?}, {reason}: {told}");
            }
        }
        assert!(told(Made { accounts: 50.01, ..APART }).contains("agree within 0.1 W everywhere"));
        assert!(differences(&[]).is_empty(), "nothing is told of figures that are not there");
    }

    /// What the issue asks of the model: cyclictest's default within 3 % of 62.8 W, its saving within 3 points of 30.3 %, tbench's
    /// +22 % in sign and within half.
    #[test]
    #[ignore = "long: make test runs it"]
    fn powers_saving_and_throughput_are_near_the_studys() {
        let study = run().expect("bundled");
        let of =
            |what: &str| study.results.iter().find(|f| f.what == what).unwrap_or_else(|| panic!("{what}"));
        let default = of("cyclictest, default: power by the study's formula");
        assert!(default.deviation().expect("published").abs() < 0.03, "{default:?}");
        let saving = of("cyclictest, coreidle-ondemand: saving against the default");
        assert!((saving.modelled - saving.published.expect("published")).abs() < 3.0, "{saving:?}");
        let rate = |s: &str| of(&format!("tbench, {s}: throughput"));
        let gain = |of: &dyn Fn(&Figure) -> f64| of(rate("coreidle-ondemand")) / of(rate("default")) - 1.0;
        let (ours, published) = (gain(&|f| f.modelled), gain(&|f| f.published.expect("published")));
        assert!(ours > 0.5 * published && ours < 1.5 * published, "{ours} {published}");
        // Every power of the six within a tenth, none of them fitted.
        let powers = study.results.iter().filter(|f| f.what.ends_with("by the study's formula"));
        powers.for_each(|f| assert!(f.deviation().expect("published").abs() < 0.1, "{f:?}"));
        assert_eq!(study.tables[0].rows.len(), rows(RESIDENCY).count());
        the_note_says_the_same(&study);
    }

    /// `docs/notes/coreidle.md` has the powers and throughputs as printed here, to a decimal.
    fn the_note_says_the_same(study: &Study) {
        let note = include_str!("../../../../docs/notes/coreidle.md");
        let mut checked = 0;
        for line in note.lines().filter(|l| ["| cyclictest, ", "| tbench, "].iter().any(|s| l.starts_with(s)))
        {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let what = cells[1].replace(": power", ": power by the study's formula");
            let figure = study.results.iter().find(|f| f.what == what).unwrap_or_else(|| panic!("{what}"));
            assert_eq!(cells[3], format!("{:.1}", figure.modelled), "{line}: the note is out of date");
            checked += 1;
        }
        assert_eq!(checked, 9);
    }

    /// By hand for cyclictest's default, the mean of the CPUs: 0.0758 x 90 + 0.7063 x 63 + 0.2037 x 55 + 0.0135 x 20 = 62.79 W; under
    /// coreidle 0.0703 x 90 + 0.4344 x 63 + 0.0054 x 55 + 0.4899 x 20 = 43.79 W. C6 counts as nothing.
    ///
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
