//! `burst`: the module's decisions against `policy::burst`'s, tick by tick.
//!
//! The module's tracepoint tells what each look found (idle ticks, a busy tick or not) and what it decided.
//! The same sequence goes through the Rust policy, built for the same levels and domains; every
//! wish and every request must be equal.

use crate::files::read;
use crate::guest::Returned;
use crate::verdict::JudgeTold;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use wattwise_policy::{
    CpuSample, DomainInfo, DomainSample, Intent, Khz, Level, Observation, Platform, PowerSource, SampleScope,
    Settings, SpeedPolicy, speed,
};

/// Debian's HZ is 250.
const TICK_NS: u64 = 4_000_000;
/// What the scenario loads vpower with: its default levels, and these domains.
const KHZ: &[u32] = &[2_400_000, 2_000_000, 1_600_000, 1_200_000, 800_000, 400_000];
const DOMAINS: &[&[u16]] = &[&[0, 1], &[2], &[3]];

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BurstEvent {
    policy: u16,
    seq: u64,
    cpu: u16,
    idle: u64,
    busy: u64,
    wish: usize,
    khz: u32,
}

fn parse(text: &str) -> Result<Vec<BurstEvent>, String> {
    let mut looks = Vec::new();
    for line in text.lines() {
        if line.starts_with("CPU:") && line.contains("LOST") {
            return Err("the trace buffer was too small: events are lost".into());
        }
        let Some((_, fields)) = line.split_once(" burst_tick: ") else { continue };
        let fields: HashMap<&str, u64> = fields
            .split_whitespace()
            .filter_map(|f| f.split_once('='))
            .filter_map(|(k, v)| Some((k, v.parse().ok()?)))
            .collect();
        let get = |name: &str| fields.get(name).copied().ok_or_else(|| format!("no {name} in {line:?}"));
        looks.push(BurstEvent {
            policy: get("policy")? as u16,
            seq: get("seq")?,
            cpu: get("cpu")? as u16,
            idle: get("idle")?,
            busy: get("busy")?,
            wish: get("wish")? as usize,
            khz: get("khz")? as u32,
        });
    }
    // In the order of their decisions: within a policy that is the sequence number.
    looks.sort_by_key(|l| (l.policy, l.seq));
    Ok(looks)
}

/// The Rust policy with the module's levels.
struct BurstReplay {
    policy: Box<dyn SpeedPolicy>,
    intent: Intent,
    cpus: Vec<CpuSample>,
    domains: Vec<DomainSample>,
    now_ns: u64,
}

impl BurstReplay {
    fn new(settings: &str) -> Result<BurstReplay, String> {
        let levels: Vec<Level> = KHZ.iter().map(|&k| Level { khz: Khz(k), busy_uw: None }).collect();
        let domains: Vec<DomainInfo> = DOMAINS
            .iter()
            .map(|cpus| DomainInfo {
                cpus: cpus.to_vec(),
                levels: levels.clone(),
                transition_ns: 10_000,
                base: Khz(KHZ[0]),
                boost_with: None,
                load_full: Khz(KHZ[0]),
                capacity: 1024,
            })
            .collect();
        let platform = Platform {
            domains,
            cpus: 4,
            tick_ns: TICK_NS,
            load_invariant: true,
            boost: true,
            deepest_idle_uw: None,
            awake_uw: None,
            autonomy: wattwise_policy::Autonomy::default(),
        };
        let burst = speed::find("burst").ok_or("no policy `burst`")?;
        let settings = Settings::parse(burst.params, settings).map_err(|e| e.to_string())?;
        let mut replay = BurstReplay {
            policy: (burst.build)(&platform, &settings),
            intent: Intent::neutral(DOMAINS.len()),
            cpus: vec![CpuSample::default(); 4],
            domains: vec![
                DomainSample { khz: Khz(KHZ[0]), min: Khz(KHZ[5]), max: Khz(KHZ[0]) };
                DOMAINS.len()
            ],
            now_ns: 0,
        };
        replay.ask(SampleScope::All);
        Ok(replay)
    }

    fn ask(&mut self, scope: SampleScope) {
        let obs = Observation {
            now_ns: self.now_ns,
            asks: true,
            scope,
            cpus: &self.cpus,
            domains: &self.domains,
            source: PowerSource::Unknown,
            temperature_mc: None,
        };
        match scope {
            SampleScope::All => self.policy.start(&obs, &mut self.intent),
            _ => self.policy.observe(&obs, &mut self.intent),
        }
    }

    /// What the policy asks of the look's domain after it.
    fn look(&mut self, look: &BurstEvent) -> u32 {
        self.cpus[usize::from(look.cpu)] = CpuSample {
            busy_ns: look.busy * TICK_NS,
            idle_ns: look.idle * TICK_NS,
            runnable: 1,
            ..CpuSample::default()
        };
        self.now_ns += (look.busy + look.idle) * TICK_NS;
        self.ask(SampleScope::Cpu(look.cpu));
        let d = DOMAINS.iter().position(|cpus| cpus.contains(&look.cpu)).unwrap_or(0);
        self.intent.domains[d].desired.0
    }
}

/// Compares; how many looks, decisions and rises, and the longest run of busy ticks below the top.
fn compare(looks: &[BurstEvent], settings: &str, from_start: bool) -> Result<(usize, usize, u64), String> {
    let mut replay = BurstReplay::new(settings)?;
    let mut before: BTreeMap<u16, BurstEvent> = BTreeMap::new();
    let mut in_force: BTreeMap<u16, u32> = BTreeMap::new();
    let (mut decisions, mut longest) = (0, 0);
    let mut run = [0u64; 4];
    // The recording begins when the governor has run for a while. A CPU's state is known once it
    // reached a corner: enough idle ticks for the lowest level leave no busy count behind.
    let mut known = [from_start; 4];
    let mut quiet = [0u64; 4];
    for look in looks {
        if let Some(last) = before.get(&look.policy)
            && look.seq != last.seq + 1
        {
            return Err(format!(
                "policy {}: {} follows {}: looks are missing",
                look.policy, look.seq, last.seq
            ));
        }
        before.insert(look.policy, *look);
        let wanted = replay.look(look);
        let c = usize::from(look.cpu);
        run[c] = if look.busy > 0 && look.idle == 0 { run[c] + 1 } else { look.busy };
        if look.wish > 0 {
            longest = longest.max(run[c]);
        }
        // An interrupt ends an idle stretch with a look, and a busy host has many: the stretches add up.
        quiet[c] += look.idle;
        known[c] |= quiet[c] >= 100;
        if look.busy > 0 {
            quiet[c] = 0;
        }
        if !known
            .iter()
            .enumerate()
            .all(|(i, k)| *k || DOMAINS.iter().any(|d| d.contains(&(i as u16)) && !d.contains(&look.cpu)))
        {
            continue;
        }
        if look.khz > 0 {
            in_force.insert(look.policy, look.khz);
            decisions += 1;
        }
        if let Some(&khz) = in_force.get(&look.policy)
            && khz != wanted
        {
            return Err(format!("{look:?}: the module runs at {khz} kHz, the policy wants {wanted}"));
        }
    }
    Ok((looks.len(), decisions, longest))
}

pub(crate) fn judge(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let mut told = JudgeTold::default();
    for (file, settings, busy) in
        [("default.txt", "", 3), ("tuned.txt", "busy=1,idle=7,down=proportional", 1)]
    {
        let looks = parse(&read(&returned.folder.join(file))?)?;
        if looks.len() < 100 {
            return Err(format!("{file}: only {} ticks were recorded", looks.len()));
        }
        let (n, decisions, longest) = compare(&looks, settings, false)?;
        if decisions < 10 {
            return Err(format!("{file}: only {decisions} decisions"));
        }
        if longest > busy {
            return Err(format!("{file}: {longest} busy ticks in a row below the highest level"));
        }
        told.checks.push(format!("{file}: decisions equal policy's"));
        told.checks.push(format!("{file}: the top within busy + 1 ticks"));
        told.figures.push(format!("{file}: {n} looks, {decisions} decisions, all equal to policy::burst's; at most {longest} busy ticks in a row below the top"));
    }
    idle(returned, &mut told)?;
    Ok(told)
}

/// Timer interrupts and idle entries of an idle machine.
fn idle(returned: &Returned, told: &mut JudgeTold) -> Result<(), String> {
    let mut by: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for line in &returned.lines {
        let Some(name) = line.get("idle").and_then(Value::as_str) else { continue };
        let get = |key: &str| line.get(key).and_then(Value::as_u64).unwrap_or(0);
        by.entry(name).or_default().push((get("timers"), get("wakes")));
    }
    let middle = |name: &str, of: fn(&(u64, u64)) -> u64| {
        let mut values: Vec<u64> = by.get(name).map(|v| v.iter().map(of).collect()).unwrap_or_default();
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    let mut line = "2 idle seconds, 4 CPUs, median of 3: ".to_owned();
    for name in ["burst", "ondemand", "performance"] {
        let (Some(timers), Some(wakes)) = (middle(name, |v| v.0), middle(name, |v| v.1)) else {
            return Err(format!("no idle figures for {name}"));
        };
        line += &format!("{name} {timers} timer interrupts, {wakes} wake-ups; ");
    }
    told.figures.push(line.trim_end_matches("; ").to_owned());
    // `performance` does nothing at all: what burst has beyond it, with room for chance, it would cause.
    let (burst, none) = (middle("burst", |v| v.0).unwrap_or(0), middle("performance", |v| v.0).unwrap_or(0));
    if burst > none + none / 2 + 60 {
        return Err(format!(
            "an idle machine has {burst} timer interrupts under burst, {none} under performance"
        ));
    }
    told.checks.push("an idle CPU is not woken".into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "  wwload-70 [002] d.h1. 5.1: burst_tick: policy=2 seq=7 cpu=2 idle=120 busy=1 wish=5 khz=400000";

    #[test]
    fn a_line_is_read() {
        let look = BurstEvent { policy: 2, seq: 7, cpu: 2, idle: 120, busy: 1, wish: 5, khz: 400_000 };
        assert_eq!(parse(LINE), Ok(vec![look]));
        assert!(parse("CPU:1 [LOST 5 EVENTS]").is_err());
    }

    #[test]
    fn a_wrong_decision_is_found() {
        let look = |seq, idle, busy, wish, khz| BurstEvent { policy: 2, seq, cpu: 2, idle, busy, wish, khz };
        let mut looks = vec![look(0, 200, 0, 5, 400_000)];
        looks.extend((1..4).map(|seq| look(seq, 0, 1, 5, 0)));
        looks.push(look(4, 0, 1, 0, 2_400_000));
        assert_eq!(compare(&looks, "", false), Ok((5, 2, 3)));
        looks.push(look(5, 4, 0, 1, 1_600_000));
        assert!(compare(&looks, "", false).is_err(), "one level down is 2000");
        looks[5].seq = 9;
        assert!(compare(&looks, "", false).is_err(), "a gap");
    }
}
