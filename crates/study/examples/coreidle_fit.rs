//! Study 002 with other numbers than the fitted ones: `coreidle_fit WAKE_NS IDLE_NS TAIL DEMOTE_NS RAMP_NS OTHER_NS
//! LOAD_TENTHS` prints the score and
//! each table's means, so that a fit can be done again.

use wattwise_study::coreidle::{Numbers, run_with};

fn main() {
    let given: Vec<f64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [wake_ns, idle_ns, tail, demote_ns, ramp_ns, other_ns, load_tenths] = given[..] else {
        eprintln!("expected WAKE_NS IDLE_NS TAIL DEMOTE_NS RAMP_NS OTHER_NS LOAD_TENTHS");
        std::process::exit(2);
    };
    let numbers = Numbers {
        wake_ns,
        idle_ns,
        tail,
        demote_ns: demote_ns as u64,
        ramp_ns,
        other_ns: other_ns as u64,
        load_tenths: load_tenths as u32,
    };
    let study = run_with(&numbers).expect("bundled");
    println!("{}", study.verdict());
    for f in study.figures.iter().filter(|f| !f.trivial || f.location.ends_with("cpu all")) {
        if let (Some(p), Some(o)) = (f.published.filter(|p| *p > 0.1), f.ours) {
            let near = if f.within == Some(true) { "" } else { "MISS" };
            println!("{} {}: {p} {o:.2} {near}", f.location, f.quantity);
        }
    }
}
