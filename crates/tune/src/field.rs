//! The cases of a search, and what a policy comes to in them.
//!
//! A *case* is a recording on a machine, a *cell* one replica of a case. All policies meet the same cells in the same order, all
//! cases of the first replica first, so what two of them come to differs in each cell by themselves alone.
//!
//! A policy *races*: after each cell it is out if a rival that was looked at in all cells is better in everything, in what is
//! to be small by more than chance explains; or if in some case it is over the limit in too many replicas and others are not.

use crate::search::Score;
use wattwise_advice::compare::CompareError;
use wattwise_advice::paired::{Look, Paired, Ratios};
use wattwise_advice::rule::Rule;
use wattwise_advice::ties::SURE;
use wattwise_figure::mean_sd;
use wattwise_figure::verdict::quantile;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

/// How sure it must be that a rival is better, before a policy is out.
const OUT_SURE: f64 = 0.99;
/// Nobody is out before so many cells.
const LEAST_CELLS: usize = 4;
/// From so many replicas on, the share of those over the limit is counted.
const MANY: usize = 16;
/// With fewer, so many standard deviations must be within it.
const FEW: f64 = 2.0;

/// What a policy may come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldLimits {
    /// The goal, and how much slower than the reference.
    pub rule: Rule,
    /// How much more the 99th percentile of waits than the reference's, as a share.
    pub max_p99: f64,
}

/// A case that a search can use.
pub struct FieldCase<'a> {
    /// Its number among all cases.
    pub number: usize,
    paired: Paired<'a>,
}

/// How a limit is missed.
#[derive(Clone, Copy, Debug, Default)]
struct Late {
    /// By how much, on the whole; 0 where it is kept.
    by: f64,
    /// In how many replicas.
    replicas: usize,
}

impl Late {
    fn of(over: impl Iterator<Item = f64>) -> Late {
        let over: Vec<f64> = over.collect();
        Late { by: late(&over), replicas: over.iter().filter(|o| **o > 0.0).count() }
    }
}

/// Cases and their replicas.
pub struct Field<'a> {
    cases: Vec<FieldCase<'a>>,
    /// Case and replica, in the order in which policies meet them.
    cells: Vec<(usize, usize)>,
    limits: FieldLimits,
    /// Student's quantile for so many cells.
    sure: Vec<f64>,
}

/// A case that cannot be looked at, by its number, and why.
pub type Unusable = (usize, CompareError);

/// How a race went.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It was looked at in all cells.
    Whole,
    /// It is out.
    Out,
    /// It did not end its work, or did another, in this case.
    Failed {
        /// The case's number.
        case: usize,
        /// Why.
        why: String,
    },
}

/// A race that was run.
#[derive(Clone, Debug)]
pub struct Race {
    /// What was seen in the cells, in their order.
    pub looks: Vec<Look>,
    /// How it ended.
    pub fate: Fate,
}

/// What a case is made from.
#[derive(Clone, Copy)]
pub struct FieldJob<'a> {
    /// Its number, which the case keeps.
    pub number: usize,
    /// What is replayed.
    pub job: &'a ReplayJob<'a>,
    /// The policy that all are held against.
    pub reference: &'a PolicySpec,
}

impl<'a> Field<'a> {
    /// Makes the cases ready in this order, each with replicas from number `first` on. Those that cannot be looked at are
    /// left out, and told.
    pub fn new(
        jobs: &[FieldJob<'a>],
        limits: FieldLimits,
        replicas: (u64, u64),
    ) -> (Field<'a>, Vec<Unusable>) {
        Field::until(jobs, limits, replicas, &|| false)
    }

    /// [`Field::new`], ended early once `stop` says so: what was not made ready by then is left out.
    pub fn until(
        jobs: &[FieldJob<'a>],
        limits: FieldLimits,
        (first, replicas): (u64, u64),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> (Field<'a>, Vec<Unusable>) {
        let (mut cases, mut unusable) = (Vec::new(), Vec::new());
        for &FieldJob { number, job, reference } in jobs {
            match Paired::until(job, limits.rule, reference, (first, replicas), stop) {
                Ok(paired) => cases.push(FieldCase { number, paired }),
                Err(why) => unusable.push((number, why)),
            }
        }
        let of_all = |replica| (0..cases.len()).map(move |case| (case, replica));
        let cells: Vec<(usize, usize)> = (0..replicas as usize).flat_map(of_all).collect();
        let sure = (0..=cells.len()).map(|n| quantile(OUT_SURE, n.max(2) as f64 - 1.0)).collect();
        (Field { cases, cells, limits, sure }, unusable)
    }

    /// Cases that can be looked at.
    pub fn cases(&self) -> &[FieldCase<'a>] {
        &self.cases
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// The case of each cell, as its place in [`Field::cases`], and the replica.
    pub fn cell(&self, at: usize) -> (usize, usize) {
        self.cells[at]
    }

    /// What is to be small under the reference policy, by cell: two fields that agree in it are the same.
    pub fn reference(&self) -> Vec<f64> {
        self.cells.iter().map(|&(c, r)| self.cases[c].paired.reference(r).cost).collect()
    }

    /// One policy in one cell.
    ///
    /// # Errors
    /// The work does not end under it, or is not the same.
    pub fn look(&self, cell: usize, policy: &PolicySpec) -> Result<Look, CompareError> {
        let (case, replica) = self.cells[cell];
        self.cases[case].paired.look(replica, policy)
    }

    /// What looks come to against the reference policy, those of the first cells in their order.
    pub fn ratios(&self, looks: &[Look]) -> Vec<Ratios> {
        let mut all = vec![Ratios { cost: 1.0, time: 1.0, p99: 1.0, over: 0.0 }; looks.len()];
        for (c, case) in self.cases.iter().enumerate() {
            let of = || (0..looks.len()).filter(|&i| self.cells[i].0 == c);
            let own: Vec<(usize, &Look)> = of().map(|i| (self.cells[i].1, &looks[i])).collect();
            for (i, ratios) in of().zip(case.paired.judge(&own)) {
                all[i] = ratios;
            }
        }
        all
    }

    /// What ratios come to together.
    pub fn score(&self, ratios: &[Ratios]) -> Score {
        let n = ratios.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Ratios) -> f64| ratios.iter().map(of).sum::<f64>() / n;
        let p99 = mean(&|r| r.p99.ln());
        let waits = (p99 - (1.0 + self.limits.max_p99).ln()).max(0.0);
        let violation = self.late(ratios) + waits;
        Score { cost: mean(&|r| r.cost.ln()), time: mean(&|r| r.time.ln()), p99, violation }
    }

    /// How a policy misses the limit of time in each case.
    fn by_case(&self, ratios: &[Ratios]) -> impl Iterator<Item = Late> {
        (0..self.cases.len()).map(|c| {
            Late::of(ratios.iter().zip(&self.cells).filter(|(_, cell)| cell.0 == c).map(|(r, _)| r.over))
        })
    }

    /// By how much the limit of time is missed, over all cases.
    fn late(&self, ratios: &[Ratios]) -> f64 {
        self.by_case(ratios).map(|case| case.by).sum()
    }

    /// Whether some case has more replicas over the limit than a whole race may have.
    fn hopeless(&self, ratios: &[Ratios]) -> bool {
        let most = may_be_late(self.cells() / self.cases.len().max(1));
        self.by_case(ratios).any(|case| case.replicas > most)
    }

    /// Looks at a policy cell by cell until it is through or out; what is `known` is not run again. None once `stop` says so.
    pub fn race(
        &self,
        policy: &PolicySpec,
        rivals: &[Vec<Ratios>],
        known: &[Look],
        stop: &dyn Fn() -> bool,
    ) -> Option<Race> {
        let within = rivals.iter().any(|r| self.score(r).violation == 0.0);
        let mut looks = Vec::with_capacity(self.cells());
        for cell in 0..self.cells() {
            let look = match known.get(cell) {
                Some(look) => Ok(look.clone()),
                None if stop() => return None,
                None => self.look(cell, policy),
            };
            match look {
                Ok(look) => looks.push(look),
                Err(e) => {
                    let case = self.cases[self.cells[cell].0].number;
                    return Some(Race { looks, fate: Fate::Failed { case, why: e.to_string() } });
                }
            }
            let seen = looks.len();
            if seen < self.cells() && seen >= LEAST_CELLS.max(self.cases.len()) {
                let ratios = self.ratios(&looks);
                if within && self.hopeless(&ratios) || rivals.iter().any(|rival| self.loses(&ratios, rival)) {
                    return Some(Race { looks, fate: Fate::Out });
                }
            }
        }
        Some(Race { looks, fate: Fate::Whole })
    }

    /// Whether a rival is better in everything, and in what is to be small beyond chance.
    fn loses(&self, own: &[Ratios], rival: &[Ratios]) -> bool {
        let n = own.len() as f64;
        let more = |of: fn(&Ratios) -> f64| own.iter().zip(rival).map(move |(a, b)| (of(a) / of(b)).ln());
        let mean = more(|r| r.cost).sum::<f64>() / n;
        let square = more(|r| r.cost).map(|d| (d - mean).powi(2)).sum::<f64>();
        let error = (square / (n - 1.0) / n).sqrt();
        mean > 0.0
            && mean > self.sure[own.len()] * error
            && more(|r| r.time).sum::<f64>() >= 0.0
            && more(|r| r.p99).sum::<f64>() >= 0.0
    }
}

/// By how much a case's limit is missed, from by how much each replica is over it; 0 where it is kept. Of many replicas the share
/// decides that `compare` goes by; of few, two standard deviations above their mean.
fn late(over: &[f64]) -> f64 {
    if over.is_empty() {
        return 0.0;
    }
    let (mean, sd) = mean_sd(over);
    if over.len() < MANY {
        return (mean + FEW * sd).max(0.0);
    }
    let late = over.iter().filter(|o| **o > 0.0).count();
    if late > may_be_late(over.len()) { late as f64 / over.len() as f64 + mean.max(0.0) } else { 0.0 }
}

/// In how many of so many replicas a policy may be over the limit and still count as within it: 5 %; of fewer than 40 a tenth,
/// which a policy that is late in 5 % exceeds in 4 of 100 samples.
fn may_be_late(replicas: usize) -> usize {
    if replicas < 40 {
        return replicas.div_ceil(10);
    }
    (replicas as f64 * (1.0 - SURE) + 1e-9) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_replicas_count_and_few_are_held_at_a_distance() {
        let mut many = vec![-0.01; 64];
        many[..3].fill(0.5);
        assert_eq!(late(&many), 0.0, "3 of 64 are 5 %");
        many[3] = 0.5;
        assert!(late(&many) > 0.0);
        let mut some = vec![-0.01; 16];
        some[..2].fill(0.5);
        assert_eq!(late(&some), 0.0, "two of 16 prove nothing");
        some[2] = 0.5;
        assert!(late(&some) > 0.0);
        assert_eq!(late(&[-0.05, -0.05, -0.05, -0.05]), 0.0);
        assert!(late(&[-0.02, -0.08, -0.02, -0.08]) > 0.0, "two standard deviations reach over it");
        assert!(late(&[0.1]) > 0.0 && late(&[]) == 0.0);
    }

    /// Response times of `cyclictest` vary between moments by more than the limit: that is no policy's fault.
    #[test]
    fn the_reference_policy_is_within_its_own_limit() {
        let machine = wattwise_replay::library::machine("alderlake-p-laptop").expect("bundled");
        let workload =
            wattwise_replay::library::workload("cyclictest", &Default::default()).expect("bundled");
        let reference = wattwise_replay::job::reference_policy(&machine).expect("it has one");
        let job = ReplayJob {
            machine: &machine,
            workload: &workload,
            policies: &[],
            source: wattwise_policy::PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: wattwise_figure::Budget::default(),
        };
        let limits = FieldLimits { rule: Rule::default(), max_p99: f64::INFINITY };
        let (field, unusable) =
            Field::new(&[FieldJob { number: 0, job: &job, reference: &reference }], limits, (1, 8));
        assert!(unusable.is_empty());
        let looks = |policy: &PolicySpec| -> Vec<Look> {
            (0..field.cells()).map(|cell| field.look(cell, policy).expect("it ends")).collect()
        };
        assert_eq!(field.score(&field.ratios(&looks(&reference))).violation, 0.0);
        let slow = PolicySpec::parse("powersave").expect("a policy");
        assert!(field.score(&field.ratios(&looks(&slow))).violation > 0.0, "that one is slower");
    }
}
