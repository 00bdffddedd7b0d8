//! `wattwise bench locks`.

use crate::args::output;
use crate::args::output::{OpenOutput, OutputPath};
use crate::exit::{Failure, Outcome, print, print_json};
use crate::model::machine;
use crate::show::screen::{self, Screen, TextStyle, note};
use crate::show::table::{cell, drawn, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::time::Duration;
use wattwise_figure::fixed;
use wattwise_hw::root::DirRoot;
use wattwise_live::bench::locks::measure::{OTHERS, Subject};
use wattwise_live::bench::locks::{self as measured, Pricing};
use wattwise_lockbench::judge::Cell as Measured;
use wattwise_lockbench::section::Section;
use wattwise_lockbench::{Bench, LockMatrix, judge};
use wattwise_replay::library;
use wattwise_replay::locks as model;
use wattwise_replay::locks::WaitPolicy;
use wattwise_report::locks as page;

/// Most threads of a measurement.
const MOST_THREADS: usize = 1024;

#[derive(clap::Args)]
pub(crate) struct LockBenchArgs {
    /// Locks: glibc, std, parking_lot, or LOCK[:POLICY] of wattwise-locks; 'all' for every one. With --machine
    /// mcs:WAIT, mcs:tstate-12.5+WAIT, mcs:pstate-3+WAIT [default: glibc,std,parking_lot,adaptive; study 004's]
    #[arg(long, short, value_delimiter = ',')]
    lock: Vec<String>,
    /// Numbers of threads [default: 1,2,4,8,32; with --machine 1 to all CPUs]
    #[arg(long, short, value_delimiter = ',')]
    threads: Vec<usize>,
    /// Simulate MCS on a machine model instead of measuring here
    #[arg(long, short, alias = "model", value_name = "MACHINE")]
    machine: Option<String>,
    /// Sections inside the lock, us: 3.7 (fixed), 0-3.7 (even), exp:3.7 (exponential), short (0-3.7), long (0-366)
    #[arg(long, value_delimiter = ',', default_value = "0,short,long")]
    cs: Vec<Section>,
    /// Sections outside the lock, us, in the same form
    #[arg(long, value_delimiter = ',', default_value = "0,short,long")]
    ncs: Vec<Section>,
    /// Length of each measurement, in ms
    #[arg(long, default_value_t = 200)]
    ms: u64,
    /// Repeats of the whole, each in an order of its own
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Seed of orders and lengths
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Bind thread i to CPU i modulo CPUs
    #[arg(long)]
    pin: bool,
    /// Where nothing meters energy, the machine model whose watts stand in; 'this' is the machine itself, as calibrated, else
    /// estimated
    #[arg(long, value_name = "MACHINE", default_value = machine::THIS)]
    watts_of: String,
    /// The lock that is judged against the others
    #[arg(long, default_value = "adaptive")]
    judge: String,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Write each measurement as a line of CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<OutputPath>,
    /// Print as JSON (schema wattwise-bench-locks-1)
    #[arg(long)]
    json: bool,
}

/// What is measured when nothing is named.
const LOCKS: [&str; 4] = ["glibc", "std", "parking_lot", "adaptive"];
const THREADS: [usize; 5] = [1, 2, 4, 8, 32];

pub(crate) fn run(args: &LockBenchArgs) -> Outcome {
    let mut plan = plan(args)?;
    let csv = output::open("--csv", args.csv.as_ref())?;
    let report = output::open("--report", args.report.as_ref())?;
    let mut bench = match &args.machine {
        Some(name) => {
            let machine = library::machine(name).map_err(Failure::input)?;
            if plan.threads.is_empty() {
                plan.threads = (1..=machine.cpus.len()).collect();
            }
            let names = if args.lock.is_empty() { model::usual(&machine) } else { args.lock.clone() };
            let policies = names
                .iter()
                .map(|n| WaitPolicy::parse(n, &machine).map_err(|why| refused("--lock", &why)))
                .collect::<Result<Vec<_>, _>>()?;
            model::run(&machine, &plan, &policies)
        }
        None => measured(args, &mut plan)?,
    };
    bench.verdict = judge::verdict(&bench.records, &args.judge);
    write(csv, report, &bench)?;
    if args.json {
        print_json(&bench)?;
    } else {
        print(&text(&bench, Screen::Out.look()))?;
    }
    Ok(0)
}

fn refused(flag: &str, why: &str) -> Failure {
    Failure::input(format!("bench locks: {flag}: {why}"))
}

fn measured(args: &LockBenchArgs, plan: &mut LockMatrix) -> Result<Bench, Failure> {
    let all = || {
        let kinds = wattwise_locks::dynamic::LockKind::all().iter().map(|k| k.name());
        OTHERS.map(String::from).into_iter().chain(kinds).collect()
    };
    let names: Vec<String> = match args.lock.as_slice() {
        [] => LOCKS.map(String::from).to_vec(),
        [one] if one == "all" => all(),
        some => some.to_vec(),
    };
    let subjects: Vec<Subject> = names
        .iter()
        .map(|n| Subject::parse(n).map_err(|why| refused("--lock", &why)))
        .collect::<Result<_, _>>()?;
    plan.locks = subjects.iter().map(|s| s.name().to_owned()).collect();
    if plan.threads.is_empty() {
        plan.threads = THREADS.to_vec();
    }
    let prices = machine::prices(&args.watts_of, &DirRoot::this_machine())?.ok_or_else(|| {
        Failure::impossible(
            "this machine's sysfs lists no CPU; name a model whose watts stand in with --watts-of",
        )
    })?;
    let bar = if screen::shows_progress() {
        indicatif::ProgressBar::new(plan.measurements() as u64)
    } else {
        indicatif::ProgressBar::hidden()
    };
    let bench = measured::run(plan, &subjects, &DirRoot::this_machine(), &Pricing::of(&prices), |done| {
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    bench.map_err(|why| Failure::impossible(format!("bench locks: {why}; fewer with --threads")))
}

/// All but the locks, which depend on where they run.
fn plan(args: &LockBenchArgs) -> Result<LockMatrix, Failure> {
    if args.threads.iter().any(|n| !(1..=MOST_THREADS).contains(n)) {
        return Err(refused("--threads", &format!("expected 1 to {MOST_THREADS}")));
    }
    if args.ms == 0 || args.repeats == 0 {
        return Err(refused("--ms and --repeats", "expected at least 1"));
    }
    Ok(LockMatrix {
        locks: Vec::new(),
        threads: args.threads.clone(),
        cs: args.cs.clone(),
        ncs: args.ncs.clone(),
        time: Duration::from_millis(args.ms),
        repeats: args.repeats,
        seed: args.seed,
        pin: args.pin,
    })
}

/// Writes the files that were opened.
fn write(csv: Option<OpenOutput>, report: Option<OpenOutput>, bench: &Bench) -> Result<(), Failure> {
    let put = |file: OpenOutput, text: &str| {
        let name = file.name.clone();
        file.write(text.as_bytes())?;
        note!("written ({name})");
        Ok::<_, Failure>(())
    };
    if let Some(file) = csv {
        put(file, &bench.csv())?;
    }
    if let Some(file) = report {
        put(file, &wattwise_page::page("bench locks", "Locks and waiting", &page::sections(bench)))?;
    }
    Ok(())
}

/// A count with a suffix: three digits are what the noise leaves.
fn count(n: f64) -> String {
    match n {
        n if n >= 1e7 => format!("{:.1}M", n * 1e-6),
        n if n >= 1e6 => format!("{:.2}M", n * 1e-6),
        n if n >= 1e4 => format!("{:.0}k", n * 1e-3),
        n if n >= 1e3 => format!("{:.2}k", n * 1e-3),
        n => fixed(n, 0),
    }
}

/// Width of a table with all of its figures.
const WIDE: usize = 112;
/// What a narrow terminal leaves out.
const LEFT_OUT: [&str; 4] = ["CPUs used", "Jain", "p50 us", "longest"];

/// A figure as text.
type Shown = fn(&Measured) -> String;

pub(crate) fn text(bench: &Bench, look: TextStyle) -> String {
    let wide = look.columns >= WIDE;
    let shown = |name: &str| wide || !LEFT_OUT.contains(&name);
    let right = |text: String| cell(text).set_alignment(CellAlignment::Right);
    let columns: [(&str, Shown); 9] = [
        ("1/s", |c| count(c.acquisitions_per_s)),
        ("+-", |c| c.noise.map_or("?".into(), |n| format!("{}%", fixed(n * 100.0, 0)))),
        ("CPUs used", |c| fixed(c.cpus, 2)),
        ("Jain", |c| fixed(c.jain, 2)),
        ("p50 us", |c| fixed(c.wait_p50_us, 1)),
        ("p99 us", |c| fixed(c.wait_p99_us, 1)),
        ("longest", |c| fixed(c.wait_max_us, 0)),
        ("W", |c| c.watts.map_or("-".into(), |w| fixed(w, 1))),
        ("1/J", |c| c.acquisitions_per_j.map_or("-".into(), count)),
    ];
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let place = ["threads", "CS us", "NCS us"].map(|h| right(h.to_owned()));
    let figures = columns.iter().filter(|(h, _)| shown(h)).map(|(h, _)| right((*h).to_owned()));
    table.set_header(place.into_iter().chain([cell("lock")]).chain(figures));
    let mut last = None;
    for c in &bench.cells {
        let new = last.replace(c.place) != Some(c.place);
        let place = |s: String| right(if new { s } else { String::new() });
        let own = [c.place.threads.to_string(), c.place.cs_us.to_string(), c.place.ncs_us.to_string()];
        let figures = columns.iter().filter(|(h, _)| shown(h)).map(|(_, of)| right(of(c)));
        table.add_row(own.map(place).into_iter().chain([cell(&c.lock)]).chain(figures));
    }
    let mut out = String::new();
    page::summary(bench).iter().for_each(|line| out += &format!("{}\n", wrapped(line, "")));
    out += &format!("\n{}\n\n", drawn(table, look.colour));
    let mut notes =
        vec![format!("On {}; {}.", bench.machine, bench.figures), format!("Energy {}.", bench.energy)];
    if bench.cells.iter().any(|c| c.noise.is_none()) {
        notes.push("+-: '?' where the repeats are too few, or too far apart, to tell.".to_owned());
    }
    notes.extend(bench.notes.iter().cloned());
    if !wide {
        notes.push(format!("Not shown in fewer than {WIDE} columns: {}.", LEFT_OUT.join(", ")));
    }
    notes.iter().for_each(|note| out += &format!("{}\n", wrapped(note, "  ")));
    if let Some(v) = &bench.verdict {
        out += &format!("\n{}:\n", v.lock);
        for line in page::verdict(v) {
            out += &format!("{}\n", wrapped(&format!("  {line}"), "    "));
        }
    }
    out
}
