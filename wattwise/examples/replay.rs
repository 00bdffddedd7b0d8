//! scratch
#[path = "../../sim/tests/common/mod.rs"]
mod common;
use common::*;
use wattwise::trace::*;
use wattwise_sim::*;
fn main() {
    let f = std::env::args().nth(1).unwrap();
    let mut w = import(Source::Path(f.into()), &ImportOptions { khz: Some(2_000_000), ..Default::default() })
        .unwrap();
    let mut m = machine(2, &[2_000_000]);
    for s in &mut m.kinds[0].idle {
        s.entry_ns = 0;
        s.exit_ns = vec![0];
    }
    m.tick.cost_ns = 0;
    let make = idle_maker("fixed:depth=0");
    for p in [Placement::Recorded, Placement::Spread] {
        let mut s = Setup::new(&m, &w, speed_policy(&m, "performance"), &make);
        s.placement = p;
        let t = std::time::Instant::now();
        let o = Simulation::new(s).run_to_completion(u64::MAX / 4).unwrap();
        let r = w.recorded.as_ref().unwrap();
        println!(
            "{p:?}: elapsed {:.4} of {:.4}; busy {:?} of {:?}; migr {} wake p50 {} p99 {} max {} ev {} in {:?}",
            o.elapsed_ns as f64 * 1e-9,
            w.span_ns as f64 * 1e-9,
            o.cpus.iter().map(|c| c.busy_ns as f64 * 1e-9).collect::<Vec<_>>(),
            r.busy_ns.iter().map(|&n| n as f64 * 1e-9).collect::<Vec<_>>(),
            o.migrations,
            o.wake_latency.quantile(0.5),
            o.wake_latency.quantile(0.99),
            o.wake_latency.max(),
            o.events,
            t.elapsed()
        );
    }
    if std::env::args().nth(2).is_some() {
        for t in w.tasks.iter().take(12) {
            if let wattwise_sim::workload::Program::Recorded(s) = &t.program {
                println!("{} {:?}", t.name, s.reader().take(9).collect::<Vec<_>>());
            }
        }
        println!("{:?}", w.recorded);
    }
    w.name.clear();
}
