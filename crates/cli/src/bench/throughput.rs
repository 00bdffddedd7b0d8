//! `bench throughput`.

use crate::args::output;
use crate::args::output::OutputPath;
use crate::args::root as hardware;
use crate::exit::{Failure, Outcome, print, print_json};
use crate::machine::ab;
use crate::model::machine;
use crate::show::benches;
use crate::show::screen::note;
use wattwise_control::hold::{Wishes, hold};
use wattwise_control::set::plan::Setting;
use wattwise_figure::Random;
use wattwise_figure::shell;
use wattwise_figure::units::{Speed, speed};
use wattwise_hw::states::cpufreq::Cpufreq;
use wattwise_live::ab::figure;
use wattwise_live::bench::link::{FAR, Link};
use wattwise_live::bench::peer::{Peer, SLICE, Slowed};
use wattwise_live::bench::throughput::{Level, SCHEMA, Throughput, Trial, knee};
use wattwise_live::run::child::{CommandJob, Signals};
use wattwise_live::run::measure;
use wattwise_live::run::observe::Observer;
use wattwise_live::run::preset;
use wattwise_live::run::preset::{LOOPBACK, Preset};

#[derive(clap::Args)]
#[command(
    after_help = "wattwise bench throughput --metric nuttcp      runs nuttcp and its server in a network namespace each\n\
    wattwise bench throughput --metric 'rate: ([0-9.]+)' -- ./work"
)]
pub(in super::super) struct ThroughputArgs {
    /// The command's figure: a pattern whose first group is the number, or nuttcp, iperf3, tbench, cyclictest,
    /// stress-ng
    #[arg(long, value_name = "REGEX")]
    metric: String,
    /// Less of it is better (a preset knows)
    #[arg(long)]
    less_is_better: bool,
    /// Runs at each speed
    #[arg(long, short = 'n', default_value_t = 5)]
    runs: usize,
    /// Only these speeds, such as 500MHz,1.2G
    #[arg(long, value_name = "SPEEDS", value_delimiter = ',')]
    speeds: Vec<String>,
    /// Of the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where nothing meters energy, the machine model whose watts stand in; 'this' is the machine itself, as calibrated, else
    /// estimated
    #[arg(long, value_name = "MACHINE", default_value = machine::THIS)]
    watts_of: String,
    /// Write every run as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<OutputPath>,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Print as JSON (schema wattwise.bench-throughput/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// The command and its arguments [default: the preset's]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &ThroughputArgs) -> Outcome {
    let preset = preset::find(&args.metric);
    let pattern = ab::pattern(&args.metric)?;
    let words = |w: &[&str]| w.iter().map(|s| (*s).to_owned()).collect::<Vec<String>>();
    let mut command = match (args.command.is_empty(), preset) {
        (false, _) => args.command.clone(),
        (true, Some(p)) => words(p.command),
        (true, None) => {
            return Err(Failure::input(
                "bench throughput: expected a command after --, or a preset as --metric",
            ));
        }
    };
    if args.runs == 0 {
        return Err(Failure::input("--runs 0; expected at least 1"));
    }
    let running = args.root.open_running("bench throughput")?;
    let root = &running.root;
    let prices = machine::prices(&args.watts_of, &**root)?;
    let csv = output::open("--csv", args.csv.as_ref())?;
    let report = output::open("--report", args.report.as_ref())?;
    let levels = levels(args, &Cpufreq::read(&**root))?;
    let signals = Signals::catch().map_err(Failure::work)?;
    // What a preset runs by itself has its other end, and both end with us.
    let own = preset.filter(|_| args.command.is_empty());
    let link = own.and_then(link);
    if link.is_some() {
        command.iter_mut().filter(|word| *word == LOOPBACK).for_each(|word| FAR.clone_into(word));
    }
    let peer = own.map_or(Ok(None), |own| peer(own, link.as_ref()))?;
    // Another machine's speeds are not this processor's: the other end gets the share of the time that they are of the highest.
    let slow = peer.as_ref().filter(|_| !root.is_this_machine());
    let highest = levels.iter().flatten().max().copied();
    let printed = own.map_or(&[][..], |own| own.printed);
    let patterns = printed.iter().map(|p| ab::pattern(p.pattern)).collect::<Result<Vec<_>, _>>()?;
    let mut observer = Observer::open(&**root, prices.as_ref());
    let journal = args.root.journal()?;
    let cpus = wattwise_hw::cpus::topology::Topology::read(&**root).online.iter().count().max(1) as f64;
    let mut order: Vec<usize> = (0..levels.len()).flat_map(|l| std::iter::repeat_n(l, args.runs)).collect();
    Random::new(args.seed).shuffle(&mut order);
    let mut trials: Vec<Vec<Trial>> = vec![Vec::new(); levels.len()];
    let job = CommandJob {
        command: command.clone(),
        capture: true,
        dies_with_us: own.is_some(),
        ..CommandJob::default()
    };
    for at in order {
        let wishes = Wishes {
            settings: levels[at].map(|khz| Setting::Freq(Speed::Khz(khz))).into_iter().collect(),
            ..Wishes::default()
        };
        let held = hold(&**root, &journal, &crate::args::command_line(), &wishes, &|| signals.reason())?;
        let share = levels[at].zip(highest).map(|(khz, most)| khz as f64 / most as f64);
        let slowed = match slow.zip(share) {
            Some((peer, share)) => Some(peer.slowed(share).map_err(Failure::impossible)?),
            None => None,
        };
        let (measured, ended) = measure(&mut observer, &job, &signals).map_err(Failure::input)?;
        let ran = slowed.map(Slowed::end);
        drop(held);
        if let Some(signal) = signals.caught() {
            return Err(Failure::work(format!("signal {signal} came; the settings are put back"))
                .by_signal(Some(signal)));
        }
        if let Some(failure) = &measured.failure {
            let last = ended.output.trim_end().lines().last().unwrap_or("");
            return Err(Failure::work(format!(
                "{} {failure}; it printed last: {last}",
                shell::line(&command)
            )));
        }
        let printed = patterns.iter().map(|p| figure(p, &ended.output).ok()).collect();
        let figure = figure(&pattern, &ended.output).map_err(|e| Failure::work(format!("--metric: {e}")))?;
        let busy = measured.machine.others_s.map(|s| s + measured.cpu_s());
        trials[at].push(Trial {
            figure,
            cpu_percent: busy.map(|s| 100.0 * s / (measured.machine.window_s * cpus)),
            joules: measured.machine.joules,
            wall_s: measured.wall_s,
            printed,
            ran,
        });
    }
    let emulated = slow.is_some_and(|_| highest.is_some());
    drop(peer);
    let levels: Vec<Level> = levels.into_iter().zip(trials).map(|(khz, t)| Level::of(khz, t)).collect();
    let more_is_better = preset.map_or(!args.less_is_better, |p| p.more_is_better);
    let result = Throughput {
        schema: SCHEMA.to_owned(),
        machine: ab::machine_here(&**root),
        command,
        unit: preset.map_or("", |p| p.unit).to_owned(),
        more_is_better,
        energy: observer.energy_comes_from().to_string(),
        knee: if levels.len() > 1 { knee(&levels, more_is_better) } else { None },
        levels,
        printed: printed.iter().map(|p| p.name.to_owned()).collect(),
        link: own.filter(|own| own.over_link).map(|_| match &link {
            Some(_) => "a pair of veth devices between two network namespaces".to_owned(),
            None => "loopback".to_owned(),
        }),
        emulated: emulated.then(|| {
            let ms = SLICE.as_millis();
            format!("the other end runs for the share of each {ms} ms that its speed is of the highest; the processor's own speed stays")
        }),
    };
    drop(link);
    if let Some(file) = csv {
        file.write(benches::throughput_csv(&result).as_bytes())?;
    }
    if let Some(file) = report {
        let sections = wattwise_report::throughput_sections(&result);
        file.write(wattwise_page::page("bench throughput", &result.machine, &sections).as_bytes())?;
    }
    match args.json {
        true => print_json(&result)?,
        false => print(&benches::throughput(&result))?,
    }
    Ok(0)
}

/// The speeds to try; where there are none, the machine as it is.
fn levels(args: &ThroughputArgs, cpufreq: &Cpufreq) -> Result<Vec<Option<u64>>, Failure> {
    let Some(policy) = cpufreq.policies().first() else {
        if !args.speeds.is_empty() {
            return Err(Failure::impossible(format!("--speeds: {}", cpufreq.policies.why_not())));
        }
        note!("one speed, the machine's own: {}", cpufreq.policies.why_not());
        return Ok(vec![None]);
    };
    let (least, most) = policy.hardware_khz.unwrap_or((0, u64::MAX));
    let mut levels: Vec<u64> = match (args.speeds.is_empty(), policy.levels_khz.is_empty()) {
        (false, _) => args
            .speeds
            .iter()
            .map(|s| match speed(s) {
                Ok(Speed::Khz(khz)) if (least..=most).contains(&khz) => Ok(khz),
                Ok(Speed::Khz(khz)) => {
                    Err(Failure::input(format!("--speeds {s}: {khz} kHz is outside {least} to {most} kHz")))
                }
                Ok(_) => Err(Failure::input(format!("--speeds {s}; expected a speed such as 1.2G"))),
                Err(e) => Err(Failure::input(format!("--speeds {e}"))),
            })
            .collect::<Result<_, _>>()?,
        (true, false) => policy.levels_khz.clone(),
        (true, true) => (0..5).map(|at| least + (most - least) * at / 4).collect(),
    };
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    Ok(levels.into_iter().map(Some).collect())
}

/// What lies between a preset's two ends: a link of their own, where it is meant to have one and can; else loopback.
fn link(preset: &Preset) -> Option<Link> {
    if !preset.over_link {
        return None;
    }
    Link::make().map_err(|e| note!("{} runs on loopback: {e}", preset.name)).ok()
}

/// Starts a preset's other end.
fn peer(preset: &Preset, link: Option<&Link>) -> Result<Option<Peer>, Failure> {
    let program = preset.server.first().copied().unwrap_or_default();
    Peer::start(preset, link).map_err(|e| {
        Failure::impossible(format!("{program}: {e}; the preset {} needs it installed", preset.name))
    })
}
