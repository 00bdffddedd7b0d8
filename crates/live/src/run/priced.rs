//! Energy where nothing can be metered: time in each state times the state's watts.
//!
//! The model of the coreidle study (002): a CPU's residencies over a window, each state with a power.
//! Its own table, c0 90, c1 63, c3 55, c7 20 W, holds for a whole package; [`package_watts`](wattwise_model::residency::package_watts) is that
//! formula. On a machine of ours the watts come from a machine model and the residencies from cpuidle's
//! counters. Whatever comes out is *modelled*, and says so.

use serde::Serialize;
use wattwise_hw::capture::expand;
use wattwise_hw::root::{Access, Node, Root, text};
use wattwise_model::machine::MachineModel;

/// How hard a CPU was used (004): the share of time not idle, times how fast it ran against its base,
/// from differences of APERF and MPERF over the same window. `None` where MPERF stood still.
pub fn used(not_idle: f64, aperf: u64, mperf: u64) -> Option<f64> {
    (mperf > 0).then(|| not_idle * aperf as f64 / mperf as f64)
}

/// Watts by state, from a machine model, laid over the CPUs of the machine at hand.
pub struct Prices {
    machine: String,
    /// Watts awake, by CPU, and in each of the model's C-states.
    awake_w: Vec<f64>,
    idle_w: Vec<Vec<f64>>,
    /// Watts that flow always.
    base_w: f64,
}

impl Prices {
    /// For `cpus` CPUs; the model's are taken in turn where it has fewer.
    pub fn of(machine: &MachineModel, cpus: usize) -> Result<Prices, String> {
        let (mut awake_w, mut idle_w) = (Vec::new(), Vec::new());
        for at in 0..cpus {
            let cpu =
                machine.cpus.get(at % machine.cpus.len().max(1)).ok_or("the machine model has no CPU")?;
            let kind = &machine.kinds[usize::from(cpu.kind)];
            let threads = machine.cores[usize::from(cpu.core)].cpus.len().max(1) as f64;
            awake_w.push(kind.levels.first().map_or(0.0, |l| l.busy_w) / threads);
            idle_w
                .push(kind.idle.iter().map(|s| s.watts.first().copied().unwrap_or(0.0) / threads).collect());
        }
        let base_w = machine.platform_w + machine.packages.iter().map(|p| p.uncore_w).sum::<f64>();
        Ok(Prices { machine: machine.name.clone(), awake_w, idle_w, base_w })
    }

    /// The model's name.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Energy where only CPU time is known: awake for so long at the first CPU's price, all other CPU time
    /// in the deepest C-state.
    pub fn cpu_time_j(&self, awake_s: f64, window_s: f64) -> f64 {
        let deepest = |cpu: usize| self.idle_w[cpu].last().copied().unwrap_or(0.0);
        let asleep: f64 = (0..self.idle_w.len()).map(deepest).sum();
        let awake_more_w = self.awake_w.first().copied().unwrap_or(0.0) - deepest(0);
        (self.base_w + asleep) * window_s + awake_more_w * awake_s
    }
}

/// A state's counter on one CPU.
struct StateCounter {
    cpu: usize,
    /// Index among the model's C-states; `None` is awake (POLL).
    state: Option<usize>,
    node: Box<dyn Node>,
}

/// Follows the C-state counters of a machine and prices them by a model.
pub struct ResidencyModel {
    prices: Prices,
    counters: Vec<StateCounter>,
}

/// Time in each state since the start, us: one reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResidencyReading(Vec<u64>);

/// What the model makes of a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Modelled {
    /// J, whoever was awake.
    pub joules: f64,
    /// What a second awake costs above the deepest C-state, J: the mean of the CPUs by their time awake.
    pub awake_more_w: f64,
    /// CPU time awake, s, all CPUs.
    pub awake_s: f64,
    /// CPU time in each C-state of the model, s, all CPUs.
    pub idle_s: Vec<f64>,
}

impl Modelled {
    /// What a command is charged that had so much CPU time: the window, less what other programs' time awake costs above the
    /// deepest C-state. A command's CPU time is counted more finely than residencies are, and may come out above them.
    pub fn charged_j(&self, cpu_s: f64) -> f64 {
        self.joules - self.awake_more_w * (self.awake_s - cpu_s).max(0.0)
    }
}

impl ResidencyModel {
    /// Follows a machine's counters with a model's watts. C-states are matched by name, else by depth.
    pub fn open(root: &dyn Root, machine: &MachineModel) -> Result<ResidencyModel, String> {
        let topology = wattwise_hw::cpus::topology::Topology::read(root);
        let cpus: Vec<u32> = topology.online.iter().collect();
        let prices = Prices::of(machine, cpus.len())?;
        let mut counters = Vec::new();
        for (at, cpu) in cpus.iter().enumerate() {
            let kind = &machine.kinds[usize::from(machine.cpus[at % machine.cpus.len()].kind)];
            for path in expand(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state*/time")) {
                let folder = path.trim_end_matches("/time");
                let name = text(root, &format!("{folder}/name")).unwrap_or_default();
                let index: usize = folder.rsplit("state").next().and_then(|n| n.parse().ok()).unwrap_or(0);
                let state = match name.as_str() {
                    "POLL" => None,
                    _ => {
                        let named = kind.idle.iter().position(|s| s.name.eq_ignore_ascii_case(&name));
                        let deepest = kind.idle.len().checked_sub(1);
                        named.or_else(|| deepest.map(|d| index.saturating_sub(1).min(d)))
                    }
                };
                let node = root.open(&path, Access::Read).map_err(|e| format!("/{path}: {e}"))?;
                counters.push(StateCounter { cpu: at, state, node });
            }
        }
        if counters.is_empty() {
            return Err("the kernel counts no time in C-states here".to_owned());
        }
        Ok(ResidencyModel { prices, counters })
    }

    /// Whose watts they are.
    pub fn machine(&self) -> &str {
        self.prices.machine()
    }

    /// Reads the counters.
    pub fn read(&mut self) -> ResidencyReading {
        let mut page = [0; 32];
        let mut number = |node: &mut Box<dyn Node>| -> u64 {
            let n = node.read_at(0, &mut page).unwrap_or(0);
            std::str::from_utf8(&page[..n]).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0)
        };
        ResidencyReading(self.counters.iter_mut().map(|c| number(&mut c.node)).collect())
    }

    /// Prices what lies between two readings taken `window_s` apart.
    pub fn between(&self, before: &ResidencyReading, after: &ResidencyReading, window_s: f64) -> Modelled {
        let Prices { awake_w, idle_w, base_w, .. } = &self.prices;
        let mut idle_s = vec![vec![0.0; idle_w.iter().map(Vec::len).max().unwrap_or(0)]; awake_w.len()];
        for (counter, (b, a)) in self.counters.iter().zip(before.0.iter().zip(&after.0)) {
            if let Some(state) = counter.state {
                idle_s[counter.cpu][state] += a.saturating_sub(*b) as f64 / 1e6;
            }
        }
        let mut joules = base_w * window_s;
        let (mut awake_s, mut awake_more_j) = (0.0, 0.0);
        for (cpu, states) in idle_s.iter().enumerate() {
            // A counter that ends its state late may show a little more than the window.
            let idle: f64 = states.iter().sum::<f64>();
            let awake = (window_s - idle).max(0.0);
            awake_s += awake;
            joules += awake * awake_w[cpu];
            awake_more_j += awake * (awake_w[cpu] - idle_w[cpu].last().copied().unwrap_or(0.0));
            joules += states.iter().zip(&idle_w[cpu]).map(|(s, w)| s * w).sum::<f64>();
        }
        let states = idle_s.first().map_or(0, Vec::len);
        let idle_s = (0..states).map(|at| idle_s.iter().map(|s| s[at]).sum()).collect();
        let awake_more_w = if awake_s > 0.0 { awake_more_j / awake_s } else { 0.0 };
        Modelled { joules, awake_more_w, awake_s, idle_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs for 10 s; one is awake all the time, 4 s of it with the command, the other never.
    #[test]
    fn a_command_is_charged_for_its_own_time_awake() {
        let m = Modelled {
            joules: 10.0 * (5.0 + 3.0 + 0.5),
            awake_more_w: 2.5,
            awake_s: 10.0,
            idle_s: vec![10.0],
        };
        // The base and both CPUs asleep for 10 s, and 4 s of one of them awake.
        assert_eq!(m.charged_j(4.0), 10.0 * (5.0 + 0.5 + 0.5) + 4.0 * 2.5);
        assert_eq!((m.charged_j(10.0), m.charged_j(10.1)), (m.joules, m.joules));
    }

    #[test]
    fn utilisation_by_aperf_and_mperf() {
        assert_eq!(used(0.5, 3_000, 2_000), Some(0.75));
        assert_eq!(used(0.5, 3_000, 0), None);
    }
}
