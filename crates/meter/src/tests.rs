//! The meter on emulated machines, whose energy is known.

use crate::domain::Domain;
use crate::{Energy, Meter, Provenance};
use std::collections::BTreeMap;
use wattwise_emulator::{Emulator, Fault, Op};
use wattwise_figure::Random;
use wattwise_hw::clock::Moment;
use wattwise_hw::states::power::zones;

/// The machines with energy counters.
const METERED: [&str; 8] = [
    "amd-laptop",
    "amd-server",
    "core-i5-2gen",
    "hybrid-laptop",
    "server-64",
    "server-256",
    "skylake-server-active",
    "skylake-server-passive",
];

/// Each zone's domain, in the order of the machine's own account.
fn domains(m: &Emulator) -> Vec<Domain> {
    let top = zones(m).value.expect("zones");
    let mut found = Vec::new();
    for outer in &top {
        let package = match Domain::from_zone(&outer.name, None) {
            Some(Domain::Package { package }) => Some(package),
            _ => None,
        };
        for zone in outer.walk() {
            let energy = zone.energy_uj.value.expect("readable");
            let total = m.zone_total_uj()[found.len()];
            let around = u128::from(zone.max_energy_uj.expect("a range")) + 1;
            assert_eq!(u128::from(energy), total % around, "{}: another zone than the account's", zone.name);
            found.push(Domain::from_zone(&zone.name, package).expect("a known zone"));
        }
    }
    found
}

fn account(m: &Emulator, domains: &[Domain]) -> BTreeMap<Domain, f64> {
    domains.iter().copied().zip(m.zone_total_uj().into_iter().map(|uj| uj as f64 / 1e6)).collect()
}

/// What the whole machine used, by its own account: psys holds everything; else packages and their memory.
fn whole(used: &BTreeMap<Domain, f64>) -> f64 {
    match used.get(&Domain::Psys) {
        Some(joules) => *joules,
        None => used
            .iter()
            .filter(|(d, _)| matches!(d, Domain::Package { .. } | Domain::Dram { .. }))
            .map(|(_, j)| j)
            .sum(),
    }
}

#[test]
#[ignore = "long: make test runs it"]
fn a_nested_tree_is_read_right_on_every_machine() {
    for name in METERED {
        let m = wattwise_emulator::named(name).expect(name);
        let domains = domains(&m);
        m.online().into_iter().for_each(|cpu| m.set_load(cpu, 600));
        let mut meter = Meter::open(&m);
        let before = account(&m, &domains);
        meter.begin(Moment::default());
        m.advance(10_000_000_000);
        let at = Moment { monotonic_s: 10.0, boot_s: 10.0 };
        meter.sample(at);
        let used: BTreeMap<Domain, f64> =
            account(&m, &domains).into_iter().map(|(d, j)| (d, j - before[&d])).collect();
        let energy = meter.energy();
        let joules = energy.joules.expect(name);
        assert!((joules / whole(&used) - 1.0).abs() < 1e-3, "{name}: {joules} J of {} J", whole(&used));
        assert!(matches!(energy.provenance, Provenance::Measured { .. }));
        // Summing everything would count twice wherever there is a tree.
        let nested: f64 = energy.domains.iter().map(|d| d.total.joules).sum();
        let inner = domains.iter().any(|d| matches!(d, Domain::Core { .. }));
        assert!(!inner || nested > joules * 1.05, "{name}");
        for d in &energy.domains {
            assert!(
                (d.total.joules - used[&d.domain]).abs() <= used[&d.domain] * 1e-3 + 1e-4,
                "{name} {}",
                d.domain
            );
        }
    }
}

/// The machines with registers of energy, and how many counters those are.
const REGISTERS: [(&str, usize); 5] = [
    ("amd-server", 2),
    ("core-i5-2gen", 2),
    ("hybrid-laptop", 4),
    ("skylake-server-active", 4),
    ("skylake-server-passive", 4),
];

/// The same energy by registers: each unit, the wrap, and no second count beside a driver.
#[test]
fn registers_show_what_the_driver_would() {
    for (name, counters) in REGISTERS {
        let m = wattwise_emulator::named(name).expect(name);
        let domains = domains(&m);
        let by = |meter: &Meter| {
            let mut by: Vec<&str> = meter.energy().domains.iter().map(|d| d.by).collect();
            by.dedup();
            by
        };
        assert_eq!(by(&Meter::open(&m)), ["powercap"], "{name}");
        let closed = Fault::Errno {
            pattern: "*energy_uj".into(),
            op: Op::Open,
            nth: 0,
            errno: rustix::io::Errno::ACCESS,
        };
        m.inject(closed);
        m.online().into_iter().for_each(|cpu| m.set_load(cpu, 600));
        let mut meter = Meter::open(&m);
        assert_eq!(by(&meter), ["msr"], "{name}: {:?}", meter.unavailable);
        assert_eq!(meter.energy().domains.len(), counters, "{name}");
        let before = account(&m, &domains);
        let mut now = Moment::default();
        meter.begin(now);
        // Long enough for the finest of them to wrap.
        let step_s = meter.longest_s();
        for _ in 0..200 {
            m.advance((step_s * 1e9) as u64);
            now.monotonic_s += step_s;
            now.boot_s += step_s;
            meter.sample(now);
        }
        let energy = meter.energy();
        assert!(energy.domains.iter().any(|d| d.total.wraps > 0), "{name}: no wrap was met");
        for d in &energy.domains {
            let used = account(&m, &domains)[&d.domain] - before[&d.domain];
            assert!(
                (d.total.joules / used - 1.0).abs() < 1e-3,
                "{name} {}: {:?} of {used} J",
                d.domain,
                d.total
            );
        }
    }
}

/// What came of windows in which things went wrong.
#[derive(Default)]
struct Tally {
    claimed: u64,
    refused: u64,
    wraps: u64,
}

impl Tally {
    /// Holds what a meter claims against the machine's own account. `known`: the machine was awake throughout.
    fn judge(&mut self, window: &str, energy: &Energy, used: &BTreeMap<Domain, f64>, known: bool) {
        self.wraps += energy.domains.iter().map(|d| u64::from(d.total.wraps)).sum::<u64>();
        for d in &energy.domains {
            let used = used[&d.domain];
            assert!(d.total.joules >= 0.0, "{window}: {d:?}");
            // Never more than there was, whatever was missed.
            assert!(d.total.joules <= used * 1.001 + 1e-3, "{window}: {d:?} of {used}");
        }
        let Some(joules) = energy.joules else {
            self.refused += 1;
            return;
        };
        self.claimed += 1;
        let truth = whole(used);
        assert!(known, "{window}: energy claimed over a suspend");
        assert!((joules - truth).abs() <= truth * 1e-3 + 1e-3, "{window}: {joules} of {truth} J");
    }
}

/// Lets time pass in which something may go wrong; false if the machine was suspended.
fn pass(m: &Emulator, now: &mut Moment, longest_s: f64, random: &mut Random) -> bool {
    let dt = longest_s * (0.001 + random.unit());
    let mut awake = true;
    match random.below(16) {
        0 => {
            m.inject(Fault::Suspend { ns: 40_000_000_000 });
            now.boot_s += 40.0;
            awake = false;
        }
        1 => {
            m.inject(Fault::Errno {
                pattern: "*energy_uj".into(),
                op: Op::Read,
                nth: 1,
                errno: rustix::io::Errno::IO,
            });
        }
        2 => {
            let cpu = random.below(m.online().len()) as u32;
            m.plug(cpu, random.below(2) == 0);
        }
        _ => {}
    }
    m.advance((dt * 1e9) as u64);
    now.monotonic_s += dt;
    now.boot_s += dt;
    awake
}

/// How many of the windows a machine gets. The large ones have the same trees: few windows of theirs do.
fn share(name: &str) -> u64 {
    let large = name.starts_with("server") || name.starts_with("skylake") || name == "amd-server";
    if large { 1 } else { 160 }
}

/// Wraps, missed reads, suspends, long pauses, unplugged packages: what is claimed is right, and what is not
/// known is not claimed. `WATTWISE_METER_WINDOWS` asks for more windows than 20,000 (a million takes an
/// hour's quarter).
#[test]
#[ignore = "long: make test runs it"]
fn what_is_claimed_is_right_and_what_is_unknown_is_not_claimed() {
    let windows: u64 =
        std::env::var("WATTWISE_METER_WINDOWS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let mut random = Random::new(11);
    let mut tally = Tally::default();
    let all: u64 = METERED.iter().map(|n| share(n)).sum();
    for name in METERED {
        let m = wattwise_emulator::named(name).expect(name);
        let domains = domains(&m);
        let mut meter = Meter::open(&m);
        let longest_s = meter.longest_s().min(1e4);
        let mut now = Moment::default();
        for window in 0..(windows * share(name)).div_ceil(all) {
            let before = account(&m, &domains);
            m.clear_faults();
            if random.below(4) == 0 {
                m.inject(Fault::Wrap { pattern: "*energy_uj".into() });
            }
            meter.begin(now);
            let mut known = true;
            for _ in 0..1 + random.below(3) {
                known &= pass(&m, &mut now, longest_s, &mut random);
                meter.sample(now);
            }
            let used: BTreeMap<Domain, f64> =
                account(&m, &domains).into_iter().map(|(d, j)| (d, j - before[&d])).collect();
            tally.judge(&format!("{name} window {window}"), &meter.energy(), &used, known);
        }
    }
    let Tally { claimed, refused, wraps } = tally;
    assert!(
        claimed > refused && refused * 20 > claimed && wraps * 20 > claimed,
        "{claimed} {refused} {wraps}"
    );
}
