//! Each rule in a situation whose energies were reckoned by hand.
//!
//! Two little CPUs (0 and 1, capacity 512) and two big ones (2 and 3, capacity 1024), each pair with a clock of its own:
//!
//! | | MHz | V | uW = coefficient x MHz x V^2 | performance | cost = 10 uW / performance |
//! |---|--:|--:|--:|--:|--:|
//! | little (100) | 500 | 0.8 | 32000 | 256 | 1250 |
//! | | 1000 | 1.0 | 100000 | 512 | 1953 |
//! | big (400) | 1000 | 0.8 | 256000 | 512 | 5000 |
//! | | 2000 | 1.0 | 800000 | 1024 | 7812 |

use super::energy::Woken;
use super::*;
use crate::sched::cpuset::CpuSet;
use crate::sched::{Scheduler, WokenBy};
use wattwise_model::machine::{MachineModel, file};

const LITTLE: &str = "mhz = [1000, 500]\nvolts = [1.0, 0.8]\ncapacitance_nf = 0.1\nleak_a = 0.2";
const BIG: &str = "mhz = [2000, 1000]\nvolts = [1.0, 0.8]\ncapacitance_nf = 0.7\nleak_a = 0.1\ndynamic_power_coefficient = 400";

fn machine_of(little: &str, big: &str) -> MachineModel {
    let kind = |name: &str, speeds: &str| {
        format!(
            "[[kind]]\nname = '{name}'\ncores = 2\nsource = 's'\nconfidence = 'guess'\n\
             [kind.speeds]\n{speeds}\nsource = 's'\nconfidence = 'guess'\n\
             [kind.transition]\nstall_us = 0\nsource = 's'\nconfidence = 'guess'\n\
             [kind.idle]\nstates = [{{ name = 'WFI', latency_us = 1, target_us = 1, watts = 0.01 }}]\nsource = 's'\nconfidence = 'guess'\n"
        )
    };
    let text = format!(
        "name = 'two-clusters'\nsummary = 's'\n[topology]\npackages = 1\nclocks = 'kind'\nsource = 's'\nconfidence = 'guess'\n{}{}\
         [package]\nuncore_w = 0\nsource = 's'\nconfidence = 'guess'\n[platform]\nwatts = 0.1\nsource = 's'\nconfidence = 'guess'",
        kind("little", little),
        kind("big", big)
    );
    file::parse(&text, "two-clusters").expect("sound")
}

fn machine() -> MachineModel {
    machine_of(LITTLE, BIG)
}

/// CPUs with these utilisations of other tasks, and a task of `need` that slept on `prev`, where it still counts.
struct Scene {
    model: EnergyModel,
    loads: Vec<Load>,
    woken: Woken,
    allowed: CpuSet,
}

impl Scene {
    fn new(others: [u64; 4], prev: usize, need: u64) -> Scene {
        let mut loads = others.map(|util| Load { util, expected: 0 }).to_vec();
        loads[prev].util += need;
        Scene {
            model: EnergyModel::of(&machine()).expect("unequal cores"),
            loads,
            woken: Woken { prev, util: need, expected: need },
            allowed: CpuSet::of(4, |_| true),
        }
    }

    fn goes_to(&self) -> usize {
        self.model.choose(&self.woken, &self.loads, &self.allowed)
    }
}

#[test]
fn a_small_task_goes_where_it_adds_least() {
    // Little: 1250 x 50 = 62500. Big: 5000 x 50 = 250000.
    assert_eq!(Scene::new([0; 4], 2, 50).goes_to(), 0);
    assert_eq!(Scene::new([20, 0, 0, 0], 2, 50).goes_to(), 1, "where there is most to spare");
}

#[test]
fn a_level_that_would_rise_for_all_makes_a_little_core_dearer_than_a_big_one() {
    // Little at 500 MHz serves 190 x 1.25 = 237 of 256 on each of two CPUs. With 60 more on one it is 312, and all 440 are done at 1000
    // MHz: 1953 x 440 - 1250 x 380 = 384320. Big: 5000 x 60 = 300000.
    assert_eq!(Scene::new([190, 190, 0, 0], 2, 60).goes_to(), 2);
    // With 10 more it is 250, and the level stays: 12500 against 50000.
    assert_eq!(Scene::new([190, 190, 0, 0], 2, 10).goes_to(), 0);
    // At 1000 MHz anyway: 1953 x 60 = 117180 against 300000.
    assert_eq!(Scene::new([300, 0, 0, 0], 2, 60).goes_to(), 1);
}

#[test]
fn the_last_cpu_is_kept_unless_another_adds_less() {
    assert_eq!(Scene::new([0; 4], 1, 50).goes_to(), 1, "as much to spare as CPU 0");
    // CPU 0 has more to spare, and adds as much: both are served at 500 MHz.
    assert_eq!(Scene::new([0, 60, 0, 0], 1, 50).goes_to(), 1);
    // (170 + 50) x 1.25 = 275: the last CPU would raise the level, its neighbour not.
    assert_eq!(Scene::new([0, 170, 0, 0], 1, 50).goes_to(), 0);
}

#[test]
fn the_last_cpu_s_signal_is_not_counted_twice() {
    // On CPU 1, where 150 of its signal lies, it makes 150 x 1.25 = 187 and not 375: both adds are 1250 x 150.
    assert_eq!(Scene::new([0; 4], 1, 150).goes_to(), 1);
    let s = Scene::new([0, 40, 0, 0], 1, 150);
    assert_eq!(s.goes_to(), 1, "190 x 1.25 = 237 of 256");
}

#[test]
fn a_task_too_big_for_a_little_core_goes_to_a_big_one() {
    // 410 x 1.25 reaches 512.
    assert_eq!(Scene::new([0; 4], 0, 409).goes_to(), 0);
    assert_eq!(Scene::new([0; 4], 0, 410).goes_to(), 2);
    // So does one that fits no longer beside others: 300 + 110.
    assert_eq!(Scene::new([300, 300, 0, 0], 0, 109).goes_to(), 0);
    assert_eq!(Scene::new([300, 300, 0, 0], 0, 110).goes_to(), 2);
    // Nowhere does it fit: it stays.
    assert_eq!(Scene::new([400, 400, 700, 700], 1, 200).goes_to(), 1);
}

#[test]
fn what_is_expected_of_a_task_counts_where_its_signal_has_faded() {
    let mut s = Scene::new([0; 4], 0, 30);
    s.woken.expected = 500;
    assert_eq!(s.goes_to(), 2, "it will need a big core");
    // And what is expected of those who run there now.
    let mut s = Scene::new([0; 4], 2, 50);
    s.loads[0].expected = 400;
    assert_eq!(s.goes_to(), 1);
    s.loads[1].expected = 400;
    assert_eq!(s.goes_to(), 2);
}

#[test]
fn a_task_of_which_nothing_is_known_stays() {
    assert_eq!(Scene::new([0; 4], 3, 0).goes_to(), 3);
}

#[test]
fn allowed_cpus_are_respected() {
    let mut s = Scene::new([0; 4], 2, 50);
    s.allowed = CpuSet::of(4, |c| c != 0);
    assert_eq!(s.goes_to(), 1);
    s.allowed = CpuSet::of(4, |c| c == 3);
    assert_eq!(s.goes_to(), 3, "its last CPU is no candidate");
    let mut s = Scene::new([0; 4], 0, 50);
    s.allowed = CpuSet::of(4, |c| c >= 2);
    assert_eq!(s.goes_to(), 2);
}

#[test]
fn overutilized_is_one_cpu_without_a_quarter_to_spare() {
    let model = EnergyModel::of(&machine()).unwrap();
    let over = |cpu: usize, util: u64, expected: u64| {
        let mut loads = [Load::default(); 4];
        loads[cpu] = Load { util, expected };
        model.is_overutilized(&loads)
    };
    // 0.8 x 512 = 409.6, 0.8 x 1024 = 819.2.
    assert!(!over(1, 409, 0) && over(1, 410, 0) && over(1, 0, 410));
    assert!(!over(2, 819, 0) && over(2, 820, 0));
}

#[test]
fn a_level_that_costs_no_less_than_a_faster_one_is_left_out() {
    // Big at 2000 and 1000 MHz with one voltage: 10 x 800000 / 1024 = 7812 and 10 x 400000 / 512 = 7812.
    let m = machine_of(LITTLE, &BIG.replace("[1.0, 0.8]", "[1.0, 1.0]"));
    let flat = EnergyModel::of(&m).unwrap();
    // Of two voltages the slower level is cheaper: 5000 x 100 against 1953 x 440 - 1250 x 340 = 434320 on the full little cores.
    let mut s = Scene::new([170, 170, 0, 0], 2, 100);
    assert_eq!(s.goes_to(), 0, "434320 against 500000");
    s = Scene::new([190, 190, 0, 0], 2, 60);
    assert_eq!(s.goes_to(), 2, "384320 against 300000");
    s.model = flat;
    assert_eq!(s.goes_to(), 0, "384320 against 7812 x 60 = 468720");
}

#[test]
fn it_is_in_force_where_the_kernel_has_it() {
    let equal = machine_of(BIG, BIG);
    assert!(EnergyModel::of(&equal).is_none(), "equal cores");
    let mut m = machine();
    m.load_invariant = false;
    assert!(EnergyModel::of(&m).is_none(), "the load counts time");
    let hybrid = file::parse(
        wattwise_model::machine::builtin::text("alderlake-p-laptop").expect("bundled"),
        "alderlake-p-laptop",
    );
    assert!(EnergyModel::of(&hybrid.expect("sound")).is_none(), "two threads a core");
}

/// CPUs' loads, or that nobody follows them.
struct Seen(Option<[u64; 4]>);

impl CoreUse for Seen {
    fn busy_threads(&self, _: usize) -> usize {
        0
    }
    fn is_awake(&self, _: usize) -> bool {
        true
    }
    fn load(&self, cpu: usize) -> Option<u64> {
        self.0.map(|loads| loads[cpu])
    }
}

/// Where a task that has worked a little and slept on CPU 2 is sent by its timer there, all CPUs idling; and whether the balance then
/// rests.
fn sent(seen: &Seen, fresh: bool) -> (usize, bool) {
    let m = machine();
    let mut s = Scheduler::new(&m, &EAS, &[]);
    s.add(2, 0, false);
    (0..4).for_each(|c| s.idles(c, 0));
    let load = s.load(0);
    load.work(2_000_000, 1024);
    load.sleep();
    let to = s.choose(0, WokenBy { from: 2, current: NONE, waker: None }, fresh, 10_000_000, seen);
    (to, s.holds_balance())
}

#[test]
fn the_engine_asks_it_while_no_cpu_is_overutilized_and_linux_otherwise() {
    assert_eq!(sent(&Seen(Some([0, 0, 60, 0])), false), (0, true), "to a little core");
    assert_eq!(sent(&Seen(Some([0, 0, 60, 900])), false), (2, false), "overutilized: an idle last CPU");
    assert_eq!(sent(&Seen(None), false), (2, false), "nobody follows the loads: not under schedutil");
    assert_eq!(sent(&Seen(Some([0, 0, 60, 0])), true), (2, true), "a new task goes by Linux's slow path");
}
