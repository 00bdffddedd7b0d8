//! The hardware owns what cores, packages and frequency domains are doing, and for how long they have.
//!
//! It is told what each thread does ([`Hardware::set`]) and what speeds are asked for ([`Hardware::request`]). It answers
//! whose rate has changed with that ([`Hardware::next_changed`]: CPUs to re-time), how long it takes to wake, and what it all
//! adds up to in joules. Rates change by more than requests: siblings share their core, boost depends on how many cores are
//! awake, heat slows.
//!
//! | file | holds |
//! |---|---|
//! | `residency.rs` | time in states, of threads, cores and packages |
//! | `clock.rs` | a domain's clock: requests, delays, stalls |
//! | `heat.rs` | temperatures |
//! | `limits.rs` | power limits |
//! | `uncore.rs` | what of a package follows its fastest core |
//! | `memory.rs` | the memory's clock |
//! | `energy.rs` | what the times add up to |

mod clock;
mod energy;
mod heat;
mod limits;
mod memory;
mod residency;
mod times;
mod uncore;

pub(crate) use clock::ClockTransition;
pub(crate) use energy::CpuReading;
pub(crate) use heat::HEAT_NS;
pub(crate) use residency::ThreadState;

use clock::DomainClock;
use limits::LimitAccount;
use memory::MemoryAccount;
use residency::{CoreAccount, EntryTimes, PackageAccount, Threads, entry_times};
use wattwise_model::machine::{Core, MAX_SMT, MachineModel, Package};

/// Cores, packages and domains at work.
pub(crate) struct Hardware<'a> {
    machine: &'a MachineModel,
    cores: Vec<CoreAccount>,
    /// Each core's threads.
    threads: Vec<Threads>,
    /// By kind of core.
    entry_ns: Vec<EntryTimes>,
    packages: Vec<PackageAccount>,
    /// By package; empty without a limit that can be reached.
    limits: Vec<Option<LimitAccount>>,
    /// Where the kernel sets the memory's clock.
    memory: Option<MemoryAccount<'a>>,
    domains: Vec<DomainClock>,
    /// `1 / (cycles per ns)` of one thread: `[kind][level * MAX_SMT + busy threads - 1]`.
    inverse_speed: Vec<Vec<f64>>,
    /// Cores on which more than one thread is busy.
    shared_cores: usize,
    /// By package.
    boosts: Vec<Vec<BoostGroup>>,
    /// Some package state takes every package.
    sleeps_together: bool,
    /// CPUs whose rate has changed.
    changed: Vec<u16>,
}

/// Domains of a package with the same boost table, and the level that it allows now. A package may have a hundred domains, and most
/// changes of how many cores are awake change nothing for any of them.
struct BoostGroup {
    domains: Vec<u16>,
    cap: usize,
}

/// The groups of each package.
fn boost_groups(machine: &MachineModel) -> Vec<Vec<BoostGroup>> {
    let of = |package: &Package| {
        let mut groups: Vec<BoostGroup> = Vec::new();
        for &d in package.domains.iter().filter(|_| package.boosts) {
            let table = |d: u16| &machine.domains[usize::from(d)].boost;
            match groups.iter_mut().find(|g| table(g.domains[0]) == table(d)) {
                _ if table(d).is_empty() => {}
                Some(group) => group.domains.push(d),
                None => groups.push(BoostGroup { domains: vec![d], cap: 0 }),
            }
        }
        groups
    };
    machine.packages.iter().map(of).collect()
}

/// `1 / (cycles per ns)` of one thread for each level and number of busy threads.
fn inverse_speeds(m: &MachineModel) -> Vec<Vec<f64>> {
    m.kinds
        .iter()
        .map(|k| {
            let mut table = vec![0.0; k.levels.len() * MAX_SMT];
            for (l, level) in k.levels.iter().enumerate() {
                for busy in 0..MAX_SMT {
                    let share = k.smt_throughput[busy.min(k.smt_throughput.len() - 1)];
                    table[l * MAX_SMT + busy] = 1.0 / (level.cycles_per_ns * k.ipc * share);
                }
            }
            table
        })
        .collect()
}

impl<'a> Hardware<'a> {
    /// Awake, at the levels for a speed in kHz (0: the highest).
    pub(crate) fn new(machine: &'a MachineModel, khz: u32) -> Hardware<'a> {
        let domains: Vec<DomainClock> =
            machine.domains.iter().map(|d| DomainClock::new(d, machine, khz)).collect();
        let inverse_speed = inverse_speeds(machine);
        let core = |c: &Core| {
            let level = domains[usize::from(c.domain)].level();
            CoreAccount::new(c, machine, level, &inverse_speed[usize::from(c.kind)])
        };
        let cores: Vec<CoreAccount> = machine.cores.iter().map(core).collect();
        let mut packages: Vec<PackageAccount> = machine.packages.iter().map(PackageAccount::new).collect();
        for core in &cores {
            // All are awake: each has a say.
            let p = usize::from(core.package);
            if let (Some(model), Some(uncore)) = (&machine.packages[p].uncore, &mut packages[p].uncore) {
                uncore.vote(0, None, Some(model.at[usize::from(core.kind)][usize::from(core.level)]));
            }
        }
        Hardware {
            machine,
            threads: cores.iter().map(|core| Threads::new(core, machine)).collect(),
            cores,
            entry_ns: entry_times(machine),
            packages,
            limits: Vec::new(),
            memory: None,
            domains,
            inverse_speed,
            shared_cores: 0,
            boosts: boost_groups(machine),
            sleeps_together: machine.packages.iter().any(|p| p.idle.iter().any(|s| s.every_package)),
            changed: Vec::new(),
        }
    }

    /// Limits the power of each package: as its model says, with another long limit in watts where a user gives one.
    pub(crate) fn limit_power(&mut self, long_w: Option<f64>) {
        let packages = 0..self.packages.len();
        self.limits = packages.map(|p| LimitAccount::new(self.machine, p, long_w)).collect();
    }

    /// What it is.
    #[inline]
    pub(crate) fn machine(&self) -> &'a MachineModel {
        self.machine
    }

    /// A CPU whose rate has changed since it was last timed, until there are none.
    #[inline]
    pub(crate) fn next_changed(&mut self) -> Option<usize> {
        self.changed.pop().map(usize::from)
    }

    /// Changes what the thread of a core does on which nothing else depends: time of a cycle then. None, and nothing
    /// done, for any other core.
    #[inline(always)]
    pub(crate) fn set_plain(&mut self, now: u64, core: u16, state: ThreadState) -> Option<f64> {
        let core = &mut self.cores[usize::from(core)];
        if !core.is_plain() {
            return None;
        }
        core.set_plain(now, state, &self.entry_ns[usize::from(core.kind)]);
        Some(core.ns_per_cycle)
    }

    /// Changes what CPU `c` of a core does, and with it its core's and package's state; true when there are CPUs to re-time.
    // Inlined with all that a lone thread needs: the state is known where it is called, and so is half the work.
    #[inline(always)]
    pub(crate) fn set(&mut self, now: u64, core: u16, c: usize, state: ThreadState) -> bool {
        let index = usize::from(core);
        let core = &mut self.cores[index];
        let code = core.code_of(state);
        if core.count > 1 {
            self.set_one_of_several(now, index, c, code);
        } else if core.code != code {
            core.busy = u8::from(code > core.awake);
            self.set_core_code(now, index, code);
        }
        !self.changed.is_empty()
    }

    /// [`Hardware::set`] where the core has more threads.
    fn set_one_of_several(&mut self, now: u64, index: usize, c: usize, code: u8) {
        let (core, threads) = (&mut self.cores[index], &mut self.threads[index]);
        let (first, count) = (core.first_cpu, u16::from(core.count));
        let thread = c - usize::from(first);
        if threads.codes[thread] == code {
            return;
        }
        core.open_thread(threads, now, thread, code, &self.entry_ns[usize::from(core.kind)]);
        let was = std::mem::replace(&mut threads.codes[thread], code);
        let busy_before = core.busy;
        core.busy = busy_before + u8::from(code > core.awake) - u8::from(was > core.awake);
        self.shared_cores += usize::from(core.busy == 2 && busy_before == 1);
        self.shared_cores -= usize::from(core.busy == 1 && busy_before == 2);
        let busy_changed = core.busy != busy_before;
        core.look_up_speed(&self.inverse_speed[usize::from(core.kind)]);
        let code = core.compute_code(threads);
        if code != core.code {
            self.set_core_code(now, index, code);
        }
        if busy_changed {
            // The siblings share the core's throughput: theirs has changed.
            self.changed.extend((first..first + count).filter(|&s| usize::from(s) != c));
        }
    }

    #[inline(always)]
    fn set_core_code(&mut self, now: u64, index: usize, code: u8) {
        let core = &mut self.cores[index];
        let before = core.code;
        core.open(now, code, &self.entry_ns[usize::from(core.kind)]);
        if core.counted {
            // 0 is awake, then the C-states.
            let depth = |code: u8| if code < core.awake { usize::from(code) + 1 } else { 0 };
            let (package, before, after) = (usize::from(core.package), depth(before), depth(code));
            if self.packages[package].uncore.is_some() {
                self.vote(now, index, before, after, None);
            }
            self.package_changed(now, package, before, after);
        }
    }

    /// A core of a package has gone from one depth to another.
    fn package_changed(&mut self, now: u64, p: usize, before: usize, after: usize) {
        if before == after {
            return;
        }
        let model = &self.machine.packages[p];
        let package = &mut self.packages[p];
        package.cores[before] -= 1;
        package.cores[after] += 1;
        if !model.idle.is_empty() {
            let fitting = package.fitting(model);
            if self.sleeps_together {
                self.sleep_together(now, p, fitting);
            } else {
                package.enter(now, fitting);
            }
        }
        if model.boosts {
            self.boost_changed(now, p);
        }
    }

    /// [`PackageAccount::enter`] where some states take every package: what fits one changes what the others are in.
    fn sleep_together(&mut self, now: u64, p: usize, fitting: usize) {
        if std::mem::replace(&mut self.packages[p].fits, fitting) == fitting {
            return;
        }
        let common = self.packages.iter().map(|package| package.fits).min().unwrap_or(0);
        for (package, model) in self.packages.iter_mut().zip(&self.machine.packages) {
            let alone = |slot: &usize| *slot == 0 || *slot <= common || !model.idle[slot - 1].every_package;
            let slot = (0..=package.fits).rev().find(alone).unwrap_or(0);
            package.advance(now);
            package.enter(now, slot);
        }
    }

    /// A core goes from one depth to another (0 is awake, then the C-states), or to another level: its say in the uncore's speed.
    fn vote(&mut self, now: u64, index: usize, before: usize, after: usize, level: Option<usize>) {
        let core = &self.cores[index];
        let package = &mut self.packages[usize::from(core.package)];
        let model = &self.machine.packages[usize::from(core.package)];
        let (Some(model), Some(uncore)) = (&model.uncore, &mut package.uncore) else { return };
        uncore.advance(now, &mut package.residency);
        let at = &model.at[usize::from(core.kind)];
        let say = |depth: usize, level: usize| (depth <= usize::from(model.votes) + 1).then(|| at[level]);
        let was = usize::from(core.level);
        let (before, after) = (say(before, was), say(after, level.unwrap_or(was)));
        if before != after {
            uncore.vote(now, before, after);
        }
    }

    /// The number of awake cores of a package has changed, and with it perhaps what boost allows.
    #[inline]
    fn boost_changed(&mut self, now: u64, p: usize) {
        let awake = self.packages[p].boosting();
        for g in 0..self.boosts[p].len() {
            let group = &mut self.boosts[p][g];
            let boost = &self.machine.domains[usize::from(group.domains[0])].boost;
            let cap = usize::from(boost[awake.min(boost.len() - 1)]);
            if std::mem::replace(&mut group.cap, cap) == cap {
                continue;
            }
            for i in 0..self.boosts[p][g].domains.len() {
                let d = usize::from(self.boosts[p][g].domains[i]);
                self.domains[d].boost_cap = cap;
                self.settle_level(now, d);
            }
        }
    }

    /// Brings the level in force in line with what is granted and allowed.
    fn settle_level(&mut self, now: u64, d: usize) {
        let Some(level) = self.domains[d].settle_level() else { return };
        for &index in &self.machine.domains[d].cores {
            let core = &self.cores[usize::from(index)];
            if core.counted && self.packages[usize::from(core.package)].uncore.is_some() {
                let depth = core.depth().map_or(0, |state| state + 1);
                self.vote(now, usize::from(index), depth, depth, Some(level));
            }
            let core = &mut self.cores[usize::from(index)];
            core.relevel(&mut self.threads[usize::from(index)], now, level);
            core.look_up_speed(&self.inverse_speed[usize::from(core.kind)]);
            if core.busy > 0 {
                self.changed.extend(core.first_cpu..core.first_cpu + u16::from(core.count));
            }
        }
    }

    /// Before the work begins: whoever takes over finds its requests granted. The CPUs to re-time are
    /// [`Hardware::next_changed`].
    pub(crate) fn adopt(&mut self, now: u64, levels: impl Iterator<Item = Option<usize>>) {
        for (d, level) in levels.enumerate() {
            if let Some(level) = level {
                self.domains[d].adopt(level);
            }
            self.settle_level(now, d);
        }
        (0..self.packages.len()).for_each(|p| self.boost_changed(now, p));
    }

    /// Asks for a level of a domain. The CPUs to re-time are [`Hardware::next_changed`].
    pub(crate) fn request(&mut self, now: u64, d: usize, level: usize) -> ClockTransition {
        let transition = self.domains[d].request(now, &self.machine.domains[d], level);
        self.carry_out(now, d, transition)
    }

    /// A domain's delay or stall is over. The CPUs to re-time are [`Hardware::next_changed`].
    pub(crate) fn domain_due(&mut self, now: u64, d: usize) -> ClockTransition {
        let transition = self.domains[d].due(now, &self.machine.domains[d]);
        self.carry_out(now, d, transition)
    }

    fn carry_out(&mut self, now: u64, d: usize, transition: ClockTransition) -> ClockTransition {
        if let ClockTransition::Granted { .. } = transition {
            self.settle_level(now, d);
        }
        transition
    }

    /// The level of a domain that was asked for last.
    pub(crate) fn requested(&self, d: usize) -> usize {
        self.domains[d].requested()
    }

    /// The level that a domain is changing to, or has.
    pub(crate) fn target(&self, d: usize) -> usize {
        self.domains[d].target()
    }

    /// The speed in force in a domain, in kHz.
    pub(crate) fn khz(&self, d: usize) -> u32 {
        let kind = usize::from(self.machine.domains[d].kind);
        self.machine.kinds[kind].levels[self.domains[d].level()].khz
    }

    /// Whether a domain's cores stand still.
    #[inline]
    pub(crate) fn stalled(&self, d: u16) -> bool {
        self.domains[usize::from(d)].stalled()
    }

    /// Time of a cycle in a domain, of one at its highest speed.
    #[inline]
    pub(crate) fn slowness(&self, d: u16) -> f64 {
        self.domains[usize::from(d)].slowness()
    }

    /// How fast the load of a busy CPU of a domain grows, of 1024 of the strongest core's.
    #[inline]
    pub(crate) fn pace(&self, d: u16) -> u64 {
        self.domains[usize::from(d)].pace()
    }

    /// A domain's highest speed, of 1024 of the strongest core's.
    #[inline]
    pub(crate) fn capacity(&self, d: u16) -> u64 {
        self.domains[usize::from(d)].capacity()
    }

    /// Time of a cycle for each busy thread of a core, or for one that is about to be.
    #[inline]
    pub(crate) fn ns_per_cycle(&self, core: u16) -> f64 {
        self.cores[usize::from(core)].ns_per_cycle
    }

    /// When a CPU of this core and domain, which is in C-state `choice` since `since`, is awake if it is wanted now.
    #[inline(always)]
    pub(crate) fn awake_at(&self, now: u64, core: u16, domain: u16, choice: u8, since: u64) -> u64 {
        let d = &self.domains[usize::from(domain)];
        let core = &self.cores[usize::from(core)];
        if core.wakes_at_once {
            return now.max(d.stalled_until());
        }
        // The hardware is only as deep as the core's shallowest thread.
        let depth = core.depth().unwrap_or(0).min(usize::from(choice));
        let state = &self.machine.kinds[usize::from(core.kind)].idle[depth];
        let package = usize::from(core.package);
        let package_exit =
            self.packages[package].idle_state().map_or(0, |i| self.machine.packages[package].idle[i].exit_ns);
        // A state that is being entered cannot be left before it has been reached.
        let reached = now.max(since + state.entry_ns);
        (reached + state.exit_ns[d.level()] + package_exit).max(d.stalled_until())
    }

    /// CPUs of a core.
    #[inline]
    pub(crate) fn threads_of(&self, core: usize) -> std::ops::Range<usize> {
        let first = usize::from(self.cores[core].first_cpu);
        first..first + usize::from(self.cores[core].count)
    }

    /// Threads of a core that execute.
    #[inline]
    pub(crate) fn busy_threads(&self, core: usize) -> usize {
        self.cores[core].busy_threads()
    }

    /// Whether some thread of a core is in no C-state.
    #[inline]
    pub(crate) fn is_awake(&self, core: usize) -> bool {
        self.cores[core].depth().is_none()
    }

    /// How many cores have more than one busy thread.
    #[inline]
    pub(crate) fn shared_cores(&self) -> usize {
        self.shared_cores
    }

    /// The first core with more than one busy thread.
    pub(crate) fn shared_core(&self) -> Option<usize> {
        self.cores.iter().position(|c| c.busy_threads() > 1)
    }

    /// What a thread alone on a core of a kind does at its highest speed, in cycles a ns.
    pub(crate) fn strength(&self, kind: u8) -> f64 {
        1.0 / self.inverse_speed[usize::from(kind)][0]
    }
}
