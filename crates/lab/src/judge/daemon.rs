//! `daemon`: what a live powerd and a live burst decided on a stock kernel, against `policy`'s.
//!
//! The daemon's recording has the ticks of each CPU as `/proc/stat` showed them, and the speeds that followed. The same ticks go
//! through the policy, built for the same levels and domains; every speed must be the same.

use crate::files::read;
use crate::guest::Returned;
use crate::verdict::JudgeTold;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use wattwise_policy::ticks::sample;
use wattwise_policy::{
    Autonomy, Cadence, CpuSample, DomainInfo, DomainSample, Intent, Khz, Level, Observation, Platform,
    PowerSource, SampleScope, Settings, SpeedPolicy, speed,
};

#[derive(Deserialize)]
struct WitnessDomain {
    cpus: Vec<u16>,
    khz: Vec<u32>,
    low: u32,
    high: u32,
}

#[derive(Deserialize)]
struct Begun {
    policy: String,
    tick_ns: u64,
    cpus: u16,
    domains: Vec<WitnessDomain>,
}

#[derive(Deserialize)]
struct Decided {
    at_ns: u64,
    start: bool,
    source: String,
    celsius: Option<f64>,
    ticks: Vec<[u64; 3]>,
    before: Vec<u32>,
    khz: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WitnessLine {
    Begun(Begun),
    Decided(Decided),
}

/// The policy itself, fed what the daemon saw.
struct WitnessReplay {
    begun: Begun,
    policy: Box<dyn SpeedPolicy>,
    platform: Platform,
    intent: Intent,
    then: Vec<[u64; 3]>,
}

impl WitnessReplay {
    fn new(begun: Begun) -> Result<WitnessReplay, String> {
        let info = |d: &WitnessDomain| DomainInfo {
            cpus: d.cpus.clone(),
            levels: d.khz.iter().map(|k| Level { khz: Khz(*k), busy_uw: None }).collect(),
            transition_ns: 20_000,
            base: Khz(d.khz.first().copied().unwrap_or(0)),
            boost_with: None,
            load_full: Khz(d.khz.first().copied().unwrap_or(0)),
            capacity: 1024,
        };
        let platform = Platform {
            domains: begun.domains.iter().map(info).collect(),
            cpus: begun.cpus,
            tick_ns: begun.tick_ns,
            load_invariant: false,
            boost: true,
            deepest_idle_uw: None,
            awake_uw: None,
            autonomy: Autonomy::default(),
        };
        let (name, list) = begun.policy.split_once(':').unwrap_or((&begun.policy, ""));
        let found = speed::find(name).ok_or_else(|| format!("no policy '{name}'"))?;
        let settings = Settings::parse(found.params, list).map_err(|e| e.to_string())?;
        let policy = (found.build)(&platform, &settings);
        let intent = Intent::neutral(platform.domains.len());
        Ok(WitnessReplay { begun, policy, platform, intent, then: Vec::new() })
    }

    /// The speed of each domain after that look.
    fn decide(&mut self, seen: &Decided) -> Vec<u32> {
        let passed = |cpu: usize| -> CpuSample {
            let (Some(now), Some(then)) = (seen.ticks.get(cpu), self.then.get(cpu)) else {
                return CpuSample::default();
            };
            let [busy, idle, iowait] = [0, 1, 2].map(|at| now[at].saturating_sub(then[at]));
            sample(busy, idle, iowait, self.begun.tick_ns)
        };
        let cpus: Vec<CpuSample> = (0..usize::from(self.begun.cpus)).map(passed).collect();
        self.then.clone_from(&seen.ticks);
        let limits = self.begun.domains.iter().zip(&seen.before);
        let limits =
            limits.map(|(d, khz)| DomainSample { khz: Khz(*khz), min: Khz(d.low), max: Khz(d.high) });
        let domains: Vec<DomainSample> = limits.collect();
        let source = match seen.source.as_str() {
            "mains" => PowerSource::Mains,
            "battery" => PowerSource::Battery,
            _ => PowerSource::Unknown,
        };
        let scopes = match (self.policy.cadence(), seen.start) {
            (Cadence::Tick, false) => (0..self.begun.cpus).map(SampleScope::Cpu).collect(),
            _ => vec![SampleScope::All],
        };
        for scope in scopes {
            let obs = Observation {
                now_ns: seen.at_ns,
                asks: true,
                scope,
                cpus: &cpus,
                domains: &domains,
                source,
                temperature_mc: seen.celsius.map(|c| (c * 1000.0) as i32),
            };
            self.intent.next_ns = None;
            match seen.start {
                true => self.policy.start(&obs, &mut self.intent),
                false => self.policy.observe(&obs, &mut self.intent),
            }
        }
        let wanted = self.platform.domains.iter().zip(&self.intent.domains);
        wanted.map(|(d, want)| d.at_least(want.desired).0).collect()
    }
}

/// Decisions and changes of speed of each policy.
fn replayed(text: &str) -> Result<BTreeMap<String, (usize, usize)>, String> {
    let (mut replay, mut counts) = (None, BTreeMap::<String, (usize, usize)>::new());
    for (number, line) in text.lines().enumerate() {
        let line = serde_json::from_str(line).map_err(|e| format!("line {}: {e}", number + 1))?;
        let seen = match line {
            WitnessLine::Begun(begun) => {
                replay = Some(WitnessReplay::new(begun)?);
                continue;
            }
            WitnessLine::Decided(seen) => seen,
        };
        let replay = replay.as_mut().ok_or("a decision before any policy")?;
        let expected = replay.decide(&seen);
        if seen.khz != expected {
            return Err(format!(
                "line {}: {} decided {:?}, its rule {expected:?}",
                number + 1,
                replay.begun.policy,
                seen.khz
            ));
        }
        let count = counts.entry(replay.begun.policy.clone()).or_default();
        *count = (count.0 + 1, count.1 + usize::from(seen.khz != seen.before));
    }
    Ok(counts)
}

pub(crate) fn judge(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let counts = replayed(&read(&returned.folder.join("decisions.jsonl"))?)?;
    let mut told = JudgeTold::default();
    for (policy, least) in [("powerd:load=max", 30), ("burst", 500)] {
        let (decisions, changes) = counts.get(policy).copied().unwrap_or_default();
        if decisions < least || changes < 4 {
            return Err(format!(
                "{policy}: {decisions} decisions and {changes} changes of speed are too few"
            ));
        }
        told.figures.push(format!("{policy}: {decisions} decisions, {changes} changes of speed"));
        told.checks.push(format!("{policy} decides as the model"));
    }
    let status = read(&returned.folder.join("status.json"))?;
    let status: serde_json::Value = serde_json::from_str(&status).map_err(|e| format!("status.json: {e}"))?;
    if status["followed"] != "burst" || status["foreign_writes"] != 0 {
        return Err(format!("the daemon tells {status}"));
    }
    told.checks.push("no foreign writes".into());
    Ok(told)
}

/// Most time between a kill and the last file put back, by the guest's clock.
const PUT_BACK_MS: u64 = 2000;

/// Under systemd: the guest has checked all but how long it took.
pub(crate) fn judge_systemd(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let number = |key| returned.lines.iter().filter_map(move |line| line.get(key)?.as_u64());
    let longest = number("took_ms").max().ok_or("no kill was timed")?;
    if longest > PUT_BACK_MS {
        return Err(format!("put back {longest} ms after a kill, at most {PUT_BACK_MS}"));
    }
    let (kills, in_force) = (number("took_ms").count(), number("in_force").sum::<u64>());
    Ok(JudgeTold {
        figures: vec![format!(
            "{kills} kills, {in_force} with values in force: put back within {longest} ms"
        )],
        checks: vec![format!("put back within {} s", PUT_BACK_MS / 1000)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_back_too_late_is_named() {
        let of = |took_ms: u64| Returned {
            lines: vec![
                serde_json::json!({ "kill": 1, "took_ms": 10 }),
                serde_json::json!({ "kill": 2, "took_ms": took_ms }),
                serde_json::json!({ "kills": 2, "in_force": 1 }),
            ],
            folder: Default::default(),
            seconds: 0.0,
            accel: "tcg",
        };
        let told = judge_systemd(Path::new(""), &of(1999)).expect("in time");
        assert_eq!(told.figures, ["2 kills, 1 with values in force: put back within 1999 ms"]);
        assert!(judge_systemd(Path::new(""), &of(2001)).is_err_and(|e| e.contains("2001 ms")));
        assert!(judge_systemd(Path::new(""), &Returned { lines: Vec::new(), ..of(0) }).is_err());
    }

    const BEGUN: &str = r#"{"policy":"burst:busy=0","tick_ns":10000000,"cpus":1,"domains":[{"cpus":[0],"khz":[2000000,1000000],"low":1000000,"high":2000000}]}"#;

    fn line(start: bool, ticks: [u64; 3], khz: u32) -> String {
        format!(
            "{{\"at_ns\":0,\"start\":{start},\"source\":\"mains\",\"celsius\":null,\"ticks\":[{ticks:?}],\"before\":[2000000],\"khz\":[{khz}]}}"
        )
    }

    #[test]
    fn a_decision_of_anothers_is_named() {
        let idle = |n: u64, khz| line(false, [0, n, 0], khz);
        let first = line(true, [0, 0, 0], 2_000_000);
        let down = [idle(1, 2_000_000), idle(2, 2_000_000), idle(3, 2_000_000), idle(4, 1_000_000)];
        let text = format!("{BEGUN}\n{first}\n{}\n", down.join("\n"));
        assert_eq!(replayed(&text).expect("the same").get("burst:busy=0"), Some(&(5, 1)));
        let wrong = text.replace("[1000000]}", "[2000000]}");
        assert!(replayed(&wrong).is_err_and(|e| e.starts_with("line 6: burst")));
    }
}
