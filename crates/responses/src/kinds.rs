//! Kinds of episode: a task's name and a class of size, by the episode's cycles under the reference policy.
//!
//! A name is taken up to `/` or `:`, which part a kernel thread's name from its number. Kinds with fewer than 20 episodes a
//! replica are joined by class of size, never across classes: among half a hundred short episodes nobody sees one page that
//! takes twice as long.

use crate::Waits;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use wattwise_model::workload::Workload;

/// A class of size holds episodes of up to four times as many cycles as the one before; the first ends at 1 Mcycle.
const FIRST_CLASS: f64 = 0.25e6;
const MOST_CLASS: u8 = 16;
/// A kind with fewer episodes a replica is joined to others.
const ENOUGH: f64 = 20.0;
/// The joined kinds of a class with fewer episodes a replica are joined to the next smaller class's.
const ENOUGH_OTHERS: f64 = 1.0;

/// A kind of episode as it was seen: the name's number and the class of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Kind {
    name: u32,
    class: u8,
}

fn class(cycles: f64) -> u8 {
    let class = (cycles / FIRST_CLASS).log2() / 2.0;
    // Less than the first class, nothing, and what is no number.
    if class >= 0.0 { class.min(f64::from(MOST_CLASS)) as u8 } else { 0 }
}

/// The names of a workload's tasks.
#[derive(Clone, Debug, Default)]
pub struct Names {
    of_task: Vec<u32>,
    names: Vec<String>,
}

impl Names {
    /// Of each task, without what makes it one of several.
    pub fn new(workload: &Workload) -> Names {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut names = Names::default();
        for task in &workload.tasks {
            let name = task.name.split(['/', ':']).next().unwrap_or_default();
            let number = *numbers.entry(name).or_insert_with(|| {
                names.names.push(name.to_owned());
                names.names.len() as u32 - 1
            });
            names.of_task.push(number);
        }
        names
    }

    /// The kind of an episode of a task.
    pub(crate) fn kind(&self, task: usize, cycles: f64) -> Kind {
        Kind { name: self.of_task.get(task).copied().unwrap_or_default(), class: class(cycles) }
    }

    fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }
}

/// A kind after small ones were joined: of one name, or the other names of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Joined {
    name: Option<u32>,
    class: u8,
}

/// The kinds that are judged, and where each kind that was seen belongs.
pub(crate) struct EpisodeKinds {
    all: Vec<Joined>,
    of: HashMap<Kind, usize>,
}

impl EpisodeKinds {
    /// By the episodes of the reference policy.
    pub(crate) fn joined(reference: &[&Waits]) -> EpisodeKinds {
        let mut seen: BTreeMap<Kind, f64> = BTreeMap::new();
        let replicas = reference.len().max(1) as f64;
        for k in reference.iter().flat_map(|w| &w.kinds) {
            *seen.entry(k.kind).or_default() += (f64::from(k.short) + k.long_us.len() as f64) / replicas;
        }
        let mut others = [0.0; MOST_CLASS as usize + 1];
        for (kind, n) in seen.iter().filter(|(_, n)| **n < ENOUGH) {
            others[usize::from(kind.class)] += n;
        }
        // From the largest class down: where each class's others are kept.
        let mut kept: Vec<u8> = (0..=MOST_CLASS).collect();
        for class in (1..others.len()).rev() {
            if others[class] < ENOUGH_OTHERS {
                others[class - 1] += others[class];
                kept.iter_mut().filter(|k| usize::from(**k) == class).for_each(|k| *k -= 1);
            }
        }
        let join = |(kind, n): (&Kind, &f64)| match *n < ENOUGH {
            true => (*kind, Joined { name: None, class: kept[usize::from(kind.class)] }),
            false => (*kind, Joined { name: Some(kind.name), class: kind.class }),
        };
        let joined: Vec<(Kind, Joined)> = seen.iter().map(join).collect();
        let mut all: Vec<Joined> = joined.iter().map(|(_, j)| *j).collect();
        all.sort_unstable();
        all.dedup();
        let place = |j: &Joined| all.binary_search(j).unwrap_or_default();
        let of = joined.iter().map(|(kind, j)| (*kind, place(j))).collect();
        EpisodeKinds { all, of }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a kind that was seen belongs to number `at`; to all kinds together (`None`) each does.
    pub(crate) fn has(&self, at: Option<usize>, kind: Kind) -> bool {
        at.is_none_or(|at| self.of.get(&kind) == Some(&at))
    }

    /// The class of size of kind number `at`.
    pub(crate) fn size_class(&self, at: usize) -> u8 {
        self.all[at].class
    }

    /// Whether kind number `at` is joined of several names.
    pub(crate) fn is_joined(&self, at: usize) -> bool {
        self.all[at].name.is_none()
    }

    /// What people call it: the task's name; of joined kinds that of the task that waits longest in it.
    pub(crate) fn title(&self, at: usize, names: &Names, reference: &[&Waits]) -> String {
        if let Some(name) = self.all[at].name {
            return names.name(name).to_owned();
        }
        let mut waits: BTreeMap<u32, u64> = BTreeMap::new();
        for k in reference.iter().flat_map(|w| &w.kinds).filter(|k| self.has(Some(at), k.kind)) {
            *waits.entry(k.kind.name).or_default() += k.long_us.iter().map(|us| u64::from(*us)).sum::<u64>();
        }
        let most = waits.iter().max_by_key(|(_, us)| **us).map_or("", |(name, _)| names.name(*name));
        if waits.len() > 1 { format!("{most} and others") } else { most.to_owned() }
    }
}

/// All responses of a kind.
pub(crate) struct All {
    short: u64,
    /// Rising.
    long_us: Vec<u32>,
}

/// All responses of kind number `at` in all replicas.
pub(crate) fn all_of(waits: &[&Waits], kinds: &EpisodeKinds, at: usize) -> All {
    let mut all = All { short: 0, long_us: Vec::new() };
    for k in waits.iter().flat_map(|w| &w.kinds).filter(|k| kinds.has(Some(at), k.kind)) {
        all.short += u64::from(k.short);
        all.long_us.extend(&k.long_us);
    }
    all.long_us.sort_unstable();
    all
}

impl All {
    pub(crate) fn count(&self) -> u64 {
        self.short + self.long_us.len() as u64
    }

    /// A quantile, in s; `None` where it is among the short responses, whose times are not kept.
    pub(crate) fn quantile_s(&self, q: f64) -> Option<f64> {
        let at = (self.count().saturating_sub(1) as f64 * q).round() as u64;
        let long = at.checked_sub(self.short)?;
        self.long_us.get(long as usize).map(|us| f64::from(*us) * 1e-6)
    }
}
