//! The search for the best of enough, held against scans by hand, and mixes against what their works come to.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareOptions, PolicyDetail, compare_from, search_best};
use wattwise_advice::mix::{Mix, MixWork, compare_mix};
use wattwise_advice::result::{Comparison, PolicyResult};
use wattwise_advice::rule::Rule;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::apply;
use wattwise_replay::defaults::default_policies;
use wattwise_replay::job::{ReplayJob, reference_policy};
use wattwise_replay::library;
use wattwise_replay::spec::{PolicySpec, expand};

/// A work on a machine.
struct Given {
    machine: MachineModel,
    workload: Workload,
    reference: PolicySpec,
}

impl Given {
    fn new(machine: &str, workload: &str) -> Given {
        let machine = library::machine(machine).unwrap();
        let workload = library::workload(workload, &Default::default()).unwrap();
        Given { reference: reference_policy(&machine).unwrap(), machine, workload }
    }

    fn job<'a>(&'a self, policies: &'a [PolicySpec]) -> ReplayJob<'a> {
        ReplayJob {
            machine: &self.machine,
            workload: &self.workload,
            policies,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: wattwise_figure::Budget::default(),
        }
    }

    fn usual(&self) -> Vec<PolicySpec> {
        default_policies(&self.machine, System::find(&self.machine.system))
    }

    /// By a search, or with these policies alone; from replica `first` on.
    fn compared(&self, policies: Option<&[PolicySpec]>, replicas: u64, first: u64) -> Comparison {
        let (apply, stop) = (apply::on(&self.machine), AtomicBool::new(false));
        let options = CompareOptions {
            rule: Rule::default(),
            replicas,
            reference: &self.reference,
            standards: &[],
            apply: &apply,
            done: &|_| {},
            stop: &stop,
        };
        match policies {
            Some(policies) => compare_from(&self.job(policies), &options, first).unwrap().0,
            None => search_best(&self.job(&self.usual()), &options, first).unwrap().0,
        }
    }
}

fn row<'c>(c: &'c Comparison, policy: &str) -> &'c PolicyResult {
    c.results.iter().find(|r| r.policy == policy).unwrap()
}

/// Beside every second limit, which nobody races: what is recommended is within 1 % of the best of them.
#[test]
#[ignore = "takes a minute"]
fn the_search_finds_what_a_scan_finds() {
    for (machine, workload) in
        [("i7-4510u", "build"), ("alderlake-p-laptop", "postgres"), ("xeon-4210", "compress")]
    {
        let given = Given::new(machine, workload);
        let found = given.compared(None, 16, 1);
        let recommended = &found.answer.recommended;
        assert!(found.answer.tried.unwrap() > 20, "{machine}, {workload}");
        let bases = [given.reference.text.as_str(), "performance", "schedutil"];
        let mut scan: Vec<PolicySpec> =
            bases.iter().flat_map(|b| expand(&format!("{b}+max=50%..99%:by2%")).unwrap()).collect();
        scan.extend(bases.iter().map(|b| PolicySpec::parse(b).unwrap()));
        scan.push(PolicySpec::parse(recommended).unwrap());
        let scanned = given.compared(Some(&scan), 16, 700);
        let ratio = |r: &PolicyResult| r.uncertain.energy_ratio.median;
        let best = scanned.results.iter().filter(|r| r.admissible);
        let best = best.min_by(|a, b| ratio(a).total_cmp(&ratio(b))).unwrap();
        let own = ratio(row(&scanned, recommended));
        assert!(
            own < ratio(best) * 1.01,
            "{machine}, {workload}: {recommended} {own}, {} {}",
            best.policy,
            ratio(best)
        );
    }
}

/// What is said of the recommended policy comes from replicas that neither the race nor the final ran in; rows that were left
/// early say after how many.
#[test]
fn figures_are_from_replicas_that_did_not_choose() {
    let given = Given::new("i7-4510u", "build");
    let found = given.compared(None, 16, 1);
    let own = row(&found, &found.answer.recommended);
    assert_ne!(found.answer.recommended, found.reference);
    let policy = [PolicySpec::parse(&own.policy).unwrap()];
    let fresh = given.compared(Some(&policy), 16, 1 + (1 << 18));
    assert_eq!(own.uncertain.energy_ratio, row(&fresh, &own.policy).uncertain.energy_ratio);
    let final_ones = given.compared(Some(&policy), 16, 1);
    assert_ne!(own.uncertain.energy_ratio, row(&final_ones, &own.policy).uncertain.energy_ratio);
    let left: Vec<&PolicyResult> = found.results.iter().filter(|r| r.raced_out_after.is_some()).collect();
    // What ran the whole race may tie with the leader; what was left at its first look was clearly worse.
    let after = |r: &PolicyResult| r.raced_out_after.unwrap();
    assert!(left.len() > 5 && left.iter().all(|r| after(r) == 16 || after(r) == 4 && !r.tied));
    let lowest = left.iter().find(|r| r.policy == "powersave" || r.policy.ends_with("+max=min")).unwrap();
    assert!(lowest.raced_out_after == Some(4) && !lowest.admissible, "{lowest:?}");
    let against = found.answer.against_reference.unwrap();
    assert!(against.chance > 0.9 && against.ratio == own.uncertain.energy_ratio);
}

/// Limits of power are tried where the machine has one; a limit that never binds is no policy of its own. The build draws some
/// 32 W for 4.4 s, so that its mean over 14 s comes to 32 x (1 - exp(-4.4 / 14)) = 9 W: drawn figures of some replicas take it
/// to 11 W, none to 17.
/// Of a laptop's two kinds of cores these limits differ by one level of the slower kind, which a build hardly feels.
#[test]
fn two_limits_that_come_to_the_same_are_one_suggestion() {
    let given = Given::new("alderlake-p-laptop", "build");
    let alike = ["performance+max=80%", "performance+max=88%"];
    let spec = |text: &str| PolicySpec::parse(text).unwrap();
    let policies: Vec<PolicySpec> = alike.iter().map(|p| spec(p)).chain([given.reference.clone()]).collect();
    let c = given.compared(Some(&policies), 64, 1);
    let [a, b] = alike.map(|p| row(&c, p));
    assert!(a.within_share == b.within_share && !a.admissible && !b.admissible, "{a:?} {b:?}");
    assert!(a.energy_j != b.energy_j, "two policies all the same");
    let named: Vec<&str> = c.answer.nearly.iter().map(|n| n.policy.as_str()).collect();
    assert_eq!(named, ["performance+max=80%"]);
}

#[test]
fn limits_of_power_are_tried_where_they_bind() {
    let capped = |machine: &str| -> Vec<String> {
        let found = Given::new(machine, "build").compared(None, 2, 1);
        let with = found.results.iter().map(|r| r.policy.clone()).filter(|p| p.contains("+power="));
        with.collect()
    };
    assert_eq!(capped("alderlake-p-laptop"), ["hwp:epp=102+power=11W"]);
    assert!(!capped("i7-4510u").is_empty());
    assert_eq!(capped("xeon-4210"), [""; 0], "it has no limit to lower");
}

/// Works with their shares of the hours; by a search, or with these policies alone.
fn mixed(
    works: &[Given; 2],
    weights: [f64; 2],
    policies: Option<&[PolicySpec]>,
    replicas: u64,
) -> (Vec<(Comparison, Vec<PolicyDetail>)>, Mix) {
    let usual = works[0].usual();
    let jobs = works.each_ref().map(|w| w.job(policies.unwrap_or(&usual)));
    let works_of: Vec<MixWork<'_, '_>> =
        jobs.iter().zip(weights).map(|(job, weight)| MixWork { job, weight }).collect();
    let (apply, stop) = (apply::on(&works[0].machine), AtomicBool::new(false));
    let options = CompareOptions {
        rule: Rule::default(),
        replicas,
        reference: &works[0].reference,
        standards: &[],
        apply: &apply,
        done: &|_| {},
        stop: &stop,
    };
    let (comparisons, mix) = compare_mix(&works_of, &options, policies.is_none()).unwrap();
    (comparisons, mix.unwrap())
}

/// Beside limits by tens, all of which run: what is recommended over a mix is within 1 % of the best that keeps the limit of
/// time in both works. What the race left is said to be of its replicas, and is not recommended.
#[test]
fn the_search_over_a_mix_finds_what_a_scan_finds() {
    let works = ["backup", "containers"].map(|w| Given::new("alderlake-p-laptop", w));
    let (_, found) = mixed(&works, [3.0, 1.0], None, 32);
    let recommended = found.answer.recommended.as_str();
    let limits = ["", "+max=60%", "+max=70%", "+max=80%", "+max=90%"];
    let bases = ["performance", "schedutil", "hwp:epp=102"];
    let texts = bases.iter().flat_map(|base| limits.map(|limit| format!("{base}{limit}")));
    let texts: BTreeSet<String> = texts.chain([recommended.to_owned()]).collect();
    let scan: Vec<PolicySpec> = texts.iter().map(|text| PolicySpec::parse(text).unwrap()).collect();
    let (_, scanned) = mixed(&works, [3.0, 1.0], Some(&scan), 32);
    let of = |mix: &Mix, policy: &str| mix.policies.iter().find(|p| p.policy == policy).unwrap().clone();
    let own = of(&scanned, recommended);
    let kept = scanned.policies.iter().filter(|p| p.over_limit_in.is_empty());
    let least = kept.map(|p| p.power_ratio.median).fold(f64::INFINITY, f64::min);
    assert!(own.over_limit_in.is_empty() && own.power_ratio.median < 0.97, "{own:?}");
    assert!(own.power_ratio.median <= least * 1.01, "{own:?}: {least}");
    assert_eq!(of(&found, recommended).power_ratio, own.power_ratio, "the same replicas");
    assert_eq!(of(&found, recommended).raced_out_after, None);
    let left: Vec<_> = found.policies.iter().filter_map(|p| p.raced_out_after).collect();
    assert!(!left.is_empty() && left.iter().all(|n| *n == 16), "{left:?}");
    assert!(found.policies.iter().all(|p| p.raced_out_after.is_none() || p.best_share == 0.0));
}

/// `schedutil` limited to 95 % keeps the limit of time in the race's 16 replicas and not in the 64 of the final. What the race had
/// left runs there then, and is recommended.
#[test]
fn what_the_race_left_is_looked_at_again() {
    let works = ["cxx", "rust"].map(|w| Given::new("t8103", w));
    let (_, mix) = mixed(&works, [1.0, 1.0], None, 64);
    let of = |policy: &str| mix.policies.iter().find(|p| p.policy == policy).unwrap();
    let [over, next] = ["schedutil+max=95%", "performance+max=95%"].map(of);
    assert_eq!((over.raced_out_after, &over.over_limit_in[..]), (None, &["rust".to_owned()][..]));
    assert_eq!((next.raced_out_after, mix.answer.recommended.as_str()), (None, next.policy.as_str()));
    assert!(over.power_ratio.median < next.power_ratio.median);
}

/// A mix costs the weighted mean of its works' power over their windows, by hand from the works alone; and a policy that is too
/// slow in one work is not recommended, however much it saves in the others.
#[test]
fn a_mix_is_the_weighted_mean_of_its_works() {
    let works = ["build", "burst"].map(|w| Given::new("i7-4510u", w));
    let policies: Vec<PolicySpec> =
        ["schedutil", "performance", "performance+max=60%"].map(|p| PolicySpec::parse(p).unwrap()).into();
    let (comparisons, mix) = mixed(&works, [3.0, 1.0], Some(&policies), 0);
    assert_eq!(mix.weights.iter().map(|w| w.weight).collect::<Vec<_>>(), [0.75, 0.25]);
    for policy in &mix.policies {
        let of = |(c, _): &(Comparison, _), share: f64| {
            let r = row(c, &policy.policy);
            (!r.over_own_time).then(|| share * r.window_energy_j / c.window_s)
        };
        let by_hand: Option<f64> = comparisons.iter().zip([0.75, 0.25]).map(|(c, w)| of(c, w)).sum();
        if let Some(watts) = by_hand {
            assert!((policy.mean_w.median / watts - 1.0).abs() < 1e-6, "{}: {watts}", policy.policy);
        }
    }
    let slow = mix.policies.iter().find(|p| p.policy == "performance+max=60%").unwrap();
    assert!(slow.over_limit_in.contains(&"build".to_owned()) && slow.power_ratio.median < 1.0, "{slow:?}");
    assert_ne!(mix.answer.recommended, slow.policy);
}
