//! What Prometheus reads: as a file for node_exporter, or asked for at a socket. Off unless asked for.
//!
//! A domain stands in the metric's name (`wattwise_package_joules_total`, `wattwise_dram_joules_total`): packages hold cores,
//! and a sum over one metric of all domains would count twice. Units are base units. In OpenTelemetry's words the
//! package's joules are `hw.energy` of a `cpu`; a whole host's is `hw.host.energy`, which is `wattwise_psys_joules_total` or the
//! battery's, never their sum.

use crate::engine::Engine;
use crate::protocol::Proof;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wattwise_figure::one_line;
use wattwise_hw::clock::Moment;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::{Access, Node, Root, text};
use wattwise_hw::states::supply::SupplySource;
use wattwise_meter::Meter;
use wattwise_meter::domain::Domain;

/// Counters that go on over scrapes.
pub struct Metrics {
    meter: Meter,
    last: Vec<(Domain, f64)>,
    at: Moment,
    residency: ResidencyFiles,
}

const ONLINE: &str = "sys/devices/system/cpu/online";

fn escaped(label: &str) -> String {
    one_line(label).replace('\\', "\\\\").replace('"', "\\\"")
}

fn name(domain: Domain) -> (&'static str, String) {
    let of = |package: u32| format!("{{package=\"{package}\"}}");
    match domain {
        Domain::Battery => ("battery", String::new()),
        Domain::Psys => ("psys", String::new()),
        Domain::Package { package } => ("package", of(package)),
        Domain::Core { package } => ("core", of(package)),
        Domain::Uncore { package } => ("uncore", of(package)),
        Domain::Dram { package } => ("dram", of(package)),
        Domain::Sensor { number } => ("sensor", format!("{{sensor=\"{number}\"}}")),
    }
}

impl Metrics {
    /// Begins to count.
    pub fn open(root: &dyn Root, at: Moment) -> Metrics {
        let mut meter = Meter::open(root);
        meter.begin(at);
        Metrics { meter, last: Vec::new(), at, residency: ResidencyFiles::default() }
    }

    /// Reads the counters, so that none wraps unseen.
    pub fn sample(&mut self, at: Moment) {
        self.meter.sample(at);
    }

    /// How long may pass between two samples, s.
    pub fn longest_s(&self) -> f64 {
        self.meter.longest_s()
    }

    /// All of it, in Prometheus' text format 0.0.4.
    pub fn text(
        &mut self,
        root: &dyn Root,
        engine: &mut Engine<'_>,
        proof: Option<&Proof>,
        at: Moment,
    ) -> String {
        self.meter.sample(at);
        let mut out = String::new();
        self.energy(&mut out, at);
        self.residency.tell(&mut out, root);
        of_daemon(&mut out, engine);
        proof.into_iter().for_each(|proof| of_proof(&mut out, proof));
        out
    }

    fn energy(&mut self, out: &mut String, at: Moment) {
        let passed = at.monotonic_s - self.at.monotonic_s;
        let domains = self.meter.energy().domains;
        let mut now: Vec<(Domain, f64)> = Vec::new();
        for d in &domains {
            if !now.iter().any(|(known, _)| *known == d.domain) {
                now.push((d.domain, d.total.joules));
            }
        }
        let mut headed: Vec<String> = Vec::new();
        let mut line =
            |out: &mut String, metric: String, kind: &str, help: &str, labels: &str, value: f64| {
                if !headed.contains(&metric) {
                    _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
                    headed.push(metric.clone());
                }
                _ = writeln!(out, "{metric}{labels} {value}");
            };
        let mut sorted = now.clone();
        sorted.sort_by_key(|(d, _)| name(*d));
        for (domain, joules) in &sorted {
            let (word, labels) = name(*domain);
            let metric = format!("wattwise_{word}_joules_total");
            line(out, metric, "counter", "Energy since the daemon began.", &labels, *joules);
        }
        for (domain, joules) in &sorted {
            let then = self.last.iter().find(|(d, _)| d == domain).map(|(_, j)| *j);
            if let Some(then) = then.filter(|_| passed > 0.0) {
                let (word, labels) = name(*domain);
                let watts = (joules - then) / passed;
                let metric = format!("wattwise_{word}_watts");
                line(out, metric, "gauge", "Mean power since the last reading.", &labels, watts);
            }
        }
        (self.last, self.at) = (now, at);
    }
}

/// Time in C-states: a file for each state of each CPU. Their names are read and the files opened once, and again when CPUs came or went.
#[derive(Default)]
struct ResidencyFiles {
    online: String,
    /// By name.
    states: BTreeMap<String, Vec<Box<dyn Node>>>,
}

impl ResidencyFiles {
    fn open(root: &dyn Root, online: String) -> ResidencyFiles {
        let mut states: BTreeMap<String, Vec<Box<dyn Node>>> = BTreeMap::new();
        let cpus = CpuSet::parse(online.trim()).unwrap_or_default();
        for cpu in cpus.iter() {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
            for state in root.list(&folder).unwrap_or_default() {
                let path = format!("{folder}/{state}");
                let name = text(root, &format!("{path}/name"));
                let node = root.open(&format!("{path}/time"), Access::Read);
                if let (Some(name), Ok(node)) = (name, node) {
                    states.entry(name).or_default().push(node);
                }
            }
        }
        ResidencyFiles { online, states }
    }

    /// Seconds in a state, all CPUs; one that has just gone is left out.
    fn seconds(nodes: &mut [Box<dyn Node>]) -> f64 {
        let read = |node: &mut Box<dyn Node>| {
            let mut bytes = [0; 32];
            let n = node.read_at(0, &mut bytes).ok()?;
            std::str::from_utf8(&bytes[..n]).ok()?.trim().parse::<u64>().ok()
        };
        nodes.iter_mut().filter_map(read).map(|us| us as f64 / 1e6).sum()
    }

    fn tell(&mut self, out: &mut String, root: &dyn Root) {
        let online = text(root, ONLINE).unwrap_or_default();
        if online != self.online {
            *self = ResidencyFiles::open(root, online);
        }
        if self.states.is_empty() {
            return;
        }
        let metric = "wattwise_cpu_idle_seconds_total";
        _ = writeln!(out, "# HELP {metric} Time of all CPUs in each C-state.\n# TYPE {metric} counter");
        for (name, nodes) in &mut self.states {
            _ = writeln!(out, "{metric}{{state=\"{}\"}} {}", escaped(name), ResidencyFiles::seconds(nodes));
        }
    }
}

fn of_proof(out: &mut String, proof: &Proof) {
    let labels =
        format!("{{baseline=\"{}\",profile=\"{}\"}}", escaped(&proof.baseline), escaped(&proof.profile));
    let [saved, low, high] = proof.saving.map_or([None; 3], |ends| ends.map(Some));
    for (metric, help, value) in [
        (
            "wattwise_proof_saving_ratio",
            "Share of energy that the profile saves against the baseline.",
            saved,
        ),
        ("wattwise_proof_saving_low_ratio", "Low end of that share's interval.", low),
        ("wattwise_proof_saving_high_ratio", "High end of that share's interval.", high),
        (
            "wattwise_proof_measured_seconds",
            "Time that counts for the proof.",
            Some(proof.measured_h * 3600.0),
        ),
        ("wattwise_proof_left_out_seconds", "Time that does not count.", Some(proof.left_out_h * 3600.0)),
    ] {
        let Some(value) = value else { continue };
        _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} gauge\n{metric}{labels} {value}");
    }
}

fn of_daemon(out: &mut String, engine: &mut Engine<'_>) {
    let counts = engine.counts();
    let mut one = |metric: &str, kind: &str, help: &str, value: u64| {
        _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}\n{metric} {value}");
    };
    one("wattwise_writes_total", "counter", "Values written.", counts.writes);
    one("wattwise_failed_writes_total", "counter", "Writes that the kernel refused.", counts.failed);
    one("wattwise_foreign_writes_total", "counter", "Values that other programs wrote.", counts.foreign);
    one(
        "wattwise_profile_transitions_total",
        "counter",
        "Changes of the profile in force.",
        counts.transitions,
    );
    one("wattwise_values", "gauge", "Values that stand for the profile in force.", engine.values() as u64);
    one("wattwise_refused", "gauge", "Wishes that cannot be had here.", engine.refused().len() as u64);
    let battery = engine.brain().facts().is_some_and(|f| f.source == SupplySource::Battery);
    one("wattwise_on_battery", "gauge", "Whether a battery feeds the machine.", u64::from(battery));
    let decision = engine.decision();
    let metric = "wattwise_profile_info";
    _ = writeln!(
        out,
        "# HELP {metric} The profile in force.\n# TYPE {metric} gauge\n{metric}{{profile=\"{}\",ppd=\"{}\"}} 1",
        escaped(&decision.profile),
        decision.ppd.name()
    );
}
