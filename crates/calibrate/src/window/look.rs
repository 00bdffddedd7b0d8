//! Counters at the ends of a window. What looking costs is in every window, so as few files are read as may be: they are found
//! once, and a sensor that nobody asked for is left alone.

use crate::layout::Layout;
use crate::site::Site;
use crate::site::clock::{cycles, mean_khz, read_registers};
use crate::window::spoiled::Spoiled;
use std::collections::BTreeMap;
use wattwise_hw::cpus::proc_stat::{Stat, StatFile};
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::msr::counters::{PACKAGE_STATES, TSC};
use wattwise_hw::root::{Root, number};
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_hw::states::sensors;
use wattwise_hw::states::sensors::sensors;
use wattwise_model::machine::MachineModel;

/// Where a machine keeps its counters.
pub(crate) struct Counters {
    /// By CPU: name and file of each C-state that does not poll.
    idle: BTreeMap<u32, Vec<(String, String)>>,
    /// The thermometers, and whether they are known to be the processor's.
    celsius: Vec<String>,
    of_processor: bool,
    /// Each package's CPUs.
    packages: Vec<Vec<u32>>,
    /// Registers of the package states; empty where one has none.
    package_states: Vec<u64>,
}

/// Counters at an end of a window.
pub(crate) struct CounterLook {
    pub(crate) at_s: f64,
    pub(crate) stat: Stat,
    /// CPU time of our own so far, in s.
    pub(crate) own_s: f64,
    /// CPU time of each CPU's load so far, in s.
    pub(crate) load_s: Vec<(u32, f64)>,
    /// By CPU, us in each C-state that does not poll.
    idle_us: BTreeMap<u32, Vec<u64>>,
    /// TSC, MPERF, APERF of the busy CPUs.
    clocks: Vec<(u32, [u64; 3])>,
    /// TSC and the counters of the package states, by package.
    pub(crate) packages: Vec<Option<(u64, Vec<u64>)>>,
}

impl Counters {
    /// Finds them.
    pub(crate) fn find(
        root: &dyn Root,
        topology: &Topology,
        machine: &MachineModel,
        layout: &Layout,
    ) -> Counters {
        let cpuidle = Cpuidle::read(root, topology);
        let of = |cpu: u32, index: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}/time");
        let idle = cpuidle
            .cpus()
            .iter()
            .map(|c| (c.cpu, crate::gather::idle_states(c).map(|s| (s.name, of(c.cpu, s.index))).collect()));
        let states = machine.packages[0].idle.iter();
        let register =
            |name: &str| PACKAGE_STATES.iter().find(|(_, n)| *n == name).map(|(a, _)| u64::from(*a));
        let (celsius, of_processor) = thermometers(root);
        Counters {
            idle: idle.collect(),
            celsius,
            of_processor,
            packages: layout
                .packages
                .iter()
                .map(|p| p.iter().flatten().flatten().copied().collect())
                .collect(),
            package_states: states.map(|s| register(&s.name)).collect::<Option<_>>().unwrap_or_default(),
        }
    }

    /// A look at the machine, of which CPUs are busy for a share of the time.
    pub(crate) fn look(&self, site: &dyn Site, loads: &[(u32, f64)]) -> Result<CounterLook, Spoiled> {
        let root = site.root();
        let stat = StatFile::open(root)
            .and_then(|mut f| f.look())
            .map_err(|e| Spoiled::Again(format!("proc/stat: {e}")))?;
        let time = |file: &String| {
            number(root, file)
                .ok_or_else(|| Spoiled::Again(format!("{file}: expected the time in a C-state")))
        };
        let idle_us = self.idle.iter().map(|(cpu, states)| {
            Ok((*cpu, states.iter().map(|(_, file)| time(file)).collect::<Result<_, _>>()?))
        });
        let idle_us = idle_us.collect::<Result<_, _>>()?;
        let busy = loads.iter().filter(|(_, share)| *share >= 1.0);
        let clocks = busy.filter_map(|(cpu, _)| Some((*cpu, cycles(root, *cpu)?)));
        // The counters of a package are read on the CPU where we run: no other is woken for it.
        let own = site.own_cpu();
        let packages = self.packages.iter().map(|package| {
            let all: Vec<u64> = std::iter::once(u64::from(TSC)).chain(self.package_states.clone()).collect();
            let read = read_registers(root, *package.iter().find(|cpu| **cpu == own)?, &all)?;
            Some((read[0], read[1..].to_vec()))
        });
        Ok(CounterLook {
            clocks: clocks.collect(),
            packages: packages.collect(),
            at_s: site.moment().boot_s,
            own_s: site.own_s(),
            load_s: loads.iter().map(|(cpu, _)| (*cpu, site.load_s(*cpu))).collect(),
            stat,
            idle_us,
        })
    }

    /// Seconds of a CPU in each C-state that does not poll, by name.
    pub(crate) fn state_times<'a>(
        &'a self,
        cpu: u32,
        before: &CounterLook,
        after: &CounterLook,
    ) -> Vec<(&'a str, f64)> {
        let Some((b, a)) = before.idle_us.get(&cpu).zip(after.idle_us.get(&cpu)) else { return Vec::new() };
        let names = self.idle[&cpu].iter().map(|(name, _)| name.as_str());
        let seconds = b.iter().zip(a).map(|(b, a)| a.saturating_sub(*b) as f64 * 1e-6);
        names.zip(seconds).collect()
    }

    /// The mean of the processor's thermometers, in degrees Celsius; where none is known to be its, the highest of all.
    pub(crate) fn temperature(&self, root: &dyn Root) -> Option<f64> {
        // A sensor can fail on the way: what cannot be is no reading.
        let read = |file: &String| sensors::celsius(number(root, file)?);
        let celsius: Vec<f64> = self.celsius.iter().filter_map(read).collect();
        let highest = celsius.iter().copied().reduce(f64::max)?;
        let mean = celsius.iter().sum::<f64>() / celsius.len() as f64;
        Some(if self.of_processor { mean } else { highest })
    }
}

impl CounterLook {
    /// Whether the clock of a CPU was read.
    pub(crate) fn has_clock(&self, cpu: u32) -> bool {
        self.clocks.iter().any(|(c, _)| *c == cpu)
    }
}

/// Those of the processor, and whether they are known to be its; else all.
fn thermometers(root: &dyn Root) -> (Vec<String>, bool) {
    let (all, names) = (sensors(root).temperatures, ["pkg", "package", "k10temp tctl", "cpu"]);
    let of_processor = |name: &str| names.iter().any(|word| name.to_ascii_lowercase().contains(word));
    let own: Vec<String> = all.iter().filter(|t| of_processor(&t.name)).map(|t| t.path.clone()).collect();
    match own.is_empty() {
        true => (all.into_iter().map(|t| t.path).collect(), false),
        false => (own, true),
    }
}

/// The mean clock of a busy CPU between two looks, in kHz.
pub(crate) fn clock(cpu: u32, before: &CounterLook, after: &CounterLook, seconds: f64) -> Option<f64> {
    let of = |look: &CounterLook| look.clocks.iter().find(|(c, _)| *c == cpu).map(|(_, r)| *r);
    let (b, a) = of(before).zip(of(after))?;
    mean_khz(b, a, seconds)
}
