//! What the profile in force saves, proved while it is in force: `prove = "untouched"` in the configuration.
//!
//! [`wattwise_proof`] says what a proof is and how it is judged; `wattwise prove` carries one out as a program of its own. Here
//! the daemon does, so that nothing has to be started and profiles go on following mains, programs and heat meanwhile:
//!
//! 1. For a minute the machine is as the *baseline* has it, and for another as the chosen profile has it, in the order that the plan's seed
//!    fixed ([`Turn`]). To desktops the chosen profile is in force all the time.
//! 2. Each block is a line of a log in the state's folder. After a boot the same plan goes on; another profile or baseline begins another
//!    log, and the old one stays beside it.
//! 3. Left out are pairs with a suspend, with mains that came or went, with another program's writes, a hold, a pause or a click, and those in which
//!    a turn could not be put in force. While a profile is held, or a measurement has the machine, there are no turns.
//! 4. It is judged on request ([`Proving::told`]), by an interval that may be looked at at any time, until the plan is carried out.

use crate::brain::BrainEvent;
use crate::engine::{Engine, LogKind};
use crate::profile::Turn;
use crate::protocol::Proof;
use std::path::PathBuf;
use wattwise_figure::Provenance;
use wattwise_figure::verdict::Aim;
use wattwise_hw::clock::Moment;
use wattwise_hw::identity::Identity;
use wattwise_hw::root::Root;
use wattwise_hw::states::supply::SupplySource;
use wattwise_meter::Meter;
use wattwise_proof::block::{Block, Reason, by_scope};
use wattwise_proof::conclude;
use wattwise_proof::conduct::{Budget, Design, End, order};
use wattwise_proof::lines::Lines;
use wattwise_proof::log::{self, Header, Line, ProofRead, Side};
use wattwise_proof::probe::{EVERY, ProbeWatch, calibrated, response};

/// The log's name in the state's folder.
const FILE: &str = "proof.jsonl";
/// Length of a block, s.
const BLOCK_S: f64 = 60.0;
/// Of it, not counted at its start, s.
const SETTLE_S: f64 = 5.0;
/// How much slower the profile may be before its saving is called bought.
const LIMIT: f64 = 0.1;
/// The probe's work is a quarter of that of `wattwise prove`: it wakes a machine that may be idle for a week.
const PROBE_PART: u64 = 4;
/// More time asleep than this between two moments is a suspend, s.
const SUSPEND_S: f64 = 0.1;

/// Where in a block it is; times are of the clock that goes on in a suspend, s.
enum BlockPhase {
    /// Between blocks.
    Waiting,
    /// What the last turn left is going.
    Settling { until: f64 },
    /// The window.
    Measuring { from: Moment, until: f64, probe: f64, beat: f64 },
}

/// What must not change within a pair.
struct Since {
    at: Moment,
    source: SupplySource,
    foreign: u64,
}

/// A plan that is being carried out.
struct ProvingPlan<'r> {
    header: Header,
    turns: [Turn; 2],
    lines: Lines,
    meter: Meter,
    watch: ProbeWatch<'r>,
    pair: usize,
    /// Arms of this pair, in their order; how many are done.
    order: Vec<usize>,
    done: usize,
    phase: BlockPhase,
    since: Option<Since>,
    /// The block's own beginning, and failed writes as of then.
    begun: (Moment, u64),
    started: u64,
    /// A hold, a pause or a click came.
    broken: bool,
}

/// The proof of a daemon.
pub struct Proving<'r> {
    root: &'r dyn Root,
    path: PathBuf,
    plan: Option<ProvingPlan<'r>>,
    /// What is proved, and whether it is over or cannot be.
    wanted: Option<(Turn, String)>,
    lines: usize,
    told: Option<(usize, Proof)>,
}

/// What is to be proved: baseline and chosen profile.
fn wanted(engine: &mut Engine<'_>) -> Option<(Turn, String)> {
    let brain = engine.brain();
    let chosen = brain.chosen().to_owned();
    brain.config().options.prove.clone().filter(|b| *b != Turn::Profile(chosen.clone())).map(|b| (b, chosen))
}

fn machine(identity: &Identity) -> String {
    let known = Some(identity.processor.as_str()).filter(|name| !name.is_empty());
    format!("{}, {} CPUs, kernel {}", known.unwrap_or("unknown processor"), identity.cpus, identity.kernel)
}

impl<'r> Proving<'r> {
    /// Of a machine; its log is in the state's folder.
    pub fn new(root: &'r dyn Root, state: &std::path::Path) -> Proving<'r> {
        Proving { root, path: state.join(FILE), plan: None, wanted: None, lines: 0, told: None }
    }

    /// When there is something to do next.
    pub fn due_ns(&self) -> u64 {
        let due = |plan: &ProvingPlan<'_>| match &plan.phase {
            BlockPhase::Waiting => f64::INFINITY,
            BlockPhase::Settling { until } => *until,
            BlockPhase::Measuring { until, probe, beat, .. } => until.min(*probe).min(*beat),
        };
        (self.plan.as_ref().map_or(f64::INFINITY, due) * 1e9).ceil() as u64
    }

    /// Goes on. `unix_s`: seconds since 1970, for people who read the log.
    pub fn step(&mut self, now: Moment, unix_s: u64, engine: &mut Engine<'_>) {
        let wanted = wanted(engine);
        if wanted != self.wanted {
            self.wanted.clone_from(&wanted);
            self.told = None;
            if self.plan.take().is_some() {
                give_back(now, engine);
            }
            if let Some((baseline, chosen)) = wanted {
                match self.begin(engine, baseline, &chosen, unix_s) {
                    Ok(plan) => self.plan = plan,
                    Err(why) => engine.tell(LogKind::Refused, format!("prove: {why}")),
                }
            }
        }
        let Some(plan) = &mut self.plan else { return };
        match plan.step(now, unix_s, engine) {
            Ok(written) => self.lines += usize::from(written),
            Err(why) => {
                engine.tell(LogKind::Refused, format!("prove: {why}; no more turns are taken"));
                self.plan = None;
            }
        }
        if self.plan.as_ref().is_some_and(|plan| plan.pair >= plan.header.pairs()) {
            self.plan = None;
            self.told = None;
        }
        if self.plan.is_none() {
            give_back(now, engine);
        }
    }

    /// A log that is gone on with, or a new one; none where the plan is carried out.
    fn begin(
        &mut self,
        engine: &mut Engine<'_>,
        baseline: Turn,
        chosen: &str,
        unix_s: u64,
    ) -> Result<Option<ProvingPlan<'r>>, String> {
        let mut meter = Meter::open(self.root);
        meter.begin(wattwise_hw::clock::now());
        if meter.is_empty() {
            let Provenance::Unavailable { why } = meter.energy().provenance else { return Ok(None) };
            return Err(format!("nothing here meters energy: {why}"));
        }
        let header = self.header(engine, &baseline, chosen, unix_s);
        header.check()?;
        let there = log::read(&self.path).ok();
        let (header, lines, pair) = match there.filter(|read| is_same(read, &header)) {
            Some(read) if read.end == Some(End::Reached) => return Ok(None),
            Some(read) => {
                let (lines, pair) = (log::resume(&self.path, &read)?, read.next_pair());
                (read.header, lines, pair)
            }
            None => {
                self.set_aside()?;
                let lines = log::create(&self.path, &header).map_err(|e| e.to_string())?;
                (header, lines, 0)
            }
        };
        let turns = [baseline, Turn::Profile(chosen.to_owned())];
        engine.tell(LogKind::Told, format!("proving what {chosen} saves against {}", header.sides[0].name));
        Ok(Some(ProvingPlan::new(self.root, header, turns, (lines, meter, pair))))
    }

    /// An older log stays, under the time of its beginning.
    fn set_aside(&self) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.path.display());
        let folder = self.path.parent().unwrap_or(std::path::Path::new("/"));
        let folder = wattwise_control::private::PrivateFolder::make(folder).map_err(failed)?;
        if !self.path.exists() {
            return Ok(());
        }
        let name = match log::read(&self.path) {
            Ok(read) => format!("proof-{}.jsonl", read.header.started),
            Err(_) => "proof-unreadable.jsonl".to_owned(),
        };
        folder.rename(FILE, &name).map_err(failed)
    }

    fn header(&self, engine: &mut Engine<'_>, baseline: &Turn, chosen: &str, unix_s: u64) -> Header {
        let identity = Identity::read(self.root);
        let side = |name: String| Side { policy: name.clone(), name };
        let all_s = engine.brain().config().options.prove_ns as f64 * 1e-9;
        let pairs = ((all_s / (2.0 * BLOCK_S)) as usize).max(3);
        let loops = if self.root.is_this_machine() { calibrated() / PROBE_PART } else { 0 };
        Header {
            schema: log::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: Design {
                arms: 2,
                aim: Aim { pilot: 3, ..Aim::default() },
                budget: Budget { blocks: pairs, seconds: all_s, warm_up: 0 },
                seed: unix_s ^ u64::from(std::process::id()) << 32,
            },
            sides: [side(baseline.to_string()), side(chosen.to_owned())],
            block_s: BLOCK_S,
            settle_s: SETTLE_S,
            limit: LIMIT,
            probe_loops: loops,
            battery: false,
            energy: Provenance::Measured { by: "the machine's meters".to_owned() },
            machine: machine(&identity),
            root: None,
            identity,
            started: unix_s,
            predicted: None,
        }
    }

    /// What it comes to so far, judged anew where more blocks than `stale` have ended since; none where nothing is proved.
    pub fn told(&mut self, stale: usize) -> Option<Proof> {
        let (baseline, profile) = self.wanted.clone()?;
        if self.told.as_ref().is_none_or(|(lines, _)| self.lines - lines > stale) {
            let read = log::read(&self.path).ok()?;
            let judged = conclude::of(&read);
            let saving = judged.headline.map(|h| [1.0 - h.ratio, 1.0 - h.high, 1.0 - h.low]);
            let proof = Proof {
                baseline: baseline.to_string(),
                profile,
                line: judged.line,
                words: judged.words,
                saving,
                measured_h: judged.measured_h,
                left_out_h: judged.left_out.iter().map(|l| l.hours).fold(0.0, |sum, h| sum + h),
                pairs: judged.pairs as u64,
                planned: judged.planned as u64,
            };
            self.told = Some((self.lines, proof));
        }
        self.told.as_ref().map(|(_, proof)| proof.clone())
    }
}

/// Whether a log is of the same two on the same machine.
fn is_same(read: &ProofRead, header: &Header) -> bool {
    let names = |h: &Header| h.sides.clone().map(|s| s.name);
    names(&read.header) == names(header)
        && header.identity.other_than(&read.header.identity).is_none()
        && read.header.plan.budget == header.plan.budget
}

/// Nobody's turn any more: the chosen profile is in force.
fn give_back(now: Moment, engine: &mut Engine<'_>) {
    engine.event((now.boot_s * 1e9) as u64, BrainEvent::Turn(None));
}

fn asleep_s(from: &Moment, to: &Moment) -> f64 {
    ((to.boot_s - from.boot_s) - (to.monotonic_s - from.monotonic_s)).max(0.0)
}

impl<'r> ProvingPlan<'r> {
    fn new(
        root: &'r dyn Root,
        header: Header,
        turns: [Turn; 2],
        (lines, meter, pair): (Lines, Meter, usize),
    ) -> ProvingPlan<'r> {
        ProvingPlan {
            order: order(&header.plan, pair),
            header,
            turns,
            lines,
            meter,
            watch: ProbeWatch::open(root),
            pair,
            done: 0,
            phase: BlockPhase::Waiting,
            since: None,
            begun: (Moment::default(), 0),
            started: 0,
            broken: false,
        }
    }

    /// Goes on; whether a line was written.
    fn step(&mut self, now: Moment, unix_s: u64, engine: &mut Engine<'_>) -> Result<bool, String> {
        // Whoever holds or measures has the machine. The pair is broken, and its other blocks are made later.
        if engine.brain().is_taken() {
            self.broken |= self.since.is_some();
            if !matches!(self.phase, BlockPhase::Waiting) {
                self.phase = BlockPhase::Waiting;
                give_back(now, engine);
            }
            return Ok(false);
        }
        match &mut self.phase {
            BlockPhase::Waiting => self.turn(now, unix_s, engine),
            BlockPhase::Settling { until } if now.boot_s >= *until => {
                self.meter.begin(now);
                self.watch.begin();
                let until = *until + self.header.block_s - self.header.settle_s;
                let (probe, beat) = (now.boot_s + EVERY.as_secs_f64(), now.boot_s + self.meter.longest_s());
                self.phase = BlockPhase::Measuring { from: now, until, probe, beat };
            }
            BlockPhase::Measuring { from, until, .. } if now.boot_s >= *until => {
                let from = *from;
                self.end(from, now, engine)?;
                self.turn(now, unix_s, engine);
                return Ok(true);
            }
            BlockPhase::Measuring { probe, beat, .. } => {
                if now.boot_s >= *beat {
                    self.meter.sample(now);
                    *beat = now.boot_s + self.meter.longest_s();
                }
                if now.boot_s >= *probe {
                    let late = (now.boot_s - *probe).max(0.0);
                    let loops = self.header.probe_loops;
                    let worked = || late + response(std::time::Instant::now(), loops);
                    self.watch.tick((loops > 0).then(worked));
                    *probe += EVERY.as_secs_f64();
                }
            }
            BlockPhase::Settling { .. } => {}
        }
        Ok(false)
    }

    /// The next turn begins.
    fn turn(&mut self, now: Moment, unix_s: u64, engine: &mut Engine<'_>) {
        if self.pair >= self.header.pairs() {
            return;
        }
        let counts = engine.counts();
        let source = engine.brain().facts().map_or_else(SupplySource::default, |f| f.source);
        self.since.get_or_insert(Since { at: now, source, foreign: counts.foreign });
        self.begun = (now, counts.failed);
        self.started = unix_s;
        let arm = self.order[self.done.min(1)];
        engine.event((now.boot_s * 1e9) as u64, BrainEvent::Turn(Some(self.turns[arm].clone())));
        self.phase = BlockPhase::Settling { until: now.boot_s + self.header.settle_s };
    }

    /// The rules by which a block's pair does not count.
    fn left_out(&self, now: Moment, engine: &mut Engine<'_>, joules: Option<f64>) -> Option<Reason> {
        let since = self.since.as_ref()?;
        let counts = engine.counts();
        let source = engine.brain().facts().map_or_else(SupplySource::default, |f| f.source);
        match () {
            () if asleep_s(&since.at, &now) > SUSPEND_S => Some(Reason::Suspend),
            () if source != since.source => Some(Reason::Mains),
            () if self.broken || counts.foreign != since.foreign => Some(Reason::Click),
            () if counts.failed != self.begun.1 => Some(Reason::Refused),
            () if joules.is_none() => Some(Reason::Meter),
            () => None,
        }
    }

    /// The block's window has ended.
    fn end(&mut self, from: Moment, now: Moment, engine: &mut Engine<'_>) -> Result<(), String> {
        self.meter.sample(now);
        let seconds = (now.monotonic_s - from.monotonic_s).max(1e-9);
        let (work, service) = self.watch.end(seconds);
        let energy = self.meter.energy();
        let domains: Vec<(String, f64)> =
            energy.domains.iter().map(|d| (d.domain.to_string(), d.total.joules)).collect();
        let block = Block {
            pair: self.pair,
            arm: self.order[self.done.min(1)],
            started: self.started,
            seconds,
            asleep_s: asleep_s(&self.begun.0, &now),
            joules: energy.joules,
            scopes: by_scope(&domains),
            work,
            service,
            left_out: self.left_out(now, engine, energy.joules),
        };
        self.lines.line(&Line::Block(Box::new(block)))?;
        self.done += 1;
        if self.done == 2 {
            self.pair += 1;
            (self.done, self.since, self.broken) = (0, None, false);
            self.order = order(&self.header.plan, self.pair);
            if self.pair >= self.header.pairs() {
                self.lines.line(&Line::End(End::Reached))?;
            }
        }
        self.phase = BlockPhase::Waiting;
        Ok(())
    }
}
