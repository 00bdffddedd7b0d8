//! scratch
use wattwise::experiment::bursts;
use wattwise_sim::*;
fn main() {
    let secs: u64 = std::env::args().nth(1).map_or(1000, |a| a.parse().unwrap());
    let m = wattwise::library::machine("bursts-v1").unwrap();
    let w = wattwise::library::workload("bursts-v1", &Default::default()).unwrap();
    let idle = wattwise::experiment::machine_idle(&m).unwrap();
    let make = |s: &[wattwise_policy::IdleState], t: u64| idle.build(s, t);
    let mut best = f64::MAX;
    for _ in 0..std::env::args().nth(2).map_or(1, |a| a.parse().unwrap()) {
        let mut s = Setup::new(&m, &w, Box::new(bursts::Governor), &make);
        s.placement = Placement::Fifo;
        let t = std::time::Instant::now();
        let o = Simulation::new(s).run_until(secs * 1_000_000_000);
        let wall = t.elapsed().as_secs_f64();
        if wall < best {
            best = wall;
            println!(
                "{:.2} M ev/s {:.1} J",
                (2 * o.wakeups + o.decisions) as f64 / wall / 1e6,
                o.energy.total_j()
            );
        }
    }
}
