//! Whether what wattwise recommends is kept once it is applied, on all emulated machines, whatever was in force before:
//!
//! ```text
//! cargo run --release -p wattwise-calibrate --example kept -- [MACHINE,... [STATE,... [WORK,...]]]
//! ```
//!
//! Prints a line a case that is not kept, and the counts; it fails where there is one. The states are those of `tests/kept/mod.rs`.

#![allow(clippy::unwrap_used, reason = "what it shares with a test fails by panicking")]

#[path = "../tests/kept/mod.rs"]
mod kept;

use kept::{Kept, kept};

/// All that [`kept::state`] knows.
const STATES: [&str; 18] = [
    "as it is",
    "max=30%",
    "max=60%",
    "min=30%",
    "min=60%",
    "min=90%",
    "noboost",
    "epp=power",
    "epp=performance",
    "passive",
    "passive conservative",
    "passive performance",
    "passive min=60%",
    "performance min=50%",
    "performance",
    "powersave",
    "conservative",
    "schedutil",
];

fn main() -> std::process::ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |nth: usize, all: Vec<&'static str>| -> Vec<String> {
        match asked.get(nth) {
            Some(some) => some.split(',').map(str::to_owned).collect(),
            None => all.into_iter().map(str::to_owned).collect(),
        }
    };
    let machines = wattwise_emulator::names().filter(|name| !name.starts_with("server-")).collect();
    let (states, works) = (chosen(1, STATES.to_vec()), chosen(2, vec!["build", "nginx", "desktop"]));
    let (mut yes, mut not_taken, mut no) = (0, 0, 0);
    for name in chosen(0, machines) {
        for (state, work) in states.iter().flat_map(|s| works.iter().map(move |w| (s, w))) {
            let machine = match wattwise_emulator::named(&name) {
                Ok(machine) => machine,
                Err(why) => {
                    eprintln!("{why}");
                    return 2.into();
                }
            };
            match kept(machine, state, work, 16) {
                Kept::Yes => yes += 1,
                Kept::NotTaken => not_taken += 1,
                Kept::No(why) => {
                    println!("{name}: {state}: {work}: {why}");
                    no += 1;
                }
            }
        }
    }
    println!("kept {yes}, not taken {not_taken}, not kept {no}");
    u8::from(no > 0).into()
}
