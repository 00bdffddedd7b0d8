//! Thousands of simulated experiments: does the verdict err as often as it says?

use crate::ab::conduct::{Bench, Budget, Design, Done, Place, Trial, conduct, order};
use statrs::distribution::{ContinuousCDF, StudentsT};
use wattwise_figure::verdict::{Aim, Answer, quantile};
use wattwise_figure::{Random, mean_sd};

/// A machine that warms up, whose noise hangs together and that hiccups.
struct Noisy {
    random: Random,
    /// Relative drift over a run.
    drift: f64,
    sd: f64,
    /// Correlation of one run's noise with the last one's.
    correlation: f64,
    /// Share of runs that a hiccup makes longer.
    spikes: f64,
    /// B's true difference.
    effect: f64,
    runs: f64,
    last: f64,
}

impl Noisy {
    fn new(seed: u64, effect: f64) -> Noisy {
        let mut random = Random::new(seed);
        let drift = (random.unit() - 0.5) * 0.002;
        Noisy { random, drift, sd: 0.01, correlation: 0.3, spikes: 0.02, effect, runs: 0.0, last: 0.0 }
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.random.unit(), self.random.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn log_value(&mut self, arm: usize) -> f64 {
        let fresh = self.normal() * self.sd * (1.0 - self.correlation.powi(2)).sqrt();
        self.last = self.correlation * self.last + fresh;
        let spike = if self.random.unit() < self.spikes { 0.05 * self.random.unit() } else { 0.0 };
        // Warming up: 5 % at first, gone after some ten runs.
        let warming = -0.05 * (-self.runs / 4.0).exp();
        self.runs += 1.0;
        let effect = if arm == 1 { self.effect.ln_1p() } else { 0.0 };
        10.0_f64.ln() + self.drift * self.runs + self.last + spike + warming + effect
    }
}

impl Bench for Noisy {
    fn run(&mut self, arm: usize, _: Place) -> Result<Trial, String> {
        Ok(Trial { value: self.log_value(arm).exp(), dropped: None, cost_s: 1.0 })
    }
}

fn plan(seed: u64) -> Design {
    let aim = Aim { effect: 0.03, power: 0.9, ..Aim::default() };
    Design { arms: 2, aim, budget: Budget { seconds: 1e9, ..Budget::default() }, seed }
}

/// Share of experiments that say "different".
fn share_different(experiments: u64, effect: f64) -> f64 {
    let different = (0..experiments).filter(|seed| {
        let plan = plan(*seed);
        let result = conduct(&plan, &mut Noisy::new(seed ^ 0x5eed, effect), Done::default()).expect("runs");
        assert_eq!(result.end, crate::ab::conduct::End::Reached);
        matches!(result.verdicts(&plan)[0].answer, Answer::Less | Answer::More)
    });
    different.count() as f64 / experiments as f64
}

#[test]
#[ignore = "long: make test runs it"]
fn equal_arms_are_called_different_as_often_as_promised() {
    let share = share_different(6000, 0.0);
    assert!((0.035..=0.065).contains(&share), "{share} of A-A experiments said different at a nominal 0.05");
}

#[test]
#[ignore = "long: make test runs it"]
fn a_true_effect_is_found_with_the_promised_power() {
    let share = share_different(3000, 0.03);
    assert!(share >= 0.9, "a 3 % effect was found in {share} of the experiments; 0.9 was promised");
}

#[test]
fn the_design_without_random_order_fails_the_same_test() {
    // A…A B…B with Welch's test, on the same machine after the same warm-up: kept to show why not.
    let experiments = 2000;
    let different = (0..experiments).filter(|seed| {
        let mut machine = Noisy::new(seed ^ 0x5eed, 0.0);
        for _ in 0..12 {
            machine.log_value(0);
        }
        let mut arm = || -> Vec<f64> { (0..20).map(|_| machine.log_value(0)).collect() };
        let (a, b) = (arm(), arm());
        let ((ma, sa), (mb, sb)) = (mean_sd(&a), mean_sd(&b));
        let (va, vb) = (sa * sa / 20.0, sb * sb / 20.0);
        let freedom = (va + vb).powi(2) / (va * va / 19.0 + vb * vb / 19.0);
        ((mb - ma) / (va + vb).sqrt()).abs() > quantile(0.975, freedom)
    });
    let share = different.count() as f64 / experiments as f64;
    assert!(
        share > 0.2,
        "blocks of equal arms were called different in {share} only: the demonstration is void"
    );
}

#[test]
fn an_order_is_random_within_blocks_and_repeats_by_its_seed() {
    let plan = plan(7);
    let first: Vec<usize> = (0..400).map(|b| order(&plan, b)[0]).collect();
    let ones = first.iter().sum::<usize>();
    assert!((150..=250).contains(&ones), "{ones}");
    assert_eq!(first, (0..400).map(|b| order(&plan, b)[0]).collect::<Vec<_>>());
    // Neither alternating nor in long runs.
    let changes = first.windows(2).filter(|w| w[0] != w[1]).count();
    assert!((150..=250).contains(&changes), "{changes}");
}

#[test]
fn an_interrupted_plan_goes_on_where_it_was() {
    let whole_plan = plan(3);
    let whole = conduct(&whole_plan, &mut Fixed, Done::default()).expect("runs");
    let blocks: Vec<Vec<Trial>> = (0..4)
        .map(|b| {
            (0..2).map(|arm| Fixed.run(arm, Place { warm_up: false, block: b }).expect("runs")).collect()
        })
        .collect();
    let resumed = conduct(&whole_plan, &mut Fixed, Done { warm_up: whole.warm_up, blocks }).expect("runs");
    assert_eq!(whole.blocks, resumed.blocks);
    assert_eq!(whole.verdicts(&whole_plan), resumed.verdicts(&whole_plan));
}

/// Values that depend on their place alone.
struct Fixed;

impl Bench for Fixed {
    fn run(&mut self, arm: usize, place: Place) -> Result<Trial, String> {
        let mut random = Random::new(place.block as u64 * 2 + arm as u64 + u64::from(place.warm_up) * 1000);
        Ok(Trial { value: 10.0 + random.unit() * 0.1, dropped: None, cost_s: 1.0 })
    }
}

#[test]
fn a_dropped_run_drops_its_block_and_too_many_end_the_experiment() {
    struct Hot(usize);
    impl Bench for Hot {
        fn run(&mut self, arm: usize, place: Place) -> Result<Trial, String> {
            let dropped =
                (!place.warm_up && place.block >= self.0 && arm == 1).then(|| "throttled".to_owned());
            Ok(Trial { dropped, ..Fixed.run(arm, place)? })
        }
    }
    let result = conduct(&plan(1), &mut Hot(3), Done::default()).expect("runs");
    assert_eq!((result.blocks.len(), result.dropped.len()), (3, 10));
    assert!(
        matches!(&result.end, crate::ab::conduct::End::Budget(why) if why.contains("throttled")),
        "{:?}",
        result.end
    );
}

#[test]
#[ignore = "long: make test runs it"]
fn several_arms_share_the_error() {
    // Three equal arms, two comparisons: either says "different" in at most about 5 %.
    let experiments = 3000;
    let wrong = (0..experiments).filter(|seed| {
        let plan = Design { arms: 3, ..plan(*seed) };
        let result = conduct(&plan, &mut Noisy::new(seed ^ 0xabc, 0.0), Done::default()).expect("runs");
        result.verdicts(&plan).iter().any(|v| matches!(v.answer, Answer::Less | Answer::More))
    });
    let share = wrong.count() as f64 / f64::from(experiments as u32);
    assert!(share <= 0.065, "{share}");
}

#[test]
fn the_t_distribution_is_the_library_s() {
    let t = StudentsT::new(0.0, 1.0, 9.0).expect("freedom");
    assert!((t.cdf(2.262) - 0.975).abs() < 1e-4);
}
