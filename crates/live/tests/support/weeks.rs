//! Emulated weeks of a machine in use: load that hangs together, days and nights, suspends, clicks, a policy that saves or
//! costs, and one that saves by slowness.

use wattwise_figure::{Provenance, Random};
use wattwise_live::ab::conduct::{Budget, Design, End, order};
use wattwise_live::prove::block::{Block, Covariates, Reason, Service};
use wattwise_live::prove::log::{Header, ProofRead, SCHEMA, Side};

/// Length of a block, s.
pub(crate) const BLOCK_S: f64 = 60.0;
/// Its settling, s.
const SETTLE_S: f64 = 5.0;

/// What a week is like.
#[derive(Clone, Copy)]
pub(crate) struct Week {
    /// Hours that are measured.
    pub(crate) hours: f64,
    /// Energy of B over A, minus 1.
    pub(crate) effect: f64,
    /// How many times as long B's responses take.
    pub(crate) slowness: f64,
    /// Standard deviation of an error of the counted instructions; none counts none.
    pub(crate) instructions: Option<f64>,
}

impl Week {
    /// Ten hours under policies that are alike.
    pub(crate) const EQUAL: Week = Week { hours: 10.0, effect: 0.0, slowness: 1.0, instructions: None };
}

/// A machine in use.
pub(crate) struct Machine {
    random: Random,
    load: f64,
    minute: f64,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Machine {
        let mut machine = Machine { random: Random::new(seed), load: 0.0, minute: 0.0 };
        machine.load = machine.normal() * SD;
        machine
    }

    /// Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.random.unit(), self.random.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// The load of the next minute: its logarithm hangs together by 0.9 and has a standard deviation of 0.4, about a day
    /// with more by day than by night.
    fn next(&mut self) -> f64 {
        self.load = CORRELATION * self.load + self.normal() * SD * (1.0 - CORRELATION * CORRELATION).sqrt();
        self.minute += 1.0;
        self.load + 0.5 * (std::f64::consts::TAU * self.minute / 1440.0).sin()
    }

    /// A block under an arm.
    pub(crate) fn block(&mut self, pair: usize, arm: usize, week: &Week) -> Block {
        let load = self.next();
        let under_b = arm == 1;
        let effect = if under_b { week.effect.ln_1p() } else { 0.0 };
        let watts = 12.0 * (load + effect).exp();
        let slow = if under_b { week.slowness } else { 1.0 };
        // What waits grows with the load, and its measure has its own noise.
        let noisy = |x: f64, noise: f64| x * (0.3 * noise).exp();
        let (n1, n2, n3) = (self.normal(), self.normal(), self.normal());
        let service = Service {
            run_delay: Some(noisy(0.004 * (2.0 * load).exp() * slow, n1)),
            pressure: Some(noisy(0.01 * (1.5 * load).exp() * slow, n2)),
            response_s: Some(noisy(0.0045 * (0.2 * load).exp() * slow, n3)),
            busy: Some(0.8 * load.exp()),
        };
        let instructions = week.instructions.map(|sd| 2e9 * (load + sd * self.normal()).exp());
        // One pair in fifty is broken by a suspend, one in two hundred by a click, whatever the load is.
        let left_out = match self.random.unit() {
            x if x < 0.01 => Some(Reason::Suspend),
            x if x < 0.0125 => Some(Reason::Click),
            _ => None,
        };
        Block {
            pair,
            arm,
            started: 1_790_000_000 + (self.minute * 60.0) as u64,
            seconds: BLOCK_S - SETTLE_S,
            asleep_s: if left_out == Some(Reason::Suspend) { 600.0 } else { 0.0 },
            joules: Some(watts * (BLOCK_S - SETTLE_S)),
            scopes: Vec::new(),
            work: Covariates { instructions, ..Covariates::default() },
            service,
            left_out,
        }
    }
}

/// Correlation of one minute's log-load with the last one's.
const CORRELATION: f64 = 0.9;
/// Standard deviation of the log-load.
const SD: f64 = 0.4;

/// The plan of a week.
pub(crate) fn header(seed: u64, week: &Week) -> Header {
    let pairs = (week.hours * 3600.0 / (2.0 * BLOCK_S)) as usize;
    let side = |name: &str| Side { name: name.into(), policy: name.into() };
    let aim = wattwise_figure::verdict::Aim { pilot: 3, ..Default::default() };
    Header {
        schema: SCHEMA.into(),
        version: String::new(),
        plan: Design {
            arms: 2,
            aim,
            budget: Budget { blocks: pairs, seconds: week.hours * 3600.0, warm_up: 0 },
            seed,
        },
        sides: [side("A"), side("B")],
        block_s: BLOCK_S,
        settle_s: SETTLE_S,
        limit: 0.1,
        probe_loops: 1,
        battery: false,
        energy: Provenance::Measured { by: "an emulated week".into() },
        machine: String::new(),
        root: None,
        identity: Default::default(),
        started: 1_790_000_000,
        predicted: None,
    }
}

/// A whole week, carried out.
pub(crate) fn read(seed: u64, week: &Week) -> ProofRead {
    let header = header(seed, week);
    let mut machine = Machine::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1);
    let mut blocks = Vec::new();
    for pair in 0..header.pairs() {
        for arm in order(&header.plan, pair) {
            blocks.push(machine.block(pair, arm, week));
        }
    }
    ProofRead { header, blocks, end: Some(End::Reached), whole: 0 }
}

/// A machine that is only watched, its policy left alone: blocks with the numbers 0, 1, 2.
pub(crate) fn watched(seed: u64, hours: f64) -> Vec<Block> {
    let mut machine = Machine::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x77);
    (0..(hours * 3600.0 / BLOCK_S) as usize).map(|at| machine.block(at, 0, &Week::EQUAL)).collect()
}
