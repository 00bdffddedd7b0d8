//! The best of enough: the policies that a system offers, and limits of speed, of C-states and of power around them.
//!
//! Each policy can have a limit at every step of the clock, and trying all of them would take hours to tell what a few tell in
//! seconds. So policies race (`race`): all in a few replicas, those that can still be the best in more. Around those that are
//! near the best a ladder of limits is climbed down, and its steps become finer where the best lies (`ladder`).
//!
//! Over several works there is one race (`race`), with fewer ladders and steps and a smaller final, since each policy runs in all
//! works: `ALONE` and `SEVERAL` say how closely is looked.
//!
//! The race only chooses. The finalists run in other replicas, as many as were asked for. Of one work, what is said of the
//! recommended policy comes from replicas that had no part in choosing it; of several, the few finalists are compared and
//! chosen in the same ones.

mod ladder;
mod look;
mod race;

use self::ladder::{Ladder, Rung};
use self::look::RacedWork;
use self::race::{Entrant, Finalist, Race};
use crate::conclude::{Findings, Second, conclude};
use crate::error::CompareError;
use crate::field::{ReplicaField, field};
use crate::judge::{self, Column};
use crate::options::{CompareOptions, PolicyDetail};
use crate::result::Comparison;
use crate::runs::{Replayed, Runs};
use crate::ties::{CLOSE, NOTICEABLE};
use crate::time::{Judged, TimeKind};
use std::ops::Range;
use std::sync::atomic::Ordering;
use wattwise_replay::spec::PolicySpec;

/// Numbers of the replicas of the race, and of those that confirm a choice, above the first of the final's.
const RACE: u64 = 1 << 19;
const CONFIRM: u64 = 1 << 18;

/// How closely a search looks.
struct Depth {
    ladders: LadderChoice,
    /// Steps of a ladder, in per cent of the highest speed, and by how much its best may be worse than the best of all before
    /// each.
    steps: &'static [(u32, f64)],
    finals: FinalSize,
    /// Whether limits of the best, and of what is nearly within the limit of time, are tried with the policies that have no ladder.
    across: bool,
    /// Whether policies with a limit of speed, and limits of power, run from the beginning. Else only the latter run, and only after
    /// the ladders: by then more is known to be hopeless.
    limits_first: bool,
}

/// Which policies have ladders beside the reference and the highest speed.
struct LadderChoice {
    /// So many of the cheapest.
    most: usize,
    /// What one costs at most over the reference.
    cost: f64,
    /// How many of them may have a limit of C-states.
    with_states: usize,
}

/// What runs in the final beside the reference.
struct FinalSize {
    /// Policies at most, and by how much they may be worse than the best.
    most: usize,
    worse: f64,
    /// Of those over the limit of time in some replicas, so many.
    nearly: usize,
    /// Whether the limit next above the best runs as well. Else it runs only if the best does not keep the limit of time.
    safer: bool,
}

/// For one work, and for several, each of which takes its time.
const ALONE: Depth = Depth {
    ladders: LadderChoice { most: 3, cost: f64::INFINITY, with_states: 3 },
    steps: &[(5, 0.05), (2, 0.03), (1, 0.02), (1, 0.02), (1, 0.02)],
    finals: FinalSize { most: 9, worse: 0.05, nearly: 2, safer: true },
    across: false,
    limits_first: true,
};
const SEVERAL: Depth = Depth {
    ladders: LadderChoice { most: 2, cost: 1.0 - CLOSE, with_states: 1 },
    steps: &[(5, 0.05), (2, 0.02)],
    finals: FinalSize { most: 2, worse: 2.0 * NOTICEABLE, nearly: 1, safer: false },
    across: true,
    limits_first: false,
};

/// What a race found over one work or several.
pub(crate) struct Raced {
    entrants: Vec<Entrant>,
    finalists: Vec<Finalist>,
    /// By entrant, what it cost by replica of the race, over several works the mean power; where it ran the whole race and kept
    /// the limit of time.
    pub(crate) costs: Vec<Option<Vec<f64>>>,
    /// How many policies were tried.
    pub(crate) tried: usize,
}

impl Raced {
    /// The policies that took part.
    pub(crate) fn policies(&self) -> Vec<PolicySpec> {
        self.entrants.iter().map(|e| e.rung.policy.clone()).collect()
    }

    /// Without those that were left after a few replicas.
    fn without_the_hopeless(self) -> Raced {
        let in_final = |at: usize| self.finalists.iter().any(|f| f.entrant == at);
        let stays = |(at, entrant): (usize, &Entrant)| entrant.ran_the_race() || in_final(at);
        let stay: Vec<bool> = self.entrants.iter().enumerate().map(stays).collect();
        self.of_these(&stay)
    }

    /// Of these policies alone, those that have a nominal run.
    fn among(self, policies: &[PolicySpec]) -> Raced {
        let stays = |e: &Entrant| policies.iter().any(|p| p.text == e.rung.policy.text);
        let stay: Vec<bool> = self.entrants.iter().map(stays).collect();
        self.of_these(&stay)
    }

    /// With those entrants that stay.
    fn of_these(mut self, stay: &[bool]) -> Raced {
        let now_at = |was: usize| stay[was].then(|| stay[..was].iter().filter(|stays| **stays).count());
        let finalist = |f: Finalist| {
            Some(Finalist { entrant: now_at(f.entrant)?, instead_of: f.instead_of.and_then(now_at) })
        };
        self.finalists = self.finalists.into_iter().filter_map(finalist).collect();
        let (mut entrants, mut costs) = (stay.iter(), stay.iter());
        self.entrants.retain(|_| entrants.next() == Some(&true));
        self.costs.retain(|_| costs.next() == Some(&true));
        self
    }

    /// The final of one of the race's works, and what the race says of the others. `all` are the work's runs with
    /// [`Raced::policies`], and then come their nominal ones.
    pub(crate) fn findings<'r, 'a, 'j>(
        &self,
        work: usize,
        all: &'r Runs<'a, 'j>,
        (nominal, judged): (Replayed, Judged),
        numbers: Range<u64>,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Findings<'r, 'a, 'j>, CompareError> {
        let policies = |p: &usize| all.policies[*p].clone();
        let in_final: Vec<usize> = self.finalists.iter().map(|f| f.entrant).collect();
        let final_runs = all.among(&in_final.iter().map(policies).collect::<Vec<_>>());
        let ReplicaField { columns: in_replicas, draws } = field(&final_runs, numbers, judged.kind, stopped)?;
        let finals = match draws.is_empty() {
            // Stopped before the final: the nominal model alone.
            true => {
                let samples = judge::samples(all, &nominal, judged.kind);
                in_final.iter().map(|&p| vec![samples[p].clone()]).collect()
            }
            false => in_replicas,
        };
        let goal = all.rule.goal;
        let in_race = |e: &Entrant| (e.ran_the_race() && !e.slow).then(|| e.columns[work].cost(goal));
        let mut found = Findings {
            runs: all,
            columns: self.entrants.iter().map(|e| e.column(work)).collect(),
            draws,
            raced_out: vec![true; self.entrants.len()],
            in_race: self.entrants.iter().map(in_race).collect(),
            instead_of: vec![None; self.entrants.len()],
            searched: Some(self.tried),
            confirmed: Vec::new(),
            nominal,
            judged,
        };
        let kind = found.judged.kind;
        for (finalist, column) in self.finalists.iter().zip(judge::columns(&final_runs, finals, kind)) {
            found.columns[finalist.entrant] = column;
            found.raced_out[finalist.entrant] = false;
            found.instead_of[finalist.entrant] = finalist.instead_of;
        }
        Ok(found)
    }
}

/// The result of a race among the job's policies and their limits.
pub(crate) fn best(
    runs: &Runs<'_, '_>,
    options: &CompareOptions<'_>,
    first: u64,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let stopped = || options.stop.load(Ordering::Relaxed);
    let race = raced(std::slice::from_ref(runs), &[1.0], options, first, &ALONE)?;
    if race.finalists.is_empty() {
        // Stopped before anything had run.
        let field = ReplicaField { columns: Vec::new(), draws: Vec::new() };
        let (runs, nominal, judged) = runs.nominal_by_stop()?;
        return conclude(Findings::all(&runs, (nominal, judged), field), options, &Second::NONE);
    }
    let (all, nominal, judged) = runs.among(&race.policies()).nominal_by_stop()?;
    let race = race.among(&all.policies);
    let numbers = first..first.saturating_add(options.replicas);
    let found = race.findings(0, &all, (nominal, judged), numbers.clone(), &stopped)?;
    let kind = found.judged.kind;
    let confirm = first.wrapping_add(CONFIRM);
    let again = |policy: usize| {
        let numbers = confirm..confirm.saturating_add(options.replicas);
        Ok(in_final(&all, &[policy], numbers, kind, &stopped)?.pop())
    };
    let back = |left: &[usize]| in_final(&all, left, numbers.clone(), kind, &stopped);
    conclude(found, options, &Second { again: &again, back: &back })
}

/// Some of a work's policies other than the reference in the replicas `numbers`; none where it is stopped.
pub(crate) fn in_final(
    all: &Runs<'_, '_>,
    policies: &[usize],
    numbers: Range<u64>,
    kind: TimeKind,
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Column>, CompareError> {
    let policies: Vec<_> = policies.iter().map(|&p| all.policies[p].clone()).collect();
    let runs = all.among(&policies);
    let field = field(&runs, numbers, kind, stopped)?;
    if stopped() {
        return Ok(Vec::new());
    }
    // The reference was put in, and perhaps standards at the end.
    let columns = judge::columns(&runs, field.columns, kind).into_iter().enumerate();
    let asked = columns.filter(|(at, _)| *at != runs.reference).map(|(_, column)| column);
    Ok(asked.take(policies.len()).collect())
}

/// A race over several works; `None` where it was stopped before anything had run. Of what is left after a few replicas only the
/// number is kept.
pub(crate) fn over_all(
    all: &[Runs<'_, '_>],
    weights: &[f64],
    options: &CompareOptions<'_>,
    first: u64,
) -> Result<Option<Raced>, CompareError> {
    let race = raced(all, weights, options, first, &SEVERAL)?.without_the_hopeless();
    Ok(Some(race).filter(|race| !race.finalists.is_empty()))
}

/// Runs a race: the policies as they are, a ladder for those near the best, finer steps, C-states, limits of power, the memory's clock.
fn raced(
    all: &[Runs<'_, '_>],
    weights: &[f64],
    options: &CompareOptions<'_>,
    first: u64,
    depth: &Depth,
) -> Result<Raced, CompareError> {
    let stopped = || options.stop.load(Ordering::Relaxed);
    let work = |(runs, &weight)| RacedWork::new(runs, weight, first.wrapping_add(RACE));
    let works = all.iter().zip(weights).map(work).collect::<Result<Vec<_>, _>>()?;
    let mut race = Race::new(works, &stopped, options.apply);
    // All works have the same policies, on the same machine.
    let runs = &all[0];
    let bases: Vec<Rung> = runs.policies.iter().filter(|p| p.limits.max.is_none()).map(Rung::base).collect();
    let reference = Rung::base(&runs.policies[runs.reference]);
    let shallow = ladder::shallower(&reference.policy, runs.job.machine);
    let limited = runs.policies.iter().filter(|p| p.limits.max.is_some()).map(Rung::base);
    let beside = ladder::beside_the_cores(&reference.policy, runs.job.machine);
    let as_they_are = std::iter::once(reference.clone()).chain(bases);
    match depth.limits_first {
        true => {
            race.enter(as_they_are.chain(limited).chain(shallow.clone()).chain(beside.clone()).collect())?
        }
        false => race.enter(as_they_are.chain(shallow.clone()).collect())?,
    }

    let mut ladders = race.ladders(&depth.ladders);
    for percent in ladder::COARSE {
        ladders.retain(|l| race.goes_on(l));
        race.enter(ladders.iter().filter_map(|l| l.rung(percent)).collect())?;
    }
    let mut ladders = race.ladders(&depth.ladders);
    if depth.across {
        let percents: Vec<u32> =
            race.best().into_iter().chain(race.surest()).map(|rung| rung.percent).collect();
        let unclimbed = race.unclimbed(&ladders);
        race.enter(percents.iter().flat_map(|&p| unclimbed.iter().filter_map(move |l| l.rung(p))).collect())?;
        let best = race.best().map(|best| best.ladder);
        ladders.extend(race.unclimbed(&ladders).into_iter().filter(|l| Some(&l.base.text) == best.as_ref()));
    }
    for &(step, worse) in depth.steps {
        let near = |l: &&Ladder| race.is_near(l, worse) || race.is_unclimbed(l);
        let rungs: Vec<Rung> = ladders.iter().filter(near).flat_map(|l| race.around(l, step)).collect();
        race.enter(rungs)?;
    }
    // Those that ran are not run again.
    race.enter(beside)?;
    // With the best speed only where they are better than none with the reference's.
    let cheap: Vec<_> = shallow.iter().filter(|s| race.ratio(s).is_some_and(|r| r < 1.0)).collect();
    if let Some(best) = race.best().filter(|b| b.policy.text != reference.policy.text) {
        let shallow = cheap.iter().filter_map(|s| ladder::with_states_of(&best, s));
        race.enter(shallow.chain(ladder::beside_the_cores(&best.policy, runs.job.machine)).collect())?;
    }
    let (finalists, costs) = (race.finalists(&depth.finals), race.costs());
    let entrants = race.into_entrants();
    Ok(Raced { tried: entrants.len(), entrants, finalists, costs })
}
