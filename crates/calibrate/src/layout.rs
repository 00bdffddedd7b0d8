//! Where the cores of a model sit in a machine.

use std::collections::{BTreeMap, BTreeSet};
use wattwise_hw::cpus::topology::{CoreKind, Cpu, Topology};
use wattwise_hw::root::Root;
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_model::machine::MachineModel;

/// CPUs of each core, by package and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `packages[package][kind][core]`: its CPUs.
    pub packages: Vec<Vec<Vec<Vec<u32>>>>,
    /// The kernel's names of each kind's C-states that do not poll, in the model's order.
    pub states: Vec<Vec<String>>,
}

impl Layout {
    /// Of a machine, as its model has it; none where the two do not agree on packages, kinds, cores and C-states.
    pub fn of(root: &dyn Root, machine: &MachineModel) -> Option<Layout> {
        let topology = Topology::read(root);
        let online: Vec<&Cpu> = topology.cpus.iter().filter(|c| c.online).collect();
        let kind = |c: &Cpu| c.kind.unwrap_or(CoreKind::Performance);
        let kinds: BTreeSet<CoreKind> = online.iter().map(|c| kind(c)).collect();
        let mut packages: BTreeMap<i32, Vec<BTreeMap<u32, Vec<u32>>>> = BTreeMap::new();
        for c in &online {
            let of =
                packages.entry(c.package.unwrap_or(0)).or_insert_with(|| vec![BTreeMap::new(); kinds.len()]);
            let at = kinds.iter().position(|k| *k == kind(c))?;
            of[at].entry(c.threads.first().unwrap_or(c.cpu)).or_default().push(c.cpu);
        }
        let packages: Vec<Vec<Vec<Vec<u32>>>> = packages
            .into_values()
            .map(|p| p.into_iter().map(|k| k.into_values().collect()).collect())
            .collect();
        let cpuidle = Cpuidle::read(root, &topology);
        let states = (0..kinds.len()).map(|k| {
            let first = packages.first()?.get(k)?.first()?.first()?;
            let own = cpuidle.cpus().iter().find(|c| c.cpu == *first);
            Some(own.into_iter().flat_map(crate::gather::idle_states).map(|s| s.name).collect())
        });
        let layout = Layout { states: states.collect::<Option<_>>()?, packages };
        layout.agrees(machine).then_some(layout)
    }

    fn agrees(&self, machine: &MachineModel) -> bool {
        let cores = |package: usize, kind: usize| {
            let own = machine.packages[package].cores.iter();
            own.filter(|c| usize::from(machine.cores[usize::from(**c)].kind) == kind).count()
        };
        let same_states = |k: usize| {
            let model: Vec<&str> = machine.kinds[k].idle.iter().map(|s| s.name.as_str()).collect();
            // Without cpuidle the model has one state of its own.
            self.states[k].is_empty() || model == self.states[k]
        };
        self.packages.len() == machine.packages.len()
            && self.states.len() == machine.kinds.len()
            && (0..machine.kinds.len()).all(same_states)
            && self
                .packages
                .iter()
                .enumerate()
                .all(|(p, kinds)| kinds.iter().enumerate().all(|(k, own)| own.len() == cores(p, k)))
    }

    /// All CPUs of a kind.
    pub fn cpus_of(&self, kind: usize) -> impl Iterator<Item = u32> + '_ {
        self.packages.iter().flat_map(move |p| &p[kind]).flatten().copied()
    }

    /// The model's core of each CPU.
    pub fn core_of(&self, machine: &MachineModel) -> BTreeMap<u32, u16> {
        let mut out = BTreeMap::new();
        for (p, kinds) in self.packages.iter().enumerate() {
            for (k, cores) in kinds.iter().enumerate() {
                let own = machine.packages[p].cores.iter();
                let own = own.filter(|c| usize::from(machine.cores[usize::from(**c)].kind) == k);
                for (cpus, core) in cores.iter().zip(own) {
                    out.extend(cpus.iter().map(|cpu| (*cpu, *core)));
                }
            }
        }
        out
    }
}
