//! `bench transition`.

use crate::args::output;
use crate::args::output::OutputPath;
use crate::args::root as hardware;
use crate::bench::in_its_time::InItsTime;
use crate::exit::{Failure, Outcome, print, print_json};
use crate::show::benches;
use wattwise_control::delays::transition::{LiveDomain, Stage, measure};
use wattwise_control::delays::wake::pin;
use wattwise_control::hold::{Wishes, hold};
use wattwise_control::set::plan::Setting;
use wattwise_hw::cpus::select::Selector;
use wattwise_hw::root::Root;
use wattwise_hw::states::cpufreq::Cpufreq;
use wattwise_live::bench::transition::{Matrix, SCHEMA};
use wattwise_live::run::child::Signals;

#[derive(clap::Args)]
pub(in super::super) struct TransitionArgs {
    /// The CPU whose frequency domain is measured
    #[arg(long, default_value_t = 0)]
    cpu: u32,
    /// Trials for each pair of speeds, in random order
    #[arg(long, default_value_t = 80)]
    trials: usize,
    /// Of the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the matrix as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<OutputPath>,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Print as JSON (schema wattwise.bench-transition/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
}

pub(crate) fn run(args: &TransitionArgs) -> Outcome {
    if args.trials == 0 {
        return Err(Failure::input("--trials 0; expected at least 1"));
    }
    let root: Box<dyn Root> = match args.root.emulated()? {
        Some(machine) => {
            // Its time is ours alone.
            machine.furnish();
            Box::new(machine)
        }
        None => args.root.open_to_hold()?,
    };
    let cpufreq = Cpufreq::read(&*root);
    let policy = cpufreq.of(args.cpu).ok_or_else(|| match cpufreq.policies().is_empty() {
        true => Failure::impossible(format!("speeds cannot be changed here: {}", cpufreq.policies.why_not())),
        false => Failure::input(format!("--cpu {}: no such CPU, or it is offline", args.cpu)),
    })?;
    let mut levels = policy.levels_khz.clone();
    if let (true, Some((least, most))) = (levels.is_empty(), policy.hardware_khz) {
        // A driver without a table takes any speed: five of them.
        levels = (0..5).map(|at| least + (most - least) * at / 4).collect();
    }
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    if levels.len() < 2 {
        return Err(Failure::impossible(format!(
            "{} has one speed: there is nothing to change",
            policy.name()
        )));
    }
    if !policy.governors.iter().any(|g| g == "userspace") {
        let way = match cpufreq.driver.as_ref().filter(|d| d.mode == "active") {
            Some(driver) => {
                format!("{} is active; 'sudo wattwise set --driver-mode passive' first", driver.name)
            }
            None => "load cpufreq_userspace".to_owned(),
        };
        return Err(Failure::impossible(format!(
            "bench transition: {} has no governor userspace (it has {}), so that no speed can be asked for: {way}",
            policy.name(),
            policy.governors.join(", ")
        )));
    }
    let csv = output::open("--csv", args.csv.as_ref())?;
    let report = output::open("--report", args.report.as_ref())?;
    let signals = Signals::catch().map_err(Failure::work)?;
    let wishes = Wishes {
        settings: vec![Setting::Governor("userspace".to_owned())],
        selector: Selector { cpus: Some(args.cpu.to_string()), ..Selector::default() },
        cores: None,
    };
    let journal = args.root.journal()?;
    let command = crate::args::command_line();
    let held = hold(&*root, &journal, &command, &wishes, &|| signals.reason())?;
    // The loop must feel the speed that it times; another root's CPUs are not ours.
    if root.is_this_machine() {
        pin(args.cpu as usize).map_err(Failure::impossible)?;
    }
    let stop = || signals.caught().map(|s| format!("signal {s} came; the governor is put back"));
    let timed = |stage: &mut dyn Stage| {
        measure(stage, &levels, args.trials, args.seed, &stop)
            .map_err(|e| Failure::work(e).by_signal(signals.caught()))
    };
    let (by, pairs) = match InItsTime::open(&*root, policy).map_err(Failure::impossible)? {
        Some(mut emulated) => (emulated.by(), timed(&mut emulated)?),
        None => {
            let mut live = LiveDomain::open(&*root, policy, &levels).map_err(Failure::impossible)?;
            let pairs = timed(&mut live)?;
            (live.by(), pairs)
        }
    };
    let matrix = Matrix {
        schema: SCHEMA.to_owned(),
        machine: crate::machine::ab::machine_here(&*root),
        policy: policy.name().to_owned(),
        by,
        trials: args.trials,
        levels_khz: levels,
        pairs,
    };
    drop(held);
    if let Some(file) = csv {
        file.write(benches::transition_csv(&matrix).as_bytes())?;
    }
    if let Some(file) = report {
        let sections = wattwise_report::transition_sections(&matrix);
        file.write(wattwise_page::page("bench transition", &matrix.machine, &sections).as_bytes())?;
    }
    match args.json {
        true => print_json(&matrix)?,
        false => print(&benches::transition(&matrix))?,
    }
    Ok(0)
}
