//! How long `info` takes to read the emulated server of 256 CPUs, and to lay it out as JSON: the fastest and the median
//! of 31, in milliseconds.
//!
//! `cargo run --release -p wattwise-emulator --example info_speed`

use std::time::Instant;
use wattwise_emulator as emulator;
use wattwise_hw::info::Info;

fn main() {
    let machine = emulator::named("server-256").expect("a bundled machine");
    let mut times: Vec<f64> = (0..31)
        .map(|_| {
            let start = Instant::now();
            let info = Info::read(&machine);
            let text = serde_json::to_string(&info).expect("plain data");
            std::hint::black_box(text);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("info over 256 CPUs: {:.1} ms at best, {:.1} ms in the median", times[0], times[15]);
}
