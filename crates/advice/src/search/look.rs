//! What runs in a race: policies in replicas of the works.

use super::ladder::Rung;
use crate::error::{CompareError, unless_stopped};
use crate::judge::{Judge, Reference, Sample};
use crate::runs::{ReferenceRun, Runs};
use crate::time::TimeKind;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use wattwise_replay::spec::PolicySpec;

/// A work of a race.
pub(crate) struct RacedWork<'f, 'a, 'j> {
    pub(super) runs: &'f Runs<'a, 'j>,
    pub(super) kind: TimeKind,
    /// Its share of the hours.
    pub(super) weight: f64,
    /// Number of the race's first replica.
    first: u64,
    /// Those in which anything ran.
    replicas: Mutex<BTreeMap<u64, Arc<RacedReplica>>>,
}

/// What policies are held against in one replica of a work.
struct RacedReplica {
    begun: ReferenceRun,
    reference: Sample,
    /// By standard.
    standards: Vec<Sample>,
}

/// Policies and what they are held against in the same replicas of a work.
pub(super) struct RaceLook {
    /// By policy.
    pub(super) own: Vec<Vec<Sample>>,
    pub(super) reference: Vec<Sample>,
    /// By standard.
    standards: Vec<Vec<Sample>>,
}

impl RaceLook {
    fn new(policies: usize, standards: usize) -> RaceLook {
        let none = |n| vec![Vec::new(); n];
        RaceLook { own: none(policies), reference: Vec::new(), standards: none(standards) }
    }

    /// What the policies are held against, of this look and one before it.
    pub(super) fn after(mut self, before: RaceLook) -> RaceLook {
        let more = before.standards.into_iter().zip(&mut self.standards);
        more.for_each(|(mut all, more)| {
            all.append(more);
            *more = all;
        });
        self.reference = [before.reference, self.reference].concat();
        self
    }
}

impl<'f, 'a, 'j> RacedWork<'f, 'a, 'j> {
    pub(crate) fn new(runs: &'f Runs<'a, 'j>, weight: f64, first: u64) -> Result<Self, CompareError> {
        Ok(RacedWork { runs, kind: runs.kind()?, weight, first, replicas: Mutex::default() })
    }

    pub(super) fn reference(&self) -> &PolicySpec {
        &self.runs.policies[self.runs.reference]
    }

    /// What policies are held against in the replicas of a look.
    pub(super) fn held_against(&self, look: &RaceLook) -> Reference {
        Reference::new(self.runs, (look.reference.clone(), look.standards.clone()), self.kind)
    }

    /// What policies are held against in a replica; run once a race.
    fn replica(&self, number: u64) -> Result<Arc<RacedReplica>, CompareError> {
        let lock = || self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&number).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let begun = self.runs.begin(self.first.wrapping_add(number))?;
        let judge = Judge::of(self.runs, &begun, self.kind);
        let reference = judge.sample(&begun.reference);
        let standard = |&at: &usize| Ok(judge.sample(&self.runs.join(&begun, &self.runs.policies[at])?));
        let standards = self.runs.standards.iter().map(standard).collect::<Result<_, CompareError>>()?;
        let replica = Arc::new(RacedReplica { begun, reference, standards });
        lock().insert(number, replica.clone());
        Ok(replica)
    }

    /// A policy in a replica.
    fn sample(&self, replica: &RacedReplica, policy: &PolicySpec) -> Result<Sample, CompareError> {
        if policy.text == self.reference().text {
            return Ok(replica.reference.clone());
        }
        let standard = self.runs.standards.iter().position(|&s| self.runs.policies[s].text == policy.text);
        if let Some(standard) = standard {
            return Ok(replica.standards[standard].clone());
        }
        let ran = self.runs.join(&replica.begun, policy)?;
        Ok(Judge::of(self.runs, &replica.begun, self.kind).sample(&ran))
    }
}

/// Policies in the replicas `numbers` of each work, by work.
pub(super) fn look(
    works: &[RacedWork<'_, '_, '_>],
    rungs: &[Rung],
    numbers: Range<u64>,
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<RaceLook>, CompareError> {
    let mut looks: Vec<RaceLook> =
        works.iter().map(|work| RaceLook::new(rungs.len(), work.runs.standards.len())).collect();
    if rungs.is_empty() {
        return Ok(looks);
    }
    let goes_on = || !stopped();
    let all = (0..works.len()).flat_map(|work| numbers.clone().map(move |number| (work, number)));
    let replicas: Vec<(usize, Arc<RacedReplica>)> =
        wattwise_threads::filter_map::<_, _, _, Result<_, CompareError>>(all, |(work, number)| {
            let begun = || unless_stopped(works[work].replica(number)).map(|begun| Ok((work, begun?)));
            goes_on().then(begun).flatten()
        })?;
    // Each run by itself, not all of a replica's: a look is over when the last one is, and all threads wait for it.
    let pairs = replicas.iter().flat_map(|(work, replica)| rungs.iter().map(move |r| (*work, replica, r)));
    let mut samples = wattwise_threads::map::<_, _, _, Result<Vec<Option<Sample>>, CompareError>>(
        pairs,
        |(work, replica, rung)| {
            let ran = || unless_stopped(works[work].sample(replica, &rung.policy));
            goes_on().then(ran).flatten().transpose()
        },
    )?
    .into_iter();
    for (work, replica) in &replicas {
        let own: Vec<Option<Sample>> = samples.by_ref().take(rungs.len()).collect();
        // Stopped meanwhile: only replicas in which all ran count.
        let Some(own) = own.into_iter().collect::<Option<Vec<Sample>>>() else { continue };
        let look = &mut looks[*work];
        look.own.iter_mut().zip(own).for_each(|(all, sample)| all.push(sample));
        let standards = look.standards.iter_mut().zip(&replica.standards);
        standards.for_each(|(all, sample)| all.push(sample.clone()));
        look.reference.push(replica.reference.clone());
    }
    Ok(looks)
}
