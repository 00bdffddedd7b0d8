//! `bench wake`.

use crate::args::output;
use crate::args::output::OutputPath;
use crate::args::root as hardware;
use crate::exit::{Failure, Outcome, print, print_json};
use crate::machine::ab;
use crate::show::benches;
use crate::show::screen::note;
use std::time::Duration;
use wattwise_control::delays::wake::{allowed, cross, timer};
use wattwise_control::hold::{Wishes, hold};
use wattwise_control::set::plan::Setting;
use wattwise_figure::Spread;
use wattwise_figure::units::duration_ns;
use wattwise_hw::cpus::select::Selector;
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::Root;
use wattwise_hw::states::cpuidle;
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_live::bench::wake::{SCHEMA, WakeLatency, WakeUps};
use wattwise_live::run::child::Signals;

#[derive(clap::Args)]
pub(in super::super) struct WakeArgs {
    /// The CPU that sleeps [default: the last that may be used]
    #[arg(long)]
    cpu: Option<usize>,
    /// Wake-ups of each kind in each C-state
    #[arg(long, default_value_t = 500)]
    times: usize,
    /// How long the CPU sleeps each time: longer than its deepest state's target residency
    #[arg(long, value_name = "DURATION", default_value = "2ms")]
    sleep: String,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Print as JSON (schema wattwise.bench-wake/1)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &WakeArgs) -> Outcome {
    let this = hardware::RootArgs::default();
    let root = this.open_to_hold()?;
    let sleep = Duration::from_nanos(
        duration_ns(&args.sleep, "us").map_err(|e| Failure::input(format!("--sleep {e}")))?,
    );
    let cpus = allowed();
    let sleeper = args.cpu.or(cpus.last().copied()).unwrap_or(0);
    if !cpus.contains(&sleeper) || args.times == 0 {
        return Err(Failure::input(format!(
            "--cpu {sleeper} --times {}: expected one of CPUs {cpus:?}, and times of 1 or more",
            args.times
        )));
    }
    let waker = cpus.iter().copied().find(|c| *c != sleeper);
    let report = output::open("--report", args.report.as_ref())?;
    let signals = Signals::catch().map_err(Failure::work)?;
    let journal = this.journal()?;
    let states = states(&*root, sleeper as u32);
    let mut rows = Vec::new();
    // The machine as it is, then each state as the deepest.
    for deepest in std::iter::once(None).chain((0..states.len()).map(Some)) {
        let wishes = wishes(&states, deepest, sleeper);
        let held = match hold(&*root, &journal, &crate::args::command_line(), &wishes, &|| signals.reason()) {
            Ok(held) => held,
            Err(e) if deepest.is_some() && rows.len() == 1 => {
                note!("C-states cannot be chosen here: {e}");
                break;
            }
            Err(e) => return Err(e.into()),
        };
        let before = states_now(&*root, sleeper as u32);
        let timer_us = timer(sleeper, sleep, args.times).map_err(Failure::work)?;
        let cross_us = match waker {
            Some(waker) => cross(sleeper, waker, sleep, args.times).map_err(Failure::work)?,
            None => Vec::new(),
        };
        let after = states_now(&*root, sleeper as u32);
        drop(held);
        if let Some(signal) = signals.caught() {
            return Err(Failure::work(format!("signal {signal} came; the C-states are put back"))
                .by_signal(Some(signal)));
        }
        let entered = before
            .iter()
            .zip(&after)
            .map(|(b, a)| (a.name.clone(), a.usage.saturating_sub(b.usage)))
            .collect();
        rows.push(WakeLatency {
            state: deepest.map(|d| states[d].name.clone()),
            latency_us: deepest.map(|d| states[d].latency_us),
            timer_us: Spread::of(&timer_us),
            cross_us: Spread::of(&cross_us),
            entered,
        });
    }
    let result = WakeUps {
        schema: SCHEMA.to_owned(),
        machine: ab::machine_here(&*root),
        cpus: (sleeper, waker),
        sleep_us: sleep.as_micros() as u64,
        states: rows,
    };
    if let Some(file) = report {
        let sections = wattwise_report::wake_sections(&result);
        file.write(wattwise_page::page("bench wake", &result.machine, &sections).as_bytes())?;
    }
    match args.json {
        true => print_json(&result)?,
        false => print(&benches::wake(&result))?,
    }
    Ok(0)
}

/// No C-state of that CPU beyond the deepest; without one nothing is to change.
fn wishes(states: &[cpuidle::CpuidleState], deepest: Option<usize>, cpu: usize) -> Wishes {
    let settings = deepest.map_or(Vec::new(), |deepest| {
        let allow = |(at, s): (usize, &cpuidle::CpuidleState)| Setting::CState(s.name.clone(), at <= deepest);
        states.iter().enumerate().map(allow).collect()
    });
    Wishes {
        settings,
        selector: Selector { cpus: Some(cpu.to_string()), ..Selector::default() },
        cores: None,
    }
}

fn states_now(root: &dyn Root, cpu: u32) -> Vec<cpuidle::CpuidleState> {
    let idle = Cpuidle::read(root, &Topology::read(root));
    idle.cpus().iter().find(|c| c.cpu == cpu).map(|c| c.states.clone()).unwrap_or_default()
}

fn states(root: &dyn Root, cpu: u32) -> Vec<cpuidle::CpuidleState> {
    let states = states_now(root, cpu);
    // One state is no choice.
    if states.len() > 1 { states } else { Vec::new() }
}
