//! Who ran, and what was in force: the module's tracepoint against sched_switch.
//!
//! A stint is the time between two switches on a CPU. At its end the CPU's wish must be the profile of
//! the thread that ran, or the default for a thread without one; and what is in force must be the
//! faster of the wishes of the two siblings that share the registers.

use crate::files::read;
use crate::guest::Returned;
use crate::verdict::JudgeTold;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// T-state in sixteenths and clock in kHz.
type State = (u64, u64);

/// CPUs of the scenario; each pair shares a core.
const CPUS: usize = 4;
/// The hog's T-state.
const HOG_TSTATE: u64 = 5;
/// Context switches into threads with a profile that the test must see.
const LEAST_SWITCHES: u64 = 10_000;

fn fields(line: &str) -> HashMap<&str, u64> {
    let pairs = line.split_whitespace().filter_map(|w| w.split_once('='));
    pairs.filter_map(|(k, v)| Some((k, v.parse().ok()?))).collect()
}

/// What the check found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Violations {
    /// Stints of threads with a profile, and of others.
    profiled: u64,
    others: u64,
    violations: Vec<String>,
}

fn check(trace: &str, profiles: &HashMap<u64, State>, default: State) -> Result<Violations, String> {
    let mut found = Violations::default();
    let mut current: [Option<u64>; CPUS] = [None; CPUS];
    let mut want = [default; CPUS];
    // From a thread's first own event until it gives its profile back.
    let mut set: HashMap<u64, bool> = HashMap::new();
    for line in trace.lines() {
        if line.contains("LOST") {
            return Err("the trace buffer was too small".into());
        }
        let cpu = || -> Option<usize> {
            let from = line.find('[')? + 1;
            line[from..].split(']').next()?.parse().ok()
        };
        if line.contains(" sched_switch: ") {
            let (Some(c), f) = (cpu(), fields(line)) else { continue };
            let next = f.get("next_pid").copied();
            if let Some(tid) = current[c] {
                let has = set.get(&tid).copied().unwrap_or(false);
                let expected = if has { profiles.get(&tid).copied().unwrap_or(default) } else { default };
                if has {
                    found.profiled += 1;
                } else {
                    found.others += 1;
                }
                if want[c] != expected {
                    found.violations.push(format!(
                        "{tid} on CPU {c}: {:?}, not {expected:?}: {}",
                        want[c],
                        line.trim()
                    ));
                }
            }
            current[c] = next;
        } else if line.contains(" powerctl_switch: ") {
            let f = fields(line);
            let get = |key: &str| f.get(key).copied().ok_or_else(|| format!("no {key} in {line:?}"));
            let (c, tid) = (get("cpu")? as usize, get("tid")?);
            want[c] = (get("want_tstate")?, get("want_khz")?);
            let in_force = (get("tstate")?, get("khz")?);
            let other = want[c ^ 1];
            let faster = (want[c].0.max(other.0), want[c].1.max(other.1));
            if in_force != faster {
                found
                    .violations
                    .push(format!("core of CPU {c}: {in_force:?} in force, not {faster:?}: {}", line.trim()));
            }
            // Its own change, while it runs: SET, or the end.
            if profiles.contains_key(&tid) && current[c].is_none_or(|now| now == tid) {
                set.insert(tid, want[c] != default);
            }
        }
    }
    Ok(found)
}

/// What a suspend did: the default everywhere while all tasks were frozen, and afterwards the hog's own profile on the
/// CPU that it never left.
fn check_suspend(trace: &str, hog: u64, default: State) -> Result<(), String> {
    let (mut frozen, mut thawed, mut asleep, mut last) = (false, false, 0, None);
    for line in trace.lines() {
        if line.contains(" suspend_resume: ") {
            frozen |= line.contains("freeze_processes") && line.contains("end");
            thawed |= line.contains("thaw_processes") && line.contains("begin");
        } else if line.contains(" powerctl_switch: ") {
            let f = fields(line);
            let get = |key: &str| f.get(key).copied().ok_or_else(|| format!("no {key} in {line:?}"));
            let in_force = (get("tstate")?, get("khz")?);
            if frozen && !thawed {
                asleep += 1;
                if in_force != default {
                    return Err(format!("{in_force:?} in force while suspended: {}", line.trim()));
                }
            }
            if get("tid")? == hog {
                last = Some(get("want_tstate")?);
            }
        }
    }
    // Each CPU but one goes, and tells what it leaves in force.
    match (thawed && asleep >= CPUS - 1, last) {
        (false, _) => Err(format!("no whole suspend in the trace: {asleep} CPUs told what was in force")),
        (true, Some(HOG_TSTATE)) => Ok(()),
        (true, found) => Err(format!("the hog ran on with T-state {found:?}, not {HOG_TSTATE}")),
    }
}

/// Median.
fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

pub(crate) fn judge(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let mut told = JudgeTold::default();
    let caps = returned.lines.iter().find_map(|l| l.get("caps")).ok_or("no capabilities")?;
    let default = caps.get("khz").and_then(|k| k.get(1)).and_then(Value::as_u64).unwrap_or(0);
    let mut profiles = HashMap::new();
    for line in read(&returned.folder.join("threads.txt"))?.lines() {
        let words: Vec<u64> = line.split_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
        if let (true, [tid, tstate, khz]) = (line.starts_with("thread"), words.as_slice()) {
            profiles.insert(*tid, (*tstate, *khz));
        }
    }
    let found = check(&read(&returned.folder.join("switches.txt"))?, &profiles, (16, default))?;
    if !found.violations.is_empty() {
        let first: Vec<_> = found.violations.iter().take(5).cloned().collect();
        return Err(format!("{} violations:\n  {}", found.violations.len(), first.join("\n  ")));
    }
    if profiles.len() < 200 || found.profiled < LEAST_SWITCHES {
        return Err(format!("only {} threads and {} switches", profiles.len(), found.profiled));
    }
    told.checks.push("each thread ran with its own profile".into());
    told.figures.push(format!(
        "{} threads: {} stints with a profile, {} without, 0 violations",
        profiles.len(),
        found.profiled,
        found.others
    ));
    for round in 1..=2 {
        let of = |l: &&Value| l.get("round").and_then(Value::as_u64) == Some(round);
        let hog = returned.lines.iter().find(of).and_then(|l| l.get("hog")?.as_u64()).ok_or("no hog")?;
        let trace = read(&returned.folder.join(format!("suspend{round}.txt")))?;
        check_suspend(&trace, hog, (16, default)).map_err(|e| format!("suspend {round}: {e}"))?;
    }
    told.checks.push("the default while suspended, the runner's profile afterwards".into());
    Ok(told)
}

/// The hook's cost and the request's latency.
pub(crate) fn judge_cost(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let mut told = JudgeTold::default();
    // The least: what the kernel does beside it, some of it long after boot, only adds.
    let trips = |kind: &str| {
        let lines = returned.lines.iter().filter(|l| l.get("pingpong").and_then(Value::as_str) == Some(kind));
        lines.filter_map(|l| l.get("ns")?.as_f64()).min_by(f64::total_cmp)
    };
    let without = trips("without").ok_or("no round trips")?;
    for (kind, what, most_percent) in [
        ("loaded", "with it and no profiles", 1.0),
        ("one", "one end profiled", 3.0),
        ("both", "both ends profiled", 3.0),
        ("tracepoint", "a look-up at sched_switch instead", f64::INFINITY),
    ] {
        let ns = trips(kind).ok_or_else(|| format!("no round trips `{kind}`"))?;
        let more = (ns / without - 1.0) * 100.0;
        // The clock counts instructions: a limit is no matter of luck.
        if more > most_percent {
            return Err(format!("{what}: a round trip takes {more:.2} % more, at most {most_percent} %"));
        }
        if most_percent.is_finite() {
            told.checks.push(format!("{what}: at most {most_percent} % more"));
        }
        told.figures.push(format!(
            "pipe round trip: {:.2} us without the module, {:.2} us {what} ({more:+.2} %)",
            without / 1e3,
            ns / 1e3,
        ));
    }
    let change = |key: &str| {
        middle(returned.lines.iter().filter_map(|l| l.get(key)?.as_f64()).collect())
            .ok_or_else(|| format!("no `{key}`"))
    };
    let ioctl = change("latency_ns")?;
    for (key, what) in [
        ("held_ns", "by a sysfs file held open"),
        ("opened_ns", "by opening and writing it"),
        ("refused_ns", "for an ioctl that is refused"),
    ] {
        let ns = change(key)?;
        told.figures.push(format!(
            "a change of speed: {:.2} us by ioctl, {:.2} us {what}: {:.2} x",
            ioctl / 1e3,
            ns / 1e3,
            ioctl / ns
        ));
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cpu: usize, event: &str) -> String {
        format!(" x-1 [00{cpu}] d..1. 5.0: {event}\n")
    }

    fn switch(cpu: usize, next: u64) -> String {
        line(
            cpu,
            &format!("sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b next_pid={next} next_prio=120"),
        )
    }

    fn event(cpu: usize, tid: u64, want: State, now: State) -> String {
        let (wt, wk, t, k) = (want.0, want.1, now.0, now.1);
        line(
            cpu,
            &format!(
                "powerctl_switch: cpu={cpu} tid={tid} want_khz={wk} want_tstate={wt} khz={k} tstate={t}"
            ),
        )
    }

    #[test]
    fn a_wrong_state_is_found() {
        let profiles = HashMap::from([(7, (4, 800))]);
        let (own, default) = ((4, 800), (16, 2400));
        let good = [
            switch(0, 7),
            event(0, 7, own, default),
            switch(0, 9),
            event(0, 7, default, default),
            switch(0, 7),
        ];
        let found = check(&good.concat(), &profiles, default).expect("readable");
        assert_eq!(found, Violations { profiled: 1, others: 1, violations: Vec::new() });
        // The next thread is left with what was not its own.
        let bad = [switch(0, 7), event(0, 7, own, default), switch(0, 9), switch(0, 7)];
        assert_eq!(check(&bad.concat(), &profiles, default).expect("readable").violations.len(), 1);
        // A sibling without a profile is slowed down.
        let bad = [switch(0, 7), event(0, 7, own, own)];
        assert_eq!(check(&bad.concat(), &profiles, default).expect("readable").violations.len(), 1);
    }
}
