//! The machine file of a calibration: the estimate's, with fitted figures in place of guesses.

use crate::calibration::plan::CalibrationPlan;
use crate::estimate::write::{
    Draws, MachineFile, Sourced, WrittenMemory, WrittenOrigin, WrittenRange, WrittenTransition,
};
use crate::estimate::{REST_PERCENT, tables, written};
use crate::fit::check::Check;
use crate::fit::design::Meters;
use crate::fit::heat::{Heat, HeatFigure};
use crate::fit::{Fit, Unknown};
use crate::gather::SeenMachine;
use crate::timed::delays::{KindDelays, Timed};
use crate::timed::pace::{KindPace, over_work};
use wattwise_model::machine::MachineModel;

/// What a machine file is made of.
pub(crate) struct MadeMachine<'a> {
    pub(crate) seen: &'a SeenMachine,
    pub(crate) base: &'a MachineModel,
    pub(crate) fit: &'a Fit,
    pub(crate) heat: Option<Heat>,
    /// By kind of core; empty where it was not timed.
    pub(crate) pace: &'a [KindPace],
    /// By kind of core.
    pub(crate) delays: &'a [KindDelays],
    pub(crate) check: &'a Check,
    pub(crate) plan: &'a CalibrationPlan,
    pub(crate) meters: Meters,
    pub(crate) draws: Vec<Vec<f64>>,
}

/// Chance that a figure's interval holds it.
const CHANCE: f64 = 0.95;
/// Nothing that draws power draws less, in W: a figure of 0 would never be drawn.
const LEAST_W: f64 = 1e-4;
/// What a machine file may say at most.
const MOST_LEAKAGE: f64 = 0.05;
/// What a timing may be off by: a share. An assumption.
const TIMED: f64 = 0.01;
/// The least that a machine file says of a thread beside others.
const LEAST_BESIDE: f64 = 0.1;
/// Factors of a drawn machine stay within what a file may say.
const FACTORS: (f64, f64) = (0.011, 90.0);

/// The file's text, and what had to be made to agree.
pub(crate) fn machine_file(made: &MadeMachine<'_>) -> (String, Vec<String>) {
    let (mut file, base) = tables(made.seen, &made.plan.name);
    let mut notes = Vec::new();
    let value = ordered(made, &made.fit.value, Some(&mut notes));
    let drawn: Vec<Vec<f64>> = made.draws.iter().map(|d| ordered(made, d, None)).collect();
    let mut draws = Draws { figures: Vec::new(), factors: vec![Vec::new(); drawn.len()] };
    let mut open = Vec::new();
    for (at, unknown) in made.fit.unknowns.all.iter().enumerate() {
        let put = put(&mut file, made, *unknown, at, &value);
        open.extend(OpenFigure::of(made, *unknown, at, put.as_ref().map(|(path, _)| path.as_str())));
        let Some((path, part)) = put else { continue };
        draws.figures.push(path);
        for (factors, one) in draws.factors.iter_mut().zip(&drawn) {
            let factor = (one[at] - part) / (value[at] - part).max(1e-9);
            factors.push((factor.clamp(FACTORS.0, FACTORS.1) * 1e5).round() / 1e5);
        }
    }
    put_pace(&mut file, made.pace, made.plan);
    put_delays(&mut file, made.delays, made.plan);
    if let Some(heat) = &made.heat {
        put_heat(&mut file, made, heat);
    }
    file.summary = file.summary.replacen("estimated: ", "calibrated: ", 1);
    file.summary = file.summary.split("; watts after ").next().unwrap_or_default().to_owned();
    file.state = made.plan.state.clone();
    file.notes = told(made, base);
    file.notes.extend(OpenFigure::told(open));
    file.draws = (!drawn.is_empty()).then_some(draws);
    (written(&file), notes)
}

/// Puts one figure into the file: its path there, and the part of it that a factor leaves alone.
fn put(
    file: &mut MachineFile,
    made: &MadeMachine<'_>,
    unknown: Unknown,
    at: usize,
    value: &[f64],
) -> Option<(String, f64)> {
    let w = value[at];
    let origin = origin(made, at, w);
    match unknown {
        Unknown::Busy(k, l) => {
            let kind = &mut file.kind[k].table;
            kind.speeds.table.busy_w[l] = w;
            let mhz = kind.speeds.table.mhz[l].to_string();
            let path = format!("kind.{}.speeds.{mhz}.busy_w", kind.name);
            kind.speeds.sources.remove("busy_w");
            kind.speeds.sources.insert(mhz, origin);
            Some((path, 0.0))
        }
        Unknown::Idle(k, s) => {
            let kind = &mut file.kind[k].table;
            let state = kind.idle.table.states.get_mut(s)?;
            state.watts = w;
            let name = state.name.clone();
            kind.idle.sources.remove("watts");
            kind.idle.sources.insert(format!("{name}.watts"), origin);
            Some((format!("kind.{}.idle.{name}.watts", kind.name), 0.0))
        }
        Unknown::Uncore => {
            file.package.table.uncore_w = w;
            file.package.sources.insert("uncore_w".into(), origin);
            Some(("package.uncore_w".into(), 0.0))
        }
        Unknown::Asleep(s) => {
            let state = file.package.table.idle.get_mut(s)?;
            state.watts = w;
            let name = state.name.clone();
            file.package.sources.insert(format!("{name}.watts"), origin);
            Some((format!("package.{name}.watts"), 0.0))
        }
        Unknown::MemoryRest => {
            memory(file, made).table.watts = w;
            memory(file, made).sources.insert("watts".into(), origin);
            Some(("memory.watts".into(), 0.0))
        }
        Unknown::MemoryBusy => {
            memory(file, made).table.busy_w = w;
            memory(file, made).sources.insert("busy_w".into(), origin);
            Some(("memory.busy_w".into(), 0.0))
        }
        Unknown::Platform => {
            file.platform.table.watts = w;
            // What nothing metered is known as well as before: the estimate says how far it may be off.
            if !made.fit.fitted[at] {
                return None;
            }
            file.platform.sources.insert("watts".into(), origin);
            Some(("platform.watts".into(), 0.0))
        }
        Unknown::AllThreads(k) => {
            let kind = &mut file.kind[k].table;
            let (threads, before) = (kind.threads, made.fit.unknowns.prior[at]);
            let scale = (w - 1.0) / (before - 1.0).max(1e-6);
            for (t, factor) in kind.smt_power.iter_mut().enumerate() {
                *factor = if t + 1 == threads { w } else { 1.0 + (*factor - 1.0) * scale };
            }
            let path = format!("kind.{}.smt_power", kind.name);
            // With one thread the factor is 1, which is no figure.
            file.kind[k].sources.insert("smt_power".into(), WrittenOrigin { range: None, ..origin });
            (w > 1.0 + 1e-3).then_some((path, 1.0))
        }
        // Without knowing how warm the machine gets, its watts at one temperature are nearer the truth.
        Unknown::Leakage if made.fit.fitted[at] && made.heat.is_some() && w > 0.0 => {
            file.thermal.table.leakage_per_c = w.min(MOST_LEAKAGE);
            file.thermal.sources.insert("leakage_per_c".into(), origin);
            Some(("thermal.leakage_per_c".into(), 0.0))
        }
        Unknown::Leakage | Unknown::Drift(_) | Unknown::ThreadsBySpeed(_) => None,
    }
}

/// The memory's table, which an estimate does not have.
fn memory<'f>(file: &'f mut MachineFile, made: &MadeMachine<'_>) -> &'f mut Sourced<WrittenMemory> {
    let origin = WrittenOrigin { source: calibrated(made.plan), confidence: "fitted", range: None };
    file.memory.get_or_insert_with(|| Sourced::new(WrittenMemory { watts: 0.0, busy_w: 0.0 }, origin))
}

/// The package's thermal model.
fn put_heat(file: &mut MachineFile, made: &MadeMachine<'_>, heat: &Heat) {
    let table = &mut file.thermal.table;
    table.ambient_c = heat.ambient_c.value;
    table.c_per_w = heat.c_per_w.value;
    table.tau_s = heat.tau_s.value;
    table.critical_c = table.critical_c.max(table.ambient_c + 1.0);
    for (figure, HeatFigure { ends, .. }) in
        [("ambient_c", heat.ambient_c), ("c_per_w", heat.c_per_w), ("tau_s", heat.tau_s)]
    {
        let origin = WrittenOrigin {
            source: calibrated(made.plan),
            confidence: "fitted",
            range: Some(WrittenRange::Ends([ends.0, ends.1])),
        };
        file.thermal.sources.insert(figure.into(), origin);
    }
}

fn calibrated(plan: &CalibrationPlan) -> String {
    match plan.state.is_empty() {
        true => "calibrated".to_owned(),
        false => format!("calibrated ({})", plan.state.join(", ")),
    }
}

/// The estimate's file with what was timed of its cores.
pub(crate) fn timed(
    seen: &SeenMachine,
    pace: &[KindPace],
    delays: &[KindDelays],
    plan: &CalibrationPlan,
) -> String {
    let (mut file, _) = tables(seen, &plan.name);
    put_pace(&mut file, pace, plan);
    put_delays(&mut file, delays, plan);
    written(&file)
}

/// Work a clock cycle, and what threads do beside each other: the middle of three kinds of work, and their range.
fn put_pace(file: &mut MachineFile, pace: &[KindPace], plan: &CalibrationPlan) {
    let timed = |range: Option<WrittenRange>| WrittenOrigin {
        source: format!("{}, three kinds of work timed", calibrated(plan)),
        confidence: "measured",
        range,
    };
    for (at, (kind, pace)) in file.kind.iter_mut().zip(pace).enumerate() {
        if at > 0 {
            let (ipc, ends) = over_work(pace.ipc);
            kind.table.ipc = digits(ipc);
            // Where kinds of work agree, a timing is no surer than this.
            let ends = [ends[0] * (1.0 - TIMED), ends[1] * (1.0 + TIMED)].map(digits);
            kind.sources.insert("ipc".into(), timed(Some(WrittenRange::Ends(ends))));
        }
        let Some(beside) = pace.beside else { continue };
        let (least, threads) = (over_work(beside).0.clamp(LEAST_BESIDE, 1.0), kind.table.threads);
        for (t, throughput) in kind.table.smt_throughput.iter_mut().enumerate() {
            *throughput = digits(1.0 - (1.0 - least) * t as f64 / (threads - 1).max(1) as f64);
        }
        kind.sources.insert("smt_throughput".into(), timed(None));
    }
}

/// Delays of changes of speed and of wake-ups, with the spread of their trials.
fn put_delays(file: &mut MachineFile, delays: &[KindDelays], plan: &CalibrationPlan) {
    let source = format!("{}, timed", calibrated(plan));
    for (kind, delays) in file.kind.iter_mut().zip(delays) {
        if let Some((table, timed)) = kind.table.transition.as_mut().zip(delays.change) {
            put_change(table, timed, &source);
        }
        let idle = &mut kind.table.idle;
        for (state, timed) in idle.table.states.iter_mut().zip(&delays.exits) {
            let Some(timed) = timed else { continue };
            // What is left later than it is worth staying would never be entered; the residency is the kernel's.
            let us = digits(timed.us.min(state.target_us));
            if us <= 0.0 {
                continue;
            }
            state.exit_us = Some(us);
            let origin = measured(&source, us, (timed.low, timed.high));
            idle.sources.insert(format!("{}.exit_us", state.name), origin);
        }
    }
}

/// The time of a change as delay and stall, as the head of `timed/delays.rs` has it.
fn put_change(table: &mut Sourced<WrittenTransition>, timed: Timed, source: &str) {
    let (delay, stall) = (table.table.delay_us, table.table.stall_us);
    if delay == 0.0 && stall > 0.0 {
        // It spoke of this figure alone.
        table.origin.range = None;
        table.table.stall_us = digits(timed.us);
        let origin = measured(source, table.table.stall_us, (timed.low, timed.high));
        table.sources.insert("stall_us".into(), origin);
        return;
    }
    let off = f64::from(REST_PERCENT) / 100.0;
    // Of a time that the guess may fill it has its share.
    let own = if timed.us > stall * (1.0 + off) { stall } else { timed.us * stall / (delay + stall) };
    if own != stall || stall == 0.0 {
        // Nothing is left that it speaks of.
        table.origin.range = None;
    }
    if own != stall {
        table.table.stall_us = digits(own);
        let source = format!("the estimate's share of the time of a change; {source}");
        table.sources.insert("stall_us".into(), WrittenOrigin::guess(source, REST_PERCENT));
    }
    table.table.delay_us = digits(timed.us - own);
    let ends = (timed.low - own * (1.0 + off), timed.high - own * (1.0 - off));
    let origin = measured(source, table.table.delay_us, ends);
    table.sources.insert("delay_us".into(), origin);
}

/// The origin of a figure that was measured, with the ends that a machine file takes.
fn measured(source: &str, value: f64, ends: (f64, f64)) -> WrittenOrigin {
    let low = ends.0.clamp(value / 50.0, value * (1.0 - TIMED));
    let high = ends.1.clamp(value * (1.0 + TIMED), value * 50.0);
    let range = Some(WrittenRange::Ends([low, high].map(digits)));
    WrittenOrigin { source: source.to_owned(), confidence: "measured", range }
}

/// As many as a time is good for.
fn digits(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}

fn origin(made: &MadeMachine<'_>, at: usize, value: f64) -> WrittenOrigin {
    let (low, high) = made.fit.interval(at, CHANCE);
    let ends = [low.max(value / 50.0).min(value), high.min(value * 50.0).max(value * (1.0 + 1e-6))];
    let (source, confidence) = match made.fit.fitted[at] {
        true => (calibrated(made.plan), "fitted"),
        false => {
            let state = calibrated(made.plan).replacen("calibrated", "", 1);
            let source = "the estimate's, narrowed by a calibration that could not tell it apart";
            (format!("{source}{state}"), "guess")
        }
    };
    WrittenOrigin { source, confidence, range: Some(WrittenRange::Ends(ends)) }
}

/// Values that a machine file may hold: nothing below 0, a faster level never below a slower one, a deeper state never
/// above a shallower. What the data say against it is told where it is more than chance.
fn ordered(made: &MadeMachine<'_>, value: &[f64], mut notes: Option<&mut Vec<String>>) -> Vec<f64> {
    let mut out = value.to_vec();
    let fit = made.fit;
    let at = |u: Unknown| fit.unknowns.at(u);
    for (k, kind) in made.base.kinds.iter().enumerate() {
        let levels = (0..kind.levels.len())
            .map(|l| (Unknown::Busy(k, l), format!("{} MHz", kind.levels[l].khz / 1000)));
        let states = kind.idle.iter().enumerate().map(|(s, state)| (Unknown::Idle(k, s), state.name.clone()));
        // From what draws most to what draws least.
        let chain: Vec<(usize, String)> = levels
            .chain(states)
            .filter_map(|(u, name)| Some((at(u)?, format!("{} {name}", kind.name))))
            .collect();
        fall(fit, &chain, &mut out, &mut notes);
        if let Some(i) = at(Unknown::AllThreads(k)) {
            out[i] = out[i].clamp(1.0, 4.0);
        }
    }
    let package = std::iter::once((Unknown::Uncore, "package awake".to_owned()));
    let states =
        made.base.packages[0].idle.iter().enumerate().map(|(s, p)| (Unknown::Asleep(s), p.name.clone()));
    let chain: Vec<(usize, String)> =
        package.chain(states).filter_map(|(u, name)| Some((at(u)?, name))).collect();
    fall(fit, &chain, &mut out, &mut notes);
    if let Some(i) = at(Unknown::Platform) {
        out[i] = out[i].max(LEAST_W);
    }
    out
}

/// Makes values fall along a chain, by the mean of neighbours that rise (pooled, as in isotonic regression).
fn fall(fit: &Fit, chain: &[(usize, String)], out: &mut [f64], notes: &mut Option<&mut Vec<String>>) {
    if let Some(notes) = notes {
        for pair in chain.windows(2) {
            let ((a, high), (b, low)) = (&pair[0], &pair[1]);
            if fit.fitted[*a] && fit.fitted[*b] && fit.interval(*b, CHANCE).0 > fit.interval(*a, CHANCE).1 {
                notes.push(format!(
                    "The meters say that {low} draws more ({:.3} W) than {high} ({:.3} W); a machine file cannot, and has \
                     their mean.",
                    fit.value[*b], fit.value[*a]
                ));
            }
        }
    }
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (at, _) in chain {
        pools.push((out[*at].max(LEAST_W), 1));
        while let [.., (a, n), (b, m)] = pools[..]
            && b > a
        {
            pools.truncate(pools.len() - 2);
            pools.push(((a * n as f64 + b * m as f64) / (n + m) as f64, n + m));
        }
    }
    let values = pools.into_iter().flat_map(|(v, n)| std::iter::repeat_n(v, n));
    for ((at, _), v) in chain.iter().zip(values) {
        // Six digits: what is written is what is said.
        out[*at] = (v * 1e6).round() / 1e6;
    }
}

/// What a reader of the file should know.
fn told(made: &MadeMachine<'_>, base: &str) -> Vec<String> {
    let meter = match (made.meters.cores, made.meters.package, made.meters.machine) {
        (true, ..) => "meters of the cores and of the packages",
        (_, true, _) => "a meter of the packages",
        _ => "a meter of the whole machine",
    };
    let mut out =
        vec![format!("Calibrated with {meter}; a prior after {base}; watts at 50 degrees Celsius.")];
    if let Some((half, most)) = made.check.quantile(0.5).zip(made.check.quantile(0.95)) {
        out.push(format!(
            "On {} mixes of work that the fit had not seen, power was off by {:.1} % in the middle and {:.1} % at most of 19 \
             in 20.",
            made.check.off.len(),
            half * 100.0,
            most * 100.0
        ));
    }
    out.extend(made.fit.unknown_directions.iter().cloned());
    if made.meters.memory {
        out.push("What the memory draws for a core at work is of work within the caches; work beyond them draws more.".into());
    }
    out
}

/// A figure that the calibration leaves open: why an answer on the machine may be no narrower than by its estimate.
struct OpenFigure {
    /// Its path, with its interval where it is the fit's.
    figure: String,
    /// How far it is open: a share of it.
    share: f64,
    /// What would measure it.
    by: &'static str,
}

impl OpenFigure {
    /// A figure is open from this share of it on, in either direction.
    const LEAST: f64 = 0.1;
    /// So many are told.
    const MOST: usize = 8;

    /// Whether this one is, with its path if it is drawn.
    fn of(made: &MadeMachine<'_>, unknown: Unknown, at: usize, path: Option<&str>) -> Option<OpenFigure> {
        let by = match unknown {
            Unknown::Platform => "a meter of the whole machine: a battery, a sensor of hwmon",
            Unknown::Busy(..) => "a longer --budget; what power or heat holds down cannot be metered",
            _ => "a longer --budget on a quiet machine",
        };
        if unknown == Unknown::Platform && !made.fit.fitted[at] {
            return Some(OpenFigure {
                figure: "platform.watts (as estimated)".into(),
                share: f64::INFINITY,
                by,
            });
        }
        let ((low, high), value) = (made.fit.interval(at, CHANCE), made.fit.value[at]);
        let share = (high - low) / 2.0 / value.abs().max(LEAST_W);
        let figure = format!("{} ({low:.3} to {high:.3} W)", path?);
        (share >= OpenFigure::LEAST && unknown != Unknown::Leakage).then_some(OpenFigure {
            figure,
            share,
            by,
        })
    }

    /// All of them in a sentence for each way, the widest first.
    fn told(mut open: Vec<OpenFigure>) -> Vec<String> {
        open.sort_by(|a, b| b.share.total_cmp(&a.share));
        let more = open.len().saturating_sub(OpenFigure::MOST);
        open.truncate(OpenFigure::MOST);
        let mut ways: Vec<(&str, Vec<String>)> = Vec::new();
        for one in open {
            match ways.iter_mut().find(|(by, _)| *by == one.by) {
                Some((_, figures)) => figures.push(one.figure),
                None => ways.push((one.by, vec![one.figure])),
            }
        }
        let last = ways.len().saturating_sub(1);
        let sentence = |(at, (by, figures)): (usize, (&str, Vec<String>))| {
            let others = if at == last && more > 0 { format!(" and {more} more") } else { String::new() };
            format!("Still open: {}{others}; would measure it: {by}.", figures.join(", "))
        };
        ways.into_iter().enumerate().map(sentence).collect()
    }
}

/// What a core's temperature does.
pub(crate) fn leakage(fit: &Fit, heat: Option<&Heat>) -> Option<String> {
    let at = fit.unknowns.at(Unknown::Leakage).filter(|at| fit.fitted[*at])?;
    let (low, high) = fit.interval(at, CHANCE);
    let percent = |share: f64| share * 100.0;
    let warm = match heat {
        Some(h) => format!(
            "a package gets {:.2} degrees warmer by a watt ({:.2} to {:.2}), with a time constant of {:.0} s",
            h.c_per_w.value, h.c_per_w.ends.0, h.c_per_w.ends.1, h.tau_s.value
        ),
        None => "how warm a package gets by its watts was not found, so the model has one temperature, 50 degrees Celsius"
            .to_owned(),
    };
    Some(format!(
        "A core draws {:.2} % more a degree ({:.2} to {:.2}); {warm}.",
        percent(fit.value[at]),
        percent(low),
        percent(high)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An estimate of these figures with a time of 100 us: delay, stall, and the interval of what was measured of both.
    fn changed(delay_us: f64, stall_us: f64, us: f64) -> (f64, f64, [f64; 2]) {
        let table = WrittenTransition { delay_us, stall_us, overlap: "preempt" };
        let mut table = Sourced::new(table, WrittenOrigin::guess("somebody's".into(), REST_PERCENT));
        put_change(&mut table, Timed { us, low: us * 0.9, high: us * 1.1 }, "timed");
        let measured: Vec<&WrittenOrigin> =
            table.sources.values().filter(|o| o.confidence == "measured").collect();
        let [WrittenOrigin { range: Some(WrittenRange::Ends(ends)), .. }] = measured[..] else {
            panic!("one figure")
        };
        // A range of the table speaks of a figure that has no source of its own, or a machine file is none.
        let own = |figure: &str, us: f64| us == 0.0 || table.sources.contains_key(figure);
        let all_own = own("delay_us", table.table.delay_us) && own("stall_us", table.table.stall_us);
        assert_eq!(table.origin.range.is_none(), all_own);
        (table.table.delay_us, table.table.stall_us, *ends)
    }

    /// The table in the head of `timed/delays.rs`.
    #[test]
    fn a_time_is_a_delay_and_a_stall() {
        assert_eq!(changed(0.0, 300.0, 100.0), (0.0, 100.0, [90.0, 110.0]));
        // The stall is a guess: from 4 to 16 us of the time are its.
        assert_eq!(changed(250.0, 10.0, 100.0), (90.0, 10.0, [74.0, 106.0]));
        assert_eq!(changed(90.0, 10.0, 12.0), (10.8, 1.2, [8.88, 12.72]));
        assert_eq!(changed(250.0, 0.0, 100.0), (100.0, 0.0, [90.0, 110.0]));
        assert_eq!(changed(0.0, 0.0, 100.0), (100.0, 0.0, [90.0, 110.0]));
    }
}
