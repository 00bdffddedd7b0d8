//! `powerd++`: the successor of FreeBSD's daemon by its users.
//!
//! It follows lonkamikaze/powerdxx, `src/powerd++.cpp`; which release was read was not noted. Where `powerd` reacts to
//! the share of time, `powerd++` computes how many MHz the work *used* and asks for
//! enough that these would be a target share of it. So it needs no marks and no ramps.
//!
//! It observes each CPU's idle time and the speed in force, and keeps for each frequency domain
//! the last 4 loads in MHz: the mean of 4 is its damping, 2 s at the poll of 500 ms.
//!
//! One poll, for each domain:
//! 1. Load = the most that any of its CPUs used: `f - f*idle/total`, in MHz.
//! 2. Mean of the last 4 loads. The ring starts filled with the speed found times the target,
//!    so that the first answer is that same speed.
//! 3. Wish = mean * 1024 / target. The target is 512 of 1024 for adaptive (battery) and 384
//!    for hiadaptive (mains or unknown): half of the time busy, or three eighths.
//! 4. Cap by heat: the highest speed up to 10 C below the critical temperature, from there linearly
//!    down to the lowest at the critical temperature itself.
//! 5. Clamp to the cap and the user's limits; take the nearest level, as FreeBSD's cpufreq does.
//!
//! The critical temperature defaults to 100 C, a common limit of x86 CPUs; the daemon reads it from
//! the sensor's driver where there is one.
//!
//! Left out: fixed speeds and fixed loads as modes, and a number of samples other than 4.

use super::poll::{DAEMON_POLL_COST_US, cost, on_battery, poll, share};
use super::{Cadence, Speed, SpeedPolicy};
use crate::{DomainInfo, Intent, Khz, Observation, Param, ParamKind, PowerSource, Settings};
use alloc::{boxed::Box, vec::Vec};

/// Loads that are averaged.
const SAMPLES: usize = 4;
/// The whole of a target share.
const SCALE: u64 = 1024;
/// Busy share aimed at on battery, of 1024.
const ADAPTIVE: u64 = 512;
/// Busy share aimed at on mains, of 1024: more room for what may come.
const HIADAPTIVE: u64 = 384;
/// Width of the range below the critical temperature in which the cap falls, in thousandths of a degree.
const HOT_RANGE_MC: i64 = 10_000;

/// The target share for a mode (the choice's index) and a power source.
fn target(mode: u64, source: PowerSource) -> u64 {
    match mode {
        1 => HIADAPTIVE,
        2 => ADAPTIVE,
        _ if on_battery(source) => ADAPTIVE,
        _ => HIADAPTIVE,
    }
}

/// Step 4: the highest speed allowed at a temperature, in MHz.
fn heat_cap(slowest: u64, fastest: u64, critical_mc: i64, temperature_mc: Option<i32>) -> u64 {
    let Some(mc) = temperature_mc else { return fastest };
    let below = (critical_mc - i64::from(mc)).clamp(0, HOT_RANGE_MC) as u64;
    slowest + (fastest - slowest) * below / HOT_RANGE_MC as u64
}

/// Steps 2, 3 and 5 up to the choice of a level: the wish in MHz.
fn wish(loads: &[u64; SAMPLES], target: u64, min: u64, max: u64) -> u64 {
    let mean = loads.iter().sum::<u64>() / SAMPLES as u64;
    // A cap below the user's minimum wins: heat is not a matter of taste.
    (mean * SCALE / target).max(min).min(max)
}

/// One domain and its recent loads.
struct Ring {
    domain: DomainInfo,
    /// MHz used, in any order.
    loads: [u64; SAMPLES],
    /// The next to be replaced.
    at: usize,
}

/// The daemon.
struct PowerdXx {
    mode: u64,
    poll_ns: u64,
    cost_ns: u64,
    critical_mc: i64,
    rings: Vec<Ring>,
}

fn mhz(khz: Khz) -> u64 {
    u64::from(khz.0 / 1000)
}

impl SpeedPolicy for PowerdXx {
    fn cadence(&self) -> Cadence {
        Cadence::Daemon { first_ns: self.poll_ns, period_ns: self.poll_ns }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let target = target(self.mode, obs.source);
        for (d, (ring, now)) in self.rings.iter_mut().zip(obs.domains).enumerate() {
            let found = if now.khz.0 == 0 { ring.domain.fastest() } else { now.khz };
            ring.loads = [mhz(found) * target / SCALE; SAMPLES];
            out.set_speed(d, ring.domain.nearest(found));
        }
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let target = target(self.mode, obs.source);
        for (d, (ring, now)) in self.rings.iter_mut().zip(obs.domains).enumerate() {
            let speed = mhz(now.khz);
            let used = |cpu: &u16| {
                let s = obs.cpus.get(usize::from(*cpu))?;
                (s.total_ns() > 0).then(|| speed - share(s.not_busy_ns(), speed, s.total_ns()))
            };
            ring.loads[ring.at] = ring.domain.cpus.iter().filter_map(used).max().unwrap_or(0);
            ring.at = (ring.at + 1) % SAMPLES;

            let (slowest, fastest) = (mhz(ring.domain.slowest()), mhz(ring.domain.fastest()));
            let user_max = if now.max.0 == 0 { fastest } else { mhz(now.max).clamp(slowest, fastest) };
            let max = user_max.min(heat_cap(slowest, fastest, self.critical_mc, obs.temperature_mc));
            let want = wish(&ring.loads, target, mhz(now.min), max);
            out.set_speed(d, ring.domain.nearest(Khz((want * 1000) as u32)));
        }
    }
}

/// powerd++.
pub(super) static POWERDXX: Speed = Speed {
    name: "powerd++",
    summary: "FreeBSD's other daemon: enough MHz that the work is a target share of them",
    follows: "lonkamikaze/powerdxx, src/powerd++.cpp (release not noted)",
    source: include_str!("powerdxx.rs"),
    params: &[
        Param {
            name: "mode",
            help: "auto: hiadaptive on mains or unknown, adaptive on battery",
            kind: ParamKind::Choice(&["auto", "hiadaptive", "adaptive"]),
        },
        poll(500.0),
        Param {
            name: "critical",
            help: "temperature at which only the lowest speed is left",
            kind: ParamKind::Number { unit: "C", min: 20.0, max: 150.0, default: 100.0 },
        },
        cost(DAEMON_POLL_COST_US),
    ],
    build: |p, s: &Settings| {
        Box::new(PowerdXx {
            mode: s.count("mode"),
            poll_ns: s.ms("poll"),
            cost_ns: s.us("cost"),
            critical_mc: s.count("critical") as i64 * 1000,
            rings: p.domains.iter().map(|d| Ring { domain: d.clone(), loads: [0; SAMPLES], at: 0 }).collect(),
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;
    use crate::speed::testing::{Rig, domain, platform};

    const POLL: u64 = 500 * MS;
    const LEVELS: &[u32] = &[3200, 2400, 1600, 800];

    #[test]
    fn the_work_becomes_the_target_share() {
        // 25 % of 3200 MHz is 800 MHz: half of 1600, three eighths of 2133 (nearest 2400).
        for (mode, settled) in [("mode=adaptive", 1600), ("mode=hiadaptive", 2400)] {
            let mut r = Rig::new(platform(1, LEVELS), &POWERDXX, mode, false);
            for _ in 0..40 {
                let share = 800_000 / u64::from(r.domains[0].khz.0 / 1000);
                r.poll(POLL, &[share]);
            }
            assert_eq!(r.domains[0].khz, Khz(settled * 1000), "{mode}");
        }
    }

    #[test]
    fn the_ring_is_the_damping() {
        let mut r = Rig::new(platform(1, LEVELS), &POWERDXX, "mode=adaptive", false);
        // The ring holds 1600 four times; each idle poll takes one away: 2400, 1600, 800 MHz.
        let down: Vec<_> = (0..4).map(|_| r.poll(POLL, &[0])).collect();
        assert_eq!(down, [2400, 1600, 800, 800]);
    }

    #[test]
    fn each_domain_follows_its_own_busiest_cpu() {
        let mut p = platform(4, LEVELS);
        p.domains = alloc::vec![domain(0, 2, LEVELS), domain(2, 2, LEVELS)];
        let mut r = Rig::new(p, &POWERDXX, "", false);
        for _ in 0..8 {
            r.poll(POLL, &[0, 1000, 0, 0]);
        }
        assert_eq!((r.domains[0].khz, r.domains[1].khz), (Khz(3_200_000), Khz(800_000)));
    }

    #[test]
    fn heat_lowers_the_cap_linearly() {
        let cap = |mc| heat_cap(800, 3200, 100_000, mc);
        assert_eq!(cap(None), 3200);
        assert_eq!(cap(Some(90_000)), 3200);
        assert_eq!(cap(Some(95_000)), 2000);
        assert_eq!(cap(Some(100_000)), 800);
        assert_eq!(cap(Some(i32::MAX)), 800);
        assert_eq!(cap(Some(i32::MIN)), 3200);
        let mut r = Rig::new(platform(1, LEVELS), &POWERDXX, "critical=90", false);
        r.temperature_mc = Some(90_000);
        assert_eq!(r.poll(POLL, &[1000]), 800);
    }
}
