//! Utilisation from recorded `/proc/stat` files, each CPU in turn alone at full use: the case in which intel-lpmd's
//! published form, which takes the last CPU's line for the whole system, sees nothing.

use std::collections::BTreeMap;
use wattwise_control::govern::cores::samples;
use wattwise_hw::cpus::proc_stat::Stat;
use wattwise_policy::{CoreObservation, Settings, cores};

const TICK_NS: u64 = 10_000_000;

/// A recording's pairs of files, by the CPU that was busy between them.
fn recording(cpus: usize) -> BTreeMap<u32, [String; 2]> {
    let path = format!("{}/tests/stat/{cpus}.txt.zst", env!("CARGO_MANIFEST_DIR"));
    let bytes = zstd::decode_all(std::fs::File::open(path).expect("bundled")).expect("zstd");
    let mut pairs: BTreeMap<u32, [String; 2]> = BTreeMap::new();
    let mut current = None;
    for line in String::from_utf8(bytes).expect("text").lines() {
        match line.split_once(' ') {
            Some(("BEFORE", cpu)) => current = Some((cpu.parse().expect("a CPU"), 0)),
            Some(("AFTER", cpu)) => current = Some((cpu.parse().expect("a CPU"), 1)),
            _ => {
                let Some((cpu, which)) = current else { continue };
                pairs.entry(cpu).or_default()[which] += &format!("{line}\n");
            }
        }
    }
    pairs
}

/// The kernel's own sum of all CPUs: busy, idle, iowait.
fn kernels_sum(text: &str) -> [i64; 3] {
    let line = text.lines().next().expect("a first line");
    let n: Vec<i64> = line.split_whitespace().skip(1).map(|w| w.parse().expect("a number")).collect();
    [n[0] + n[1] + n[2] + n[5] + n[6] + n[7], n[3], n[4]]
}

#[test]
fn each_cpu_alone_is_seen_to_the_tick() {
    for (cpus, turns) in [(1, 1), (2, 2), (8, 8), (256, 5)] {
        let pairs = recording(cpus);
        assert_eq!(pairs.len(), turns);
        for (busy, [before, after]) in &pairs {
            let (then, now) = (Stat::parse(before), Stat::parse(after));
            assert_eq!((then.cpus.len(), now.cpus.len()), (cpus, cpus));
            let passed: Vec<_> = now.since(&then).collect();
            // Every CPU's ticks are rounded down by themselves, and so is their sum: hence up to one for each.
            let (was, is) = (kernels_sum(before), kernels_sum(after));
            let ours = [
                passed.iter().map(|t| t.busy).sum::<u64>() as i64,
                passed.iter().map(|t| t.idle).sum::<u64>() as i64,
                passed.iter().map(|t| t.iowait).sum::<u64>() as i64,
            ];
            for kind in 0..3 {
                let off = (is[kind] - was[kind] - ours[kind]).abs();
                assert!(off <= 6 * cpus as i64, "{cpus} CPUs, {busy} busy: {ours:?} of {was:?} to {is:?}");
            }
            let of = |cpu: u32| passed.iter().find(|t| t.cpu == cpu).expect("there");
            let alone = of(*busy);
            assert!(alone.busy >= 9 * alone.idle, "{cpus} CPUs: {alone:?}");
            assert!(
                passed.iter().all(|t| t.cpu == *busy || t.busy < alone.busy / 2),
                "{cpus} CPUs, {busy} busy"
            );

            // What the policy makes of it: with one CPU full, all are opened.
            let order: Vec<u32> = (0..cpus as u32).collect();
            let samples = samples(&now, &then, &order, TICK_NS);
            let lpmd = cores::find("lpmd").expect("known");
            // An emulated CPU among 256 loses a few of its ticks to its 255 neighbours on two real ones.
            let settings = Settings::parse(lpmd.params, "busiest=85").expect("parses");
            let mut policy = (lpmd.build)(cpus, &settings);
            policy.start();
            let obs = CoreObservation {
                now_ns: 0,
                cpus: &samples,
                worst_wait_ns: 0,
                wait_p99_ns: None,
                wait_mean_ns: None,
                wakeups: None,
            };
            assert_eq!(policy.observe(&obs), cpus, "{cpus} CPUs, {busy} busy");

            // The published form: the last line's CPU stands for all. It sees only its own work.
            let last = passed.last().expect("a CPU");
            let published = last.busy * 100 / (last.busy + last.idle + last.iowait).max(1);
            assert_eq!(published > 10, last.cpu == *busy, "{cpus} CPUs, {busy} busy: {published} %");
        }
    }
}
