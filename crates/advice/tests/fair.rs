//! What holds of every row of `compare`, whatever the work: held over made-up workloads, machines and rules.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareError, CompareOptions, compare};
use wattwise_advice::result::{Comparison, Interval, PolicyResult, Split};
use wattwise_advice::rule::{Goal, Rule};
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_figure::Random;
use wattwise_model::workload::{Workload, file};
use wattwise_policy::PowerSource;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

const MACHINES: [&str; 4] = ["thinkpad-r51", "i7-4510u", "xeon-4210", "alderlake-p-laptop"];
const POLICIES: [&str; 5] = ["schedutil", "performance", "powersave", "ondemand", "conservative+teo"];

fn compared(
    rule: Rule,
    machine: &str,
    workload: &Workload,
    policies: &[&str],
    replicas: u64,
) -> Result<Comparison, CompareError> {
    let policies: Vec<PolicySpec> = policies.iter().map(|t| PolicySpec::parse(t).unwrap()).collect();
    let job = ReplayJob {
        machine: &library::machine(machine).unwrap(),
        workload,
        policies: &policies,
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: wattwise_figure::Budget::default(),
    };
    let options = CompareOptions {
        rule,
        replicas,
        reference: &policies[0],
        standards: &[],
        apply: &|_| Err("a test applies nothing".into()),
        done: &|_| {},
        stop: &AtomicBool::new(false),
    };
    Ok(compare(&job, &options)?.0)
}

/// One to four tasks: bursts, periods, devices, copies; now and then beside a background, or after a long rest.
fn made(random: &mut Random) -> String {
    let mut text = "name = 'made'\nsummary = 'by a test'\n".to_owned();
    let mut length = |most: usize| {
        let low = 1 + random.below(most);
        format!("[{low}, {}]", low + random.below(most))
    };
    let rests: Vec<String> = (0..6).map(|_| length(20_000)).collect();
    let runs: Vec<String> = (0..6).map(|_| length(30_000)).collect();
    let tasks = 1 + random.below(3);
    for t in 0..tasks {
        let rest = ["sleep_us", "io_us"][random.below(2)];
        let first = if random.below(4) == 0 { "{ sleep_us = 2_000_000 }, " } else { "" };
        text += &format!(
            "[[task]]\nname = 'task {t}'\ncount = {}\nrounds = {}\nsteps = [{first}{{ run_us = {} }}, {{ {rest} = {} }}]\n",
            1 + random.below(3),
            1 + random.below(30),
            runs[t],
            rests[t]
        );
    }
    if random.below(2) == 0 {
        text += &format!(
            "[[task]]\nname = 'load'\nrole = 'background'\ncount = {}\nsteps = [{{ sleep_us = {} }}, {{ run_us = {} }}]\n",
            1 + random.below(8),
            rests[5],
            runs[5]
        );
    }
    text
}

fn sum(s: &Split) -> f64 {
    s.busy_j
        + s.stall_j
        + s.idle_j.iter().map(|(_, j)| j).sum::<f64>()
        + s.leakage_j
        + s.uncore_j
        + s.memory_j
        + s.platform_j
        + s.undone_background_j
        + s.suspended_j
}

/// No joule below 0, and none that is not in the parts.
fn joules_are_sound(r: &PolicyResult) {
    let u = &r.uncertain;
    let ends = |i: Interval| [i.low, i.median, i.high];
    let all = [vec![r.energy_j, r.window_energy_j], ends(u.energy_j).to_vec(), ends(u.own_energy_j).to_vec()];
    assert!(all.concat().iter().all(|j| *j >= 0.0), "{}: {all:?}", r.policy);
    let s = &r.window_split_j;
    let parts = [s.busy_j, s.stall_j, s.uncore_j, s.memory_j, s.platform_j, s.suspended_j];
    assert!(parts.iter().chain(s.idle_j.iter().map(|(_, j)| j)).all(|j| *j >= 0.0), "{}: {s:?}", r.policy);
    // What is given back was drawn.
    assert!(s.busy_j + s.undone_background_j >= -1e-9 * r.window_energy_j, "{}: {s:?}", r.policy);
    let off = (sum(s) - r.window_energy_j).abs();
    assert!(
        off <= 1e-9 * r.window_energy_j.max(1e-3),
        "{}: {} J are not {} J",
        r.policy,
        sum(s),
        r.window_energy_j
    );
}

/// What is said of rows is true of them.
fn rows_are_fair(c: &Comparison, rule: Rule) {
    let reference = c.results.iter().find(|r| r.policy == c.reference).unwrap();
    assert!(!reference.over_own_time, "the reference sets the window");
    let factor = if rule.max_slowdown.is_finite() { 1.0 + rule.max_slowdown } else { 2.0 };
    // What is judged by its responses ends with its timers: no limit of time makes its window longer.
    let is_batch = c.judged.kind == TimeKind::Makespan;
    let wanted = reference.elapsed_s * if is_batch { factor } else { 1.0 };
    let off = c.window_s - wanted;
    assert!(
        off >= -1e-6 && (off <= 1e-6 + 1e-6 * wanted || !is_batch),
        "{} s, expected {wanted}",
        c.window_s
    );
    for r in &c.results {
        joules_are_sound(r);
        if (r.elapsed_s - c.window_s).abs() > 1e-6 {
            assert_eq!(r.over_own_time, r.elapsed_s > c.window_s, "{}: {} s", r.policy, r.elapsed_s);
        }
        let compared = say::energy_ratio(c, r);
        assert_eq!(
            compared.is_none(),
            r.elapsed_s > 1.001 * c.window_s && c.goal != Goal::OwnEnergy,
            "{}",
            r.policy
        );
    }
    let any = c.results.iter().any(|r| r.elapsed_s > 1.001 * c.window_s);
    assert_eq!(
        say::energy_over(c).ends_with("for all"),
        !any && c.goal != Goal::OwnEnergy,
        "{}",
        say::energy_over(c)
    );
    assert!(!c.answer.text.contains("-0.0"), "{}", c.answer.text);
}

#[test]
fn rows_of_made_up_work_are_fair() {
    let mut random = Random::new(35);
    let (mut longer, mut background) = (0, 0);
    for case in 0..60 {
        let text = made(&mut random);
        let workload = file::parse(&text, "made.toml").unwrap_or_else(|e| panic!("{e}: {text}"));
        let max_slowdown = [0.0, 0.10, 1.0, f64::INFINITY][random.below(4)];
        let goal = [Goal::Energy, Goal::OwnEnergy, Goal::Edp, Goal::Time][random.below(4)];
        let rule = Rule { goal, max_slowdown };
        let machine = MACHINES[random.below(MACHINES.len())];
        let c = compared(rule, machine, &workload, &POLICIES, (case % 2) * 4)
            .unwrap_or_else(|e| panic!("{e}: {machine}\n{text}"));
        assert_eq!(c.goal, goal);
        rows_are_fair(&c, rule);
        longer += c.results.iter().filter(|r| r.over_own_time).count();
        background += c.results.iter().filter(|r| r.window_split_j.undone_background_j != 0.0).count();
    }
    assert!(longer > 10 && background > 10, "{longer} {background}");
}

/// A long idle tail after the work would decide for whoever idles best.
#[test]
fn without_a_limit_the_window_is_two_makespans() {
    let text =
        "name = 'x'\nsummary = 'y'\n[[task]]\nname = 'a'\nrounds = 1\nsteps = [{ run_us = 1_000_000 }]\n";
    let workload = file::parse(text, "x.toml").unwrap();
    let rule = Rule { goal: Goal::Energy, max_slowdown: f64::INFINITY };
    let c = compared(rule, "xeon-4210", &workload, &["performance", "powersave"], 0).unwrap();
    let slow = &c.results[1];
    assert!((c.window_s - 2.0 * c.results[0].elapsed_s).abs() < 1e-6, "{}", c.window_s);
    assert!(slow.elapsed_s > c.window_s && slow.over_own_time && slow.admissible);
}

/// Timers hold how long it takes, so the limit adds no idle tail.
#[test]
fn work_that_timers_hold_has_the_window_of_its_timers() {
    let text = "name = 'x'\nsummary = 'y'\n[[task]]\nname = 'a'\nrounds = 50\nsteps = [{ sleep_us = 20_000 }, { run_us = 3000 }]\n";
    let workload = file::parse(text, "x.toml").unwrap();
    let window = |max_slowdown: f64| {
        let rule = Rule { goal: Goal::Energy, max_slowdown };
        let c = compared(rule, "xeon-4210", &workload, &["performance", "powersave"], 0).unwrap();
        assert!(c.judged.kind != TimeKind::Makespan);
        c.window_s
    };
    assert_eq!((window(0.0), window(0.5)), (window(f64::INFINITY), window(0.1)));
}

/// The figure that was asked for, with its interval: of the same work the faster policy draws more power for less time.
#[test]
fn own_energy_is_told_where_it_was_asked_for() {
    let text =
        "name = 'x'\nsummary = 'y'\n[[task]]\nname = 'a'\nrounds = 1\nsteps = [{ run_us = 1_000_000 }]\n";
    let workload = file::parse(text, "x.toml").unwrap();
    let rule = Rule { goal: Goal::OwnEnergy, max_slowdown: f64::INFINITY };
    let c = compared(rule, "xeon-4210", &workload, &["powersave", "performance"], 16).unwrap();
    let best = c.results.iter().find(|r| r.policy == "performance").unwrap();
    let own = best.uncertain.own_energy_ratio;
    assert!(own.high < 0.6, "{own:?}: most of a server's watts are there whatever it does");
    let (low, high) = ((1.0 - own.high) * 100.0, (1.0 - own.low) * 100.0);
    let wanted = format!("Uses {low:.0} to {high:.0} % less energy over its own time than powersave");
    assert!(c.answer.text.contains(&wanted), "{}: expected {wanted}", c.answer.text);
}

#[test]
fn a_wake_up_that_never_comes_is_named() {
    let text = "name = 'x'\nsummary = 'y'\n[[task]]\nname = 'serial'\nrounds = 1\nsteps = [{ run_us = 1000 }, { wake = 'worker' }]\n\
                [[task]]\nname = 'worker'\ncount = 4\nrounds = 1\nsteps = [{ block = true }, { run_us = 1000 }]\n";
    let workload = file::parse(text, "x.toml").unwrap();
    let error =
        compared(Rule::default(), "xeon-4210", &workload, &["performance"], 0).unwrap_err().to_string();
    let names: Vec<&str> = workload.tasks[2..].iter().map(|t| t.name.as_str()).collect();
    let wanted =
        format!("the tasks {}, {} and {} wait for a wake-up that never comes", names[0], names[1], names[2]);
    assert!(error.contains(&wanted), "{error}");
}

/// Rounds are fixed before any policy runs, so tasks that share CPUs take longer for them: that is said.
#[test]
fn rounds_that_take_longer_than_asked_are_told() {
    let text = |count: u32| {
        format!(
            "name = 'x'\nsummary = 'y'\nreference_khz = 2_200_000\n[[task]]\nname = 'h'\ncount = {count}\nuntil_s = 1\n\
             steps = [{{ run_us = 1000 }}, {{ sleep_us = 500 }}]\n"
        )
    };
    let warnings = |count: u32| {
        let workload = file::parse(&text(count), "x.toml").unwrap();
        compared(Rule::default(), "xeon-4210", &workload, &["performance"], 0).unwrap().inputs.warnings
    };
    let told = |all: Vec<String>| all.into_iter().find(|w| w.starts_with("h: its rounds take 1 s on a CPU"));
    assert_eq!(told(warnings(1)), None);
    assert!(told(warnings(40)).is_some_and(|w| w.contains("the reference takes 1.")));
}
