//! Blocks on the live machine: the policy in force, the settling, the window, what was seen.

use crate::ab::conduct::{End, order};
use crate::lines::Lines;
use crate::prove::block::{Block, Reason, by_scope};
use crate::prove::log::{Header, Line, ProofRead};
use crate::prove::probe::{EVERY, ProbeWatch, response};
use crate::run::observe::Observer;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wattwise_child::Signals;
use wattwise_control::hold::{HeldSettings, Wishes, hold};
use wattwise_hw::clock::{Moment, now};
use wattwise_hw::root::{Root, text};
use wattwise_hw::states::cpufreq::folders;
use wattwise_hw::states::supply::{SupplySource, supply};
use wattwise_meter::battery::Gauge;

/// A policy that is refused so often in a row is not put in force here at all.
const MOST_REFUSED: usize = 10;
/// A gauge moves every few seconds to a minute: in shorter blocks it says nothing.
const LEAST_FOR_A_GAUGE_S: f64 = 300.0;
/// The signals' wait is not sharp; the rest of the way to the probe's time is slept.
const AHEAD: Duration = Duration::from_millis(3);

/// Told of all blocks so far.
pub type Tell<'r> = Box<dyn FnMut(&[Block]) + 'r>;

/// What a proof is made of.
pub struct Parts<'r> {
    /// The machine.
    pub root: &'r dyn Root,
    /// Where changes are journalled.
    pub journal: &'r Path,
    /// The plan.
    pub header: &'r Header,
    /// A and B.
    pub wishes: [Wishes; 2],
    /// Watches the machine.
    pub observer: Observer<'r>,
    /// Ends the proof in good order.
    pub signals: &'r Signals,
    /// Where everything is written; none where the machine is only watched.
    pub file: Option<Lines>,
    /// Told after each pair, with all blocks so far.
    pub tell: Tell<'r>,
}

/// Carries a plan out on the live machine.
pub struct Prover<'r> {
    parts: Parts<'r>,
    watch: ProbeWatch<'r>,
    blocks: Vec<Block>,
    refused: usize,
}

/// What must not change within a pair.
struct Since {
    at: Moment,
    source: SupplySource,
}

impl<'r> Prover<'r> {
    /// Ready for its first block.
    pub fn new(parts: Parts<'r>) -> Prover<'r> {
        Prover { watch: ProbeWatch::open(parts.root), parts, blocks: Vec::new(), refused: 0 }
    }

    /// Goes on after what is done, to the end of the plan or until a signal.
    ///
    /// # Errors
    /// The log cannot be written; a policy is refused ten times in a row, or cannot be undone.
    pub fn conduct(&mut self, done: Option<&ProofRead>) -> Result<End, String> {
        self.blocks = done.map(|read| read.blocks.clone()).unwrap_or_default();
        let first = done.map_or(0, ProofRead::next_pair);
        for pair in first..self.parts.header.pairs() {
            let since = Since { at: now(), source: supply(self.parts.root).source };
            for arm in order(&self.parts.header.plan, pair) {
                if let Some(why) = self.parts.signals.reason() {
                    return self.over(End::Stopped(why));
                }
                let Some(block) = self.block(pair, arm, &since)? else {
                    let why = self.parts.signals.reason().unwrap_or_else(|| "a signal came".to_owned());
                    return self.over(End::Stopped(why));
                };
                self.line(&Line::Block(Box::new(block.clone())))?;
                self.blocks.push(block);
            }
            (self.parts.tell)(&self.blocks);
        }
        self.over(End::Reached)
    }

    fn over(&mut self, end: End) -> Result<End, String> {
        self.line(&Line::End(end.clone()))?;
        Ok(end)
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        self.parts.file.as_mut().map_or(Ok(()), |file| file.line(line))
    }

    /// The file, for what comes after the last block.
    pub fn into_file(self) -> Option<Lines> {
        self.parts.file
    }

    /// Watches the machine as it is over so many blocks, or until a signal. They are numbered as they come.
    pub fn watch(&mut self, blocks: usize) -> Vec<Block> {
        for at in 0..blocks {
            let since = Since { at: now(), source: supply(self.parts.root).source };
            let Some((mut block, asleep_s)) = self.window() else { break };
            (block.pair, block.asleep_s) = (at, asleep_s);
            block.left_out = self.broken(&since, false, &block);
            self.blocks.push(block);
            (self.parts.tell)(&self.blocks);
        }
        std::mem::take(&mut self.blocks)
    }

    /// The rules by which a block's pair does not count.
    fn broken(&self, since: &Since, foreign: bool, block: &Block) -> Option<Reason> {
        match () {
            () if asleep(&since.at, &now()) > 0.1 => Some(Reason::Suspend),
            () if supply(self.parts.root).source != since.source => Some(Reason::Mains),
            () if foreign => Some(Reason::Click),
            () if block.joules.is_none() => Some(Reason::Meter),
            () => None,
        }
    }

    /// One block; none where a signal ended it.
    fn block(&mut self, pair: usize, arm: usize, since: &Since) -> Result<Option<Block>, String> {
        let header = self.parts.header;
        let name = &header.sides[arm].name;
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let signals = self.parts.signals;
        let held = hold(
            self.parts.root,
            self.parts.journal,
            &format!("wattwise prove, policy {name}"),
            &self.parts.wishes[arm],
            &|| signals.reason(),
        );
        let mut held = match held {
            Ok(held) => held,
            Err(_) if signals.caught().is_some() => return Ok(None),
            Err(e) => return self.refused_block(pair, arm, started, e.of(name).to_string()).map(Some),
        };
        self.refused = 0;
        let before = in_force(self.parts.root);
        let seen = self.window();
        let foreign = in_force(self.parts.root) != before;
        let foreign = undone(held.as_mut(), name)? || foreign;
        let Some((mut block, asleep_s)) = seen else { return Ok(None) };
        (block.pair, block.arm, block.started, block.asleep_s) = (pair, arm, started, asleep_s);
        block.left_out = self.broken(since, foreign, &block);
        Ok(Some(block))
    }

    /// A policy that cannot be in force now, such as while its CPU is away: the pair does not count.
    fn refused_block(&mut self, pair: usize, arm: usize, started: u64, why: String) -> Result<Block, String> {
        self.refused += 1;
        if self.blocks.is_empty() || self.refused >= MOST_REFUSED {
            return Err(why);
        }
        self.wait(Duration::from_secs_f64(self.parts.header.block_s), None);
        Ok(Block {
            pair,
            arm,
            started,
            seconds: self.parts.header.block_s,
            asleep_s: 0.0,
            joules: None,
            scopes: Vec::new(),
            work: Default::default(),
            service: Default::default(),
            left_out: Some(Reason::Refused),
        })
    }

    /// Settling and window: what was seen, and time asleep. None where a signal ended it.
    fn window(&mut self) -> Option<(Block, f64)> {
        let header = self.parts.header;
        let begun = now();
        self.wait(Duration::from_secs_f64(header.settle_s), None);
        let mut gauge = (header.block_s >= LEAST_FOR_A_GAUGE_S).then(Gauge::default);
        self.watch.begin();
        self.parts.observer.begin();
        self.wait(Duration::from_secs_f64(header.block_s - header.settle_s), gauge.as_mut());
        let observed = self.parts.observer.end(0.0);
        let (work, service) = self.watch.end(observed.window_s);
        if self.parts.signals.caught().is_some() {
            return None;
        }
        let mut scopes = by_scope(&observed.domains);
        if let Some(drawn) = gauge.and_then(|g| g.result().ok()) {
            scopes.push(("battery".to_owned(), drawn.mean_w * observed.window_s));
        }
        let block = Block {
            pair: 0,
            arm: 0,
            started: 0,
            seconds: observed.window_s,
            asleep_s: 0.0,
            joules: observed.joules,
            scopes,
            work,
            service,
            left_out: None,
        };
        Some((block, asleep(&begun, &now())))
    }

    /// Waits, following counters that could wrap, and wakes the probe at its times.
    fn wait(&mut self, time: Duration, mut gauge: Option<&mut Gauge>) {
        let header = self.parts.header;
        let (begun, until) = (Instant::now(), Instant::now() + time);
        let pace = self.parts.observer.pace().unwrap_or(time);
        // Five of a block, also of a short one; none while a policy settles.
        let every = EVERY.min(Duration::from_secs_f64(header.block_s / 6.0));
        let mut probe = begun + every;
        let mut beat = begun + pace;
        while self.parts.signals.caught().is_none() && Instant::now() < until {
            let next = until.min(beat).min(probe);
            let far = next.saturating_duration_since(Instant::now()).saturating_sub(AHEAD);
            match far.is_zero() {
                false => self.parts.signals.sleep(far),
                true if next == probe => {
                    let is_live = self.parts.root.is_this_machine() && header.probe_loops > 0;
                    self.watch.tick(is_live.then(|| response(probe, header.probe_loops)));
                    if let Some(gauge) = gauge.as_deref_mut() {
                        _ = gauge.look(self.parts.root, now().monotonic_s);
                    }
                    probe += every;
                }
                true if next == beat => {
                    self.parts.observer.beat();
                    beat += pace;
                }
                true => std::thread::sleep(until.saturating_duration_since(Instant::now())),
            }
        }
    }
}

/// Puts back what was held; whether another program had changed it.
fn undone(held: Option<&mut HeldSettings<'_>>, name: &str) -> Result<bool, String> {
    let Some(held) = held else { return Ok(false) };
    let restored = held.undo();
    match restored.failed.is_empty() {
        true => Ok(!restored.foreign.is_empty()),
        false => Err(format!("{name}: {restored}")),
    }
}

/// Time asleep between two moments, s.
fn asleep(from: &Moment, to: &Moment) -> f64 {
    ((to.boot_s - from.boot_s) - (to.monotonic_s - from.monotonic_s)).max(0.0)
}

/// What a click on a profile changes. Speed limits are not in it: the kernel lowers them when it is hot.
fn in_force(root: &dyn Root) -> Vec<Option<String>> {
    let of_policies = folders(root).into_iter().flat_map(|f| {
        ["scaling_governor", "energy_performance_preference"].map(|name| format!("{f}/{name}"))
    });
    of_policies
        .chain(["sys/firmware/acpi/platform_profile".to_owned()])
        .map(|path| text(root, &path))
        .collect()
}
