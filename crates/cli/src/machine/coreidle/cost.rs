//! `coreidle cost`: what a change of the mask takes, by each mechanism, one beside the other.

use crate::machine::coreidle::{Failure, How, Outcome, print, print_json};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;
use wattwise_control::cores::held::Holder;
use wattwise_control::cores::hold::{Force, HoldOptions};
use wattwise_control::cores::mechanism::{Cgroups, MechanismKind, own_cpu};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::Root;

#[derive(clap::Args)]
pub(crate) struct CoreidleCostArgs {
    /// Changes there and back
    #[arg(long, value_name = "TIMES", default_value_t = 20)]
    times: usize,
    #[command(flatten)]
    how: How,
}

/// What one mechanism takes.
#[derive(Serialize)]
struct Cost {
    mechanism: MechanismKind,
    /// The first time: groups are made, tasks are moved. [CPU time of ours, elapsed time], s.
    first_s: [f64; 2],
    /// Medians of later changes, to half of the CPUs and back to all.
    half_s: [f64; 2],
    all_s: [f64; 2],
    release_s: [f64; 2],
    moved: usize,
    /// CPU time of ours that moving them took, of the first change's, s.
    moving_s: Option<f64>,
}

#[derive(Serialize)]
struct CostOutput {
    schema: &'static str,
    costs: Vec<Cost>,
    unavailable: Vec<(MechanismKind, String)>,
}

pub(crate) fn run(root: &dyn Root, folder: &Path, json: bool, args: &CoreidleCostArgs) -> Outcome {
    let online = Topology::read(root).online;
    if online.len() < 2 {
        return Err(Failure::impossible("coreidle cost: a single CPU leaves nothing to idle"));
    }
    let half: CpuSet = online.iter().take(online.len().div_ceil(2)).collect();
    let cgroups = Cgroups::find(root);
    let mut report =
        CostOutput { schema: "wattwise.coreidle-cost/1", costs: Vec::new(), unavailable: Vec::new() };
    for kind in MechanismKind::ALL {
        if args.how.mechanism.is_some_and(|only| only != kind) {
            continue;
        }
        if let Some(why) = cgroups.why_not(kind) {
            report.unavailable.push((kind, why));
            continue;
        }
        let options = HoldOptions { mechanism: Some(kind), ..args.how.options() };
        report.costs.push(measure(root, folder, &options, (&half, &online), args.times.max(1))?);
    }
    if json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(0)
}

fn measure(
    root: &dyn Root,
    folder: &Path,
    options: &HoldOptions,
    (half, all): (&CpuSet, &CpuSet),
    times: usize,
) -> Result<Cost, Failure> {
    let holder = Holder::Process { pid: std::process::id(), policy: "coreidle cost".to_owned() };
    let mut force = Force::begin(root, folder, holder, options)?;
    let (first, moved) = timed(|| force.keep(half));
    let moved = moved?;
    let (mut halves, mut alls) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let (took, done) = timed(|| force.keep(all));
        done?;
        alls.push(took);
        let (took, done) = timed(|| force.keep(half));
        done?;
        halves.push(took);
    }
    let (release, left) = timed(|| force.release());
    if let Some(line) = left.first() {
        return Err(Failure::work(format!("coreidle cost: {line}; 'wattwise coreidle off' tries again")));
    }
    Ok(Cost {
        mechanism: force.kind(),
        first_s: first,
        half_s: median(&mut halves),
        all_s: median(&mut alls),
        release_s: release,
        moved: moved.moved,
        moving_s: moved.cpu.map(|cpu| cpu.as_secs_f64()),
    })
}

/// CPU time of ours and elapsed time, s.
fn timed<T>(work: impl FnOnce() -> T) -> ([f64; 2], T) {
    let (cpu, wall) = (own_cpu(), Instant::now());
    let result = work();
    ([(own_cpu() - cpu).as_secs_f64(), wall.elapsed().as_secs_f64()], result)
}

fn moved(c: &Cost) -> String {
    let Some(moving_s) = c.moving_s else { return String::new() };
    format!("   {} tasks moved at first, in {:.3} of it", c.moved, moving_s * 1e3)
}

fn median(samples: &mut [[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|which| {
        samples.sort_unstable_by(|a, b| a[which].total_cmp(&b[which]));
        samples[samples.len() / 2][which]
    })
}

fn text(r: &CostOutput) -> String {
    let mut out = String::from("CPU time of ours / elapsed, ms\n");
    _ = writeln!(out, "{:<30}{:>18}{:>18}{:>18}{:>18}", "", "first", "to half", "back to all", "release");
    let cell = |[cpu, wall]: [f64; 2]| format!("{:.3} / {:.3}", cpu * 1e3, wall * 1e3);
    for c in &r.costs {
        _ = writeln!(
            out,
            "{:<30}{:>18}{:>18}{:>18}{:>18}{}",
            c.mechanism.to_string(),
            cell(c.first_s),
            cell(c.half_s),
            cell(c.all_s),
            cell(c.release_s),
            moved(c)
        );
    }
    for (kind, why) in &r.unavailable {
        _ = writeln!(out, "{kind}: {why}");
    }
    out
}
