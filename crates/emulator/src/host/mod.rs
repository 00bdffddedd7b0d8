//! The machine behind the tree: what its files mean, how they hang together, how time moves them.
//!
//! The tree's text is the truth for everything that is set; here is only what no file says (the
//! limits that were asked for, remainders of counters, what a CPU does). Times are integer
//! nanoseconds and energies integer microjoules with their remainders, so nothing is lost however
//! time is cut into steps.

pub(crate) mod change;
mod drawn;
mod drivers;
mod parts;
mod physics;
mod plug;
mod policies;
mod power;
mod registers;
mod scan;
mod show;
mod time;
mod truth;
mod writes;

pub(crate) use physics::Physics;
pub use truth::Truth;

use crate::registers::{RegisterDevice, Registers};
use crate::tree::{Id, LiveAttribute, NodeKind, Tree};
use parts::{CpuGroup, HostBattery, HostCpu, HostPolicy, Zone};
use std::collections::BTreeMap;
use std::sync::Arc;
use wattwise_hw::rules::{self, AttributeView};

const CPU: &str = "sys/devices/system/cpu";

pub(crate) struct Host {
    pub(crate) tree: Tree,
    pub(crate) physics: Physics,
    pub(crate) release: (u32, u32),
    pub(crate) cpus: Vec<HostCpu>,
    pub(crate) policies: Vec<HostPolicy>,
    policy_of_folder: BTreeMap<Id, usize>,
    pub(crate) zones: Vec<Zone>,
    batteries: Vec<HostBattery>,
    /// Temperatures of packages, in thousandths of a degree.
    heat_mc: BTreeMap<u32, i64>,
    /// Sets of CPUs that shrink when one goes.
    groups: Vec<CpuGroup>,
    pub(crate) mains: bool,
    pub(crate) now_ns: u64,
    cpuinfo: String,
    stat_rest: String,
    width: u32,
    pub(crate) registers: Box<dyn RegisterDevice>,
    seed: u64,
    /// What it really draws; none is the description's rough figure.
    pub(crate) truth: Option<Arc<Truth>>,
    wavering: truth::Wavering,
    /// What the packages draw, while time passes.
    true_now: Vec<truth::PackageWatts>,
    /// By what each package slows its cores, to stay within its limits of power and heat.
    slowed: Vec<f64>,
    /// Time that each package slept in each of its states, by their places in the model, in ns.
    slept_ns: BTreeMap<(usize, usize), u64>,
    /// A speed that the hardware does not pass: heat, or a supply that is too weak.
    pub(crate) ceiling_khz: Option<u32>,
    /// `hwp_dynamic_boost` while intel_pstate shows none.
    hwp_boost: Option<Id>,
    /// `cpufreq/boost` while the driver that has it is off.
    boost_aside: Option<Id>,
}

impl AttributeView for Host {
    fn text(&self, path: &str) -> Option<String> {
        let id = self.tree.find(path, true)?;
        let bytes = self.render(id).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }
    fn list(&self, path: &str) -> Vec<String> {
        let names = self.tree.find(path, true).and_then(|id| self.tree.names(id));
        names.map(|n| n.keys().cloned().collect()).unwrap_or_default()
    }
}

fn digits(name: &str, stem: &str) -> Option<u32> {
    name.strip_prefix(stem)?.parse().ok()
}

impl Host {
    /// Finds out what a tree is about and brings its counters to life.
    pub(crate) fn new(tree: Tree, physics: Physics, seed: u64) -> Host {
        let mut m = Host {
            tree,
            registers: Box::new(Registers::new(physics.registers.clone())),
            physics,
            release: (0, 0),
            cpus: Vec::new(),
            policies: Vec::new(),
            policy_of_folder: BTreeMap::new(),
            zones: Vec::new(),
            batteries: Vec::new(),
            heat_mc: BTreeMap::new(),
            groups: Vec::new(),
            mains: true,
            now_ns: 0,
            cpuinfo: String::new(),
            stat_rest: String::new(),
            width: 1,
            seed,
            truth: None,
            wavering: truth::Wavering::default(),
            true_now: Vec::new(),
            slowed: Vec::new(),
            slept_ns: BTreeMap::new(),
            ceiling_khz: None,
            hwp_boost: None,
            boost_aside: None,
        };
        m.release = rules::release(&m);
        m.scan_cpus();
        m.scan_policies();
        m.scan_groups();
        m.scan_power();
        m.scan_proc();
        m.allow_writes();
        if m.physics.described {
            m.refresh_tunables();
        }
        m.refresh_all();
        m
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// A live file in place of the captured one, if there was one.
    fn enliven(&mut self, path: &str, live: LiveAttribute) {
        if let Some(id) = self.tree.find(path, true)
            && let Some(file) = self.tree.file_mut(id)
            && matches!(file.kind, NodeKind::Text(_))
        {
            file.kind = NodeKind::Live(live);
        }
    }

    /// Sets an attribute's text; makes it when it is missing.
    fn set(&mut self, path: &str, value: impl std::fmt::Display) {
        let text = NodeKind::Text(format!("{value}\n").into_bytes());
        match self.tree.find(path, true) {
            Some(id) => {
                if let Some(file) = self.tree.file_mut(id) {
                    file.kind = text;
                }
            }
            None => {
                let id = self.tree.put(path, text);
                let writable = rules::attribute(path).is_some_and(|a| !a.read_only);
                if let Some(file) = self.tree.file_mut(id) {
                    file.writable = writable;
                }
            }
        }
    }

    /// As [`Host::set`], only when the attribute is there.
    fn update(&mut self, path: &str, value: impl std::fmt::Display) {
        if self.tree.find(path, true).is_some() {
            self.set(path, value);
        }
    }

    pub(crate) fn online(&self) -> Vec<u32> {
        self.cpus.iter().filter(|c| c.online).map(|c| c.id).collect()
    }

    fn is_online(&self, id: u32) -> bool {
        self.cpus.iter().any(|c| c.id == id && c.online)
    }

    fn is_inactive(&self, policy: &HostPolicy) -> bool {
        !policy.related.iter().any(|&c| self.is_online(c))
    }

    pub(crate) fn unplugged(&self) -> Vec<u32> {
        self.cpus.iter().filter(|c| !c.online).map(|c| c.id).collect()
    }

    /// Chance takes another course from now on.
    pub(crate) fn stir(&mut self, by: u64) {
        self.seed ^= by.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// A number below `n` from the seed.
    fn random(&mut self, n: u64) -> u64 {
        // xorshift64: plenty for spreading wake-ups.
        let mut x = self.seed | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.seed = x;
        x % n.max(1)
    }
}
