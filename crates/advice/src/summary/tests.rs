//! Summaries by hand arithmetic.

use super::*;
use crate::result::*;
use crate::rule::Goal;
use crate::time::Judged;

/// `(policy, energy ratio, time ratio, admissible)`, the reference first.
type Row = (&'static str, f64, f64, bool);

fn result(&(policy, energy, time, admissible): &Row) -> PolicyResult {
    let at = |median: f64| Interval { median, low: median, high: median };
    PolicyResult {
        policy: policy.into(),
        elapsed_s: 10.0 * time,
        energy_j: 100.0 * energy * time,
        window_energy_j: 100.0 * energy,
        above_idle_j: 0.0,
        mean_w: 0.0,
        edp_js: 1000.0 * energy * time * time,
        slowdown: time,
        missed: 0.0,
        wake_latency_us: Latency { p50: 0.0, p99: 0.0, max: 0.0 },
        over_own_time: false,
        uncertain: Uncertain {
            time: at(10.0 * time),
            energy_j: at(100.0 * energy),
            time_ratio: at(time),
            energy_ratio: at(energy),
            ..Uncertain::default()
        },
        within_share: 1.0,
        admissible,
        best_share: 0.0,
        raced_out_after: None,
        tied: false,
        transitions: 0,
        speed_residency: vec![],
        idle_residency: vec![],
        window_split_j: Split::default(),
        provenance: "modelled".into(),
        approximation: None,
        responses: None,
        other_responses: Responses::default(),
        missed_by_task: vec![],
    }
}

fn comparison(workload: &str, machine: &str, kind: TimeKind, rows: &[Row], answer: &[&str]) -> Comparison {
    Comparison {
        schema: crate::result::SCHEMA.into(),
        machine: machine.into(),
        workload: WorkloadInfo {
            name: workload.into(),
            source: String::new(),
            cpus: 0,
            duration_s: 10.0,
            events: 0,
            foreground: String::new(),
            background_share: 0.0,
            clock: String::new(),
            memory: String::new(),
            others_share: None,
        },
        judged: Judged { kind, why: String::new() },
        reference: rows[0].0.into(),
        replicas: 0,
        stopped: false,
        goal: Goal::Energy,
        replicas_asked: None,
        max_slowdown: None,
        standards: Vec::new(),
        default_standard: None,
        window_s: 10.0,
        results: rows.iter().map(result).collect(),
        answer: Answer {
            winner: (answer.len() == 1).then(|| answer[0].into()),
            recommended: answer[0].into(),
            tied: answer[1..].iter().map(|t| (*t).into()).collect(),
            text: String::new(),
            apply: None,
            lifts: Vec::new(),
            why_not: None,
            preferred: None,
            tried: None,
            against_reference: None,
            nearly: Vec::new(),
        },
        deciding: None,
        inputs: Inputs {
            own_machine: false,
            root: None,
            machine_summary: String::new(),
            machine_figures: vec![],
            uncertain: Vec::new(),
            idle_policy: String::new(),
            warnings: vec![],
            version: String::new(),
        },
    }
}

/// `b` saves half here and needs twice as much there: together nothing. `c` saves a fifth each time.
fn three() -> Vec<Comparison> {
    vec![
        comparison(
            "build",
            "laptop",
            TimeKind::Makespan,
            &[("a", 1.0, 1.0, true), ("b", 0.5, 1.21, true), ("c", 0.8, 1.0, true)],
            &["b"],
        ),
        comparison(
            "build",
            "server",
            TimeKind::Makespan,
            &[("a", 1.0, 1.0, true), ("b", 2.0, 1.0, false), ("c", 0.8, 1.1, true)],
            &["c"],
        ),
        comparison(
            "video",
            "laptop",
            TimeKind::Deadlines,
            &[("a", 1.0, 1.0, true), ("c", 0.8, 5.0, true)],
            &["a", "c"],
        ),
    ]
}

fn near(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| (a - b).abs() < 1e-12)
}

#[test]
fn policies_are_summed_up() {
    let s = summary(&three(), Goal::Energy);
    assert_eq!(s.policies.iter().map(|p| p.policy.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let [a, b, c] = &s.policies[..] else { panic!() };
    assert_eq!([a, b, c].map(|p| (p.comparisons, p.admissible, p.best)), [(3, 3, 1), (2, 1, 1), (3, 3, 2)]);
    // sqrt(0.5 * 2) and sqrt(1.21 * 1); the cube root of 0.8^3; sqrt(1 * 1.1) without the deadlines.
    assert!(near(a.energy_ratio, 1.0) && near(b.energy_ratio, 1.0) && near(c.energy_ratio, 0.8));
    assert!(near(b.time_ratio, 1.1) && near(c.time_ratio, 1.1_f64.sqrt()));
    let worst = b.worst.clone().unwrap();
    assert_eq!(
        (worst.energy_ratio, worst.workload.as_str(), worst.machine.as_str()),
        (2.0, "build", "server")
    );
}

#[test]
fn the_best_of_all_is_not_the_best_everywhere() {
    let s = summary(&three(), Goal::Energy);
    assert_eq!(s.best.as_deref(), Some("c"), "b is not admissible everywhere");
    assert!(near(s.best_ratio, 0.8));
    assert_eq!(s.answers.iter().map(|a| a.changes).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(s.answers[2].winner, None);
    assert_eq!(summary(&three(), Goal::Time).best.as_deref(), Some("a"));
    // c over the reference: 0.8 * 1, 0.8 * 1.1, 0.8 * 5 of energy over its own time, whose product is above 1.
    assert_eq!(summary(&three(), Goal::OwnEnergy).best.as_deref(), Some("a"));
}

#[test]
fn what_has_no_ratio_is_left_out() {
    let none = |energy| comparison("idle", "m", TimeKind::Makespan, &[("a", energy, 1.0, false)], &["a"]);
    let s = summary(&[none(0.0), none(f64::NAN)], Goal::Energy);
    assert_eq!((s.policies[0].energy_ratio, s.policies[0].worst.clone()), (None, None));
    assert_eq!((s.best, s.answers[0].changes), (None, false));
    assert_eq!(
        summary(&[], Goal::Energy),
        Summary { policies: vec![], best: None, best_ratio: None, answers: vec![] }
    );
}

/// The last was stopped, or the others were never begun: a part never looks like the whole.
#[test]
fn a_part_says_that_it_is_one() {
    let whole = ComparisonSet::new(three(), Goal::Energy);
    assert_eq!((whole.stopped, whole.comparisons_asked, whole.told_stopped()), (false, None, None));
    let mut some = three();
    let last = some.last_mut().expect("three");
    (last.replicas, last.stopped, last.replicas_asked) = (23, true, Some(64));
    let cut = ComparisonSet::of(some, 5, Goal::Energy);
    assert_eq!((cut.stopped, cut.comparisons_asked), (true, Some(5)));
    let told = cut.told_stopped().expect("it was stopped");
    assert!(told.starts_with("Stopped after 2 of 5 comparisons and 23 of 64 replicas of the next"), "{told}");
    let between = ComparisonSet::of(three(), 5, Goal::Energy).told_stopped().expect("it was stopped");
    assert!(between.starts_with("Stopped after 3 of 5 comparisons;"), "{between}");
}
