//! The daemon without a clock: a machine, a [`Brain`], and the wishes that stand. Whoever runs it says what time it is, so
//! the emulator drives it in virtual time as the kernel does in real.
//!
//! **Looks.** An event of the kernel's begins one after the events have ended (`settle`), and two more later: sysfs lags behind
//! its events, and three or four of them come at once. Where no event comes (USB-C chargers on some machines send none), it looks
//! every half minute. A look reads what feeds the machine and whatever conditions ask for, decides, and verifies every value.
//!
//! **Others' writes.** A value that is neither what we left nor what is wanted is another program's. It stays (`yield`,
//! `warn`) or is written again (`reassert`), after 1 s, then 2, 4 ... up to 5 minutes. After a resume, or when a CPU has come, what
//! differs was lost by the hardware and not taken by anybody: it is written at once, on every CPU. While another holds the governor at
//! `performance`, the kernel shows that preference too: it is no wish of anybody's, and ours returns with the governor.

use crate::actuator::{self, Orders};
use crate::brain::{Brain, BrainEvent, Decision, ProfileHold};
use crate::config::OnForeign;
use crate::facts::{FactWatch, Needs};
pub use crate::input::{EngineCounts, KernelInput, LogKind, Note};
use crate::live::LivePolicy;
use crate::profile::{Condition, Wish};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wattwise_control::cores::hold::HoldOptions;
use wattwise_control::govern::cores::Following;
use wattwise_control::set::original::Restored;
use wattwise_control::set::standing::{Changed, Foreign, StandingChanges};
use wattwise_control::set::target::Target;
use wattwise_hw::root::{Root, text};
use wattwise_hw::states::cpufreq::Cpufreq;
use wattwise_hw::states::supply::SupplySource;
use wattwise_policy::PowerSource;

const ONLINE: &str = "sys/devices/system/cpu/online";
const SECOND_NS: u64 = 1_000_000_000;
/// Longest time between two writes against another program.
const LONGEST_BACK_OFF_NS: u64 = 300 * SECOND_NS;

/// When a value is written again, against another program.
struct BackOff {
    due_ns: u64,
    wait_ns: u64,
}

/// The daemon.
pub struct Engine<'r> {
    root: &'r dyn Root,
    folder: PathBuf,
    brain: Brain,
    standing: StandingChanges<'r>,
    live: Option<LivePolicy>,
    cores: Option<(String, Following)>,
    watch: FactWatch,
    decision: Decision,
    /// Whether anything was ever decided.
    begun: bool,
    online: String,
    refused: Vec<(String, String)>,
    looks_ns: Vec<u64>,
    storm_ns: Option<u64>,
    look_due_ns: u64,
    back_off: BTreeMap<Target, BackOff>,
    forced: BTreeSet<Target>,
    told: BTreeSet<String>,
    notes: Vec<Note>,
    counts: EngineCounts,
    minute: u16,
    ended: Vec<ProfileHold>,
    revision: u64,
    /// Writes are not told one by one.
    quiet: bool,
    /// What the turns of a proof mean here.
    plans: Vec<(Wish, Orders)>,
}

/// Whether a machine has anything that profiles can set.
///
/// # Errors
/// One line that says what is missing.
pub fn has_control(root: &dyn Root) -> Result<(), String> {
    let cpufreq = Cpufreq::read(root);
    let bias = actuator::of_bias(root, &cpufreq, crate::profile::Bias::Balanced);
    match actuator::authority(&cpufreq) {
        Ok(_) => Ok(()),
        Err(_) if !bias.is_empty() => Ok(()),
        Err(why) => Err(format!("{}: nothing that a profile sets is here ({why})", root.describe())),
    }
}

impl<'r> Engine<'r> {
    /// Over a machine; journals go to the folder. Nothing is done before [`Self::start`].
    pub fn new(root: &'r dyn Root, folder: &Path, brain: Brain) -> Engine<'r> {
        Engine {
            root,
            folder: folder.to_owned(),
            brain,
            standing: StandingChanges::new(root, folder, "wattwised"),
            live: None,
            cores: None,
            watch: FactWatch::default(),
            decision: Decision::default(),
            begun: false,
            online: String::new(),
            refused: Vec::new(),
            looks_ns: Vec::new(),
            storm_ns: None,
            look_due_ns: 0,
            back_off: BTreeMap::new(),
            forced: BTreeSet::new(),
            told: BTreeSet::new(),
            notes: Vec::new(),
            counts: EngineCounts::default(),
            minute: 0,
            ended: Vec::new(),
            revision: 0,
            quiet: false,
            plans: Vec::new(),
        }
    }

    /// Begins: looks and puts the profile in force. Drivers of batteries come late in a boot, so it looks again soon.
    pub fn start(&mut self, now_ns: u64, minute: u16) {
        self.minute = minute;
        self.online = text(self.root, ONLINE).unwrap_or_default();
        self.look(now_ns);
        self.looks_ns = [1, 5, 20].map(|s| now_ns + s * SECOND_NS).to_vec();
    }

    /// When there is something to do next.
    pub fn due_ns(&self) -> u64 {
        let looks = self.looks_ns.iter().copied();
        let again = self.back_off.values().map(|b| b.due_ns);
        let live = self.live.as_ref().map(LivePolicy::due_ns);
        looks.chain(again).chain(live).chain([self.look_due_ns]).min().unwrap_or(u64::MAX)
    }

    /// Does what is due.
    pub fn tick(&mut self, now_ns: u64, minute: u16) {
        self.minute = minute;
        let due = self.looks_ns.iter().any(|at| *at <= now_ns);
        self.looks_ns.retain(|at| *at > now_ns);
        if due || now_ns >= self.look_due_ns {
            self.storm_ns = None;
            self.look(now_ns);
        }
        self.again(now_ns);
        self.follow(now_ns);
    }

    /// Takes what the kernel says.
    pub fn input(&mut self, now_ns: u64, input: KernelInput) {
        match input {
            KernelInput::Supply => {}
            KernelInput::Cpus | KernelInput::Resumed => {
                self.recover(now_ns, matches!(input, KernelInput::Resumed))
            }
        }
        self.stir(now_ns);
    }

    /// Takes what somebody wants.
    pub fn event(&mut self, now_ns: u64, event: BrainEvent) {
        self.revision += 1;
        let is_config = matches!(event, BrainEvent::Config(_));
        let ended = self.brain.event(event);
        self.ended.extend(ended);
        if is_config {
            self.told.clear();
            self.plans.clear();
            self.look_due_ns = now_ns;
        }
        self.act(now_ns);
    }

    /// Goes up with whatever changes what is in force, what is held or what cannot be had. A followed policy's decisions do not.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// A storm of events is waited out, but not for ever; then it looks, and again.
    fn stir(&mut self, now_ns: u64) {
        let settle = self.brain.config().options.settle_ns;
        let first = *self.storm_ns.get_or_insert(now_ns);
        let at = (now_ns + settle).min(first + 4 * settle);
        self.looks_ns = vec![at, at + 4 * settle, at + 14 * settle];
    }

    /// Looks, decides, verifies.
    fn look(&mut self, now_ns: u64) {
        self.counts.looks += 1;
        self.look_due_ns = now_ns.saturating_add(self.brain.config().options.look_ns);
        let wants_heat = |c: &Condition| matches!(c, Condition::HotterThan(_));
        let wants_load = |c: &Condition| matches!(c, Condition::BusierThan(_) | Condition::IdlerThan(_));
        let needs = Needs {
            heat: self.brain.asks_for(wants_heat) || self.live.is_some(),
            load: self.brain.asks_for(wants_load),
            programs: self.brain.programs(),
            minute: self.minute,
        };
        let facts = self.watch.look(self.root, &needs);
        self.brain.event(BrainEvent::Facts(facts));
        let online = text(self.root, ONLINE).unwrap_or_default();
        if online != self.online {
            self.online = online;
            self.recover(now_ns, false);
        }
        self.act(now_ns);
        self.verify(now_ns);
    }

    /// After a resume, or when CPUs have come or gone: values that differ were lost, not taken.
    fn recover(&mut self, now_ns: u64, resumed: bool) {
        if !self.begun {
            return;
        }
        self.online = text(self.root, ONLINE).unwrap_or_default();
        self.plans.clear();
        let changed = self.standing.reassert();
        let why = if resumed { "lost over the suspend" } else { "a CPU has come or gone" };
        self.told_of(&changed, why);
        let decision = self.decision.clone();
        self.put_in_force(now_ns, &decision, why);
    }

    /// Decides, and puts it in force where it differs.
    fn act(&mut self, now_ns: u64) {
        let decision = self.brain.decide();
        let same =
            self.begun && decision.wish == self.decision.wish && decision.paused == self.decision.paused;
        if !self.begun || decision.profile != self.decision.profile || decision.paused != self.decision.paused
        {
            self.counts.transitions += u64::from(self.begun);
            self.note(LogKind::Profile, format!("{}: {}", decision.profile, decision.why));
        }
        if !same {
            // What others changed meanwhile is told, and theirs, before it is written over.
            if self.begun {
                self.verify(now_ns);
            }
            self.begun = true;
            let why = format!("{}: {}", decision.profile, decision.why);
            // A proof's turns come every minute: they are counted, not told.
            self.quiet = decision.turn || self.decision.turn;
            self.put_in_force(now_ns, &decision, &why);
            self.quiet = false;
        }
        self.decision = decision;
    }

    fn put_in_force(&mut self, now_ns: u64, decision: &Decision, why: &str) {
        self.revision += 1;
        self.back_off.clear();
        self.forced.clear();
        self.live = None;
        let mut orders = self.orders(&decision.wish);
        let live = self.begin_live(&mut orders, now_ns);
        self.cores(decision, &mut orders);
        self.standing.come_and_go(self.quiet);
        let changed = match self.standing.want(&orders.changes, &orders.beside) {
            Ok(changed) => changed,
            Err(e) => {
                self.refuse("all", &e.to_string());
                return;
            }
        };
        self.live = live;
        self.told_of(&changed, why);
        self.refused = orders.refused.clone();
        for (what, why) in orders.refused {
            self.refuse(&what, &why);
        }
        let failed = changed.failed.iter().map(|f| (f.target.clone(), f.why.clone()));
        self.refused.extend(failed);
    }

    /// What a wish means here. A proof's turns come every minute and want the same: they are planned once, until anything else happens, and
    /// not at all where the profile stands already or nothing is wanted.
    fn orders(&mut self, wish: &Wish) -> Orders {
        if !self.quiet {
            self.plans.clear();
        }
        if *wish == Wish::default() {
            return Orders::default();
        }
        if let Some((_, orders)) = self.plans.iter().find(|(of, _)| of == wish) {
            return orders.clone();
        }
        let orders = actuator::orders(&self.standing.before(), wish);
        self.plans.push((wish.clone(), orders.clone()));
        orders
    }

    fn begin_live(&self, orders: &mut Orders, now_ns: u64) -> Option<LivePolicy> {
        let (choice, authority) = orders.live.take()?;
        let cpufreq = Cpufreq::read(&self.standing.before());
        let (source, celsius) = self.feed();
        let record = self.brain.config().options.record.as_deref();
        let seen = (now_ns, source, celsius);
        match LivePolicy::begin(self.root, &cpufreq, (&choice, authority), &orders.changes, seen, record) {
            Ok((live, first)) => {
                orders.changes.extend(first);
                Some(live)
            }
            Err(why) => {
                orders.refused.push((format!("speed {}", choice.text), why));
                None
            }
        }
    }

    /// Core policies are followed by a thread of their own, on this machine alone.
    fn cores(&mut self, decision: &Decision, orders: &mut Orders) {
        let wanted = decision.wish.cores.as_ref();
        if self.cores.as_ref().map(|(text, _)| text) == wanted.map(|w| &w.text) {
            return;
        }
        if let Some((text, mut following)) = self.cores.take()
            && let Err(e) = following.end()
        {
            self.refuse(&format!("cores {text}"), &e.to_string());
        }
        let Some(choice) = wanted else { return };
        let what = format!("cores {}", choice.text);
        if !self.root.is_this_machine() {
            orders.refused.push((what, "a core policy can be followed on this machine alone".to_owned()));
            return;
        }
        let name = choice.spec.cores.name;
        match Following::begin(&choice.spec, name, self.folder.clone(), HoldOptions::default()) {
            Ok(following) => self.cores = Some((choice.text.clone(), following)),
            Err(e) => orders.refused.push((what, e.to_string())),
        }
    }

    /// What feeds the machine and how hot it is, for a policy that is followed.
    fn feed(&self) -> (PowerSource, Option<f64>) {
        let facts = self.brain.facts();
        let source = match facts.map(|f| f.source) {
            None => PowerSource::Unknown,
            Some(SupplySource::Mains) => PowerSource::Mains,
            Some(SupplySource::Battery) => PowerSource::Battery,
        };
        (source, facts.and_then(|f| f.celsius))
    }

    /// Has the followed policy decide.
    fn follow(&mut self, now_ns: u64) {
        let (source, celsius) = self.feed();
        let Some(live) = &mut self.live else { return };
        match live.step(now_ns, source, celsius) {
            Ok(writes) => {
                for (target, value) in writes {
                    match self.standing.drive(&target, &value) {
                        Ok(written) => self.counts.writes += u64::from(written),
                        Err(e) => {
                            self.counts.failed += 1;
                            let why = wattwise_hw::rules::why_not_written(&e, &target.path(), self.root);
                            self.refuse(&target.to_string(), &why);
                        }
                    }
                }
            }
            Err(why) => {
                let text = live.text.clone();
                self.live = None;
                self.refuse(&format!("speed {text}"), &why);
            }
        }
    }

    /// Finds what others wrote, and answers as configured.
    fn verify(&mut self, now_ns: u64) {
        for found in self.standing.look() {
            if self.is_forced(&found) {
                self.forced.insert(found.target);
                continue;
            }
            if self.forced.remove(&found.target) && is_performance(&found.now) {
                let changed = self.standing.reassert();
                self.told_of(&changed, "another's governor 'performance' had left its preference");
                continue;
            }
            self.answer(now_ns, &found);
        }
    }

    /// Whether a preference is `performance` because a governor of that name forces it.
    fn is_forced(&self, found: &Foreign) -> bool {
        let path = found.target.path();
        let Some(folder) = path.strip_suffix("/energy_performance_preference") else { return false };
        let governor = text(self.root, &format!("{folder}/scaling_governor"));
        is_performance(&found.now) && governor.as_deref() == Some("performance")
    }

    fn answer(&mut self, now_ns: u64, found: &Foreign) {
        let on = self.brain.config().options.foreign;
        if on == OnForeign::Reassert && self.back_off.contains_key(&found.target) {
            return;
        }
        let key = format!("{}={}", found.target, found.now);
        let first = self.told.insert(key);
        if first {
            self.counts.foreign += 1;
        }
        let said =
            format!("{} was '{}' and is '{}': another program wrote it", found.what, found.ours, found.now);
        match on {
            OnForeign::Yield => {
                self.standing.let_go(&found.target);
                self.plans.clear();
                self.note(LogKind::Foreign, format!("{said}; it stays until the profile changes"));
            }
            OnForeign::Warn if first => {
                let who = wattwise_hw::states::writers::suspects(self.root);
                self.note(LogKind::Foreign, format!("{said}; {who}"));
            }
            OnForeign::Warn => {}
            OnForeign::Reassert => {
                let wait_ns = SECOND_NS;
                self.back_off.insert(found.target.clone(), BackOff { due_ns: now_ns + wait_ns, wait_ns });
                self.note(LogKind::Foreign, format!("{said}; it is written again, ever more rarely"));
            }
        }
    }

    /// Writes against other programs whose time has come.
    fn again(&mut self, now_ns: u64) {
        let due = |b: &BackOff| b.due_ns <= now_ns;
        if !self.back_off.values().any(due) {
            return;
        }
        let changed = self.standing.reassert();
        for (target, back_off) in self.back_off.iter_mut().filter(|(_, b)| b.due_ns <= now_ns) {
            let again = changed.wrote.iter().any(|w| w.target == target.to_string());
            // Quiet for as long as we waited: the next time begins anew.
            back_off.wait_ns = match again {
                true => (back_off.wait_ns * 2).min(LONGEST_BACK_OFF_NS),
                false => 0,
            };
            back_off.due_ns = now_ns + back_off.wait_ns;
        }
        self.back_off.retain(|_, b| b.wait_ns > 0);
        self.told_of(&changed, "against another program");
    }

    fn told_of(&mut self, changed: &Changed, why: &str) {
        self.counts.writes += changed.wrote.len() as u64;
        self.counts.failed += changed.failed.len() as u64;
        for w in changed.wrote.iter().filter(|_| !self.quiet).collect::<Vec<_>>() {
            self.note(LogKind::Wrote, format!("{}: {} -> {} ({why})", w.what, w.old, w.got));
        }
        for failed in &changed.failed {
            self.refuse(&failed.target, &failed.why);
        }
    }

    /// Something that cannot be had, said once until the configuration changes.
    fn refuse(&mut self, what: &str, why: &str) {
        self.revision += 1;
        let line = format!("{what}: {why}");
        if self.told.insert(line.clone()) {
            self.note(LogKind::Refused, line);
        }
    }

    /// Adds a line to the log.
    pub fn tell(&mut self, kind: LogKind, text: String) {
        match kind {
            LogKind::Refused if !self.told.insert(text.clone()) => {}
            _ => self.note(kind, text),
        }
    }

    fn note(&mut self, kind: LogKind, text: String) {
        self.notes.push(Note { kind, text });
    }

    /// The lines of the log since the last call.
    pub fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Holds that have ended since the last call.
    pub fn ended(&mut self) -> Vec<ProfileHold> {
        std::mem::take(&mut self.ended)
    }

    /// What is in force.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// What decides.
    pub fn brain(&mut self) -> &mut Brain {
        &mut self.brain
    }

    /// What cannot be had of it now: (what, why).
    pub fn refused(&self) -> &[(String, String)] {
        &self.refused
    }

    /// Counts.
    pub fn counts(&self) -> EngineCounts {
        self.counts
    }

    /// How many values stand.
    pub fn values(&self) -> usize {
        self.standing.len()
    }

    /// The speed policy that is followed here.
    pub fn followed(&self) -> Option<&str> {
        self.live.as_ref().map(|l| l.text.as_str())
    }

    /// How often it was asked since it came into force.
    pub fn followed_decisions(&self) -> u64 {
        self.live.as_ref().map_or(0, |l| l.decisions)
    }

    /// Puts everything back.
    pub fn end(&mut self) -> Restored {
        self.live = None;
        let left = self.cores.take().and_then(|(_, mut following)| following.end().err());
        let mut restored = self.standing.end();
        restored.failed.extend(left.map(|e| ("kept CPUs".to_owned(), e.to_string())));
        restored
    }
}

fn is_performance(preference: &str) -> bool {
    matches!(preference, "performance" | "0")
}
