//! throwaway
#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use wattwise_policy::*;
use wattwise_sim::*;
struct Gov(Vec<Khz>);
impl SpeedPolicy for Gov {
    fn cadence(&self) -> Cadence {
        Cadence::KernelTimer { first_ns: 10 * MS, period_ns: 10 * MS }
    }
    fn cost_ns(&self) -> u64 {
        0
    }
    fn start(&mut self, _: &Observation<'_>, out: &mut Intent) {
        out.set_speed(0, self.0[0]);
    }
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let busy: u64 = obs.cpus.iter().map(|c| c.busy_ns).sum();
        let load = busy as f64 / (4.0 * 10e6);
        let k = if load > 0.8 {
            self.0[0]
        } else {
            *self
                .0
                .iter()
                .rev()
                .find(|k| f64::from(k.0) / f64::from(self.0[0].0) >= load * 1.25)
                .unwrap_or(&self.0[0])
        };
        out.set_speed(0, k);
    }
}
fn main() {
    let n: u64 = std::env::args().nth(1).map_or(8, |a| a.parse().unwrap());
    let secs: u64 = std::env::args().nth(2).map_or(1000, |a| a.parse().unwrap());
    let deep = std::env::args().nth(3);
    let m = if deep.is_some() {
        let mut m = machine(4, &[3_000_000, 2_550_000, 2_100_000, 1_650_000, 1_200_000]);
        for s in m.domains[0].transition.stall_ns.iter_mut() {
            *s = 20_000;
        }
        m
    } else {
        bursts_machine()
    };
    let w = bursts(n, secs);
    let make = idle_maker(deep.as_deref().unwrap_or("fixed"));
    let gov = Box::new(Gov(m.kinds[0].levels.iter().map(|l| Khz(l.khz)).collect()));
    let mut s = Setup::new(&m, &w, gov, &make);
    s.placement = if deep.is_some() { Placement::Spread } else { Placement::Fifo };
    let t = std::time::Instant::now();
    let mut sim = Simulation::new(s);
    let o = sim.run_until(secs * 1_000_000_000);
    let wall = t.elapsed().as_secs_f64();
    println!(
        "wall {wall:.3} events {} ev/s {:.2}M joules {:.1} transitions {} wakeups {} cycles {:.3e} stall {:.2}",
        o.events,
        o.events as f64 / wall / 1e6,
        o.energy.total_j(),
        o.transitions,
        o.wakeups,
        o.cycles,
        o.energy.stall_j
    );
}
