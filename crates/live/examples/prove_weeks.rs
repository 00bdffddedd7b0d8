//! The errors of `prove` over many emulated weeks: `cargo run --release -p wattwise-live --example prove_weeks [WEEKS]`.
//!
//! Prints, for each length and spread, how often equal policies are told apart, how often a planted 4 % is within the interval, how
//! wide that is, and how often a saving by slowness is caught. The tests of `tests/prove.rs` are a sample of it.

#[path = "../tests/support/weeks.rs"]
mod weeks;

use wattwise_live::prove::conclude::of;
use wattwise_live::prove::hours;
use wattwise_live::prove::result::Proved;
use weeks::{BLOCK_S, Week, read, watched};

fn main() {
    let n: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    println!(
        "| hours | work known | false alarms | 4 % covered | half-width | slowness caught | hours right within a fifth |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (time, instructions) in
        [(10.0, None), (10.0, Some(0.1)), (40.0, None), (40.0, Some(0.1)), (168.0, None), (168.0, Some(0.1))]
    {
        let (mut alarms, mut covered, mut width, mut caught, mut right) = (0, 0, 0.0, 0, 0);
        for seed in 0..n {
            let week = Week { hours: time, instructions, ..Week::EQUAL };
            alarms += u64::from(matches!(of(&read(seed, &week)).proved, Proved::Saves | Proved::Costs));
            let f = of(&read(n + seed, &Week { effect: -0.04, ..week })).headline.expect("a figure");
            covered += u64::from((f.low..=f.high).contains(&0.96));
            width += (f.high / f.low).ln() / 2.0 / n as f64;
            let slow = Week { effect: -0.04, slowness: 1.25, ..week };
            caught += u64::from(of(&read(2 * n + seed, &slow)).proved == Proved::SavesBySlowness);
            let seen = hours::differences(&watched(3 * n + seed, 24.0));
            let said = hours::needed(
                &seen,
                true,
                ((width * n as f64 / (seed + 1) as f64).exp_m1(), 0.95),
                BLOCK_S,
                0.025,
            );
            right += u64::from(
                said.is_some_and(|h| instructions.is_some() || (0.8..1.25).contains(&(h.hours / time))),
            );
        }
        let share = |x: u64| 100.0 * x as f64 / n as f64;
        let hours = if instructions.is_some() { "-".to_owned() } else { format!("{:.1} %", share(right)) };
        let work = if instructions.is_some() { "to 10 %" } else { "no" };
        println!(
            "| {time} | {work} | {:.1} % | {:.1} % | {:.2} % | {:.1} % | {hours} |",
            share(alarms),
            share(covered),
            width * 100.0,
            share(caught)
        );
    }
}
