//! The order of an experiment: warm-up, pilot, the pairs that the pilot asks for; and what is dropped.
//!
//! Runs come in *blocks*, each arm once, in random order within the block: a drift then touches every arm
//! alike on average, whatever its shape. A block with a run that does not count (throttled, another power
//! source, a suspend, too warm at its start) is dropped whole: half a pair is no pair.

use serde::{Deserialize, Serialize};
use wattwise_figure::Random;
use wattwise_figure::verdict::{Aim, Verdict, judge, slope};

/// One run of one arm, as the conductor sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What is compared: joules, seconds, or a number that the command printed.
    pub value: f64,
    /// Why this run does not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dropped: Option<String>,
    /// How long it took with all that surrounds it, s.
    pub cost_s: f64,
}

/// What runs the arms: a real machine, the model, a simulation of noise in the tests.
pub trait Bench {
    /// Runs an arm once. An error ends the experiment: the command cannot be run at all.
    fn run(&mut self, arm: usize, place: Place) -> Result<Trial, String>;
    /// Asked between runs; a reason ends the experiment there, with what is done so far.
    fn stop(&mut self) -> Option<String> {
        None
    }
    /// Told after each run, for progress.
    fn progress(&mut self, _: &ExperimentProgress) {}
}

/// Which run of the experiment this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Warm-up runs do not count.
    pub warm_up: bool,
    /// The block, from 0; of warm-up runs, their number.
    pub block: usize,
}

/// How far an experiment has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExperimentProgress {
    /// Blocks done that count.
    pub blocks: usize,
    /// Blocks wanted; known once the pilot is done.
    pub wanted: Option<usize>,
    /// Blocks of the pilot.
    pub pilot: usize,
    /// Time left, s, at the pace so far; while the pilot runs, what is left of the pilot.
    pub left_s: Option<f64>,
}

/// How much may be spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Most blocks that count.
    pub blocks: usize,
    /// Most seconds in all.
    pub seconds: f64,
    /// Most warm-up runs.
    pub warm_up: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { blocks: 200, seconds: 3600.0, warm_up: 20 }
    }
}

/// A whole plan: it and the seed repeat the order of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// How many arms; the first is what the others are compared with.
    pub arms: usize,
    /// What the experiment should be able to tell.
    pub aim: Aim,
    /// How much may be spent.
    pub budget: Budget,
    /// Of the order.
    pub seed: u64,
}

impl Design {
    /// A plan from outside must be one that can be carried out.
    pub fn check(&self, arms: usize) -> Result<(), String> {
        let Aim { confidence, effect, power, pilot } = self.aim;
        let share = |x: f64| x > 0.0 && x < 1.0;
        match () {
            () if arms < 2 || self.arms != arms => {
                Err(format!("a plan of {arms} arms; expected two or more"))
            }
            () if !share(confidence) || !share(power) || effect <= 0.0 || !effect.is_finite() => {
                Err("confidence and power: expected shares between 0 and 1; effect: more than 0".to_owned())
            }
            () if !(3..=1000).contains(&pilot) => Err("pilot: expected 3 to 1000 pairs".to_owned()),
            () if self.budget.blocks < pilot => {
                Err(format!("a budget of {} pairs; the pilot alone has {pilot}", self.budget.blocks))
            }
            () => Ok(()),
        }
    }
}

/// Why an experiment ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It has the pairs that its aim asks for.
    Reached,
    /// The budget came first: the interval is wider than was asked for.
    Budget(String),
    /// It was stopped.
    Stopped(String),
}

/// What an experiment gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conducted {
    /// Blocks that count, in order: a value an arm.
    pub blocks: Vec<Vec<f64>>,
    /// Blocks dropped: (block, why).
    pub dropped: Vec<(usize, String)>,
    /// Warm-up runs.
    pub warm_up: usize,
    /// Whether the warm-up ended without a trend.
    pub warm: bool,
    /// Blocks that the pilot asked for.
    pub wanted: Option<usize>,
    /// Why it ended.
    pub end: End,
}

impl Conducted {
    /// The judged comparison of each other arm with the first.
    pub fn verdicts(&self, plan: &Design) -> Vec<Verdict> {
        let aim = plan.aim.shared_by(plan.arms - 1);
        (1..plan.arms)
            .map(|arm| judge(&self.blocks.iter().map(|b| (b[0], b[arm])).collect::<Vec<_>>(), &aim))
            .collect()
    }
}

/// The order of arms within a block: a function of the seed and the block's number alone, so that an
/// experiment taken up again goes on with the same plan.
pub fn order(plan: &Design, block: usize) -> Vec<usize> {
    let mut random = Random::new(plan.seed ^ (block as u64).wrapping_mul(0xd134_2543_de82_ef95));
    let mut arms: Vec<usize> = (0..plan.arms).collect();
    random.shuffle(&mut arms);
    arms
}

/// What an earlier, interrupted go at the same plan has already done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Done {
    /// Warm-up runs.
    pub warm_up: usize,
    /// Whole blocks with their trials by arm, in order.
    pub blocks: Vec<Vec<Trial>>,
}

/// Carries out a plan.
pub fn conduct(plan: &Design, bench: &mut dyn Bench, done: Done) -> Result<Conducted, String> {
    let aim = plan.aim.shared_by(plan.arms - 1);
    let mut out = Conducted {
        blocks: Vec::new(),
        dropped: Vec::new(),
        warm_up: done.warm_up,
        warm: !done.blocks.is_empty(),
        wanted: None,
        end: End::Reached,
    };
    let mut spent_s = 0.0;
    if done.blocks.is_empty() {
        spent_s += warm_up(plan, bench, &mut out)?;
    }
    let warm_up_s = spent_s;
    let mut block = 0;
    let mut before = done.blocks.into_iter();
    let mut dropped_in_a_row = 0;
    loop {
        // The number of blocks is fixed when the pilot is full, and never looked at again.
        if out.wanted.is_none() && out.blocks.len() >= aim.pilot {
            let pairs =
                |arm: usize| -> Vec<f64> { out.blocks.iter().map(|b| (b[arm] / b[0]).ln()).collect() };
            let wanted = (1..plan.arms).map(|arm| aim.pairs(&pairs(arm))).max().unwrap_or(aim.pilot);
            out.wanted = Some(wanted);
        }
        if out.wanted.is_some_and(|wanted| out.blocks.len() >= wanted) {
            break;
        }
        let over = match () {
            () if out.blocks.len() >= plan.budget.blocks => Some(format!("{} blocks", plan.budget.blocks)),
            () if spent_s >= plan.budget.seconds => Some(format!("{} s", plan.budget.seconds)),
            () if dropped_in_a_row >= MOST_DROPPED => Some(format!(
                "{MOST_DROPPED} blocks in a row had to be dropped, the last because {}",
                last(&out.dropped)
            )),
            () => None,
        };
        if let Some(over) = over {
            out.end = End::Budget(over);
            break;
        }
        let trials = match before.next() {
            Some(trials) => trials,
            None => match one_block(plan, bench, block)? {
                Ok(trials) => trials,
                Err(reason) => {
                    out.end = End::Stopped(reason);
                    break;
                }
            },
        };
        spent_s += trials.iter().map(|t| t.cost_s).sum::<f64>();
        match trials.iter().find_map(|t| t.dropped.clone()) {
            Some(why) => {
                out.dropped.push((block, why));
                dropped_in_a_row += 1;
            }
            None => {
                out.blocks.push(trials.iter().map(|t| t.value).collect());
                dropped_in_a_row = 0;
            }
        }
        block += 1;
        let to_do = out.wanted.unwrap_or(aim.pilot).min(plan.budget.blocks).saturating_sub(out.blocks.len());
        let pace_s = (spent_s - warm_up_s) / block as f64;
        let left_s = Some((pace_s * to_do as f64).min(plan.budget.seconds - spent_s)).filter(|s| *s >= 0.0);
        bench.progress(&ExperimentProgress {
            blocks: out.blocks.len(),
            wanted: out.wanted,
            pilot: aim.pilot,
            left_s,
        });
    }
    Ok(out)
}

/// So many in a row are no accident: the machine is not fit for the experiment.
const MOST_DROPPED: usize = 10;

fn last(dropped: &[(usize, String)]) -> &str {
    dropped.last().map_or("", |(_, why)| why)
}

/// Runs until the last six show no trend, or the budget is used. Gives the seconds spent.
fn warm_up(plan: &Design, bench: &mut dyn Bench, out: &mut Conducted) -> Result<f64, String> {
    const LOOK: usize = 6;
    let mut spent_s = 0.0;
    // Each arm has its own level: only what is left of it may show the trend.
    let mut by_arm: Vec<Vec<(usize, f64)>> = vec![Vec::new(); plan.arms];
    let mut runs: Vec<(usize, f64)> = Vec::new();
    while out.warm_up < plan.budget.warm_up && spent_s < plan.budget.seconds / 2.0 {
        if bench.stop().is_some() {
            break;
        }
        let arm = out.warm_up % plan.arms;
        let trial = bench.run(arm, Place { warm_up: true, block: out.warm_up })?;
        spent_s += trial.cost_s;
        out.warm_up += 1;
        if trial.value > 0.0 {
            by_arm[arm].push((runs.len(), trial.value.ln()));
            runs.push((arm, trial.value.ln()));
        }
        let whole = LOOK.div_ceil(plan.arms) * plan.arms;
        if runs.len() < whole.max(LOOK) {
            continue;
        }
        let recent = &runs[runs.len() - whole..];
        let level = |arm: usize| {
            let of: Vec<f64> = recent.iter().filter(|(a, _)| *a == arm).map(|(_, v)| *v).collect();
            of.iter().sum::<f64>() / of.len() as f64
        };
        let left: Vec<f64> = recent.iter().map(|(arm, v)| v - level(*arm)).collect();
        if slope(&left, 0.95).is_some_and(|(slope, half)| slope.abs() <= half) {
            out.warm = true;
            break;
        }
    }
    Ok(spent_s)
}

/// One block; the inner error is a wish to stop.
fn one_block(
    plan: &Design,
    bench: &mut dyn Bench,
    block: usize,
) -> Result<Result<Vec<Trial>, String>, String> {
    let mut trials: Vec<Option<Trial>> = vec![None; plan.arms];
    for arm in order(plan, block) {
        if let Some(reason) = bench.stop() {
            return Ok(Err(reason));
        }
        trials[arm] = Some(bench.run(arm, Place { warm_up: false, block })?);
    }
    Ok(Ok(trials.into_iter().flatten().collect()))
}
