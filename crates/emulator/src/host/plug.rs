//! CPUs that go and come, with their files.

use super::parts::{CpuGroup, Form};
use super::{CPU, Host};
use crate::cpulist;
use crate::tree::{Id, NodeKind};
use std::collections::BTreeSet;

impl Host {
    pub(super) fn refresh_lists(&mut self, changed: Option<u32>) {
        let online = self.online();
        let every: Vec<u32> = self.cpus.iter().map(|c| c.id).collect();
        let offline: Vec<u32> = every.iter().copied().filter(|c| !online.contains(c)).collect();
        if every.is_empty() {
            return;
        }
        self.update(&format!("{CPU}/online"), cpulist::list(&online));
        self.update(&format!("{CPU}/offline"), cpulist::list(&offline));
        let is_online: BTreeSet<u32> = online.iter().copied().collect();
        for i in 0..self.groups.len() {
            let Some(CpuGroup { file: id, cpus: set, form }) = self.groups.get(i) else { break };
            if changed.is_some_and(|c| !set.contains(&c)) {
                continue;
            }
            let now: Vec<u32> = set.iter().copied().filter(|c| is_online.contains(c)).collect();
            let text = match form {
                Form::List => cpulist::list(&now),
                Form::Mask => cpulist::mask(&now, self.width),
                Form::Words => cpulist::words(&now),
            };
            let id = *id;
            if let Some(file) = self.tree.file_mut(id) {
                file.kind = NodeKind::Text(format!("{text}\n").into_bytes());
            }
        }
        let mut cores = BTreeSet::new();
        let siblings = self.cpus.iter().filter(|c| c.online).any(|c| !cores.insert(c.core));
        self.update(&format!("{CPU}/smt/active"), u8::from(siblings));
    }

    pub(super) fn set_smt(&mut self, on: bool) {
        let mut seen = BTreeSet::new();
        let siblings: Vec<u32> = self.cpus.iter().filter(|c| !seen.insert(c.core)).map(|c| c.id).collect();
        for id in siblings {
            self.plug(id, on);
        }
    }

    /// Takes a CPU out or brings it back, with its files.
    pub(crate) fn plug(&mut self, id: u32, on: bool) {
        let alone = self.online().len() == 1;
        let Some(index) = self.cpus.iter().position(|c| c.id == id) else { return };
        let Some(cpu) = self.cpus.get(index) else { return };
        if cpu.online == on || (alone && !on) {
            return;
        }
        let base = format!("{CPU}/cpu{id}");
        if on {
            let aside = self.cpus.get_mut(index).map(|c| std::mem::take(&mut c.aside)).unwrap_or_default();
            for (path, file) in aside {
                self.tree.attach(&path, file);
            }
        } else {
            let mut leave = vec![
                format!("{base}/topology"),
                format!("{base}/cache"),
                format!("{base}/thermal_throttle"),
                format!("{base}/power/energy_perf_bias"),
                format!("dev/cpu/{id}"),
            ];
            if self.physics.idle_leaves_with_cpu {
                leave.push(format!("{base}/cpuidle"));
            }
            if self.release < (4, 2) {
                leave.push(format!("{base}/cpufreq"));
            }
            let aside: Vec<(String, Id)> =
                leave.into_iter().filter_map(|p| self.tree.detach(&p).map(|id| (p, id))).collect();
            if let Some(c) = self.cpus.get_mut(index) {
                c.aside = aside;
            }
        }
        if let Some(cpu) = self.cpus.get_mut(index) {
            cpu.online = on;
            if !on {
                cpu.load_permille = 0;
            }
        }
        self.update(&format!("{base}/online"), u8::from(on));
        self.refresh_lists(Some(id));
        let idle_fresh = on && self.physics.idle_leaves_with_cpu;
        if idle_fresh {
            // A device that is registered anew starts with its states enabled and counters at zero.
            let disables: Vec<String> = self
                .cpus
                .get(index)
                .map(|c| c.states.iter().map(|s| s.disable.clone()).collect())
                .unwrap_or_default();
            for path in disables {
                self.update(&path, 0);
            }
            for state in self.cpus.get_mut(index).into_iter().flat_map(|c| &mut c.states) {
                (state.usage, state.time_ns, state.above, state.below) = (0, 0, 0, 0);
                state.base = [0; 5];
            }
        }
        if let Some(i) = self.cpus.get(index).and_then(|c| c.policy) {
            let first = on
                && self
                    .policies
                    .get(i)
                    .is_some_and(|p| p.related.iter().filter(|c| self.is_online(**c)).count() == 1);
            if first && self.release < (5, 3) {
                // Limits were the policy's own and went with it; since 5.3 they are requests that stay.
                if let Some(p) = self.policies.get_mut(i) {
                    p.asked = p.hw;
                }
            }
            self.refresh_tunables();
            self.refresh_policy(i);
        }
    }

    /// Sleeps: CPUs but the first go and come, the clock moves, the battery loses a little.
    pub(crate) fn suspend(&mut self, ns: u64) {
        let others: Vec<u32> = self.online().into_iter().skip(1).collect();
        for &id in &others {
            self.plug(id, false);
        }
        for &id in &others {
            self.plug(id, true);
        }
        for cpu in &mut self.cpus {
            (cpu.aperf, cpu.mperf) = (0, 0);
        }
        for zone in &mut self.zones {
            (zone.energy_uj, zone.rest) = (0, 0);
        }
        if !self.mains {
            // Memory kept alive: half a watt.
            self.drain(ns, 500_000);
        }
        self.now_ns = self.now_ns.wrapping_add(ns);
    }
}
