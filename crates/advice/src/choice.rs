//! Which of the policies that cannot be told apart is recommended.

use crate::judge::Column;
use crate::ties::Standing;
use crate::time::{TimeKind, quantile};
use wattwise_replay::apply::Apply;
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
    let mut equals = c.standing.as_good.clone();
    equals.push(leader);
    let fastest = equals.iter().map(|&p| time(c, p)).fold(f64::INFINITY, f64::min);
    let as_fast = match c.kind {
        TimeKind::Makespan | TimeKind::Response => fastest * (1.0 + AS_FAST),
        // Shares, of which 0 is the best.
        TimeKind::Deadlines => fastest + AS_FAST,
    };
    let own = (c.apply)(&c.policies[c.reference]).ok();
    let effort = |p: &usize| {
        let commands = (c.apply)(&c.policies[*p]);
        let effort = commands
            .as_ref()
            .map_or((false, 0), |made| (made.sets_mode(), made.changes_beside(own.as_ref())));
        (commands.is_err(), effort, parts(&c.policies[*p].text), *p)
    };
    equals.into_iter().filter(|&p| time(c, p) <= as_fast).min_by_key(effort)
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
    use crate::judge::Kept;
    use crate::result::Responses;
    use crate::ties::{self, Candidate};

    /// What saves less than 0.5 % is not worth a change; of what saves more a plainer policy is chosen that costs 0.2 % more than the
    /// leader, and none that costs 0.4 % more: on a machine that has that one, the leader might be chosen in other replicas.
    #[test]
    fn what_is_chosen_would_be_kept() {
        let candidate = |cost: f64| Candidate { cost: vec![cost; 20], admissible: true, surely: true };
        let chosen = |leader: f64, third: f64| {
            let candidates = [100.0, leader, third].map(candidate);
            let policies =
                ["schedutil", "ondemand+max=90%", "performance"].map(|p| PolicySpec::parse(p).unwrap());
            let kept = Kept {
                admissible: true,
                surely: true,
                responses: None,
                others: Responses::default(),
                missed: Vec::new(),
            };
            let columns =
                [(); 3].map(|()| Column { own: Vec::new(), reference: Vec::new(), kept: kept.clone() });
            choose(&Choice {
                policies: &policies,
                columns: &columns,
                reference: 0,
                standing: &ties::standing(&candidates),
                kind: TimeKind::Makespan,
                apply: &|_| Err("nothing is applied".into()),
            })
        };
        assert_eq!(chosen(99.6, 99.7), Some(0));
        assert_eq!(chosen(98.0, 98.2), Some(2));
        assert_eq!(chosen(98.0, 98.4), Some(1));
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
