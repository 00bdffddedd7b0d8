//! Where tasks ran, by the kernel's sched_switch alone, against the mask and each task's affinity.
//!
//! The guest marks the trace before and after each change of the mask (`lab/guest/coretest.c`). A task is free
//! if it may run on a CPU that is kept. After a change it must leave a CPU that is not within a slice, and none may come.
//! Tasks of the real-time and stop classes are no concern of the mechanisms', and are left out.
//!
//! Time is counted in the CPU's own ticks, since a busy host lets a virtual CPU stand still for tens of ms: it then
//! runs on, or puts into effect, what was decided before the change. A tick at which the CPU is already told
//! to switch does not count either: the kernel is where it must not.

use crate::files::read;
use crate::guest::Returned;
use crate::verdict::JudgeTold;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// CPUs of the scenarios.
const CPUS: usize = 4;
const ALL: u64 = (1 << CPUS) - 1;
/// The scheduler's slice, in us: what a task may stay after a change, and in ticks of 4 ms begun.
const SETTLE_US: i64 = 5_000;
const SETTLE_TICKS: usize = 2;

/// Of so many stints of free tasks one may come late.
const LATE_ONE_IN: u64 = 100;

/// What was found in one trace.
#[derive(Debug, Default)]
struct Violations {
    /// Stints of free tasks on kept CPUs, and of pinned ones on others, while a mask was settled.
    free: u64,
    pinned: u64,
    changes: u64,
    /// Stints of free tasks on other CPUs that went on for more ticks than a slice has: task, CPU, ticks.
    strays: Vec<(String, usize, usize)>,
    /// Those that came to other CPUs more than a slice after the change, however short.
    late: u64,
    /// After each change that took CPUs away from free tasks: when the last of these had left them, in us.
    leave_us: Vec<i64>,
    /// After each that gave CPUs: when the first, and when the last of those had a free task, in us; if all had.
    open_us: Vec<(i64, i64)>,
}

/// A mask from when it was in force until the next change began, in us.
struct Span {
    begun: i64,
    from: i64,
    until: i64,
    kept: u64,
}

/// One task's turn on a CPU, in us.
struct Stint {
    cpu: usize,
    from: i64,
    until: i64,
    name: String,
    allowed: u64,
}

/// Affinities of threads that do not say them in their names.
#[derive(Debug, Default)]
struct Affinities {
    /// By thread; and whether it is the kernel's.
    of: HashMap<u64, (u64, bool)>,
    /// The mechanism has no say over the kernel's own threads.
    kernel_exempt: bool,
}

fn affinities(text: &str, kernel_exempt: bool) -> Affinities {
    let line = |l: &str| {
        let mut words = l.split_whitespace();
        let (pid, mask) = (words.next()?.parse().ok()?, u64::from_str_radix(words.next()?, 16).ok()?);
        Some((pid, (mask, words.next()? == "k")))
    };
    Affinities { of: text.lines().filter_map(line).collect(), kernel_exempt }
}

/// CPUs on which a task may run; none: it is not the mechanism's.
fn allowed(name: &str, pid: u64, known: &Affinities) -> u64 {
    let cpus = |t: &str| -> Option<u64> {
        let (from, to) = t.split_once('-').unwrap_or((t, t));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to && to < CPUS as u32).then(|| ((2 << to) - 1) & !((1 << from) - 1))
    };
    if let Some(own) = ["ct-pin", "ct-part"].iter().find_map(|p| cpus(name.strip_prefix(p)?)) {
        return own;
    }
    if name.starts_with("ct-") || name.starts_with("coretest") {
        return ALL;
    }
    let found = known.of.get(&pid);
    if known.kernel_exempt && found.map_or(name.starts_with("kworker/"), |f| f.1) {
        return 0;
    }
    // A worker that came and went between two looks at all threads.
    let bound = || cpus(name.strip_prefix("kworker/")?.split(':').next()?);
    found.map(|f| f.0).or_else(bound).unwrap_or(ALL)
}

fn cpu_of(before: &str) -> Option<usize> {
    before.split('[').next_back()?.split(']').next()?.parse().ok()
}

fn time_us(line: &str) -> Option<i64> {
    let before = line.split(": ").next()?;
    let (s, us) = before.split_whitespace().last()?.split_once('.')?;
    Some(s.parse::<i64>().ok()? * 1_000_000 + us.parse::<i64>().ok()?)
}

/// What a trace tells.
struct Events {
    stints: Vec<Stint>,
    spans: Vec<Span>,
    /// Each CPU's ticks, in us.
    ticks: [Vec<i64>; CPUS],
}

fn events(trace: &str, known: &Affinities) -> Result<Events, String> {
    let (mut stints, mut spans) = (Vec::new(), Vec::<Span>::new());
    let mut ticks: [Vec<i64>; CPUS] = Default::default();
    let mut current: [Option<Stint>; CPUS] = Default::default();
    let (mut begun, mut last) = (0, 0);
    for line in trace.lines() {
        if line.contains("LOST") {
            return Err("the trace buffer was too small".into());
        }
        let Some(at) = time_us(line) else { continue };
        last = at;
        if let Some((_, mark)) = line.split_once("coreidle to ") {
            if let (Some(span), true) = (spans.last_mut(), !mark.is_empty()) {
                span.until = at;
            }
            begun = at;
        } else if let Some((_, mask)) = line.split_once("coreidle at ") {
            let kept = u64::from_str_radix(mask.trim(), 16).map_err(|e| format!("{line:?}: {e}"))?;
            spans.push(Span { begun, from: at, until: i64::MAX, kept });
        } else if let Some((before, _)) = line.split_once(" local_timer_entry: ") {
            // N, n, B: told to switch, and held by the kernel where it cannot.
            let flags = before.split("] ").last().unwrap_or_default();
            if flags.get(1..2).is_some_and(|f| "NnB".contains(f)) {
                continue;
            }
            let cpu =
                cpu_of(before).and_then(|c| ticks.get_mut(c)).ok_or_else(|| format!("CPU of {line:?}"))?;
            cpu.push(at);
        } else if let Some((before, event)) = line.split_once(" sched_switch: ") {
            let told = || -> Option<(usize, &str, u64, u64)> {
                let cpu = cpu_of(before)?;
                let (_, next) = event.split_once("next_comm=")?;
                let (name, rest) = next.rsplit_once(" next_pid=")?;
                let (pid, prio) = rest.split_once(" next_prio=")?;
                Some((cpu, name, pid.parse().ok()?, prio.trim().parse().ok()?))
            };
            let (cpu, name, pid, prio) = told().ok_or_else(|| format!("unreadable: {line:?}"))?;
            let slot = current.get_mut(cpu).ok_or_else(|| format!("CPU {cpu}: {line:?}"))?;
            if let Some(mut stint) = slot.take() {
                stint.until = at;
                stints.push(stint);
            }
            if pid != 0 && prio >= 100 {
                let allowed = allowed(name, pid, known);
                *slot = Some(Stint { cpu, from: at, until: at, name: name.to_owned(), allowed });
            }
        }
    }
    for mut stint in current.into_iter().flatten() {
        stint.until = last;
        stints.push(stint);
    }
    if let Some(span) = spans.last_mut() {
        span.until = last;
    }
    stints.sort_by_key(|s| s.from);
    Ok(Events { stints, spans, ticks })
}

fn check(trace: &str, known: &Affinities) -> Result<Violations, String> {
    let Events { stints, spans, ticks } = events(trace, known)?;
    let mut found = Violations { changes: spans.len() as u64, ..Violations::default() };
    let mut first = 0;
    let mut before = ALL;
    for span in &spans {
        // Those that ended before it began end before every later one: each stint has a length of some ms at most.
        while first < stints.len() && stints[first].until < span.begun - 1_000_000 {
            first += 1;
        }
        let settled = span.from + SETTLE_US;
        let mut left = None::<i64>;
        let mut opened = [None::<i64>; CPUS];
        for s in stints[first..].iter().take_while(|s| s.from < span.until) {
            let bit = 1 << s.cpu;
            let free = s.allowed & span.kept != 0;
            if span.kept & bit != 0 {
                if free && s.from >= span.from {
                    found.free += 1;
                }
                if free && s.until > span.begun {
                    let at = &mut opened[s.cpu];
                    *at = Some(at.unwrap_or(i64::MAX).min((s.from - span.begun).max(0)));
                }
                continue;
            }
            if !free {
                found.pinned += u64::from(s.from >= span.from);
                continue;
            }
            if s.until > span.from && s.from <= settled {
                left = Some(left.unwrap_or(0).max(s.until.min(span.until) - span.from));
            }
            let (from, until) = (s.from.max(span.from), s.until.min(span.until));
            let at = |t: i64| ticks[s.cpu].partition_point(|&tick| tick < t);
            let had = at(until).saturating_sub(at(from));
            if had > SETTLE_TICKS {
                found.strays.push((s.name.clone(), s.cpu, had));
            }
            found.late += u64::from(s.from > settled);
        }
        if before & !span.kept != 0 && span.until > settled {
            found.leave_us.push(left.unwrap_or(0));
        }
        let new: Vec<usize> = (0..CPUS).filter(|c| (span.kept & !before) >> c & 1 != 0).collect();
        let times: Option<Vec<i64>> = new.iter().map(|&c| opened[c]).collect();
        if let Some(times) = times.filter(|t| !t.is_empty()) {
            let first = times.iter().copied().min().unwrap_or(0);
            found.open_us.push((first, times.into_iter().max().unwrap_or(0)));
        }
        before = span.kept;
    }
    Ok(found)
}

/// Median and highest, in ms.
fn spread(mut us: Vec<i64>) -> String {
    us.sort_unstable();
    let at = |share: usize| us.get(us.len() * share / 100).or(us.last()).copied().unwrap_or(0) as f64 / 1e3;
    format!("{:.2} ms median, {:.2} ms p99, {:.2} ms at most", at(50), at(99), at(100))
}

/// One trace's verdict and figures.
fn confined(
    told: &mut JudgeTold,
    returned: &Returned,
    name: &str,
    kernel_exempt: bool,
    least: u64,
) -> Result<Violations, String> {
    let known = affinities(&read(&returned.folder.join("affinities.txt"))?, kernel_exempt);
    let found = check(&read(&returned.folder.join(format!("{name}.txt")))?, &known)?;
    told.figures.push(format!(
        "{name}: {} masks, {} stints of free tasks on kept CPUs, {} of pinned and exempt ones on others; {} of free ones \
         there longer than a slice, {} that came late",
        found.changes,
        found.free,
        found.pinned,
        found.strays.len(),
        found.late,
    ));
    if !found.leave_us.is_empty() {
        told.figures.push(format!("{name}: CPUs given up are left after {}", spread(found.leave_us.clone())));
    }
    if !found.strays.is_empty() {
        let first: Vec<_> = found.strays.iter().take(8).map(|s| format!("{s:?}")).collect();
        return Err(format!(
            "{name}: {} free tasks stay on CPUs given up: {}",
            found.strays.len(),
            first.join(" ")
        ));
    }
    // Where no mask changes nothing can be late; where many do, only what a standing CPU brings along.
    if found.late > if found.changes > 1 { found.free / LATE_ONE_IN } else { 0 } {
        return Err(format!("{name}: {} free tasks come to CPUs given up", found.late));
    }
    if found.free < least {
        return Err(format!("{name}: only {} stints", found.free));
    }
    told.checks.push(format!("{name}: free tasks on kept CPUs alone"));
    Ok(found)
}

fn storms(told: &mut JudgeTold, returned: &Returned) -> Result<(), String> {
    for line in returned.lines.iter().filter(|l| l.get("storm").is_some()) {
        let get = |key: &str| line.get(key).and_then(Value::as_u64).unwrap_or(0);
        if get("hogs") == 0 || get("least") * 4 < get("most") {
            return Err(format!("work does not go on evenly: {line}"));
        }
    }
    if let Some(line) = returned.lines.iter().find(|l| l.get("nice").is_some_and(|n| n.as_u64() > Some(0))) {
        let get = |key: &str| line.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        told.figures.push(format!(
            "of those that compute, the least got {:.2} of the most; nice 5 got {:.2} (weights say 0.33)",
            get("least") / get("most"),
            get("nice") / get("most"),
        ));
    }
    if let Some(line) = returned
        .lines
        .iter()
        .find(|l| l.get("changes").is_some_and(|n| n.is_u64() && l.get("median_us").is_some()))
    {
        told.figures.push(format!("changes of the mask, each until it is done: {line}"));
    }
    told.checks.push("work goes on evenly".into());
    Ok(())
}

pub(crate) fn judge_scx(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let mut told = JudgeTold::default();
    confined(&mut told, returned, "steady", false, 500)?;
    confined(&mut told, returned, "changes", false, 5_000)?;
    let burst = confined(&mut told, returned, "burst", false, 100)?;
    if burst.open_us.len() < 5 {
        return Err(format!("only {} times did every opened CPU get work", burst.open_us.len()));
    }
    told.figures.push(format!(
        "burst: from the command to work on the first opened CPU {}; on all of them {}",
        spread(burst.open_us.iter().map(|o| o.0).collect()),
        spread(burst.open_us.iter().map(|o| o.1).collect()),
    ));
    told.checks.push("opened CPUs get work".into());
    storms(&mut told, returned)?;
    Ok(told)
}

pub(crate) fn judge_cpuset(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let mut told = JudgeTold::default();
    confined(&mut told, returned, "steady", true, 500)?;
    confined(&mut told, returned, "changes", true, 800)?;
    storms(&mut told, returned)?;
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(us: u64, cpu: usize, event: &str) -> String {
        format!(" <idle>-0 [00{cpu}] d..2. {}.{:06}: {event}\n", us / 1_000_000, us % 1_000_000)
    }

    fn switch(us: u64, cpu: usize, name: &str, pid: u64, prio: u64) -> String {
        let to = format!("next_comm={name} next_pid={pid} next_prio={prio}");
        line(us, cpu, &format!("sched_switch: prev_comm=a b prev_pid=1 prev_prio=120 prev_state=R ==> {to}"))
    }

    fn mask(us: u64, mask: &str) -> String {
        line(us, 0, &format!("tracing_mark_write: coreidle to {mask}"))
            + &line(us + 10, 0, &format!("tracing_mark_write: coreidle at {mask}"))
    }

    #[test]
    fn a_task_that_stays_or_comes_is_found_and_one_that_leaves_in_time_is_not() {
        let idle = |us, cpu| switch(us, cpu, "swapper", 0, 120);
        let good = [
            switch(1_000, 2, "ct-free", 7, 120),
            mask(2_000, "3"),
            idle(6_000, 2),
            switch(9_000, 0, "ct-free", 7, 120),
            switch(9_500, 3, "ct-pin3", 8, 120),
            switch(9_600, 2, "kworker/2:1-e", 9, 120),
            switch(9_700, 1, "migration/1", 10, 0),
            idle(20_000, 0),
        ]
        .concat();
        let found = check(&good, &affinities("9 4 k kworker/2:1", false)).expect("readable");
        assert_eq!((found.strays.len(), found.free, found.pinned), (0, 1, 2), "{found:?}");
        assert_eq!(found.leave_us, [3_990]);
        // Stays for three ticks. What its CPU did not see pass is no time, nor a tick at which it is told to switch.
        let tick = |us| line(us, 2, "local_timer_entry: vector=236");
        let none = Affinities::default();
        let stays = |third: &str| {
            let late = [&tick(4_000), &tick(8_000), third, &idle(13_000, 2)].concat();
            check(&good.replace(&idle(6_000, 2), &late), &none).expect("readable").strays
        };
        assert_eq!(stays(""), []);
        assert_eq!(stays(&tick(12_000).replace("d..2.", "dNh1.")), []);
        assert_eq!(stays(&tick(12_000)), [("ct-free".into(), 2, 3)]);
        // Comes; the worker's affinity is known by its name.
        let comes = good.clone() + &switch(30_000, 3, "ct-part1-3", 11, 120) + &idle(30_100, 3);
        assert_eq!(check(&comes, &none).expect("readable").late, 1);
        // A worker whose affinity is known to be wider than its name, and where that is none of the mechanism's business.
        assert_eq!(check(&good, &affinities("9 f k kworker", false)).expect("readable").late, 1);
        assert_eq!(check(&good, &affinities("9 f k kworker", true)).expect("readable").late, 0);
    }

    #[test]
    fn opened_cpus_are_timed() {
        let text = [
            mask(1_000, "1"),
            mask(500_000, "7"),
            switch(500_300, 1, "ct-free", 7, 120),
            switch(500_900, 2, "ct-free", 8, 120),
            switch(600_000, 0, "ct-free", 9, 120),
        ]
        .concat();
        assert_eq!(check(&text, &Affinities::default()).expect("readable").open_us, [(300, 900)]);
    }
}
