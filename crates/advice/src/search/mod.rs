//! The best of enough: the policies that a system offers, and limits of speed, of C-states and of power around them.
//!
//! Each policy can have a limit at every step of the clock, and trying all of them would take hours to tell what a few tell in
//! seconds. So policies race (`race`): all in a few replicas, those that can still be the best in more. Around those that are
//! near the best a ladder of limits is climbed down, and its steps become finer where the best lies (`ladder`).
//!
//! The race only chooses. The finalists run in other replicas, as many as were asked for, and what is said of the
//! recommended one comes from replicas that had no part in choosing it.

mod ladder;
mod race;
mod several;

use self::ladder::{Ladder, Rung};
use self::race::{Entrant, Race};
pub(crate) use self::several::over_all;
use crate::conclude::{Findings, Second, conclude};
use crate::error::CompareError;
use crate::field::{ReplicaField, field};
use crate::judge::{self, Column, TimeStanding};
use crate::options::{CompareOptions, PolicyDetail};
use crate::result::Comparison;
use crate::runs::Runs;
use std::sync::atomic::Ordering;

/// Numbers of the replicas of the race, and of those that confirm a choice, above the first of the final's.
const RACE: u64 = 1 << 19;
const CONFIRM: u64 = 1 << 18;

/// How closely a search looks.
struct Depth {
    /// Ladders beside the reference's and that of the highest speed.
    ladders: usize,
    /// Steps of a ladder, in per cent of the highest speed, and by how much its best may be worse than the best of all before
    /// each.
    steps: &'static [(u32, f64)],
}

/// For one work, and for one of several, where what is best by itself is only a start.
const ALONE: Depth = Depth { ladders: 3, steps: &[(5, 0.05), (2, 0.03), (1, 0.02), (1, 0.02), (1, 0.02)] };
const ONE_OF_SEVERAL: Depth = Depth { ladders: 1, steps: &[(5, 0.03)] };

/// The result of a race among the job's policies and their limits.
pub(crate) fn best(
    runs: &Runs<'_, '_>,
    options: &CompareOptions<'_>,
    first: u64,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let stopped = || options.stop.load(Ordering::Relaxed);
    let kind = runs.kind()?;
    let mut race = Race::new(runs, kind, first.wrapping_add(RACE), &stopped, options.apply);
    raced(runs, &mut race, &ALONE)?;
    let finalists = race.finalists();
    let entrants = race.into_entrants();
    if finalists.is_empty() {
        // Stopped before anything had run.
        let (nominal, judged) = runs.nominal()?;
        let field = ReplicaField { columns: Vec::new(), draws: Vec::new() };
        return conclude(Findings::all(runs, (nominal, judged), field), options, &Second::NONE);
    }
    let policies: Vec<_> = entrants.iter().map(|e| e.rung.policy.clone()).collect();
    let all = runs.among(&policies);
    let (nominal, judged) = all.nominal()?;
    let in_final: Vec<_> = finalists.iter().map(|f| policies[f.entrant].clone()).collect();
    let final_runs = runs.among(&in_final);
    let numbers = first..first.saturating_add(options.replicas);
    let ReplicaField { columns: in_replicas, draws } = field(&final_runs, numbers.clone(), kind, &stopped)?;
    let finals = match draws.is_empty() {
        // Stopped before the final: the nominal model alone.
        true => {
            let samples = judge::samples(&all, &nominal, kind);
            finalists.iter().map(|f| vec![samples[f.entrant].clone()]).collect()
        }
        false => in_replicas,
    };
    let goal = runs.rule.goal;
    let in_race: Vec<_> =
        entrants.iter().map(|e| (e.ran_the_race() && !e.slow).then(|| e.column.cost(goal))).collect();
    // Too few replicas do not show that the limit of time is kept; but what was left for its cost was not found slow.
    let column =
        |e: Entrant| Column { kept: TimeStanding { admissible: !e.slow, ..e.column.kept }, ..e.column };
    let mut columns: Vec<Column> = entrants.into_iter().map(column).collect();
    let mut raced_out = vec![true; columns.len()];
    let mut instead_of = vec![None; columns.len()];
    for (finalist, column) in finalists.iter().zip(judge::columns(&final_runs, finals, kind)) {
        columns[finalist.entrant] = column;
        raced_out[finalist.entrant] = false;
        instead_of[finalist.entrant] = finalist.instead_of;
    }
    let confirm = first.wrapping_add(CONFIRM);
    let again = |policy: usize| {
        let runs = all.among(std::slice::from_ref(&all.policies[policy]));
        let field = field(&runs, confirm..confirm.saturating_add(options.replicas), kind, &stopped)?;
        if stopped() {
            return Ok(None);
        }
        let of_reference = |(at, column)| (at != runs.reference).then_some(column);
        Ok(judge::columns(&runs, field.columns, kind).into_iter().enumerate().find_map(of_reference))
    };
    let back = |left: &[usize]| {
        let policies: Vec<_> = left.iter().map(|&p| all.policies[p].clone()).collect();
        let runs = all.among(&policies);
        let field = field(&runs, numbers.clone(), kind, &stopped)?;
        if stopped() {
            return Ok(Vec::new());
        }
        let columns = judge::columns(&runs, field.columns, kind).into_iter().enumerate();
        Ok(columns.filter(|(at, _)| *at != runs.reference).map(|(_, column)| column).collect())
    };
    let found = Findings {
        runs: &all,
        nominal,
        judged,
        columns,
        draws,
        raced_out,
        in_race,
        instead_of,
        searched: true,
        confirmed: Vec::new(),
    };
    conclude(found, options, &Second { again: &again, back: &back })
}

/// Runs the race: the policies as they are, a ladder for those near the best, finer steps, C-states, limits of power.
fn raced(runs: &Runs<'_, '_>, race: &mut Race<'_, '_, '_>, depth: &Depth) -> Result<(), CompareError> {
    let bases: Vec<Rung> = runs.policies.iter().filter(|p| p.limits.max.is_none()).map(Rung::base).collect();
    let reference = Rung::base(&runs.policies[runs.reference]);
    let shallow = ladder::shallower(&reference.policy, runs.job.machine);
    let others = runs.policies.iter().filter(|p| p.limits.max.is_some()).map(Rung::base);
    let capped = ladder::capped(&reference.policy, runs.job.machine);
    let as_they_are = std::iter::once(reference.clone()).chain(bases).chain(others);
    race.enter(as_they_are.chain(shallow.clone()).chain(capped).collect())?;

    let mut ladders = race.ladders(depth.ladders);
    for percent in ladder::COARSE {
        ladders.retain(|l| race.goes_on(l));
        race.enter(ladders.iter().filter_map(|l| l.rung(percent)).collect())?;
    }
    let ladders = race.ladders(depth.ladders);
    for &(step, worse) in depth.steps {
        let near = |l: &&Ladder| race.is_near(l, worse) || race.is_unclimbed(l);
        let rungs: Vec<Rung> = ladders.iter().filter(near).flat_map(|l| race.around(l, step)).collect();
        race.enter(rungs)?;
    }
    // With the best speed only where they are better than none with the reference's.
    let cheap: Vec<_> = shallow.iter().filter(|s| race.ratio(s).is_some_and(|r| r < 1.0)).collect();
    if let Some(best) = race.best().filter(|b| b.policy.text != reference.policy.text) {
        let shallow = cheap.iter().filter_map(|s| ladder::with_states_of(&best, s));
        race.enter(shallow.chain(ladder::capped(&best.policy, runs.job.machine)).collect())?;
    }
    Ok(())
}
