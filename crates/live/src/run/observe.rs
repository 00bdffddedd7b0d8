//! What a machine does over a window: energy, residencies, context switches, temperature.
//!
//! Counters are read twice, at the window's ends; what is read is opened once, before. A figure that the
//! machine cannot give is missing with its reason, never 0.

use crate::run::priced::{Prices, ResidencyModel, ResidencyReading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use wattwise_figure::Provenance;
use wattwise_hw::capture::expand;
use wattwise_hw::clock::now;
use wattwise_hw::root::text;
use wattwise_hw::root::{Access, Node, Root};
use wattwise_hw::states::cpufreq::folders;
use wattwise_hw::states::sensors::sensors;
use wattwise_hw::states::supply::{Feeds, SupplySource, supply};
use wattwise_meter::battery::{BatteryError, Drawn, Gauge};
use wattwise_meter::{Energy, Meter};
use wattwise_model::machine::MachineModel;

/// What happened within a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Observed {
    /// The window, s.
    pub window_s: f64,
    /// Of the whole machine over the window, J.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// How that came about, or why there is none.
    pub energy: Option<Provenance>,
    /// Every metered domain, also those inside others: (name, J).
    pub domains: Vec<(String, f64)>,
    /// CPU time in each C-state, all CPUs: (state, s).
    pub idle: Vec<(String, f64)>,
    /// Times that an idle CPU was woken; none where the kernel keeps no count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeups: Option<u64>,
    /// Time at each speed, summed over the frequency domains: (kHz, s).
    pub speeds: Vec<(u64, f64)>,
    /// Context switches of the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<u64>,
    /// CPU time of everything but the command, s (counted in ticks of 10 ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_s: Option<f64>,
    /// What the battery's gauge showed, where it is the meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<Discharge>,
    /// Hottest sensor at the start and at the end, °C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<(f64, f64)>,
    /// Why figures of this window are not comparable with others.
    pub disturbed: Vec<String>,
}

/// The battery's charge at the three moments of its protocol (001), Wh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Discharge {
    /// At the start.
    pub before_wh: f64,
    /// When the command had ended.
    pub after_wh: f64,
    /// At the end of the window.
    pub end_wh: f64,
    /// Mean power between the first and the last move of the gauge, W.
    pub mean_w: f64,
}

/// A counter in a file of its own.
struct CounterFile {
    name: String,
    node: Box<dyn Node>,
}

impl CounterFile {
    fn open(root: &dyn Root, path: &str, name: String) -> Option<CounterFile> {
        Some(CounterFile { name, node: root.open(path, Access::Read).ok()? })
    }

    fn read(&mut self) -> u64 {
        let mut page = [0; 32];
        let n = self.node.read_at(0, &mut page).unwrap_or(0);
        std::str::from_utf8(&page[..n]).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0)
    }
}

/// A look at everything but the meters.
#[derive(Default)]
struct RunLook {
    at: f64,
    boot: f64,
    idle_us: Vec<u64>,
    idle_usage: Vec<u64>,
    speeds: BTreeMap<u64, u64>,
    stat: Option<StatReading>,
    throttles: u64,
    celsius: Option<f64>,
    source: SupplySource,
    residency: ResidencyReading,
}

/// What a window is priced by where nothing meters it.
enum Model {
    Residency(ResidencyModel),
    /// The kernel counts no C-states: the command's CPU time is all there is.
    CpuTime(Prices),
}

/// The battery as meter.
#[derive(Default)]
struct BatteryMeter {
    gauge: Gauge,
    /// An adapter that is online though the battery discharges.
    beside: Option<String>,
    shows: Discharge,
    failed: Option<BatteryError>,
}

/// Watches a machine.
pub struct Observer<'r> {
    root: &'r dyn Root,
    meter: Meter,
    model: Option<Model>,
    battery: Option<BatteryMeter>,
    idle_time: Vec<CounterFile>,
    idle_usage: Vec<CounterFile>,
    speeds: Vec<Box<dyn Node>>,
    throttles: Vec<CounterFile>,
    stat: Option<Box<dyn Node>>,
    sensors: bool,
    cpus: wattwise_hw::cpus::set::CpuSet,
    /// Whether it is the machine that we run on.
    live: bool,
    start: RunLook,
}

/// How long a counter has for its first move, before it counts as standing still.
const PATIENCE: Duration = Duration::from_millis(200);

impl<'r> Observer<'r> {
    /// Opens what there is. Where nothing meters energy, `prices` says whose watts stand in.
    pub fn open(root: &'r dyn Root, prices: Option<&MachineModel>) -> Observer<'r> {
        let mut meter = Meter::open(root);
        meter.self_test(PATIENCE, std::thread::sleep);
        let online = wattwise_hw::cpus::topology::Topology::read(root).online;
        let model = match prices {
            Some(machine) if meter.is_empty() => match ResidencyModel::open(root, machine) {
                Ok(model) => Some(Model::Residency(model)),
                Err(_) => Prices::of(machine, online.iter().count()).ok().map(Model::CpuTime),
            },
            _ => None,
        };
        let (mut idle_time, mut idle_usage) = (Vec::new(), Vec::new());
        for path in expand(root, "sys/devices/system/cpu/cpu*/cpuidle/state*/time") {
            let folder = path.trim_end_matches("/time");
            let name = text(root, &format!("{folder}/name")).unwrap_or_default();
            if let (Some(time), Some(usage)) = (
                CounterFile::open(root, &path, name.clone()),
                CounterFile::open(root, &format!("{folder}/usage"), name),
            ) {
                idle_time.push(time);
                idle_usage.push(usage);
            }
        }
        let speeds = folders(root)
            .iter()
            .filter_map(|f| root.open(&format!("{f}/stats/time_in_state"), Access::Read).ok())
            .collect();
        let throttles = expand(root, "sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count")
            .iter()
            .filter_map(|p| CounterFile::open(root, p, String::new()))
            .collect();
        let sensors = !sensors(root).temperatures.is_empty();
        let stat = root.open("proc/stat", Access::Read).ok();
        Observer {
            root,
            meter,
            model,
            battery: None,
            idle_time,
            idle_usage,
            speeds,
            throttles,
            stat,
            sensors,
            cpus: online,
            live: root.is_this_machine(),
            start: RunLook::default(),
        }
    }

    /// With the battery's gauge for a meter: the machine must run on it.
    pub fn open_on_battery(root: &'r dyn Root) -> Result<Observer<'r>, BatteryError> {
        Gauge::default().look(root, 0.0)?;
        Ok(Observer { battery: Some(BatteryMeter::default()), ..Observer::open(root, None) })
    }

    /// How often [`Observer::beat`] must be called within a window, if at all.
    pub fn pace(&self) -> Option<Duration> {
        if self.battery.is_some() {
            return Some(Duration::from_secs(1));
        }
        let longest_s = self.meter.longest_s();
        // Ten years are as good as never.
        (longest_s < 3e8).then(|| Duration::from_secs_f64(longest_s))
    }

    /// Whether energy is metered, modelled or neither.
    pub fn energy_comes_from(&self) -> Provenance {
        match &self.model {
            _ if self.battery.is_some() => Provenance::Measured { by: BATTERY.to_owned() },
            _ if !self.meter.is_empty() => Provenance::Measured { by: "the machine's meters".to_owned() },
            Some(Model::Residency(_)) | Some(Model::CpuTime(_)) => {
                Provenance::Modelled { by: self.model_name() }
            }
            None => self.meter.energy().provenance,
        }
    }

    fn model_name(&self) -> String {
        match &self.model {
            Some(Model::Residency(m)) => format!(
                "C-state residencies at the watts of {}, other programs' time awake left out",
                m.machine()
            ),
            Some(Model::CpuTime(p)) => {
                format!(
                    "the command's CPU time at the watts of {}, all else in its deepest C-state",
                    p.machine()
                )
            }
            None => String::new(),
        }
    }

    /// Begins a window.
    pub fn begin(&mut self) {
        self.start = self.look();
        self.meter.begin(now());
        if let Some(battery) = &mut self.battery {
            *battery = BatteryMeter::default();
            battery.shows.before_wh = battery.look(self.root);
        }
    }

    /// Follows counters that could wrap.
    pub fn beat(&mut self) {
        self.meter.sample(now());
        if let Some(battery) = &mut self.battery {
            battery.look(self.root);
        }
    }

    /// What is metered since the window began, while it goes on; `cpu_s` is the command's CPU time so far.
    pub fn joules_so_far(&mut self, cpu_s: f64) -> Option<f64> {
        self.meter.sample(now());
        if let Some(battery) = &mut self.battery {
            battery.shows.after_wh = battery.look(self.root);
        }
        let window_s = now().monotonic_s - self.start.at;
        self.priced(cpu_s, window_s).0
    }

    fn priced(&mut self, cpu_s: f64, window_s: f64) -> (Option<f64>, Provenance, Vec<(String, f64)>) {
        if let Some(battery) = &mut self.battery {
            return battery.energy(window_s);
        }
        match &mut self.model {
            None => {
                let Energy { joules, provenance, domains } = self.meter.energy();
                (joules, provenance, domains.iter().map(|d| (d.domain.to_string(), d.total.joules)).collect())
            }
            Some(Model::Residency(model)) => {
                let after = model.read();
                let m = model.between(&self.start.residency, &after, window_s);
                (Some(m.charged_j(cpu_s)), Provenance::Modelled { by: self.model_name() }, Vec::new())
            }
            Some(Model::CpuTime(prices)) => {
                let joules = prices.cpu_time_j(cpu_s, window_s);
                (Some(joules), Provenance::Modelled { by: self.model_name() }, Vec::new())
            }
        }
    }

    /// Ends a window in which the command used `cpu_s` of CPU time.
    pub fn end(&mut self, cpu_s: f64) -> Observed {
        self.beat();
        let end = self.look();
        let start = std::mem::take(&mut self.start);
        let window_s = end.at - start.at;
        self.start.residency = start.residency.clone();
        let (joules, provenance, domains) = self.priced(cpu_s, window_s);
        let mut disturbed = Vec::new();
        let asleep_s = (end.boot - start.boot) - window_s;
        if asleep_s > 0.1 {
            disturbed.push(format!("the machine was suspended for {asleep_s:.1} s"));
        }
        if end.throttles > start.throttles {
            disturbed.push(format!("the CPU was throttled {} times", end.throttles - start.throttles));
        }
        if end.source != start.source {
            disturbed.push("the power source changed".to_owned());
        }
        let mut idle: Vec<(String, f64)> = Vec::new();
        for (count, (b, a)) in self.idle_time.iter().zip(start.idle_us.iter().zip(&end.idle_us)) {
            let s = a.saturating_sub(*b) as f64 / 1e6;
            match idle.iter_mut().find(|(name, _)| *name == count.name) {
                Some((_, sum)) => *sum += s,
                None => idle.push((count.name.clone(), s)),
            }
        }
        // In a copy nothing moves: that is not a machine whose CPUs were busy, or slept, all the time.
        let stands_still = !self.live
            && !self.idle_usage.is_empty()
            && (&start.idle_us, &start.idle_usage) == (&end.idle_us, &end.idle_usage);
        if stands_still {
            idle.clear();
        }
        let modelled = self.battery.is_none() && matches!(self.model, Some(Model::Residency(_)));
        let (joules, provenance) = match stands_still && modelled {
            true => {
                (None, Provenance::Unavailable { why: "the counters of its C-states stand still".to_owned() })
            }
            false => (joules, provenance),
        };
        let stats = start
            .stat
            .zip(end.stat)
            .filter(|(b, a)| self.live || b.switches != a.switches || b.busy_s != a.busy_s);
        let usage = start.idle_usage.iter().zip(&end.idle_usage).map(|(b, a)| a.saturating_sub(*b)).sum();
        let speeds = end
            .speeds
            .iter()
            .map(|(khz, ticks)| {
                (*khz, ticks.saturating_sub(start.speeds.get(khz).copied().unwrap_or(0)) as f64 / 100.0)
            })
            .collect();
        Observed {
            window_s,
            joules,
            energy: Some(provenance),
            domains,
            idle,
            wakeups: (!self.idle_usage.is_empty() && !stands_still).then_some(usage),
            speeds,
            context_switches: stats.map(|(b, a)| a.switches.saturating_sub(b.switches)),
            others_s: stats.map(|(b, a)| (a.busy_s - b.busy_s - cpu_s).max(0.0)),
            battery: self.battery.as_ref().map(|b| b.shows),
            celsius: start.celsius.zip(end.celsius),
            disturbed,
        }
    }

    fn look(&mut self) -> RunLook {
        if !self.idle_time.is_empty() && self.live {
            wattwise_hw::cpus::wake::wake(self.cpus.iter());
        }
        let at = now();
        RunLook {
            at: at.monotonic_s,
            boot: at.boot_s,
            idle_us: self.idle_time.iter_mut().map(CounterFile::read).collect(),
            idle_usage: self.idle_usage.iter_mut().map(CounterFile::read).collect(),
            speeds: self.speeds.iter_mut().map(time_in_state).fold(BTreeMap::new(), |mut all, one| {
                one.into_iter().for_each(|(khz, ticks)| *all.entry(khz).or_default() += ticks);
                all
            }),
            stat: self.stat.as_mut().and_then(stat),
            throttles: self.throttles.iter_mut().map(CounterFile::read).sum(),
            celsius: if self.sensors { self.celsius() } else { None },
            source: supply(self.root).source,
            residency: match &mut self.model {
                Some(Model::Residency(model)) => model.read(),
                _ => ResidencyReading::default(),
            },
        }
    }

    /// The hottest sensor's temperature.
    pub fn celsius(&self) -> Option<f64> {
        sensors(self.root).temperatures.iter().map(|t| t.celsius).reduce(f64::max)
    }
}

/// `stats/time_in_state`: (kHz, ticks of 10 ms).
fn time_in_state(node: &mut Box<dyn Node>) -> Vec<(u64, u64)> {
    let mut page = [0; 4096];
    let n = node.read_at(0, &mut page).unwrap_or(0);
    let text = std::str::from_utf8(&page[..n]).unwrap_or_default();
    text.lines()
        .filter_map(|l| l.split_once(' '))
        .filter_map(|(khz, ticks)| Some((khz.parse().ok()?, ticks.trim().parse().ok()?)))
        .collect()
}

/// Of `/proc/stat`.
#[derive(Clone, Copy)]
struct StatReading {
    /// CPU time neither idle nor waiting for a disk, s, all CPUs.
    busy_s: f64,
    switches: u64,
}

/// Reads `/proc/stat`: its `ctxt` stands behind all CPUs and interrupts.
fn stat(node: &mut Box<dyn Node>) -> Option<StatReading> {
    let mut text = Vec::new();
    let mut page = [0; 8192];
    loop {
        let n = node.read_at(text.len() as u64, &mut page).ok()?;
        text.extend_from_slice(&page[..n]);
        if n == 0 || text.len() > 1 << 20 {
            break;
        }
    }
    parse_stat(std::str::from_utf8(&text).ok()?)
}

fn parse_stat(text: &str) -> Option<StatReading> {
    let ticks: Vec<u64> = text
        .lines()
        .find_map(|l| l.strip_prefix("cpu "))?
        .split_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is in user's already.
    let busy: u64 =
        ticks.iter().take(8).enumerate().filter(|(at, _)| ![3, 4].contains(at)).map(|(_, t)| t).sum();
    let switches = text.lines().find_map(|l| l.strip_prefix("ctxt "))?.trim().parse().ok()?;
    Some(StatReading { busy_s: busy as f64 / 100.0, switches })
}

const BATTERY: &str = "the battery's gauge";

impl BatteryMeter {
    /// Looks at the gauge; what is left, Wh.
    fn look(&mut self, root: &dyn Root) -> f64 {
        let supply = supply(root);
        let online = supply.adapters.iter().find(|a| a.feeds == Feeds::Machine);
        self.beside = online.map(|a| a.name.clone()).or(self.beside.take());
        match self.gauge.take(&supply, now().monotonic_s) {
            Ok(look) => self.shows.end_wh = look.wh,
            Err(e) => self.failed = Some(e),
        }
        self.shows.end_wh
    }

    fn energy(&mut self, window_s: f64) -> (Option<f64>, Provenance, Vec<(String, f64)>) {
        let result = match self.failed.clone() {
            Some(e) => Err(e),
            None => self.gauge.result(),
        };
        match result {
            Ok(Drawn { mean_w, .. }) => {
                self.shows.mean_w = mean_w;
                let beside = self.beside.as_ref().map(|adapter| {
                    format!(" ({adapter} says that it is online: what it gives is not counted)")
                });
                let by = format!("{BATTERY}{}", beside.unwrap_or_default());
                (Some(mean_w * window_s), Provenance::Measured { by }, Vec::new())
            }
            Err(e) => (None, Provenance::Unavailable { why: e.to_string() }, Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_neither_idle_nor_disk() {
        let stat = parse_stat("cpu  10 20 30 400 50 6 7 8 9 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 1\nctxt 77\n");
        assert!(stat.is_some_and(|s| s.switches == 77 && (s.busy_s - 0.81).abs() < 1e-9));
        assert!(parse_stat("cpu  1 2 3\n").is_none());
    }
}
