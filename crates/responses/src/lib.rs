//! Response times: whether a policy makes people or programs wait longer than the reference policy does.
//!
//! An episode runs from an outside cause to the end of the last run that the cause led to (`wattwise_sim`, `tasks/work.rs`).
//! Its response time is judged by kind of episode, as a distribution, over all replicas together:
//!
//! 1. A *kind* is a task's name and a class of size (`kinds.rs`). Small kinds are joined. One more kind is all of them.
//! 2. Nothing below a *floor* of 5 ms is noticed: x = max(r, floor). Where fewer than 10 responses a replica exceed 5 ms under
//!    both policies, the floor is 1 ms. An episode that is not finished counts up to the end of the run.
//! 3. *Noticed waiting* is the sum of the m largest x, where m is the larger of both policies' numbers of responses over the
//!    floor. The figures of a kind are the mean of these m (with at least 3 of them a replica) and their 95th percentile
//!    (with at least 20; not for all kinds together). Episodes are never paired: where tasks meet in another order, some
//!    gain what others lose, and sums stay.
//! 4. A kind *counts* if its noticed waiting is at least 5 % of all kinds' under either policy.
//! 5. A policy is *slower* if a figure of a kind that counts exceeds the limit in the pooled replicas and in the median
//!    replica, and replicas drawn again (bootstrap) show it above the reference's at a level of 0.05 over the number of
//!    figures.
//!
//! The rule shows slowness. Its silence does not prove that two policies are equal.
//!
//! | file | what it knows |
//! |---|---|
//! | `lib.rs` | the responses of one run; the rule |
//! | `kinds.rs` | kinds of episode |
//! | `pooled.rs` | the responses of a kind in all replicas together |
//! | `result.rs` | what is told, as JSON |
//!
//! It uses `sim` for what a run's episodes are, and what that stands on.
#![forbid(unsafe_code)]

mod kinds;
mod pooled;
mod result;

use kinds::EpisodeKinds;
use pooled::{PooledSide, ResponsePair};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wattwise_figure::{Random, quantile};
use wattwise_sim::outcome::WorkOutcome;

pub use kinds::{Kind, Names};
pub use result::{KindResponses, Responses};

/// Responses below it are not noticed, in us.
const FLOOR_US: u32 = 5_000;
/// The floor of work that hardly has responses over [`FLOOR_US`], in us. Shorter responses are counted, not kept.
const LOW_FLOOR_US: u32 = 1_000;
/// From so many responses a replica over [`FLOOR_US`] on, that is the floor.
const ENOUGH_LONG: f64 = 10.0;
/// Responses over the floor a replica for a mean, and for a 95th percentile.
const ENOUGH_FOR_MEAN: f64 = 3.0;
const ENOUGH_FOR_P95: f64 = 20.0;
/// A kind counts from this share of all noticed waiting on.
const COUNTS: f64 = 0.05;
/// The chance of calling a policy slower that is not, over all its figures.
const LEVEL: f64 = 0.05;
/// Draws of the replicas for each `1 / level`.
const DRAWS: f64 = 10.0;
/// With fewer replicas nothing is judged.
pub const LEAST_REPLICAS: usize = 16;
/// In more than this share of the replicas work is left unfinished that the reference policy finishes.
const UNFINISHED: f64 = 0.05;

/// The responses of one policy in one replica, by the kinds that the episodes have under the reference policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    kinds: Vec<KindWaits>,
    /// Episodes that the reference policy finished and this one did not.
    unfinished: u32,
}

/// Responses of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KindWaits {
    kind: Kind,
    /// Responses up to [`LOW_FLOOR_US`].
    short: u32,
    /// The others, in us, the longest first.
    long_us: Vec<u32>,
}

/// What one run did, and when it was over.
#[derive(Clone, Copy)]
pub struct ResponsesSeen<'a> {
    /// With the tasks' episodes.
    pub work: &'a WorkOutcome,
    /// Up to when an episode that is not finished counts.
    pub end_ns: u64,
}

impl Waits {
    /// The responses of the tasks that `of` chooses, each of the kind that it has under the reference policy.
    pub fn new(
        own: ResponsesSeen<'_>,
        reference: ResponsesSeen<'_>,
        names: &Names,
        of: impl Fn(usize) -> bool,
    ) -> Waits {
        let mut kinds: BTreeMap<Kind, KindWaits> = BTreeMap::new();
        let mut unfinished = 0;
        let tasks = own.work.episodes.iter().zip(&reference.work.episodes).enumerate();
        for (task, (own_episodes, reference_episodes)) in tasks.filter(|(t, _)| of(*t)) {
            for (episode, standard) in own_episodes.iter().zip(reference_episodes) {
                if standard.response_ns(reference.end_ns).is_none() {
                    continue;
                }
                let Some(response) = episode.response_ns(own.end_ns) else { continue };
                unfinished += u32::from(episode.is_open() && !standard.is_open());
                let kind = names.kind(task, standard.recorded.cycles);
                let entry = kinds.entry(kind).or_insert(KindWaits { kind, short: 0, long_us: Vec::new() });
                match u32::try_from(response / 1000).unwrap_or(u32::MAX) {
                    us if us > LOW_FLOOR_US => entry.long_us.push(us),
                    _ => entry.short += 1,
                }
            }
        }
        let mut kinds: Vec<KindWaits> = kinds.into_values().collect();
        kinds.iter_mut().for_each(|k| k.long_us.sort_unstable_by_key(|us| std::cmp::Reverse(*us)));
        Waits { kinds, unfinished }
    }

    fn over(&self, floor_us: u32) -> usize {
        self.kinds.iter().map(|k| k.long_us.partition_point(|us| *us > floor_us)).sum()
    }
}

/// One policy's responses against the reference policy's, in the same replicas.
pub struct Against<'a> {
    own: &'a [&'a Waits],
    reference: &'a [&'a Waits],
    names: &'a Names,
    limit: f64,
    floor_us: u32,
    /// The kinds, and last all of them.
    pairs: Vec<ResponsePair>,
    kinds: EpisodeKinds,
}

/// What the responses come to.
pub struct ResponsesVerdict {
    /// As a result says it.
    pub responses: Responses,
    /// No response exceeds the floor under either policy.
    pub unnoticed: bool,
    /// Whether each replica, seen by itself, has no figure over the limit.
    pub within: Vec<bool>,
    /// By replica: noticed waiting in all, in s, and its ratio to the reference policy's.
    pub waiting: Vec<(f64, f64)>,
}

impl<'a> Against<'a> {
    /// A policy's responses and the reference policy's, by replica; `limit` is the share by which they may be slower.
    pub fn new(
        own: &'a [&'a Waits],
        reference: &'a [&'a Waits],
        names: &'a Names,
        limit: f64,
    ) -> Against<'a> {
        let long = |side: &[&Waits]| {
            side.iter().map(|w| w.over(FLOOR_US)).sum::<usize>() as f64 / side.len().max(1) as f64
        };
        let few = long(own) < ENOUGH_LONG && long(reference) < ENOUGH_LONG;
        let floor_us = if few { LOW_FLOOR_US } else { FLOOR_US };
        let kinds = EpisodeKinds::joined(reference);
        let of = |waits: &[&Waits], kind: Option<usize>| PooledSide::new(waits, &kinds, kind, floor_us);
        let pair = |kind| ResponsePair::new(of(own, kind), of(reference, kind), floor_us);
        let pairs = (0..kinds.len()).map(Some).chain([None]).map(pair).collect();
        Against { own, reference, names, limit, floor_us, pairs, kinds }
    }

    fn replicas(&self) -> usize {
        self.own.len()
    }

    fn all(&self) -> &ResponsePair {
        &self.pairs[self.kinds.len()]
    }

    /// Whether enough responses of a pair exceed the floor for its mean, and for its 95th percentile.
    fn enough(&self, at: usize) -> [bool; 2] {
        let m = self.pairs[at].most() as f64 / self.replicas().max(1) as f64;
        [m >= ENOUGH_FOR_MEAN, m >= ENOUGH_FOR_P95 && at < self.kinds.len()]
    }

    fn counts(&self, at: usize) -> bool {
        let (own, reference) = self.pairs[at].waiting();
        let (all_own, all_reference) = self.all().waiting();
        own >= COUNTS * all_own && own > 0.0 || reference >= COUNTS * all_reference && reference > 0.0
    }

    /// The largest ratio of a figure that counts; at least 1.
    pub fn excess(&self) -> f64 {
        self.counting().map(|(at, figure)| self.pairs[at].pooled(figure)).fold(1.0, f64::max)
    }

    /// The figures of kinds that count, with enough responses.
    fn counting(&self) -> impl Iterator<Item = (usize, pooled::PooledFigure)> {
        (0..self.pairs.len()).filter(|&at| self.counts(at)).flat_map(|at| {
            let enough = pooled::FIGURES.into_iter().zip(self.enough(at)).filter(|(_, enough)| *enough);
            enough.map(move |(figure, _)| (at, figure))
        })
    }

    /// Whether the policy is slower, in all and by kind.
    pub fn verdict(&self) -> ResponsesVerdict {
        let enough = (0..self.pairs.len()).flat_map(|at| self.enough(at));
        let level = LEVEL / enough.filter(|enough| *enough).count().max(1) as f64;
        let most = 1.0 + self.limit;
        let (mut excess, mut slower_kinds) = (1.0f64, Vec::new());
        let mut within = vec![true; self.replicas()];
        for (at, figure) in self.counting() {
            let pair = &self.pairs[at];
            let pooled = pair.pooled(figure);
            excess = excess.max(pooled);
            let mut by_replica = pair.by_replica(figure);
            within.iter_mut().zip(&by_replica).for_each(|(within, ratio)| *within &= *ratio <= most);
            by_replica.sort_by(f64::total_cmp);
            if pooled > most && quantile(&by_replica, 0.5) > most && self.low(pair, figure, level) > 1.0 {
                slower_kinds.push(at);
            }
        }
        let responses = self.result(excess, &slower_kinds);
        ResponsesVerdict {
            responses,
            unnoticed: self.all().most() == 0,
            within,
            waiting: self.all().waiting_by_replica(),
        }
    }

    /// The lower bound of a figure's ratio at a level, from replicas that are drawn again.
    fn low(&self, pair: &ResponsePair, figure: pooled::PooledFigure, level: f64) -> f64 {
        let replicas = self.replicas();
        // The same draws for every policy: what is said of one does not depend on the others.
        let mut random = Random::new(1);
        let mut one = || {
            let mut weights = vec![0u32; replicas];
            (0..replicas).for_each(|_| weights[random.below(replicas)] += 1);
            pair.ratio(figure, &weights)
        };
        let mut ratios: Vec<f64> = (0..(DRAWS / level).ceil() as usize).map(|_| one()).collect();
        ratios.sort_by(f64::total_cmp);
        quantile(&ratios, level)
    }

    fn result(&self, excess: f64, slower_kinds: &[usize]) -> Responses {
        let replicas = self.replicas().max(1) as f64;
        let left = self.own.iter().filter(|w| w.unfinished > 0).count() as f64 / replicas;
        let why_not = match () {
            () if self.replicas() < LEAST_REPLICAS => {
                Some(format!("responses are judged with at least {LEAST_REPLICAS} replicas"))
            }
            () if self.all().most() == 0 => {
                Some(format!("no response takes more than {} ms", self.floor_us / 1000))
            }
            () => None,
        };
        let slower = self.replicas() >= LEAST_REPLICAS && (!slower_kinds.is_empty() || left > UNFINISHED);
        let (waiting, reference_waiting) = self.all().waiting();
        let mut kinds: Vec<KindResponses> = (0..self.kinds.len())
            .filter(|&at| self.counts(at))
            .map(|at| self.kind(at, slower_kinds.contains(&at)))
            .collect();
        let extra = |k: &KindResponses| k.waiting_s - k.reference_waiting_s;
        kinds.sort_by(|a, b| extra(b).total_cmp(&extra(a)));
        Responses {
            judged: why_not.is_none(),
            why_not,
            slower,
            excess,
            floor_s: f64::from(self.floor_us) * 1e-6,
            waiting_s: waiting / replicas,
            reference_waiting_s: reference_waiting / replicas,
            unfinished_share: left,
            kinds,
        }
    }

    fn kind(&self, at: usize, slower: bool) -> KindResponses {
        let replicas = self.replicas().max(1) as f64;
        let pair = &self.pairs[at];
        let [mean, p95] = self.enough(at);
        let (waiting, reference_waiting) = pair.waiting();
        let own = kinds::all_of(self.own, &self.kinds, at);
        let reference = kinds::all_of(self.reference, &self.kinds, at);
        KindResponses {
            kind: self.kinds.title(at, self.names, self.reference),
            size_class: self.kinds.size_class(at),
            joined: self.kinds.is_joined(at),
            episodes: reference.count() as f64 / replicas,
            p50_s: own.quantile_s(0.5),
            p95_s: own.quantile_s(0.95),
            reference_p50_s: reference.quantile_s(0.5),
            reference_p95_s: reference.quantile_s(0.95),
            waiting_s: waiting / replicas,
            reference_waiting_s: reference_waiting / replicas,
            mean_ratio: mean.then(|| pair.pooled(pooled::PooledFigure::Mean)),
            p95_ratio: p95.then(|| pair.pooled(pooled::PooledFigure::P95)),
            slower,
        }
    }
}
