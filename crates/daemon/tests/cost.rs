//! What the daemon does to a machine that rests: operations on its files, counted by the emulator. How long they take is measured by
//! `scripts/daemon-cost.py`.

mod support;

use support::{CPU, Day, SECOND, Scene};
use wattwise_daemon::engine::LogKind;
use wattwise_daemon::metrics::Metrics;
use wattwise_daemon::proving::Proving;
use wattwise_hw::clock::Moment;

/// A battery's gauge costs an interrupt of the firmware at each reading, and each file a walk through the kernel: 3 to 4 % of a CPU in
/// auto-cpufreq 904, ten commands a cycle in others. An hour in which nothing happens is a look each half minute.
#[test]
fn auto_cpufreq_904_an_hour_at_rest_is_120_looks_of_a_few_files() {
    let scene = Scene::notebook("server-64");
    let mut day = Day::begin(&scene, "");
    day.pass(60 * SECOND);
    let (before, looks, writes) =
        (scene.machine.operations(), day.engine.counts().looks, scene.machine.writes().len());
    day.pass(3600 * SECOND);
    let looks = day.engine.counts().looks - looks;
    assert_eq!(looks, 120);
    assert_eq!(scene.machine.writes().len(), writes, "nothing is written that stands");
    let each = (scene.machine.operations() - before) / looks;
    println!("{each} operations a look");
    assert!(each < 400, "{each} operations for a look at 64 CPUs");
}

/// Metrics are asked for every few seconds: names are read and files opened once.
#[test]
fn a_scrape_reads_counters_through_descriptors_that_stay_open() {
    let scene = Scene::of("server-64");
    let mut day = Day::begin(&scene, "");
    let mut at = Moment { monotonic_s: 1.0, boot_s: 1.0 };
    let mut metrics = Metrics::open(&scene, at);
    let mut scrape = |day: &mut Day<'_>| {
        at = Moment { monotonic_s: at.monotonic_s + 15.0, boot_s: at.boot_s + 15.0 };
        metrics.text(&scene, &mut day.engine, None, at)
    };
    let first = scrape(&mut day);
    assert!(first.contains("wattwise_cpu_idle_seconds_total{state=\"C1\"}"), "{first}");
    let files: Vec<String> = ["name", "time"].map(|f| format!("{CPU}/cpu7/cpuidle/state1/{f}")).to_vec();
    let opens: Vec<u64> = files.iter().map(|f| scene.machine.opens(f)).collect();
    for _ in 0..10 {
        scrape(&mut day);
    }
    assert_eq!(files.iter().map(|f| scene.machine.opens(f)).collect::<Vec<_>>(), opens);
    // A CPU that has gone is left out, and one that is back is there again.
    scene.machine.plug(7, false);
    scrape(&mut day);
    scene.machine.plug(7, true);
    scrape(&mut day);
    assert!(scene.machine.opens(&files[1]) > opens[1]);
    assert_eq!(day.lines(LogKind::Refused), Vec::<&str>::new());
}

/// A proof has a turn each minute: what a turn wants is planned once.
#[test]
fn a_turn_of_a_proof_is_planned_once() {
    let scene = Scene::notebook("server-64");
    let state = tempfile::tempdir().expect("a folder");
    let mut day = Day::remembered(&scene, "[daemon]\nprove = \"untouched\"\n", Some("power-saver"));
    let mut proving = Proving::new(&scene, state.path());
    let mut pass = |day: &mut Day<'_>, s: u64| {
        for _ in 0..s * 10 {
            day.pass(SECOND / 10);
            let at = day.now as f64 * 1e-9;
            proving.step(Moment { monotonic_s: at, boot_s: at }, day.now / SECOND, &mut day.engine);
        }
    };
    pass(&mut day, 300);
    let (before, written) = (scene.machine.operations(), scene.machine.writes().len());
    pass(&mut day, 1200);
    // How often the arm changes is drawn anew in each proof: what is bounded is the cost of one change, which is one write here.
    let changes = (scene.machine.writes().len() - written) as u64;
    assert!((4..=40).contains(&changes), "{changes} changes in 20 turns");
    let each = (scene.machine.operations() - before) / changes;
    println!("{each} operations a change, {changes} changes");
    assert!(each < 20 * 64, "{each} operations for a change of 64 CPUs");
}

/// A proof begins with a plan that is there already, and asks no CPU what the list of CPUs says.
#[test]
fn a_proof_begins_in_a_few_operations_a_cpu() {
    let first_minutes = |config: &str| {
        let scene = Scene::notebook("server-64");
        let state = tempfile::tempdir().expect("a folder");
        let before = scene.machine.operations();
        let mut day = Day::remembered(&scene, config, Some("power-saver"));
        let written = scene.machine.writes().len();
        let mut proving = Proving::new(&scene, state.path());
        for _ in 0..1300 {
            day.pass(SECOND / 10);
            let at = day.now as f64 * 1e-9;
            proving.step(Moment { monotonic_s: at, boot_s: at }, day.now / SECOND, &mut day.engine);
        }
        (scene.machine.operations() - before, (scene.machine.writes().len() - written) as u64)
    };
    let ((without, none), (with, changes)) =
        (first_minutes(""), first_minutes("[daemon]\nprove = \"untouched\"\n"));
    println!("{without} operations in the first 130 s, with a proof {with} and {changes} changes");
    // How often the arm changes is drawn anew in each proof; a change is one write here.
    assert!(none == 0 && (1..=3).contains(&changes), "{none} changes, with a proof {changes}");
    assert!(
        with - without < (1 + changes) * 20 * 64,
        "{without} operations, with a proof {with}, {changes} changes"
    );
}
