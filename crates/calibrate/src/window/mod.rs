//! A window: some seconds in which a machine does one thing that we choose, and what it really did.

mod look;
pub(crate) mod obeyed;
pub mod spoiled;

use crate::layout::Layout;
use crate::site::Site;
use crate::site::clock::shown_khz;
use crate::window::look::{CounterLook, Counters, clock};
use crate::window::spoiled::Spoiled;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use wattwise_control::set::plan::{Inventory, Setting, plan};
use wattwise_control::set::transaction::Transaction;
use wattwise_figure::units::Speed;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::online;
use wattwise_hw::root::Root;
use wattwise_hw::rules;
use wattwise_hw::states::supply::{Battery, Supply, SupplySource, supply};
use wattwise_meter::Meter;
use wattwise_meter::battery::Gauge;
use wattwise_meter::domain::Domain;
use wattwise_model::machine::MachineModel;

/// What the cores of a kind are to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Busy cores, of each package.
    pub cores: usize,
    /// All threads of a busy core are at work, not one.
    pub all_threads: bool,
    /// Share of the time that they are busy.
    pub share: f64,
    /// The speed, as an index of the kind's levels.
    pub level: usize,
    /// The deepest C-state, as an index of the kind's states.
    pub deepest: usize,
}

/// What a machine is to do for some seconds: a part for each kind of core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// By kind.
    pub parts: Vec<Part>,
}

/// What a kind's cores did, in cores (of the whole machine) on the average.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// Busy with one thread, by level; a speed between two levels counts for both, in proportion.
    pub one: Vec<f64>,
    /// Busy with all threads, by level.
    pub all: Vec<f64>,
    /// Idle, by C-state.
    pub idle: Vec<f64>,
}

/// What a machine did in a window, and what its meters said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// What it was to do.
    pub window: Window,
    /// The middle of the window on the machine's clock, in s.
    pub at_s: f64,
    /// Its length, in s.
    pub seconds: f64,
    /// Mean temperature of the packages, in degrees Celsius.
    pub celsius: Option<f64>,
    /// By kind of core.
    pub taken: Vec<Taken>,
    /// Packages awake.
    pub awake: f64,
    /// Packages asleep, by package state.
    pub asleep: Vec<f64>,
    /// The cores of all packages, in W; none where nothing meters them.
    pub cores_w: Option<f64>,
    /// All packages, in W.
    pub package_w: Option<f64>,
    /// The memory of all packages, in W.
    #[serde(default)]
    pub memory_w: Option<f64>,
    /// The whole machine, in W.
    pub machine_w: Option<f64>,
    /// By kind of core, whether it ran at the speed that was asked for.
    pub reached: Vec<bool>,
    /// CPU time that looking took, in s.
    #[serde(default)]
    pub own_s: f64,
}

/// Time for speeds, C-states and temperature to settle before a window counts.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Before, in s.
    pub settle_s: f64,
    /// The window itself, in s.
    pub window_s: f64,
    /// Between two looks at the meters, in s.
    pub look_s: f64,
}

/// Busy time of a CPU that is to be idle, above which a window is somebody else's as well: a share of the window.
const STRANGERS: f64 = 0.03;
/// A window on a battery takes longer where its gauge has moved less often: up to so many times as long.
const LEAST_MOVES: usize = 4;
const LONGEST: f64 = 4.0;
/// A battery that holds less is not drained further: a share of what it holds when full.
const EMPTY: f64 = 0.05;
/// A speed that is further below the one asked for was not reached: a share.
const OFF_SPEED: f64 = 0.02;

/// Speeds and C-states that some CPUs of a kind are to have.
pub(crate) struct Wish {
    /// Their kind.
    pub(crate) kind: usize,
    pub(crate) cpus: CpuSet,
    /// Speeds one after the other, as indices of the kind's levels; the last one stays.
    pub(crate) levels: Vec<usize>,
    /// How many C-states are allowed, from the shallowest; none leaves them as they are.
    pub(crate) states: Option<usize>,
}

/// What holds a machine in a window's conditions and looks at it.
pub struct Observer<'a> {
    pub(crate) machine: &'a MachineModel,
    pub(crate) layout: &'a Layout,
    journal: &'a Path,
    pub(crate) inventory: Inventory,
    counters: Counters,
    meter: Meter,
    on_battery: bool,
    /// What the machine ran on at first: on a battery it may run by other rules.
    source: SupplySource,
    times: Times,
}

/// Whether batteries hold enough for another window.
fn not_empty(supply: &Supply) -> Result<(), Spoiled> {
    let sum = |of: fn(&Battery) -> Option<f64>| supply.batteries.iter().map(of).sum::<Option<f64>>();
    match (sum(|b| b.energy_wh), sum(|b| b.full_wh)) {
        (Some(left), Some(full)) if left < EMPTY * full => Err(Spoiled::End(format!(
            "the battery is down to {left:.1} of {full:.1} Wh: charge it and unplug the machine again"
        ))),
        _ => Ok(()),
    }
}

impl<'a> Observer<'a> {
    /// On a machine whose CPUs sit as `layout` says. With `on_battery`, its gauge is the meter.
    pub fn new(
        root: &dyn Root,
        machine: &'a MachineModel,
        layout: &'a Layout,
        journal: &'a Path,
        times: Times,
        on_battery: bool,
    ) -> Observer<'a> {
        let (inventory, meter) = (Inventory::read(root), Meter::open(root));
        let counters = Counters::find(root, &inventory.topology, machine, layout);
        let source = supply(root).source;
        Observer { machine, layout, journal, inventory, counters, meter, on_battery, source, times }
    }

    /// Windows of another length from now on, metered by the battery or not.
    pub(crate) fn set_times(&mut self, times: Times, on_battery: bool) {
        (self.times, self.on_battery) = (times, on_battery);
    }

    /// The meters; those that never move are set aside.
    pub fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// What a window demands of the CPUs: the share of time for each.
    fn loads(&self, window: &Window) -> Vec<(u32, f64)> {
        let mut out = Vec::new();
        for (k, part) in window.parts.iter().enumerate() {
            for package in &self.layout.packages {
                for core in package[k].iter().take(part.cores) {
                    let threads = if part.all_threads { core.len() } else { 1 };
                    out.extend(core.iter().take(threads).map(|cpu| (*cpu, part.share)));
                }
            }
        }
        out
    }

    fn hardware_chooses(&self) -> bool {
        let policies = self.inventory.cpufreq.policies.value.as_deref().unwrap_or_default();
        policies.iter().any(|p| p.driver.as_deref().is_some_and(rules::is_active_driver))
    }

    /// The settings of a window, kept until the value ends.
    pub(crate) fn settings<'r>(
        &self,
        root: &'r dyn Root,
        window: &Window,
    ) -> Result<Option<Transaction<'r>>, Spoiled> {
        let wish = |(kind, part): (usize, &Part)| Wish {
            kind,
            cpus: self.layout.cpus_of(kind).collect(),
            levels: vec![part.level],
            states: Some(part.deepest + 1),
        };
        let wishes: Vec<Wish> = window.parts.iter().enumerate().map(wish).collect();
        self.held(root, &wishes)
    }

    /// Whether a kind's speed can be held.
    pub(crate) fn can_hold(&self, kind: usize) -> bool {
        let policy = self.layout.cpus_of(kind).next().and_then(|cpu| self.inventory.cpufreq.of(cpu));
        policy.is_some_and(|p| p.governors.iter().any(|g| g == "userspace") || self.hardware_chooses())
    }

    /// What to ask for so that a kind runs at a speed: a boost that the driver does not list comes with the highest that it does.
    fn asked_khz(&self, kind: usize, khz: u64) -> u64 {
        let policy = self.layout.cpus_of(kind).next().and_then(|cpu| self.inventory.cpufreq.of(cpu));
        let listed = policy.into_iter().flat_map(|p| p.levels_khz.iter().chain(&p.boost_levels_khz));
        let (mut highest, mut is_listed) = (None, false);
        for level in listed {
            highest = highest.max(Some(*level));
            is_listed |= *level == khz;
        }
        highest.filter(|highest| !is_listed && khz > *highest).unwrap_or(khz)
    }

    /// Settings of some CPUs, kept until the value ends.
    pub(crate) fn held<'r>(
        &self,
        root: &'r dyn Root,
        wishes: &[Wish],
    ) -> Result<Option<Transaction<'r>>, Spoiled> {
        let (mut changes, mut beside) = (Vec::new(), Vec::new());
        for wish in wishes {
            let kind = &self.machine.kinds[wish.kind];
            let mut settings = Vec::new();
            for level in wish.levels.iter().filter(|_| kind.levels.len() > 1) {
                let speed = Speed::Khz(self.asked_khz(wish.kind, u64::from(kind.levels[*level].khz)));
                // Where the hardware chooses, it is left one choice.
                settings.push(match self.hardware_chooses() {
                    true => Setting::Limits(Some(speed), Some(speed)),
                    false => Setting::Freq(speed),
                });
            }
            for (at, state) in self.layout.states[wish.kind].iter().enumerate() {
                settings.extend(wish.states.map(|states| Setting::CState(state.clone(), at < states)));
            }
            let plan = plan(root, &self.inventory, &wish.cpus, &settings)
                .map_err(|e| Spoiled::End(e.to_string()))?;
            if let Some((step, refusal)) =
                plan.steps.iter().find_map(|s| Some((s, s.verdict.as_ref().err()?)))
            {
                let (what, value) = (&step.change.what, &step.change.value);
                return Err(Spoiled::End(format!("{what} cannot become '{value}': {}", refusal.rule)));
            }
            changes.extend(plan.steps.into_iter().map(|s| s.change));
            beside.extend(plan.beside);
        }
        if changes.is_empty() {
            return Ok(None);
        }
        Transaction::apply(root, self.journal, "calibrate", &changes, &beside, &|| None)
            .map(Some)
            .map_err(|e| Spoiled::Again(e.to_string()))
    }

    /// Holds a machine in a window's conditions, and looks. Afterwards the machine is as it was before.
    ///
    /// # Errors
    /// Why the window gave nothing.
    pub fn observe(&mut self, site: &dyn Site, window: &Window) -> Result<Observation, Spoiled> {
        self.all_there(site.root())?;
        if self.on_battery {
            not_empty(&supply(site.root()))?;
        }
        let loads = self.loads(window);
        let mut held = self.settings(site.root(), window)?;
        let watched = site.load(&loads).map_err(Spoiled::End).and_then(|()| self.watch(site, window, &loads));
        let ended = site.load(&[]).map_err(Spoiled::End);
        let restored = held.as_mut().map(Transaction::undo).unwrap_or_default();
        let observation = watched?;
        ended?;
        match restored.failed.first() {
            Some((what, why)) => Err(Spoiled::End(format!("{what} was not put back: {why}"))),
            None => Ok(observation),
        }
    }

    fn all_there(&self, root: &dyn Root) -> Result<(), Spoiled> {
        let online = online(root);
        if let Some(gone) = self.inventory.topology.online.iter().find(|cpu| !online.contains(*cpu)) {
            return Err(Spoiled::Again(format!("CPU {gone} went offline")));
        }
        match (self.source, supply(root).source) {
            (SupplySource::Mains, SupplySource::Battery) => {
                Err(Spoiled::Again("the mains were unplugged".into()))
            }
            (SupplySource::Battery, SupplySource::Mains) => {
                Err(Spoiled::Again("the mains were plugged in".into()))
            }
            _ => Ok(()),
        }
    }

    fn watch(
        &mut self,
        site: &dyn Site,
        window: &Window,
        loads: &[(u32, f64)],
    ) -> Result<Observation, Spoiled> {
        let pass = |s: f64| site.pass(Duration::from_secs_f64(s)).map_err(Spoiled::End);
        let root = site.root();
        let online = &self.inventory.topology.online;
        let idle: Vec<u32> = online.iter().filter(|cpu| !loads.iter().any(|(busy, _)| busy == cpu)).collect();
        // Once so that none sleeps on in a state that this window rules out, and at both ends for the counters.
        site.wake(&idle);
        pass(self.times.settle_s)?;
        site.wake(&idle);
        let before = self.counters.look(site, loads)?;
        let start = site.moment();
        self.meter.begin(start);
        let mut gauge = Gauge::default();
        let mut celsius = Vec::new();
        let mut clocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let mut passed = 0.0;
        let window_s = self.times.window_s;
        loop {
            if self.on_battery {
                gauge.look(root, site.moment().boot_s).map_err(|e| Spoiled::Again(e.to_string()))?;
            }
            let slow = self.on_battery && gauge.moves() < LEAST_MOVES && passed < LONGEST * window_s;
            if passed >= window_s && !slow {
                break;
            }
            let step = if slow { self.times.look_s } else { self.times.look_s.min(window_s - passed) };
            let cold = self.counters.temperature(root);
            pass(step)?;
            passed += step;
            self.meter.sample(site.moment());
            celsius.extend(
                cold.zip(self.counters.temperature(root)).map(|(cold, hot)| f64::midpoint(cold, hot)),
            );
            for (cpu, share) in loads {
                if *share > 0.0 && !before.has_clock(*cpu) {
                    clocks.entry(*cpu).or_default().extend(shown_khz(root, *cpu));
                }
            }
        }
        site.wake(&idle);
        let after = self.counters.look(site, loads)?;
        self.all_there(root)?;
        let mut o = self.observation(root, window, loads, &before, &after, &clocks)?;
        o.celsius = (!celsius.is_empty()).then(|| celsius.iter().sum::<f64>() / celsius.len() as f64);
        self.watts(&mut o)?;
        if self.on_battery {
            o.machine_w = Some(gauge.result().map_err(|e| Spoiled::Again(e.to_string()))?.mean_w);
        }
        Ok(o)
    }

    /// Power of each part, from the meters.
    fn watts(&self, o: &mut Observation) -> Result<(), Spoiled> {
        let (mut cores, mut packages, mut memory) = (None, None, Vec::new());
        for d in self.meter.energy().domains {
            if d.total.missing_s > 0.0 {
                let (domain, s) = (d.domain, d.total.missing_s);
                return Err(Spoiled::Again(format!(
                    "the meter of {domain} could not be followed for {s:.1} s"
                )));
            }
            let watts = d.total.joules / d.total.covered_s;
            match d.domain {
                Domain::Core { .. } => *cores.get_or_insert(0.0) += watts,
                Domain::Package { .. } => *packages.get_or_insert(0.0) += watts,
                Domain::Dram { .. } => memory.push(watts),
                Domain::Psys => o.machine_w = Some(watts),
                _ => {}
            }
        }
        (o.cores_w, o.package_w) = (cores, packages);
        // Of some packages' memory nothing follows for the others'.
        o.memory_w = (memory.len() == self.layout.packages.len()).then(|| memory.iter().sum());
        Ok(())
    }

    fn observation(
        &self,
        site_root: &dyn Root,
        window: &Window,
        loads: &[(u32, f64)],
        before: &CounterLook,
        after: &CounterLook,
        clocks: &BTreeMap<u32, Vec<f64>>,
    ) -> Result<Observation, Spoiled> {
        // By its registers, else as the kernel shows it now and then.
        let clock = |cpu: &u32| {
            clock(*cpu, before, after, after.at_s - before.at_s).or_else(|| {
                let seen = clocks.get(cpu).filter(|seen| !seen.is_empty())?;
                Some(seen.iter().sum::<f64>() / seen.len() as f64)
            })
        };
        let seconds = after.at_s - before.at_s;
        self.strangers(site_root, loads, before, after)?;
        let (mut taken, mut reached) = (Vec::new(), Vec::new());
        let mut core_idle: Vec<Vec<Vec<f64>>> = Vec::new();
        for (k, part) in window.parts.iter().enumerate() {
            let kind = &self.machine.kinds[k];
            let mut own = Taken {
                one: vec![0.0; kind.levels.len()],
                all: vec![0.0; kind.levels.len()],
                idle: vec![0.0; kind.idle.len()],
            };
            let asked = f64::from(kind.levels[part.level].khz);
            let (mut slowest, mut of_kind) = (f64::INFINITY, Vec::new());
            for core in self.layout.packages.iter().flat_map(|p| &p[k]) {
                let deep = self.core_idle(k, core, before, after, seconds);
                let mut busy: Vec<f64> =
                    core.iter().map(|cpu| 1.0 - self.idle_of(*cpu, before, after, seconds)).collect();
                busy.sort_by(f64::total_cmp);
                let (least, most) = (busy[0].clamp(0.0, 1.0), busy[busy.len() - 1].clamp(0.0, 1.0));
                let khz = core.iter().find_map(clock).unwrap_or(asked);
                if most > 0.5 {
                    slowest = slowest.min(khz);
                }
                for (level, share) in between(kind, khz) {
                    if core.len() > 1 {
                        own.all[level] += share * least;
                        own.one[level] += share * (most - least);
                    } else {
                        own.one[level] += share * most;
                    }
                }
                own.idle.iter_mut().zip(&deep).for_each(|(sum, s)| *sum += s);
                of_kind.push(deep);
            }
            reached.push(!slowest.is_finite() || slowest >= asked * (1.0 - OFF_SPEED));
            taken.push(own);
            core_idle.push(of_kind);
        }
        let (awake, asleep) = self.packages(before, after, &core_idle);
        let at_s = f64::midpoint(before.at_s, after.at_s);
        let window = window.clone();
        Ok(Observation {
            window,
            at_s,
            seconds,
            celsius: None,
            taken,
            awake,
            asleep,
            cores_w: None,
            package_w: None,
            memory_w: None,
            machine_w: None,
            reached,
            own_s: after.own_s - before.own_s,
        })
    }

    /// An error where work that is not ours spoils the window.
    fn strangers(
        &self,
        root: &dyn Root,
        loads: &[(u32, f64)],
        before: &CounterLook,
        after: &CounterLook,
    ) -> Result<(), Spoiled> {
        // Our own looking takes its time on one CPU or another.
        let seconds = after.at_s - before.at_s;
        let looking = (after.own_s - before.own_s) / seconds.max(1e-9);
        for t in after.stat.since(&before.stat) {
            let all = (t.busy + t.idle + t.iowait).max(1) as f64;
            let asked = loads.iter().find(|(cpu, _)| *cpu == t.cpu).map_or(0.0, |(_, share)| *share);
            let used = |look: &CounterLook| {
                look.load_s.iter().find(|(cpu, _)| *cpu == t.cpu).map_or(0.0, |(_, s)| *s)
            };
            let ours = asked.max((used(after) - used(before)) / seconds.max(1e-9));
            // Ticks are samples, of which some hit what is short; and a CPU that polls in no C-state is idle all the same.
            let busy = (t.busy as f64 / all).min(1.0 - self.idle_of(t.cpu, before, after, seconds));
            if busy > ours + looking + STRANGERS {
                let (percent, cpu) = ((busy - ours) * 100.0, t.cpu);
                let who =
                    running_on(root, cpu).map_or(String::new(), |who| format!(" ({who} runs there now)"));
                return Err(Spoiled::Again(format!(
                    "another program kept CPU {cpu} busy for {percent:.0} %{who}"
                )));
            }
        }
        Ok(())
    }

    /// Share of the time in which a CPU was in a C-state that does not poll.
    fn idle_of(&self, cpu: u32, before: &CounterLook, after: &CounterLook, seconds: f64) -> f64 {
        let states = self.counters.state_times(cpu, before, after);
        if states.is_empty() {
            // No cpuidle: the kernel's own account, in ticks.
            let ticks = after.stat.since(&before.stat).find(|t| t.cpu == cpu);
            return ticks
                .map_or(1.0, |t| (t.idle + t.iowait) as f64 / (t.busy + t.idle + t.iowait).max(1) as f64);
        }
        states.iter().map(|(_, s)| s).sum::<f64>() / seconds
    }

    /// Share of the time that a core was in each of its kind's C-states: as deep as its shallowest thread.
    fn core_idle(
        &self,
        kind: usize,
        core: &[u32],
        before: &CounterLook,
        after: &CounterLook,
        seconds: f64,
    ) -> Vec<f64> {
        let names = &self.layout.states[kind];
        let n = self.machine.kinds[kind].idle.len();
        // Share of the time in which all threads are at least so deep.
        let mut at_least = vec![1.0_f64; n];
        for cpu in core {
            let times = self.counters.state_times(*cpu, before, after);
            let mut own = vec![0.0; n];
            match times.is_empty() {
                true => own[0] = self.idle_of(*cpu, before, after, seconds),
                false => {
                    for (at, name) in names.iter().enumerate() {
                        own[at] =
                            times.iter().filter(|(n, _)| n == name).map(|(_, s)| s).sum::<f64>() / seconds;
                    }
                }
            }
            let mut sum = 0.0;
            for at in (0..n).rev() {
                sum += own[at];
                at_least[at] = at_least[at].min(sum);
            }
        }
        (0..n).map(|at| (at_least[at] - at_least.get(at + 1).copied().unwrap_or(0.0)).max(0.0)).collect()
    }

    /// Packages awake, and asleep by state: by their counters, else as many as all cores allow.
    fn packages(
        &self,
        before: &CounterLook,
        after: &CounterLook,
        cores: &[Vec<Vec<f64>>],
    ) -> (f64, Vec<f64>) {
        let states = &self.machine.packages[0].idle;
        let mut asleep = vec![0.0; states.len()];
        let mut awake = 0.0;
        for p in 0..self.layout.packages.len() {
            let counted = before.packages[p].as_ref().zip(after.packages[p].as_ref());
            let counted = counted.filter(|(b, _)| b.1.len() == states.len() && !states.is_empty());
            let own: Vec<f64> = match counted {
                Some((b, a)) => {
                    let all = a.0.wrapping_sub(b.0).max(1) as f64;
                    b.1.iter().zip(&a.1).map(|(b, a)| a.wrapping_sub(*b) as f64 / all).collect()
                }
                None => {
                    let deep_enough = |needs: u8| -> f64 {
                        let shares = cores.iter().enumerate().flat_map(|(k, of_kind)| {
                            let each = self.layout.packages[p][k].len();
                            of_kind.iter().skip(p * each).take(each)
                        });
                        shares
                            .map(|deep| deep.iter().skip(usize::from(needs)).sum::<f64>().min(1.0))
                            .product()
                    };
                    let at_least: Vec<f64> = states.iter().map(|s| deep_enough(s.needs)).collect();
                    let next = |at: usize| at_least.get(at + 1).copied().unwrap_or(0.0);
                    (0..states.len()).map(|at| (at_least[at] - next(at)).max(0.0)).collect()
                }
            };
            awake += (1.0 - own.iter().sum::<f64>()).clamp(0.0, 1.0);
            asleep.iter_mut().zip(&own).for_each(|(sum, s)| *sum += s);
        }
        (awake, asleep)
    }
}

/// Who runs on a CPU at the moment, but for ourselves: name and process.
fn running_on(root: &dyn Root, cpu: u32) -> Option<String> {
    let own = std::process::id().to_string();
    let pids = root.list("proc").unwrap_or_default();
    pids.iter().filter(|pid| pid.bytes().all(|b| b.is_ascii_digit()) && **pid != own).find_map(|pid| {
        let stat = wattwise_hw::root::text(root, &format!("proc/{pid}/stat"))?;
        // `PID (NAME) STATE ...`; a name may have anything in it, brackets too. The CPU is the 39th field.
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let runs = fields.next() == Some("R");
        let there = fields.nth(35).and_then(|f| f.parse::<u32>().ok()) == Some(cpu);
        (runs && there).then(|| format!("{name}, process {pid}"))
    })
}

/// A speed as shares of the two levels around it.
fn between(kind: &wattwise_model::machine::CoreKind, khz: f64) -> Vec<(usize, f64)> {
    let at = |l: usize| f64::from(kind.levels[l].khz);
    let last = kind.levels.len() - 1;
    match (0..=last).rev().find(|l| at(*l) >= khz) {
        None => vec![(0, 1.0)],
        Some(l) if l == last => vec![(last, 1.0)],
        Some(l) => {
            let share = (khz - at(l + 1)) / (at(l) - at(l + 1));
            vec![(l, share), (l + 1, 1.0 - share)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one that runs there, whatever its name looks like; not one that waits there, nor one that runs elsewhere.
    #[test]
    fn who_runs_on_a_cpu() {
        let folder = tempfile::tempdir().unwrap();
        let process = |pid: u32, name: &str, state: &str, cpu: u32| {
            let at = folder.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&at).unwrap();
            let zeros = ["0"; 35].join(" ");
            std::fs::write(at.join("stat"), format!("{pid} ({name}) {state} {zeros} {cpu} 0 0")).unwrap();
        };
        process(10, "waits", "S", 3);
        process(11, "elsewhere", "R", 1);
        process(12, "a) R 3 (b", "R", 3);
        let root = wattwise_hw::root::DirRoot::new(folder.path());
        assert_eq!(running_on(&root, 3).as_deref(), Some("a) R 3 (b, process 12"));
        assert_eq!(running_on(&root, 2), None);
    }
}
