//! How the winner is found.

use crate::result::{Best, PolicyResult};

/// How the winner is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// What is to be small.
    pub goal: Goal,
    /// Policies slower than the fastest by more than this share do not count.
    pub max_slowdown: f64,
}

/// What is to be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Energy over the equal window.
    Energy,
    /// Energy over the run's own duration: the machine is switched off afterwards.
    OwnEnergy,
    /// Energy times time.
    Edp,
    /// Time.
    Time,
}

impl Default for Rule {
    /// Least energy over the window among policies at most a tenth slower than the fastest.
    fn default() -> Rule {
        Rule { goal: Goal::Energy, max_slowdown: 0.10 }
    }
}

/// The winner under a rule, with the figures that decided. Of equals the faster wins, then the first.
pub(crate) fn choose(results: &[PolicyResult], rule: Rule) -> Best {
    let goal = |r: &PolicyResult| match rule.goal {
        Goal::Energy => r.window_energy_j,
        Goal::OwnEnergy => r.energy_j,
        Goal::Edp => r.edp_js,
        Goal::Time => r.elapsed_s,
    };
    let (what, unit) = match rule.goal {
        Goal::Energy => ("energy over the equal window", "J"),
        Goal::OwnEnergy => ("energy over its own duration", "J"),
        Goal::Edp => ("energy-delay product", "J s"),
        Goal::Time => ("time", "s"),
    };
    let eligible = |r: &&PolicyResult| r.slowdown <= 1.0 + rule.max_slowdown + 1e-9;
    let order = |a: &&PolicyResult, b: &&PolicyResult| {
        goal(a).total_cmp(&goal(b)).then(a.elapsed_s.total_cmp(&b.elapsed_s))
    };
    let Some(best) = results.iter().filter(eligible).min_by(order) else {
        return Best { policy: String::new(), why: "no policy ran".into() };
    };
    let mut why = format!("least {what} ({:.4} {unit})", goal(best));
    if rule.max_slowdown.is_finite() {
        why += &format!(
            " among policies at most {:.0} % slower than the fastest; it is {:.1} % slower",
            rule.max_slowdown * 100.0,
            (best.slowdown - 1.0) * 100.0
        );
    }
    let versus = results.iter().find(|r| r.policy == "performance" && r.policy != best.policy);
    if let Some(r) = versus
        && goal(r) > 0.0
    {
        why += &format!(", {:.1} % below performance", (1.0 - goal(best) / goal(r)) * 100.0);
    }
    if let Some(r) = results.iter().min_by(order)
        && r.policy != best.policy
    {
        why += &format!(
            "; {} needs less ({:.4} {unit}) but takes {:.1} % longer than the fastest",
            r.policy,
            goal(r),
            (r.slowdown - 1.0) * 100.0
        );
    }
    Best { policy: best.policy.clone(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Latency, Split};

    fn result(policy: &str, s: f64, j: f64) -> PolicyResult {
        PolicyResult {
            policy: policy.into(),
            elapsed_s: s,
            energy_j: j,
            window_energy_j: j,
            mean_w: j / s,
            edp_js: j * s,
            slowdown: s,
            wake_latency_us: Latency { p50: 0.0, p99: 0.0, max: 0.0 },
            transitions: 0,
            speed_residency: vec![],
            idle_residency: vec![],
            window_split_j: Split { busy_j: j, stall_j: 0.0, idle_j: vec![], uncore_j: 0.0, platform_j: 0.0 },
            provenance: "modelled".into(),
        }
    }

    #[test]
    fn the_rule_decides() {
        let r = [result("performance", 1.0, 100.0), result("a", 1.05, 80.0), result("b", 2.0, 50.0)];
        let best = |goal, max_slowdown| choose(&r, Rule { goal, max_slowdown }).policy;
        assert_eq!(best(Goal::Energy, 0.10), "a");
        assert_eq!(best(Goal::Energy, 0.01), "performance");
        assert_eq!(best(Goal::Energy, f64::INFINITY), "b");
        assert_eq!(best(Goal::Edp, f64::INFINITY), "a");
        assert_eq!(best(Goal::Time, f64::INFINITY), "performance");
        let why = choose(&r, Rule::default()).why;
        assert!(why.contains("20.0 % below performance") && why.contains("b needs less"), "{why}");
    }
}
