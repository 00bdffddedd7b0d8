//! What each mechanism of the machine model earns: the score of the hardware tables with one switched off at a time.
//!
//! ```text
//! cargo run --release -p wattwise-study --example mechanisms [-- WORD ...]
//! ```
//!
//! With words, only the mechanisms whose names have one of them. The score is the quick one: six draws, and of large tables a part.

use wattwise_model::machine::{Apart, CState, MachineModel};
use wattwise_study::hardware::{Effort, bundled, score, score::Scores};

/// A name, and what takes the mechanism out of a machine.
type Mechanism = (&'static str, fn(&mut MachineModel));

const MECHANISMS: &[Mechanism] = &[
    ("uncore and memory follow the fastest core", |m| {
        m.packages.iter_mut().for_each(|p| p.uncore = None);
        m.memory.high_w = 0.0;
    }),
    ("memory draws more while cores work", |m| m.memory.busy_w = 0.0),
    ("package C-states", |m| {
        m.packages.iter_mut().for_each(|p| p.idle.clear());
        m.memory.asleep_less_w = 0.0;
    }),
    ("the memory's clock", |m| {
        if let Some(clock) = &mut m.memory_clock {
            (clock.follows, clock.top_w) = (0.0, 0.0);
        }
    }),
    ("power limits", |m| m.packages.iter_mut().for_each(|p| p.limit = None)),
    ("boost by awake cores", |m| {
        for boost in m.domains.iter_mut().map(|d| &mut d.boost) {
            let highest = boost.first().copied();
            highest.into_iter().for_each(|level| boost.fill(level));
        }
    }),
    ("changes of speed take time", |m| {
        for transition in m.domains.iter_mut().map(|d| &mut d.transition) {
            transition.stall_ns.fill(0);
            transition.delay_ns = 0;
        }
    }),
    ("voltage falls with the clock", |m| {
        for levels in m.kinds.iter_mut().map(|k| &mut k.levels) {
            let Some(top) = levels.iter().max_by_key(|l| l.khz).map(|l| (l.khz, l.busy_w, l.stall_w)) else {
                continue;
            };
            for level in levels {
                let share = f64::from(level.khz) / f64::from(top.0);
                (level.busy_w, level.stall_w) = (top.1 * share, top.2 * share);
            }
        }
    }),
    ("waiting for memory draws less than computing", |m| {
        m.kinds.iter_mut().flat_map(|k| &mut k.levels).for_each(|l| l.stall_w = l.busy_w);
    }),
    ("SMT siblings share a core", |m| m.kinds.iter_mut().for_each(|k| k.smt_throughput.fill(1.0))),
    ("deeper C-states draw less", |m| {
        for idle in m.kinds.iter_mut().map(|k| &mut k.idle) {
            let Some(first) = idle.iter().find(|s| !s.polls()).map(|s| s.watts.clone()) else {
                continue;
            };
            idle.iter_mut().for_each(|s| s.watts.clone_from(&first));
        }
    }),
    ("C-states take time to enter and leave", |m| {
        for state in m.kinds.iter_mut().flat_map(|k| &mut k.idle) {
            state.entry_ns = 0;
            state.exit_ns.fill(0);
        }
    }),
    ("idle CPUs may poll", |m| {
        for idle in m.kinds.iter_mut().map(|k| &mut k.idle) {
            let halted = idle.iter().find(|s| !s.polls()).cloned();
            for (state, halted) in idle.iter_mut().filter(|s| s.polls()).zip(halted) {
                *state = CState { name: "no poll".into(), ..halted };
            }
        }
    }),
    ("starting a stopped tick again takes time", |m| m.tick.restart_ns = 0),
    ("wake-ups cost more from farther away", |m| {
        m.apart = Apart::FREE;
        m.migration_ns = 0;
    }),
    ("HWP takes time to react", |m| {
        m.autonomous.period = 0.01;
        m.autonomous.drop = 0.0;
    }),
    ("a high preference lowers the highest speed", |m| m.autonomous.epp_ceiling = None),
    ("a middle boost is full load to schedutil", |m| {
        m.kinds.iter_mut().for_each(|k| k.load_full_khz = k.levels[0].khz);
    }),
    ("leakage grows with temperature", |m| {
        m.packages.iter_mut().for_each(|p| p.thermal.leakage_per_c = 0.0);
    }),
];

fn line(name: &str, s: &Scores) {
    let percent = |v: Option<f64>| v.map_or("-".into(), |v| format!("{:.1}", 100.0 * v));
    println!(
        "| {name} | {} | {} | {} | {} |",
        percent(s.sign_right),
        percent(s.ratio_median_abs_error),
        percent(s.ratio_p95_abs_error),
        percent(s.coverage_90)
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let tables = bundled::tables()?;
    let scored = |change| score(&tables, Effort { quick: true, change }, &|_| {}).scores;
    println!(
        "| without | sign right, % | median error, % | 95 % below, % | in the 90 % interval, % |\n|---|--:|--:|--:|--:|"
    );
    line("(all as they are)", &scored(None));
    for (name, without) in MECHANISMS {
        if words.is_empty() || words.iter().any(|w| name.contains(w.as_str())) {
            line(name, &scored(Some(*without)));
        }
    }
    Ok(())
}
