//! B. Thomson, Improved Power Management for FreeBSD (2010): a tick-counting governor in the kernel
//! against the polling `powerd`, on an IBM R51.
//!
//! The job is a loop that takes 229.2 ms at the highest speed. It begins on a machine that has come
//! to rest at its lowest speed, at 199 moments spread evenly over a common period of the policies'
//! polls and ticks: the paper's ten trials began at moments of its own, and the spread of their
//! times is the spread over that phase.

mod driver;
mod left_open;
mod ours;

use crate::printed::PrintedFigure;
use crate::{
    Basis, Figure, Study, StudyBench, StudyError, machine_idle, number, open, rows, table, workload,
};
use wattwise_figure::mean_sd;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{Dist, Step};
use wattwise_page::{Axis, Heatmap, LineShape, Plot, Point, Section, Series};
use wattwise_policy::MS;
use wattwise_sim::outcome::Timeline;

const RUNTIME: &str = include_str!("../../../../studies/thomson_runtime.csv");
const PRINTED: &str = include_str!("../../../../studies/figures/thomson.csv");
const TRANSITION: &str = include_str!("../../../../studies/thomson_transition_us.csv");

/// The job's length at the highest speed, in ms: the paper's mean, by which the job is defined.
pub const JOB_MS: f64 = 229.2;
/// The highest speed.
pub(crate) const KHZ: u32 = 1_700_000;
/// Start phases; a prime, so that they fall on different phases of every poll and tick.
pub(crate) const PHASES: u64 = 199;
/// One second holds whole numbers of every poll and tick in play (10, 250, 500 ms).
pub(crate) const COMMON_PERIOD_NS: u64 = 1000 * MS;
/// Rest before the job: longer than any policy takes to come down.
pub(crate) const REST_NS: u64 = 45_000 * MS;

pub(crate) fn job_cycles() -> u64 {
    (JOB_MS * f64::from(KHZ)) as u64
}

/// Run times in ms over all start phases.
pub(crate) fn runtimes(bench: &StudyBench, policy: &str) -> Result<Vec<f64>, StudyError> {
    runtimes_over(bench, policy, COMMON_PERIOD_NS)
}

/// The same with the starts spread over `period_ns`.
fn runtimes_over(bench: &StudyBench, policy: &str, period_ns: u64) -> Result<Vec<f64>, StudyError> {
    wattwise_threads::map(0..PHASES, |i| {
        let start = REST_NS + period_ns * i / PHASES;
        let w = workload("python", KHZ, vec![(start, 1, vec![Step::Run(Dist::Fixed(job_cycles()))])]);
        let mut sim = bench.simulation(&w, policy, |_| {})?;
        let outcome = sim.run_to_completion(REST_NS * 10)?;
        Ok((outcome.elapsed_ns - start) as f64 / MS as f64)
    })
}

/// Run times of the job in ms under a policy, over all start phases, on another machine with its speeds.
///
/// # Errors
/// When the machine's idle policy or the policy is unknown, or the job does not end.
pub fn run_times(machine: MachineModel, policy: &str) -> Result<Vec<f64>, StudyError> {
    let idle = machine_idle(&machine)?;
    runtimes(&StudyBench { machine, idle, demotion: None }, policy)
}

/// A policy's published mean and standard deviation in ms.
pub fn published(policy: &str) -> Option<(f64, f64)> {
    rows(RUNTIME).find(|r| r[0] == policy).map(|r| (number(r[1]), number(r[2])))
}

/// A CPU's speed over time, as steps in MHz and seconds.
fn speed_curve(name: &str, timeline: &Timeline, from_ns: u64, to_ns: u64) -> Series {
    let mut points: Vec<Point> = Vec::new();
    let Some(lane) = timeline.lanes.first() else { return Series::default() };
    for (i, khz) in lane.khz.iter().enumerate() {
        let at = i as u64 * timeline.bin_ns;
        if at < from_ns || at > to_ns {
            continue;
        }
        let point = Point::from(((at - from_ns) as f64 * 1e-9, f64::from(*khz) * 1e-3));
        // Keep the corners.
        if points.last().is_none_or(|p| p.y != point.y) || at + timeline.bin_ns > to_ns {
            points.push(point);
        }
    }
    Series { name: name.to_owned(), shape: LineShape::Step, points }
}

/// Time in seconds from the end of the work until the lowest speed, after `busy_ns` of full load.
pub(crate) fn descent(
    bench: &StudyBench,
    policy: &str,
    busy_ns: u64,
    watch_ns: u64,
) -> Result<(f64, Series), StudyError> {
    let cycles = busy_ns / 1_000_000 * u64::from(KHZ);
    let w = workload("busy", KHZ, vec![(0, 1, vec![Step::Run(Dist::Fixed(cycles))])]);
    let mut sim = bench.simulation(&w, policy, |s| s.timeline = true)?;
    let end = sim.run_to_completion(watch_ns)?.elapsed_ns;
    sim.run_until(end + watch_ns);
    let timeline = sim.timeline().unwrap_or_default();
    let slowest = bench.machine.kinds[0].levels.last().map_or(0, |l| l.khz);
    let khz = timeline.lanes.first().map_or(&[] as &[u32], |l| &l.khz);
    let last_fast = khz.iter().rposition(|&k| k > slowest).unwrap_or(0) as u64;
    let seconds = ((last_fast + 1) * timeline.bin_ns).saturating_sub(end) as f64 * 1e-9;
    Ok((seconds, speed_curve(policy, &timeline, end, end + watch_ns)))
}

/// Time in seconds from the highest to the lowest of all speeds.
fn descent_of(throttled: &StudyBench, policy: &str) -> Result<f64, StudyError> {
    Ok(descent(throttled, policy, 4000 * MS, 40_000 * MS)?.0)
}

/// Bursts of 300 ms every 2.25 s for half a minute: each covers at least 95 % of one poll's window.
fn bursts(bench: &StudyBench, policy: &str) -> Result<(f64, Series), StudyError> {
    const SPAN_NS: u64 = 30_000 * MS;
    let steps = vec![Step::Period(2250 * MS), Step::Run(Dist::Fixed(300 * u64::from(KHZ)))];
    let w = workload("bursts", KHZ, vec![(0, SPAN_NS / (2250 * MS), steps)]);
    let mut sim = bench.simulation(&w, policy, |s| {
        s.timeline = true;
        s.initial_khz = 1;
    })?;
    sim.run_to_completion(SPAN_NS * 10)?;
    let outcome = sim.run_until(SPAN_NS);
    let timeline = sim.timeline().unwrap_or_default();
    let watts = outcome.energy.total_j() / (outcome.elapsed_ns as f64 * 1e-9);
    Ok((watts, speed_curve(policy, &timeline, 0, SPAN_NS)))
}

/// The machine, with changes of speed as its driver makes them.
pub(crate) fn laptop() -> Result<StudyBench, StudyError> {
    let mut bench = StudyBench::new("thinkpad-r51")?;
    bench.machine.domains[0].transition.stall_ns = table_2().stall_ns();
    Ok(bench)
}

/// What table 2 is by FreeBSD's driver, from two of its entries.
fn table_2() -> driver::ThomsonDriver {
    let read = |(from, to): (u32, u32)| {
        let (from, to) = (from.to_string(), to.to_string());
        rows(TRANSITION).find(|r| r[0] == from && r[1] == to).map_or(f64::NAN, |r| number(r[2]))
    };
    let [down, up] = driver::READ;
    driver::ThomsonDriver::fit(read(down), read(up))
}

/// Reruns the study.
///
/// # Errors
/// When the machine model or a policy is missing.
pub fn run() -> Result<Study, StudyError> {
    let bench = laptop()?;
    let mut throttled = StudyBench::new("thinkpad-r51-tstates")?;
    // Eighteen changes of at most 3 ms are nothing beside a descent of seconds.
    throttled.machine.domains[0].transition.stall_ns.fill(0);
    let mut figures = Vec::new();
    let spread = run_time_figures(&bench, &mut figures)?;
    let figure_4 = descent_figures(&throttled, &mut figures)?;
    let figure_5 = burst_figures(&bench, &mut figures)?;
    let mut differences = differences(&figures);
    let ours = ours::answers(&bench, &throttled, &mut figures)?;
    let (printed, score, causes) = ours::printed(&ours, &figures);
    let open = left_open::questions(&bench, &throttled)?;
    differences.extend(causes.into_iter().map(|c| c.text));
    differences.push(of_table_2(&printed));
    let fitted = vec![
        "The job's length: 229.2 ms at 1700 MHz, from the paper's run time at maximum speed.".to_owned(),
        "The delays of the 30 changes of speed: cycles of the way through the kernel to 1000 -> 800 MHz of table 2, and how long the \
         voltage rises to 600 -> 1700 MHz. They also give the other 28, with the driver's wait of 1 ms from FreeBSD's source."
            .to_owned(),
        "The thermal figures: 34 and 45 degrees, which are therefore not predicted.".to_owned(),
        "Nothing else: the run times under both algorithms and both figures are predictions.".to_owned(),
    ];
    let axis = |name: &str, unit: &str| Axis { name: name.into(), unit: unit.into(), ..Axis::default() };
    let plot = |title: &str, series: Vec<Series>, note: &str| {
        Section::Steps(Plot {
            title: title.into(),
            x: axis("time", "s"),
            y: axis("speed (MHz)", ""),
            series,
            note: note.into(),
        })
    };
    let page = vec![
        Section::Text {
            title: "What was done".into(),
            body: format!(
                "A job of {JOB_MS} ms at 1700 MHz begins on a machine at rest, at {PHASES} moments spread over a \
                 second, under each policy. Modelled on thinkpad-r51; nothing was measured here."
            ),
        },
        crate::figure_table(&figures),
        Section::Text { title: "Fitted".into(), body: fitted.join("\n\n") },
        Section::Text { title: "What differs, and why".into(), body: differences.join("\n\n") },
        Section::Steps(Plot {
            title: "Run time over the start phases (cumulative share)".into(),
            x: axis("run time (ms)", ""),
            y: axis("share of starts", ""),
            series: spread,
            note: "The paper's means: 386.2 ms (old), 279.2 ms (new), 229.2 ms (maximum).".into(),
        }),
        plot(
            "Figure 4: from the highest to the lowest of 18 speeds, idle",
            figure_4,
            "The paper's machine offered 17 speeds from 75 to 1700 MHz, T-states among them, and took over 20 s.",
        ),
        plot(
            "Figure 5: short bursts hold the old algorithm up",
            figure_5,
            "Bursts of 300 ms every 2.25 s; each covers at least 95 % of one window of 250 ms.",
        ),
        matrix(),
        open::section(&open),
        table::printed(&printed),
    ];
    Ok(Study {
        name: "thomson",
        title: "FreeBSD speed states (Thomson 2010) on a ThinkPad R51",
        figures: printed,
        score,
        results: figures,
        tables: Vec::new(),
        charts: Vec::new(),
        fitted,
        differences,
        open,
        page,
    })
}

/// Table 2 by FreeBSD's driver. Its entries were this program's input before, so that none of them counts as predicted.
fn of_table_2(printed: &[PrintedFigure]) -> String {
    let read = |f: &&PrintedFigure| {
        let ends = |(from, to): (u32, u32)| f.quantity.contains(&format!("{from}->{to} MHz"));
        driver::READ.into_iter().any(ends)
    };
    let others = || printed.iter().filter(|f| f.location == "Table 2").filter(|f| !read(f));
    let (all, near) = (others().count(), others().filter(|f| f.within == Some(true)).count());
    format!(
        "Table 2 is mostly FreeBSD's own wait of 1 ms, counted by a clock that the change itself moves: of its {all} entries that \
         are not read {near} come out. They were an input of this program before, and count as fitted."
    )
}

/// Run times over the start phases under each policy; the curves are their cumulative shares.
fn run_time_figures(bench: &StudyBench, figures: &mut Vec<Figure>) -> Result<Vec<Series>, StudyError> {
    let cases: [(&str, &str, Option<&str>, Basis); 5] = [
        ("maximum speed forced", "performance", Some("performance"), Basis::Construction),
        ("old algorithm, as the paper prints it", "powerd-2010", Some("powerd"), Basis::Predicted),
        (
            "old algorithm, powerd's own rules, hiadaptive",
            "powerd:mode=hiadaptive",
            Some("powerd"),
            Basis::Predicted,
        ),
        (
            "old algorithm, powerd's own rules, adaptive",
            "powerd:mode=adaptive",
            Some("powerd"),
            Basis::Predicted,
        ),
        ("new algorithm", "burst", Some("burst"), Basis::Predicted),
    ];
    let mut spread = Vec::new();
    for (what, policy, row, basis) in cases {
        let times = runtimes(bench, policy)?;
        let (mean, sd) = mean_sd(&times);
        let known = row.and_then(published);
        figures.push(Figure {
            what: format!("run time, {what} ({policy})"),
            unit: "ms",
            published: known.map(|k| k.0),
            published_sd: known.map(|k| k.1),
            modelled: mean,
            modelled_sd: Some(sd),
            basis,
        });
        let mut sorted = times;
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let points = sorted.iter().enumerate().map(|(i, t)| Point::from((*t, (i + 1) as f64 / n))).collect();
        spread.push(Series { name: policy.to_owned(), shape: LineShape::Step, points });
    }
    Ok(spread)
}

/// A figure that the paper does not print as a number.
fn unprinted(what: String, unit: &'static str, modelled: f64) -> Figure {
    Figure {
        what,
        unit,
        published: None,
        published_sd: None,
        modelled,
        modelled_sd: None,
        basis: Basis::Predicted,
    }
}

/// Figure 4: from the highest to the lowest speed.
fn descent_figures(throttled: &StudyBench, figures: &mut Vec<Figure>) -> Result<Vec<Series>, StudyError> {
    let (down, hiadaptive) = descent(throttled, "powerd:mode=hiadaptive", 4000 * MS, 40_000 * MS)?;
    let (down_burst, burst) = descent(throttled, "burst", 4000 * MS, 40_000 * MS)?;
    let (_, adaptive) = descent(throttled, "powerd:mode=adaptive", 4000 * MS, 40_000 * MS)?;
    figures.push(unprinted(
        "highest to lowest speed when idle, powerd:mode=hiadaptive (published: over 20 s)".into(),
        "s",
        down,
    ));
    figures.push(unprinted("highest to lowest speed when idle, burst".into(), "s", down_burst));
    Ok(vec![hiadaptive, adaptive, burst])
}

/// Figure 5: mean power under short bursts.
fn burst_figures(bench: &StudyBench, figures: &mut Vec<Figure>) -> Result<Vec<Series>, StudyError> {
    let mut curves = Vec::new();
    for policy in ["powerd:mode=hiadaptive", "powerd-2010", "burst"] {
        let (watts, curve) = bursts(bench, policy)?;
        let what = format!("mean power under bursts of 300 ms every 2.25 s ({policy})");
        figures.push(unprinted(what, "W", watts));
        curves.push(curve);
    }
    Ok(curves)
}

/// Table 2 as a heat map.
fn matrix() -> Section {
    const MHZ: [&str; 6] = ["1700", "1400", "1200", "1000", "800", "600"];
    let delay = |from: &str, to: &str| {
        rows(TRANSITION).find(|r| r[0] == from && r[1] == to).map_or(f64::NAN, |r| number(r[2]))
    };
    let names = || MHZ.iter().map(|m| format!("{m} MHz")).collect();
    Section::Heatmap(Heatmap {
        title: "Table 2: delay of a change of speed, as published and as the model uses it".into(),
        row_name: "from".into(),
        column_name: "to".into(),
        rows: names(),
        columns: names(),
        values: MHZ.iter().map(|from| MHZ.iter().map(|to| delay(from, to)).collect()).collect(),
        unit: "us".into(),
        note: "Mean of 80 trials a pair, seen from user space. The cores do nothing meanwhile.".into(),
    })
}

/// What the model says otherwise than the paper, from the figures: a sentence is there only where they differ so.
fn differences(figures: &[Figure]) -> Vec<String> {
    let of = |part: &str| figures.iter().find(|f| f.what.contains(part));
    let mut out = Vec::new();
    if let Some(f) = of("(powerd-2010)") {
        out.push(old_algorithm(f, of("run time, old algorithm, powerd's own rules, hiadaptive")));
    }
    if let Some(f) = of("run time, new algorithm (burst)") {
        out.push(new_algorithm(f));
    }
    if let Some(f) = of("highest to lowest speed when idle, powerd:mode=hiadaptive") {
        out.push(descent_sentence(f.modelled));
    }
    out.push(
        "Temperatures (34 and 45 degrees) were read to see power; the paper says that the sensor could not tell the \
         algorithms apart. The model's thermal figures are fitted to those two and are not compared."
            .to_owned(),
    );
    out
}

/// `386.2 +- 30.7`.
fn with_sd(mean: f64, sd: Option<f64>) -> String {
    format!("{mean:.1} +- {:.1}", sd.unwrap_or(0.0))
}

/// Whether a modelled mean lies within the published spread.
fn within(f: &Figure) -> bool {
    f.published.zip(f.published_sd).is_some_and(|(mean, sd)| (f.modelled - mean).abs() <= sd)
}

fn old_algorithm(printed: &Figure, own_rules: Option<&Figure>) -> String {
    let published = with_sd(printed.published.unwrap_or(f64::NAN), printed.published_sd);
    let modelled = with_sd(printed.modelled, printed.modelled_sd);
    if within(printed) {
        return format!(
            "Old algorithm: the form printed in the paper gives {modelled} ms, published {published}."
        );
    }
    let mut told =
        format!("Old algorithm: the form printed in the paper gives {modelled} ms, not {published}.");
    if printed.modelled > printed.published.unwrap_or(f64::NAN) {
        told += " In that form a job that fills less than three quarters of its first window waits a whole second \
                 window.";
    }
    if let Some(own) = own_rules {
        told += &format!(
            " powerd's own rules, which the printed form simplifies, take speed up from 37 % load on and give {} ms, {}.",
            with_sd(own.modelled, own.modelled_sd),
            if within(own) { "within the published spread" } else { "outside the published spread too" }
        );
    }
    told + " The paper ran ten trials and does not say how their starts were spread: if they followed each other \
            without a random pause, their phases were not uniform."
}

fn new_algorithm(f: &Figure) -> String {
    let mean = f.published.unwrap_or(f64::NAN);
    let mut told = format!(
        "New algorithm: predicted {} ms, published {}.",
        with_sd(f.modelled, f.modelled_sd),
        with_sd(mean, f.published_sd)
    );
    if within(f) {
        return told;
    }
    // At 600 MHz instead of 1700 a job loses this share of the time that it runs slowly.
    let lost = 1.0 - 600.0 / 1700.0;
    let slow_ms = (mean - JOB_MS) / lost;
    told += &format!(
        " Four busy ticks at 100 Hz end 30 to 40 ms after the start; the published mean needs {slow_ms:.0} ms at 600 MHz."
    );
    told
}

/// Which form of powerd the paper's machine can have run, from how long the model's takes over all speeds.
fn descent_sentence(hiadaptive_s: f64) -> String {
    let told = format!(
        "Figure 4: the paper says that powerd took over 20 s from the highest to the lowest speed and shows 26 s. Its \
         printed form, one step a poll, would take 4.5 s over 18 speeds; powerd's hiadaptive rule, which lowers an \
         internal speed by 1/32 a poll from twice the highest, takes {hiadaptive_s:.1} s on the model."
    );
    match hiadaptive_s > 20.0 {
        true => told + " So the machine ran hiadaptive, the default on mains.",
        false => told + " Neither is what the paper saw.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(what: &str, published: Option<(f64, f64)>, modelled: f64) -> Figure {
        Figure {
            what: what.into(),
            unit: "ms",
            published: published.map(|p| p.0),
            published_sd: published.map(|p| p.1),
            modelled,
            modelled_sd: Some(3.0),
            basis: Basis::Predicted,
        }
    }

    #[test]
    fn what_differs_follows_from_the_figures() {
        let told = |old: f64, new: f64, down: f64| {
            differences(&[
                figure(
                    "run time, old algorithm, as the paper prints it (powerd-2010)",
                    Some((386.2, 30.7)),
                    old,
                ),
                figure("run time, new algorithm (burst)", Some((279.2, 2.1)), new),
                figure(
                    "highest to lowest speed when idle, powerd:mode=hiadaptive (published: over 20 s)",
                    None,
                    down,
                ),
            ])
            .join("\n")
        };
        let apart = told(450.0, 254.0, 21.0);
        for part in [
            "not 386.2",
            "waits a whole second window",
            "needs 77 ms at 600 MHz",
            "So the machine ran hiadaptive",
        ] {
            assert!(apart.contains(part), "{part}: {apart}");
        }
        let alike = told(390.0, 279.0, 5.0);
        for part in [
            "not 386.2",
            "waits a whole second window",
            "needs 77 ms at 600 MHz",
            "So the machine ran hiadaptive",
        ] {
            assert!(!alike.contains(part), "{part}: {alike}");
        }
        assert!(alike.contains("Neither is what the paper saw"));
    }
}
