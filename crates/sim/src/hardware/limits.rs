//! The power limits of a package: the clock that its budget allows, the same for all of its cores.
//!
//! The register is Intel's (SDM volume 3B, RAPL; the 13th generation's datasheet, volume 1, 5.1.3.3): a mean of the package's power
//! that is moved on exponentially with the window tau is to stay at the long limit (PL1), and the power at any time at the short
//! one (PL2). AMD's sockets have one limit without a window (PPT).
//!
//! 1. Every thousandth of the window, at least 1 and at most 10 ms: `A += (P - A) x (1 - exp(-dt / tau))`, where P is what was drawn since.
//! 2. The budget is `PL1 + g x (PL1 - A)`, at most PL2; with no window PL1. So a package that has been idle may draw PL2, and one at
//!    its mean PL1: at power P from a mean of A0 that takes `tau x ln((P - A0) / (P - PL1))`, less what the slope takes away, under 1 %.
//!    How the hardware gets from the one to the other is not published; with an edge in the place of a slope the clock would jump
//!    between its ends.
//! 3. The cap is the fastest speed at which what the cores do now, with the uncore, draws no more than the budget. It rises again
//!    only where the next speed fits in 97 % of it, so that it does not flap.
//! 4. Below the base speed too, and down to the lowest; like boost it acts at once and costs nothing.
//!
//! Nothing is looked at before the limit can be reached: the next look is when the mean would be there at the most that the package
//! can draw. While so few cores are awake that they cannot reach it, a look only sees that.

use super::Hardware;
use super::clock::DomainClock;
use super::heat::approach;
use super::residency::CoreAccount;
use crate::calendar::NEVER;
use wattwise_model::machine::{Core, CoreKind, MachineModel, Package, PowerLimit, REFERENCE_C};

/// Period of the regulation, in ns: that of short windows, and where the short limit has to be kept; and the longest.
const PERIOD_NS: u64 = 1_000_000;
const LONGEST_NS: u64 = 10_000_000;
/// Slope of the budget against the mean.
const SLOPE: f64 = 200.0;
/// Share of the budget that a faster speed has to fit in.
const RISE: f64 = 0.97;

/// What a package's cores have drawn, carried on from look to look: of each core only the levels that were in force since are
/// summed up anew. The result itself never comes from here, see `residency.rs`.
#[derive(Clone, Debug)]
struct CoresMeter {
    joules: f64,
    /// By core of the machine, and level.
    by_level: Vec<Vec<f64>>,
}

impl CoresMeter {
    fn new(machine: &MachineModel, p: usize) -> CoresMeter {
        let levels = |core: &Core| machine.kinds[usize::from(core.kind)].levels.len();
        let of = |core: &Core| vec![0.0; if usize::from(core.package) == p { levels(core) } else { 0 }];
        CoresMeter { joules: 0.0, by_level: machine.cores.iter().map(of).collect() }
    }

    /// Up to now, of accounts that are settled.
    fn read(
        &mut self,
        package: &Package,
        machine: &MachineModel,
        domains: &mut [DomainClock],
        cores: &[CoreAccount],
    ) -> f64 {
        for &d in &package.domains {
            let used = domains[usize::from(d)].take_used();
            let domain = &machine.domains[usize::from(d)];
            let kind = &machine.kinds[usize::from(domain.kind)];
            for &c in &domain.cores {
                let (account, booked) = (&cores[usize::from(c)], &mut self.by_level[usize::from(c)]);
                for level in used.of(booked.len()) {
                    let joules = account.level_joules(kind, level);
                    self.joules += joules - std::mem::replace(&mut booked[level], joules);
                }
            }
        }
        self.joules
    }
}

/// A package's regulation.
#[derive(Clone, Debug)]
pub(super) struct LimitAccount {
    cores: CoresMeter,
    limit: PowerLimit,
    /// Slope of the budget; less where the window is so short that it would overshoot.
    slope: f64,
    /// The most that the package can draw, in watts: with so many cores awake as the index says, and with any number.
    most_by_awake_w: Vec<f64>,
    most_w: f64,
    /// The mean, and the energy at the last look.
    mean_w: f64,
    joules: f64,
    looked_at: u64,
    next_at: u64,
    period_ns: u64,
    /// The speeds of its kinds of core, in kHz, fastest first, and which of them is the cap.
    khz: Vec<u32>,
    cap: usize,
    /// By kind, the level that a cap leaves.
    levels: Vec<Vec<usize>>,
}

impl LimitAccount {
    /// Of a package that has been at rest; none where it cannot reach its limit.
    pub(super) fn new(machine: &MachineModel, p: usize, long_w: Option<f64>) -> Option<LimitAccount> {
        let package = &machine.packages[p];
        let mut limit = package.limit?;
        limit.long_w = long_w.unwrap_or(limit.long_w);
        limit.short_w = limit.short_w.max(limit.long_w);
        let most_by_awake_w = most_watts(machine, p);
        let most_w = most_by_awake_w.iter().copied().fold(0.0, f64::max);
        if most_w <= limit.long_w {
            return None;
        }
        let mut khz: Vec<u32> = machine.kinds.iter().flat_map(|k| k.levels.iter().map(|l| l.khz)).collect();
        khz.sort_unstable_by(|a, b| b.cmp(a));
        khz.dedup();
        let level = |kind: usize, cap: u32| {
            let levels = &machine.kinds[kind].levels;
            levels.iter().position(|l| l.khz <= cap).unwrap_or(levels.len() - 1)
        };
        let levels =
            (0..machine.kinds.len()).map(|k| khz.iter().map(|&cap| level(k, cap)).collect()).collect();
        let keeps_short = limit.tau_s == 0.0 || most_w > limit.short_w;
        let window_ns = (limit.tau_s * 1e6) as u64;
        let period_ns = if keeps_short { PERIOD_NS } else { window_ns.clamp(PERIOD_NS, LONGEST_NS) };
        let slope = SLOPE.min(0.5 * limit.tau_s / (period_ns as f64 * 1e-9));
        let mean_w = package.idle.last().map_or(package.uncore_w, |s| s.watts);
        let (joules, looked_at, cap) = (0.0, 0, 0);
        let mut account = LimitAccount {
            cores: CoresMeter::new(machine, p),
            limit,
            slope,
            most_by_awake_w,
            most_w,
            mean_w,
            joules,
            looked_at,
            next_at: 0,
            period_ns,
            khz,
            cap,
            levels,
        };
        account.next_at = account.next_look(0);
        Some(account)
    }

    /// Step 2.
    fn budget_w(&self) -> f64 {
        if self.limit.tau_s == 0.0 {
            return self.limit.long_w;
        }
        (self.limit.long_w + self.slope * (self.limit.long_w - self.mean_w)).min(self.limit.short_w)
    }

    /// Whether so few cores are awake that neither limit can be reached; what was drawn meanwhile is in the next mean.
    fn cannot_bind(&self, awake: usize) -> bool {
        self.cap == 0 && self.most_by_awake_w[awake] <= self.limit.long_w
    }

    /// When the budget could be less than what the package draws.
    fn next_look(&self, now: u64) -> u64 {
        let soon = now + self.period_ns;
        if self.cap > 0 || self.limit.tau_s == 0.0 || self.most_w > self.limit.short_w {
            return soon;
        }
        let tight_w = self.limit.long_w - (self.most_w - self.limit.long_w) / self.slope;
        let share = (tight_w - self.mean_w) / (self.most_w - self.mean_w);
        soon.max(now + (share.max(0.0) * self.limit.tau_s * 1e9) as u64)
    }
}

/// The most that a package can draw, whatever its cores do: for each number of awake cores those that draw most at the speed
/// that boost leaves them, and the others in the shallowest state.
fn most_watts(machine: &MachineModel, p: usize) -> Vec<f64> {
    let package = &machine.packages[p];
    let shallow_w = |k: &CoreKind| k.idle.iter().filter_map(|s| s.watts.first().copied()).fold(0.0, f64::max);
    let asleep_w = machine.kinds.iter().map(shallow_w).fold(0.0, f64::max);
    let cores_at = |awake: usize| {
        let of = |&c: &u16| {
            let core = &machine.cores[usize::from(c)];
            let boost = &machine.domains[usize::from(core.domain)].boost;
            let level = boost.get(awake).or(boost.last()).map_or(0, |&b| usize::from(b));
            let kind = &machine.kinds[usize::from(core.kind)];
            kind.levels[level].busy_w * kind.smt_power.last().copied().unwrap_or(1.0)
        };
        let mut watts: Vec<f64> = package.cores.iter().map(of).collect();
        watts.sort_unstable_by(|a, b| b.total_cmp(a));
        watts.iter().take(awake).sum::<f64>() + (watts.len() - awake) as f64 * asleep_w
    };
    let hot = 1.0 + package.thermal.leakage_per_c * (package.thermal.critical_c - REFERENCE_C).max(0.0);
    let uncore = package.uncore_w + package.uncore.as_ref().map_or(0.0, |u| u.step_w + u.follow_w);
    // A tenth for what is in none of these.
    (0..=package.cores.len()).map(|awake| (cores_at(awake) * hot + uncore) * 1.1).collect()
}

impl Hardware<'_> {
    /// When the regulation looks next; never where no package reaches a limit.
    pub(crate) fn next_limit_ns(&self) -> u64 {
        self.limits.iter().flatten().map(|l| l.next_at).min().unwrap_or(NEVER)
    }

    /// Moves the means of the packages that are due on and caps their clocks. The CPUs to re-time are [`Hardware::next_changed`].
    pub(crate) fn limit(&mut self, now: u64) {
        let mut settled = false;
        for p in 0..self.limits.len() {
            let Some(account) = self.limits[p].as_mut().filter(|l| l.next_at <= now) else { continue };
            // A package whose cores are not counted has them all among the awake.
            if account.cannot_bind(usize::from(self.packages[p].cores[0])) {
                account.next_at = now + account.period_ns;
                continue;
            }
            if !std::mem::replace(&mut settled, true) {
                self.settle(now);
            }
            self.regulate(now, p);
        }
    }

    fn regulate(&mut self, now: u64, p: usize) {
        let joules = self.metered_joules(p);
        let Some(account) = self.limits[p].as_mut() else { return };
        let seconds = (now - account.looked_at) as f64 * 1e-9;
        if account.limit.tau_s > 0.0 && seconds > 0.0 {
            let drawn_w = (joules - account.joules) / seconds;
            account.mean_w += (drawn_w - account.mean_w) * approach(seconds / account.limit.tau_s);
        }
        (account.joules, account.looked_at) = (joules, now);
        let (budget_w, was) = (account.budget_w(), account.cap);
        let cap = self.fitting_cap(p, budget_w, was);
        if let Some(account) = self.limits[p].as_mut() {
            account.cap = cap;
            account.next_at = account.next_look(now);
        }
        if cap != was {
            for &d in &self.machine.packages[p].domains {
                let (d, kind) = (usize::from(d), usize::from(self.machine.domains[usize::from(d)].kind));
                if let Some(account) = &self.limits[p] {
                    self.domains[d].power_cap = if cap == 0 { 0 } else { account.levels[kind][cap] };
                }
                self.settle_level(now, d);
            }
        }
    }

    /// What a limited package has drawn, of accounts that are settled.
    fn metered_joules(&mut self, p: usize) -> f64 {
        let (machine, domains) = (self.machine, &mut self.domains);
        let meter = self.limits[p].as_mut().map(|l| &mut l.cores);
        let cores = meter.map_or(0.0, |m| m.read(&machine.packages[p], machine, domains, &self.cores));
        self.package_joules_with(p, cores)
    }

    /// Step 3.
    fn fitting_cap(&self, p: usize, budget_w: f64, was: usize) -> usize {
        let Some(account) = &self.limits[p] else { return was };
        let mut cap = was;
        while cap + 1 < account.khz.len() && self.watts_at_cap(p, cap) > budget_w {
            cap += 1;
        }
        while cap <= was && cap > 0 && self.watts_at_cap(p, cap - 1) <= RISE * budget_w {
            cap -= 1;
        }
        cap
    }

    /// What a package would draw at a cap with what its cores do now.
    fn watts_at_cap(&self, p: usize, cap: usize) -> f64 {
        let (model, package) = (&self.machine.packages[p], &self.packages[p]);
        let Some(account) = &self.limits[p] else { return 0.0 };
        let of = |&c: &u16| {
            let core = &self.cores[usize::from(c)];
            let kind = usize::from(core.kind);
            let domain = &self.domains[usize::from(self.machine.cores[usize::from(c)].domain)];
            let capped = if cap == 0 { 0 } else { account.levels[kind][cap] };
            core.watts(&self.machine.kinds[kind], domain.uncapped().max(capped), usize::from(core.code))
        };
        let cores: f64 = model.cores.iter().map(of).sum();
        let hot = 1.0 + model.thermal.leakage_per_c * (package.celsius - REFERENCE_C);
        cores * hot + self.uncore_watts(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::ThreadState;
    use wattwise_model::machine::builtin;

    /// Levels change many times between two readings, and not at all; a core that never runs is read too.
    #[test]
    fn a_meter_reads_what_the_residencies_say() {
        let machine =
            wattwise_model::machine::file::parse(builtin::text("alderlake-p-laptop").unwrap(), "").unwrap();
        let mut hardware = Hardware::new(&machine, 0);
        hardware.limit_power(Some(5.0));
        let mut random = 1u64;
        let mut draw = |of: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % of
        };
        for step in 1..2000 {
            let now = step * 100_000;
            let d = draw(machine.domains.len());
            let levels = machine.kinds[usize::from(machine.domains[d].kind)].levels.len();
            hardware.domains[d].adopt(draw(levels));
            hardware.settle_level(now, d);
            let c = draw(machine.cpus.len() - 1);
            let states = [ThreadState::Idle(0), ThreadState::Stall, ThreadState::Busy];
            hardware.set(now, machine.cpus[c].core, c, states[draw(3)]);
            if draw(20) == 0 {
                hardware.settle(now);
                let (metered, summed) = (hardware.metered_joules(0), hardware.package_joules(0));
                assert!((metered - summed).abs() < 1e-9 * summed, "{step}: {metered} {summed}");
            }
        }
    }
}
