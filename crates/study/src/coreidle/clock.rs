//! The mean clock of a core while it is awake, as turbostat's GHz column has it.
//!
//! A core whose threads all sleep in C1 is in C1E: this family's firmware has the processor promote it, and the clock then falls
//! to the lowest. When a thread wakes, the clock is up again only after a while. A core that wakes often for a short time
//! therefore shows less than it would at work, even less than its base clock (the study's table has 1.99 GHz).

use std::cell::RefCell;
use std::rc::Rc;
use wattwise_sim::{Event, Watcher};

/// The lowest clock, in GHz: the machine's last level.
const LOWEST_GHZ: f64 = 0.8;
/// How often each core woke, and for how long it was awake.
#[derive(Clone, Debug, Default)]
pub(super) struct Waking {
    from_ns: u64,
    /// By CPU.
    idle: Vec<bool>,
    /// By core.
    cores: Vec<CoreWakes>,
}

/// A core's wake-ups so far.
#[derive(Clone, Copy, Debug, Default)]
struct CoreWakes {
    /// Since when it is awake, in ns.
    since: u64,
    wakes: u64,
    /// Time awake, in ns.
    awake: u64,
}

/// Who watches; it looks from `from_ns` on.
pub(super) struct ClockWatch(pub(super) Rc<RefCell<Waking>>);

impl Waking {
    pub(super) fn new(cpus: usize, from_ns: u64) -> Waking {
        Waking { from_ns, idle: vec![false; cpus], cores: vec![CoreWakes::default(); cpus / 2] }
    }

    fn asleep(&self, core: usize) -> bool {
        self.idle[2 * core] && self.idle[2 * core + 1]
    }

    /// Mean clock of a core in GHz whose highest is `highest_ghz` and whose clock is up `ramp_ns` after a wake-up; `to_ns`: the end.
    pub(super) fn ghz(&self, core: usize, (highest_ghz, ramp_ns): (f64, f64), to_ns: u64) -> f64 {
        let CoreWakes { since, wakes, mut awake } = self.cores[core];
        if !self.asleep(core) {
            awake += to_ns - since.max(self.from_ns);
        }
        let slow = if awake == 0 { 1.0 } else { (wakes as f64 * ramp_ns / awake as f64).min(1.0) };
        highest_ghz - (highest_ghz - LOWEST_GHZ) * slow
    }
}

impl Watcher for ClockWatch {
    fn event(&mut self, at_ns: u64, event: &Event) {
        let w = &mut *self.0.borrow_mut();
        match *event {
            Event::Enters { cpu, .. } => {
                let core = usize::from(cpu) / 2;
                w.idle[usize::from(cpu)] = true;
                if w.asleep(core) && at_ns > w.from_ns {
                    w.cores[core].awake += at_ns - w.cores[core].since.max(w.from_ns);
                }
            }
            Event::IsAwake { cpu } => {
                let core = usize::from(cpu) / 2;
                if w.asleep(core) {
                    w.cores[core].since = at_ns;
                    w.cores[core].wakes += u64::from(at_ns >= w.from_ns);
                }
                w.idle[usize::from(cpu)] = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 10 wake-ups of 54 us each are a tenth of the time at 0.8 GHz.
    #[test]
    fn a_core_that_wakes_for_a_short_time_is_slow_for_a_share_of_it() {
        let shared = Rc::new(RefCell::new(Waking::new(2, 0)));
        let mut watch = ClockWatch(Rc::clone(&shared));
        for cpu in [0, 1] {
            watch.event(0, &Event::Enters { cpu, state: 0 });
        }
        for i in 1..=10u64 {
            watch.event(i * 1_000_000, &Event::IsAwake { cpu: 0 });
            // A sibling that wakes meanwhile finds the clock up.
            watch.event(i * 1_000_000 + 10_000, &Event::IsAwake { cpu: 1 });
            watch.event(i * 1_000_000 + 20_000, &Event::Enters { cpu: 1, state: 0 });
            watch.event(i * 1_000_000 + 54_000, &Event::Enters { cpu: 0, state: 0 });
        }
        let ghz = shared.borrow().ghz(0, (2.9, 5_400.0), 11_000_000);
        assert!((ghz - (2.9 - 2.1 * 0.1)).abs() < 1e-9, "{ghz}");
    }
}
