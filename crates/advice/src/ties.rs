//! Which policy is best, and how sure that is.
//!
//! All policies share each replica, so their differences are paired: what is uncertain of the machine and of the moment
//! moves them together, and only what moves them apart counts.
//!
//! - A policy is *admissible* if it keeps the limit of time (`judge.rs`).
//! - The *leader* is the admissible policy that is beaten in the fewest replicas, where beaten means that some admissible
//!   rival needs less by more than [`NOTICEABLE`].
//! - A rival *ties* with the leader if the 5 % quantile of its excess over the leader is below [`NOTICEABLE`]: quantiles
//!   of the replicas, not of their mean, which would shrink with their number and hide the guesses.
//! - A rival is *close* if the median of its excess is below [`CLOSE`], half of that, or below [`NOTICEABLE`] where it is not surely
//!   dearer; it is *as good* if that median is below [`AS_GOOD`].
//!   What is recommended is the reference if it is close; else of the leader and those as good one of the fastest, the one that
//!   changes least (`choice.rs`).
//! - A *winner is named* if the leader surely keeps the limit of time, is beaten in at most 5 % of the
//!   replicas, and no rival ties with it.

use wattwise_figure::quantile;

/// A difference that somebody would change a setting for: 1 %.
pub const NOTICEABLE: f64 = 0.01;
/// What the reference may cost more than the leader and still be kept, whatever is sure of it: a share.
pub const CLOSE: f64 = NOTICEABLE / 2.0;
/// What another policy may cost more than the leader and be recommended in its place: a share. It is below [`CLOSE`], so that who
/// put it in force and asks again is told to keep it.
pub const AS_GOOD: f64 = CLOSE / 2.0;
/// The share of replicas in which a statement must hold.
pub const SURE: f64 = 0.95;

/// One policy in all replicas.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// What is to be small, by replica.
    pub cost: Vec<f64>,
    /// Whether it keeps the limit of time.
    pub admissible: bool,
    /// Whether it would keep it in other replicas as well.
    pub surely: bool,
}

/// What the replicas say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Whether each policy is admissible.
    pub admissible: Vec<bool>,
    /// For each policy, the share of the replicas in which it is the cheapest admissible one.
    pub best_share: Vec<f64>,
    /// The leader; `None` where no policy is admissible.
    pub leader: Option<usize>,
    /// Policies that tie with the leader, in order.
    pub ties: Vec<usize>,
    /// Policies that more likely than not cost less than [`AS_GOOD`] more.
    pub as_good: Vec<usize>,
    /// Those that more likely than not cost less than [`CLOSE`] more; or less than [`NOTICEABLE`], and perhaps no more at all.
    pub close: Vec<usize>,
    /// Whether the leader would be within the limit of time in other replicas as well.
    pub sure: bool,
    /// Whether the leader is named the winner.
    pub named: bool,
}

pub(crate) fn share(of: impl ExactSizeIterator<Item = bool>) -> f64 {
    let all = of.len().max(1);
    of.filter(|&b| b).count() as f64 / all as f64
}

/// Where each policy stands.
pub fn standing(candidates: &[Candidate]) -> Standing {
    let admissible: Vec<bool> = candidates.iter().map(|c| c.admissible).collect();
    let in_race: Vec<usize> = (0..candidates.len()).filter(|&p| admissible[p]).collect();
    // Those that are not in the race have no costs.
    let replicas = in_race.iter().map(|&p| candidates[p].cost.len()).min().unwrap_or(0);
    let mut wins = vec![0usize; candidates.len()];
    let mut beaten = vec![0usize; candidates.len()];
    for r in 0..replicas {
        let cost = |p: usize| candidates[p].cost[r];
        let Some(&least) = in_race.iter().min_by(|&&a, &&b| cost(a).total_cmp(&cost(b))) else { break };
        wins[least] += 1;
        for &p in &in_race {
            beaten[p] += usize::from(cost(least) < cost(p) * (1.0 - NOTICEABLE));
        }
    }
    let total = |p: usize| candidates[p].cost.iter().sum::<f64>();
    let order = |a: &usize, b: &usize| beaten[*a].cmp(&beaten[*b]).then(total(*a).total_cmp(&total(*b)));
    let leader = in_race.iter().copied().min_by(order);
    let near = |q: f64, limit: f64| {
        let near = |p: usize, w: usize| quantile(&excess(&candidates[p], &candidates[w]), q) < limit;
        let of = |w: usize| in_race.iter().copied().filter(|&p| p != w && near(p, w)).collect();
        leader.map_or_else(Vec::new, of)
    };
    // A rival's excess over the leader that cannot be told from nothing; one that is more likely small than not.
    let (ties, as_good) = (near(1.0 - SURE, NOTICEABLE), near(0.5, AS_GOOD));
    let (surely, perhaps, hardly) = (near(0.5, CLOSE), near(1.0 - SURE, 0.0), near(0.5, NOTICEABLE));
    let is_close = |p: &usize| surely.contains(p) || perhaps.contains(p) && hardly.contains(p);
    let close = in_race.iter().copied().filter(is_close).collect();
    let of_all = |n: usize| n as f64 / replicas.max(1) as f64;
    let sure = leader.is_some_and(|w| candidates[w].surely);
    let named = sure && ties.is_empty() && leader.is_some_and(|w| of_all(beaten[w]) <= 1.0 - SURE + 1e-9);
    Standing {
        admissible,
        best_share: wins.into_iter().map(of_all).collect(),
        leader,
        ties,
        as_good,
        close,
        sure,
        named,
    }
}

/// The policies that tie with the leader by what they cost in the replicas of a race; `None` where it was not run whole.
pub(crate) fn ties_in(costs: &[Option<Vec<f64>>], leader: usize) -> Vec<usize> {
    let of = |p: usize| Some(Candidate { cost: costs[p].clone()?, ..Candidate::default() });
    let Some(leader) = of(leader) else { return Vec::new() };
    let ties =
        |p: &usize| of(*p).is_some_and(|own| quantile(&excess(&own, &leader), 1.0 - SURE) < NOTICEABLE);
    (0..costs.len()).filter(ties).collect()
}

/// What one costs more than another, as a share of the other, by replica, sorted.
pub fn excess(one: &Candidate, other: &Candidate) -> Vec<f64> {
    let mut all: Vec<f64> = one.cost.iter().zip(&other.cost).map(|(a, b)| (a - b) / b).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_figure::Random;

    /// Standard normal, by the sum of twelve uniforms.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    /// Policies whose mean cost is `means`, with what all share and what each has for itself.
    fn drawn(random: &mut Random, means: &[f64], shared: f64, own: f64) -> Vec<Candidate> {
        let candidate = Candidate { admissible: true, surely: true, ..Candidate::default() };
        let mut all = vec![candidate; means.len()];
        for _ in 0..64 {
            let common = (shared * normal(random)).exp();
            for (c, mean) in all.iter_mut().zip(means) {
                c.cost.push(mean * common * (1.0 + own * normal(random)));
            }
        }
        all
    }

    /// Policies that are equal in the mean: nobody may be named, whatever the noise.
    #[test]
    fn of_equals_none_is_named() {
        let mut random = Random::new(1);
        for own in [0.0, 0.002, 0.01, 0.05, 0.2] {
            let named = (0..400)
                .filter(|i| standing(&drawn(&mut random, &vec![10.0; 2 + i % 9], 0.25, own)).named)
                .count();
            assert!(named <= 8, "noise of {own}: {named} of 400");
        }
    }

    /// What saves 0.7 % in the median and nothing in one replica of eight is not worth a change; what surely saves as much is.
    #[test]
    fn what_does_not_surely_save_is_close_up_to_the_noticeable() {
        let candidate = |cost: Vec<f64>| Candidate { cost, admissible: true, surely: true };
        let leader = candidate(vec![100.0; 64]);
        let unsure = candidate((0..64).map(|r| if r % 8 == 0 { 99.0 } else { 100.7 }).collect());
        let sure = candidate(vec![100.7; 64]);
        let dear = candidate((0..64).map(|r| if r % 8 == 0 { 99.0 } else { 101.2 }).collect());
        assert_eq!(standing(&[leader, unsure, sure, dear]).close, [1]);
    }

    /// What costs 2 % more in the mean through a noise of 2 % is a tie, and no close one; what costs nothing is both.
    #[test]
    fn ties_that_cost_something_are_not_close() {
        let all = standing(&drawn(&mut Random::new(4), &[10.0, 10.2, 10.0], 0.25, 0.02));
        let mut group = all.ties.clone();
        group.extend(all.leader);
        assert_eq!(group.len(), 3, "{all:?}");
        assert!(!all.close.contains(&1) && all.leader != Some(1), "{all:?}");
        assert_eq!(all.close.len(), 1, "{all:?}");
        let all = standing(&drawn(&mut Random::new(4), &[10.0, 10.07, 10.03], 0.25, 0.002));
        assert_eq!((all.leader, all.ties, all.close), (Some(0), vec![1, 2], vec![2]));
    }

    /// A gap of 5 % is found through a noise of a per cent for each and 25 % for all.
    #[test]
    fn a_planted_gap_is_found() {
        let mut random = Random::new(2);
        let found = |gap: f64, random: &mut Random| {
            let means = [10.0, 10.0 * (1.0 + gap), 10.0 * (1.0 + 2.0 * gap)];
            (0..200)
                .filter(|_| {
                    let s = standing(&drawn(random, &means, 0.25, 0.01));
                    s.named && s.leader == Some(0)
                })
                .count()
        };
        assert!(found(0.05, &mut random) >= 160);
        assert!(found(0.005, &mut random) <= 10);
    }

    #[test]
    fn the_inadmissible_do_not_race() {
        let mut all = drawn(&mut Random::new(3), &[10.0, 5.0], 0.1, 0.001);
        all[1].admissible = false;
        let s = standing(&all);
        assert_eq!((s.admissible, s.leader, s.named), (vec![true, false], Some(0), true));
        all[1].admissible = true;
        assert_eq!(standing(&all).leader, Some(1));
        all[1].surely = false;
        let unsure = standing(&all);
        assert_eq!((unsure.leader, unsure.sure, unsure.named), (Some(1), false, false));
        assert_eq!(standing(&[]).leader, None);
    }

    #[test]
    fn shares_of_being_best_add_up() {
        let s = standing(&drawn(&mut Random::new(4), &[10.0, 10.0, 30.0], 0.1, 0.05));
        assert!((s.best_share.iter().sum::<f64>() - 1.0).abs() < 1e-12 && s.best_share[2] == 0.0);
        assert_eq!(s.ties.len(), 1, "the third costs three times as much");
    }
}
