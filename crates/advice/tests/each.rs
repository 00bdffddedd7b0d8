//! Cases one by one, against the same policies in the same draws by another way.

use wattwise_advice::each::Each;
use wattwise_advice::paired::Paired;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::Budget;
use wattwise_policy::PowerSource;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

#[test]
fn a_case_is_what_a_search_sees_of_it() {
    let machine = library::machine("thinkpad-r51").expect("bundled");
    let policy = |text: &str| PolicySpec::parse(text).expect("a policy");
    let (reference, own) = (policy("performance"), policy("ondemand"));
    let rule = Rule { goal: Goal::Energy, max_slowdown: 0.1 };
    for name in ["burst", "ping-pong"] {
        let workload = library::workload(name, &wattwise_trace::ImportOptions::default()).expect("bundled");
        let job = ReplayJob {
            machine: &machine,
            workload: &workload,
            policies: &[],
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: Budget::default(),
        };
        let paired = Paired::new(&job, rule, &reference, 7, 2).expect("it ends");
        let each = Each::new(&job, rule, &reference, None).expect("it ends");
        assert_eq!(each.kind(), paired.kind());
        for replica in 0..2 {
            let draw = each.draw(7 + replica as u64).expect("it ends");
            for policy in [&reference, &own] {
                let (figures, look) = (
                    each.run(&draw, policy).expect("it ends"),
                    paired.look(replica, policy).expect("it ends"),
                );
                assert_eq!((figures.window_energy_j, figures.time), (look.cost, look.time), "{name}");
                assert_eq!(figures.wake_p99_s, look.p99_ns as f64 * 1e-9, "{name}");
            }
            assert!(each.run(&draw, &own).expect("it ends") != *draw.reference(), "{name}: they differ");
        }
    }
}
