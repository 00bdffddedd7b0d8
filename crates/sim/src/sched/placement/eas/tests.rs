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
    loads: Vec<CpuLoad>,
    woken: Woken,
    allowed: CpuSet,
}

impl Scene {
    fn new(others: [u64; 4], prev: usize, need: u64) -> Scene {
        let mut loads = others.map(|util| CpuLoad { util, expected: 0 }).to_vec();
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
    let mut s = Scene::new([0; 4], 2, 0);
    s.woken.expected = 50;
    assert_eq!(s.goes_to(), 0, "after a long sleep");
    // And what is expected of those who run there now.
    let mut s = Scene::new([0; 4], 2, 50);
    s.loads[0].expected = 400;
    assert_eq!(s.goes_to(), 1);
    s.loads[1].expected = 400;
    assert_eq!(s.goes_to(), 2);
}

#[test]
fn a_task_of_which_nothing_is_known_stays() {
    let mut s = Scene::new([0; 4], 3, 0);
    assert_eq!(s.goes_to(), 3);
    s.allowed = CpuSet::of(4, |c| c == 0);
    assert_eq!(s.goes_to(), 3, "who may not stay is moved by others");
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
        let mut loads = [CpuLoad::default(); 4];
        loads[cpu] = CpuLoad { util, expected };
        model.is_overutilized(&loads)
    };
    // 0.8 x 512 = 409.6, 0.8 x 1024 = 819.2.
    assert!(!over(1, 409, 0) && over(1, 410, 0) && over(1, 0, 410));
    assert!(!over(2, 819, 0) && over(2, 820, 0));
}

#[test]
fn a_level_that_costs_no_less_than_a_faster_one_is_left_out() {
    // Big, above its WFI: 10 x 800000 / 1024 = 7812 at 2000 MHz, and 10 x 600000 / 512 = 11718 at 1000. Little: 2929 and 1875.
    let m = machine_of(&LITTLE.replace("0.1", "0.15"), "mhz = [2000, 1000]\nbusy_w = [0.81, 0.61]");
    let mut s = Scene::new([190, 190, 0, 0], 0, 60);
    s.model = EnergyModel::of(&m).unwrap();
    assert_eq!(s.goes_to(), 2, "2929 x 440 - 1875 x 380 = 576260 against 7812 x 60 = 468720, and not 703080");
}

#[test]
fn of_equal_energies_the_last_cpu_s_is_taken_else_the_domain_of_the_highest_cpus() {
    // Big at 1000 MHz: 10 x 64000 / 512 = 1250, as little at 500 MHz.
    let mut s = Scene::new([0; 4], 0, 50);
    s.model = EnergyModel::of(&machine_of(LITTLE, &BIG.replace("400", "100"))).unwrap();
    assert_eq!(s.goes_to(), 0);
    s.allowed = CpuSet::of(4, |c| c != 0);
    assert_eq!(s.goes_to(), 2);
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

/// Task 1 has waited behind task 0 on CPU 0 for long: whether CPU 2, which runs out of work, pulls it.
fn pulls(loads: [u64; 4]) -> bool {
    let m = machine();
    let mut s = Scheduler::new(&m, &EAS, &[]);
    (0..2).for_each(|_| s.add(0, 0, false));
    s.enqueue(0, 1, 0);
    s.starts(0, 0);
    s.share(0, 0, 0, u64::MAX);
    s.look_at_loads(&Seen(Some(loads)));
    s.pull(2, 100_000_000, |v| (v == 0).then_some(0)).is_some()
}

#[test]
fn a_cpu_that_runs_out_of_work_pulls_only_while_some_cpu_is_overutilized() {
    assert!(!pulls([300, 0, 0, 0]));
    assert!(pulls([410, 0, 0, 0]));
}
