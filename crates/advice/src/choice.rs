//! Which of the policies that cannot be told apart is recommended.

use crate::judge::Column;
use crate::result::Preferred;
use crate::ties::Standing;
use crate::time::TimeKind;
use wattwise_figure::quantile;
use wattwise_replay::apply::{Apply, Commands};
use wattwise_replay::spec::PolicySpec;

/// Equals whose time is within this share of the fastest one's are equally fast.
const AS_FAST: f64 = 0.01;

/// What a choice is made from.
pub(crate) struct Choice<'a> {
    pub(crate) policies: &'a [PolicySpec],
    /// By policy.
    pub(crate) columns: &'a [Column],
    pub(crate) reference: usize,
    pub(crate) standing: &'a Standing,
    pub(crate) kind: TimeKind,
    pub(crate) apply: &'a Apply<'a>,
}

/// The reference if it is close to the leader. Else of the leader and those as good one of the fastest: one that can be applied
/// before one that cannot, one in the driver's mode before one in another, the one that changes least, the simplest. What is as
/// good is nearer than what is close, so that a machine on which the chosen policy was put in force, and which is asked again,
/// keeps it: its replicas are others.
/// `None` where no policy keeps the limit of time.
pub(crate) fn choose(c: &Choice<'_>) -> Option<usize> {
    let leader = c.standing.leader?;
    if leader == c.reference || c.standing.close.contains(&c.reference) {
        return Some(c.reference);
    }
    let own = own(c);
    equals(c, leader).into_iter().min_by_key(|&p| effort(c, own.as_ref(), p))
}

/// Of the leader and those as good the fastest ones.
fn equals(c: &Choice<'_>, leader: usize) -> Vec<usize> {
    let mut equals = c.standing.as_good.clone();
    equals.push(leader);
    let fastest = equals.iter().map(|&p| time(c, p)).fold(f64::INFINITY, f64::min);
    let as_fast = match c.kind {
        TimeKind::Makespan | TimeKind::Response => fastest * (1.0 + AS_FAST),
        // Shares, of which 0 is the best.
        TimeKind::Deadlines => fastest + AS_FAST,
    };
    equals.retain(|&p| time(c, p) <= as_fast);
    equals
}

/// What is in force.
fn own(c: &Choice<'_>) -> Option<Commands> {
    (c.apply)(&c.policies[c.reference]).ok()
}

/// What it takes to put a policy in force: whether it cannot be, whether the driver's mode changes, how many settings change beside
/// what is in force, how long its name is, its place.
fn effort(c: &Choice<'_>, own: Option<&Commands>, policy: usize) -> (bool, (bool, usize), usize, usize) {
    let spec = &c.policies[policy];
    let commands = (c.apply)(spec);
    let changes = commands.as_ref().map_or((false, 0), |made| (made.sets_mode(), made.changes_beside(own)));
    (commands.is_err(), changes, parts(&spec.text), policy)
}

/// Why that one was chosen; `None` where none keeps the limit of time.
pub(crate) fn preferred(c: &Choice<'_>, chosen: usize) -> Option<Preferred> {
    let leader = c.standing.leader?;
    if chosen == leader {
        return Some(Preferred::Leads);
    }
    if chosen == c.reference {
        return Some(Preferred::Reference);
    }
    if !equals(c, leader).contains(&leader) {
        return Some(Preferred::Faster);
    }
    let own = own(c);
    let (of_chosen, of_leader) = (effort(c, own.as_ref(), chosen), effort(c, own.as_ref(), leader));
    Some(match () {
        () if of_chosen.0 != of_leader.0 => Preferred::CanBeSet,
        () if of_chosen.1 != of_leader.1 => Preferred::ChangesLess,
        () => Preferred::Simpler,
    })
}

/// The median of what is judged as time.
fn time(c: &Choice<'_>, policy: usize) -> f64 {
    let mut all: Vec<f64> = c.columns[policy].own.iter().map(|s| s.time).collect();
    all.sort_by(f64::total_cmp);
    quantile(&all, 0.5)
}

/// How many names and values a policy's text has beside its first.
fn parts(text: &str) -> usize {
    text.matches(['+', ',', ':']).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Sample, TimeStanding};
    use crate::result::Responses;
    use crate::ties::{self, Candidate};
    use wattwise_responses::Waits;

    /// A policy's energy in all replicas, and its time.
    fn candidate((cost, time): (f64, f64)) -> (Candidate, Column) {
        let sample = Sample {
            time,
            time_ratio: time,
            within: true,
            energy_j: cost,
            undone_j: 0.0,
            suspended_j: 0.0,
            own_j: cost,
            elapsed_s: time,
            window_s: time,
            above_idle_j: 0.0,
            waits: Waits::default(),
            others: Waits::default(),
            late: Vec::new(),
        };
        let kept = TimeStanding {
            admissible: true,
            surely: true,
            responses: None,
            others: Responses::default(),
            missed: Vec::new(),
        };
        let candidate = Candidate { cost: vec![cost; 20], admissible: true, surely: true };
        (candidate, Column { own: vec![sample; 20], reference: Vec::new(), kept })
    }

    /// Which of three is chosen, the first of them the reference, and why.
    fn chosen(policies: [&str; 3], figures: [(f64, f64); 3]) -> (usize, Preferred) {
        let machine = wattwise_replay::library::machine("alderlake-p-laptop").expect("bundled");
        let policies = policies.map(|p| PolicySpec::parse(p).unwrap());
        let (candidates, columns): (Vec<Candidate>, Vec<Column>) = figures.into_iter().map(candidate).unzip();
        let choice = Choice {
            policies: &policies,
            columns: &columns,
            reference: 0,
            standing: &ties::standing(&candidates),
            kind: TimeKind::Makespan,
            apply: &wattwise_replay::apply::on(&machine),
        };
        let chosen = choose(&choice).unwrap();
        (chosen, preferred(&choice, chosen).unwrap())
    }

    /// What saves less than 0.5 % is not worth a change; of what saves more a plainer policy is chosen that costs 0.2 % more than the
    /// leader, and none that costs 0.4 % more: on a machine that has that one, the leader might be chosen in other replicas.
    #[test]
    fn what_is_chosen_would_be_kept() {
        let of = |leader: f64, third: f64| {
            let figures = [(100.0, 1.0), (leader, 1.0), (third, 1.0)];
            chosen(["hwp:epp=102", "ondemand+max=90%", "performance"], figures)
        };
        assert_eq!(of(99.6, 99.7), (0, Preferred::Reference));
        assert_eq!(of(98.0, 98.2), (2, Preferred::ChangesLess));
        assert_eq!(of(98.0, 98.4), (1, Preferred::Leads));
    }

    /// The reason is the first step of the choice at which the leader is not as good.
    #[test]
    fn the_reason_is_the_one_that_decided() {
        let of = |leader: (&str, f64), third: (&str, f64)| {
            chosen(["hwp:epp=102", leader.0, third.0], [(100.0, 1.0), (98.0, leader.1), (98.1, third.1)])
        };
        // A tie that costs nothing and is 3 % faster, though it changes as much.
        assert_eq!(of(("hwp:epp=102+max=90%", 1.03), ("performance", 1.0)), (2, Preferred::Faster));
        // Within 1 % both are as fast: then the one that a command applies, changes little, has the shorter name.
        assert_eq!(of(("burst", 1.005), ("performance", 1.0)), (2, Preferred::CanBeSet));
        assert_eq!(of(("schedutil", 1.005), ("performance", 1.0)), (2, Preferred::ChangesLess));
        assert_eq!(of(("hwp:epp=102+max=90%", 1.005), ("performance", 1.0)), (2, Preferred::Simpler));
        // A faster one that only ties is no reason: the leader stays.
        let tie = [(100.0, 1.0), (98.0, 1.04), (98.5, 1.0)];
        assert_eq!(chosen(["hwp:epp=102", "hwp:epp=102+max=90%", "performance"], tie), (1, Preferred::Leads));
    }

    #[test]
    fn changes_are_counted_beside_what_is_set_already() {
        let machine = wattwise_replay::library::machine("alderlake-p-laptop").expect("bundled");
        let apply = wattwise_replay::apply::on(&machine);
        let commands = |policy: &str| apply(&PolicySpec::parse(policy).unwrap()).unwrap();
        let own = commands("hwp:epp=102");
        let changes = |policy: &str| {
            let made = commands(policy);
            (made.sets_mode(), made.changes_beside(Some(&own)))
        };
        assert_eq!(changes("hwp:epp=102+max=90%"), (false, 1));
        assert_eq!(changes("performance"), (false, 1));
        assert_eq!(changes("schedutil"), (true, 2));
        assert_eq!(changes("hwp:epp=102"), (false, 0));
    }
}
