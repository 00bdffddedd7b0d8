//! The search itself: batches of policies that race side by side, until trials, time or patience are over.

pub use crate::spend::{Spend, USUAL_TRIALS};

use crate::field::{Fate, Field, Race};
use crate::log::{KnownTrials, Line, Log, Trial};
use crate::result::Ended;
use crate::search::{Method, Score, Search};
use crate::space::Space;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use wattwise_advice::paired::{Look, Ratios};
use wattwise_replay::spec::PolicySpec;

/// Policies that race side by side: how many does not depend on the machine, for the search depends on it.
const BATCH: usize = 16;
/// Points that are asked for before the space counts as looked at, after so many policies that were known already.
const ASKED: usize = 64;
const ASKED_ANYWHERE: usize = 2000;
/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchProgress {
    /// What is done now.
    pub stage: Stage,
    /// Trials so far.
    pub trials: u64,
    /// Of so many, where that is known.
    pub of: Option<u64>,
    /// What is to be small over the reference's, of the best so far that is within the limits.
    pub best: Option<f64>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The reference policy in all cells.
    Reference,
    /// The search.
    Search,
    /// The best once more, in other draws.
    Confirm,
    /// The test.
    Test,
}

/// Who looks on, and may stop it.
pub struct Hooks<'a> {
    /// Told now and then.
    pub tell: &'a (dyn Fn(&SearchProgress) + Sync),
    /// Told of what went wrong without ending the search, a sentence.
    pub warn: &'a (dyn Fn(&str) + Sync),
    /// Set by somebody who has seen enough: nothing new is begun after that.
    pub stop: &'a AtomicBool,
}

impl Hooks<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Says why the log is no longer written, once.
    pub(crate) fn warn_of(&self, log: &mut Log) {
        if let Some(problem) = log.problem() {
            (self.warn)(&format!("{problem}; the search goes on, but cannot be resumed from there"));
        }
    }
}

/// One policy that was looked at.
pub struct Tried {
    /// The policy.
    pub policy: PolicySpec,
    /// What was seen and how it ended.
    pub race: Race,
    /// What it came to, where it was looked at everywhere.
    pub score: Option<Score>,
    ratios: Vec<Ratios>,
}

/// What a search has seen.
pub struct SearchOutcome {
    /// All trials, in their order; the first is the nearest to the defaults.
    pub trials: Vec<Tried>,
    /// The best by the goal, best first, as numbers of trials.
    pub best: Vec<usize>,
    /// Those that no other beats in everything.
    pub front: Vec<usize>,
    /// Why it ended.
    pub ended: Ended,
}

impl SearchOutcome {
    /// That of a search that was stopped before its first trial.
    pub(crate) fn nothing() -> SearchOutcome {
        SearchOutcome { trials: Vec::new(), best: Vec::new(), front: Vec::new(), ended: Ended::Stopped }
    }

    /// What was to be small over the reference's, cell by cell, of a trial that was looked at everywhere.
    pub fn ratios(&self, trial: usize) -> &[Ratios] {
        &self.trials[trial].ratios
    }
}

/// A search that is under way.
struct Searching<'a> {
    field: &'a Field<'a>,
    space: &'a Space,
    search: Search,
    /// Policies that have been asked for.
    asked: HashSet<String>,
    /// The trial of each point that the search was told of.
    told: Vec<usize>,
    trials: Vec<Tried>,
}

/// Searches a space. What the log knows is not run again, and what is new is written to it. A search that is over by the log
/// gets no trial more.
pub fn search(
    (field, space): (&Field<'_>, &Space),
    (seed, method): (u64, Method),
    spend: Spend,
    hooks: &Hooks<'_>,
    (log, earlier): (&mut Log, &KnownTrials),
) -> SearchOutcome {
    let begun = Instant::now();
    let spent = || earlier.spent + begun.elapsed();
    let (most, limit) = match earlier.searched {
        Some(_) => (earlier.trials.len() as u64, None),
        None => (spend.most_trials().unwrap_or(u64::MAX), spend.time),
    };
    let over = || limit.is_some_and(|time| spent() >= time);
    let stopped = || hooks.stopped();
    let known: HashMap<&str, &Trial> = earlier.trials.iter().map(|t| (t.policy.as_str(), t)).collect();
    let search = Search::new(space.default_at(), seed, method);
    let (asked, told, trials) = (HashSet::new(), Vec::new(), Vec::new());
    let mut s = Searching { field, space, search, asked, told, trials };
    let ended = loop {
        let left = most.saturating_sub(s.trials.len() as u64);
        if left == 0 {
            break earlier.searched.unwrap_or(Ended::Trials);
        }
        let batch = s.batch(BATCH.min(usize::try_from(left).unwrap_or(BATCH)));
        if batch.is_empty() {
            break Ended::Exhausted;
        }
        // Whatever the time, the first batch is looked at, for it has the defaults, and so are those that the log begins.
        let due = s.trials.is_empty() || s.trials.len() < earlier.trials.len();
        let stop = || stopped() || (!due && over());
        let Some(races) = s.race(&batch, &known, &stop) else {
            break if stopped() { Ended::Stopped } else { Ended::Time };
        };
        for ((at, policy), race) in batch.into_iter().zip(races) {
            if !known.contains_key(policy.text.as_str()) {
                log.line(&Line::Trial(trial(&policy, &race)));
            }
            s.take(at, policy, race);
        }
        if limit.is_some() {
            log.line(&Line::Spent(spent().as_secs_f64()));
        }
        hooks.warn_of(log);
        (hooks.tell)(&s.progress(most));
        if stopped() {
            break Ended::Stopped;
        }
        if s.trials.len() >= earlier.trials.len() && over() {
            break Ended::Time;
        }
    };
    if limit.is_some() && ended == Ended::Stopped {
        // Of the batch that was under way as well.
        log.line(&Line::Spent(spent().as_secs_f64()));
    }
    if earlier.searched.is_none() && ended != Ended::Stopped {
        log.line(&Line::Searched(ended));
        hooks.warn_of(log);
    }
    let of_trials = |told: &[usize]| told.iter().map(|&i| s.told[i]).collect();
    SearchOutcome {
        best: of_trials(s.search.best()),
        front: of_trials(s.search.front()),
        trials: s.trials,
        ended,
    }
}

fn trial(policy: &PolicySpec, race: &Race) -> Trial {
    let failed = match &race.fate {
        Fate::Failed { case, why } => Some((*case, why.clone())),
        Fate::Whole | Fate::Out => None,
    };
    Trial { policy: policy.text.clone(), looks: race.looks.clone(), failed }
}

impl Searching<'_> {
    /// How far it has come, of so many trials at most.
    fn progress(&self, most: u64) -> SearchProgress {
        let best = self.search.best().first().map(|&i| &self.trials[self.told[i]]);
        let best = best.and_then(|t| t.score).filter(|score| score.violation == 0.0);
        SearchProgress {
            stage: Stage::Search,
            trials: self.trials.len() as u64,
            of: (most < u64::MAX).then_some(most),
            best: best.map(|score| score.cost.exp()),
        }
    }

    /// The next policies that nobody has asked for; none where there are no more.
    fn batch(&mut self, most: usize) -> Vec<(Vec<f64>, PolicySpec)> {
        let mut batch = Vec::new();
        for _ in 0..most {
            for attempt in 0..ASKED_ANYWHERE {
                let at = if attempt < ASKED { self.search.ask() } else { self.search.anywhere() };
                let policy = self.space.policy(&at);
                if self.asked.insert(policy.text.clone()) {
                    batch.push((at, policy));
                    break;
                }
            }
        }
        batch
    }

    /// Races a batch, side by side; none once it is to stop.
    fn race(
        &self,
        batch: &[(Vec<f64>, PolicySpec)],
        known: &HashMap<&str, &Trial>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Race>> {
        let mut rivals: Vec<usize> = self.search.front().iter().chain(self.search.best()).copied().collect();
        rivals.sort_unstable();
        rivals.dedup();
        let rivals: Vec<Vec<Ratios>> =
            rivals.into_iter().map(|i| self.trials[self.told[i]].ratios.clone()).collect();
        let one = |(_, policy): &(Vec<f64>, PolicySpec)| {
            let known = known.get(policy.text.as_str());
            if let Some(Trial { looks, failed: Some((case, why)), .. }) = known {
                let fate = Fate::Failed { case: *case, why: why.clone() };
                return Some(Race { looks: looks.clone(), fate });
            }
            let looks: &[Look] = known.map_or(&[], |t| &t.looks);
            self.field.race(policy, &rivals, looks, stop)
        };
        wattwise_threads::map(batch, one)
    }

    fn take(&mut self, at: Vec<f64>, policy: PolicySpec, race: Race) {
        let ratios = self.field.ratios(&race.looks);
        let score = matches!(race.fate, Fate::Whole).then(|| self.field.score(&ratios));
        if let Some(score) = score {
            self.told.push(self.trials.len());
            self.search.tell(at, score);
        }
        self.trials.push(Tried { policy, race, score, ratios });
    }
}
