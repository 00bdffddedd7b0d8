//! Power and heat: of packages, their memory, the whole machine; what the battery loses.

use super::Host;
use super::parts::{HostDomain, Zone};
use super::truth;
use wattwise_hw::rules::AttributeView;
use wattwise_model::machine::Thermal;

/// A package's temperature follows its power by one pole.
const TAU_NS: u64 = 10_000_000_000;

impl Host {
    /// Power of a package's CPUs and of the whole package now, in microwatts.
    pub(crate) fn package_uw(&self, package: u32) -> (u64, u64) {
        if let Some((truth, at)) = self.truth.as_ref().zip(self.heat_mc.keys().position(|p| *p == package)) {
            let w = self.true_w(truth, at);
            return ((w.cores * 1e6) as u64, ((w.cores + w.rest) * 1e6) as u64);
        }
        let cpus = self.cpus.iter().filter(|c| c.package == package);
        let of_package = |z: &&Zone| z.domain == HostDomain::Package && z.package == package;
        let limit = self.zones.iter().find(of_package).map(|z| z.folder.clone());
        // Registers and memory both limit a package: the lowest holds. Dies have their parts of one.
        let limits = self.zones.iter().filter(of_package).filter_map(|z| Some(self.limit_uw(z)? * z.dies));
        let limit_uw = limits.min();
        let count = cpus.clone().count().max(1) as u64;
        let each = match self.physics.cpu_uw {
            0 => {
                let most = limit.and_then(|f| self.number(&format!("{f}/constraint_0_max_power_uw")));
                most.unwrap_or(5_000_000 * count) / count
            }
            given => given,
        };
        let mut cores = 0_u64;
        for cpu in cpus.filter(|c| c.online && c.load_permille > 0) {
            let ratio = cpu
                .policy
                .and_then(|i| self.policies.get(i))
                .map_or(1000, |p| u64::from(p.cur) * 1000 / u64::from(p.hw.1.max(1)));
            // Voltage falls with speed: power about as its square.
            cores += each / 1000 * u64::from(cpu.load_permille) / 1000 * ratio / 1000 * ratio;
        }
        let idle = self.physics.package_idle_uw;
        let all = (cores + idle).min(limit_uw.unwrap_or(u64::MAX)).max(idle.min(limit_uw.unwrap_or(idle)));
        (cores.min(all), all)
    }

    /// A zone's limit, where it is on and set.
    pub(super) fn limit_uw(&self, zone: &Zone) -> Option<u64> {
        if self.text(&format!("{}/enabled", zone.folder)).is_some_and(|e| e == "0") {
            return None;
        }
        self.number(&format!("{}/constraint_0_power_limit_uw", zone.folder)).filter(|&n| n > 0)
    }

    pub(super) fn dram_uw(&self, package: u32) -> u64 {
        let truth = self.truth.as_ref().zip(self.heat_mc.keys().position(|p| *p == package));
        truth.map_or(self.physics.dram_uw, |(t, at)| (self.true_w(t, at).dram * 1e6) as u64)
    }

    pub(super) fn platform_uw(&self) -> u64 {
        let packages = self.heat_mc.keys().map(|&p| self.package_uw(p).1 + self.dram_uw(p));
        let own = match &self.truth {
            Some(truth) => (self.true_platform_w(truth) * 1e6) as u64,
            None => self.physics.platform_uw,
        };
        own + packages.sum::<u64>()
    }

    /// Power of a zone now.
    pub(crate) fn zone_uw(&self, zone: &Zone) -> u64 {
        let (cores, all) = self.package_uw(zone.package);
        match zone.domain {
            HostDomain::Package => all / zone.dies,
            HostDomain::Core => cores / zone.dies,
            HostDomain::Uncore => (all - cores) / 2 / zone.dies,
            HostDomain::Dram => self.dram_uw(zone.package) / zone.dies,
            HostDomain::Platform => self.platform_uw(),
        }
    }

    pub(super) fn drain(&mut self, ns: u64, platform_uw: u64) {
        let (mains, update, charge) =
            (self.mains, self.physics.battery_update_ns.max(1), self.physics.charge_uw);
        let share = self.batteries.len().max(1) as u128;
        for b in &mut self.batteries {
            let full_milli = b.full.saturating_mul(1000);
            let uw = if mains { charge } else { platform_uw };
            let uw = (u128::from(uw) / share) as u64;
            // Thousandths of a uWh (or, by the voltage, of a uAh).
            let mut milli = u128::from(uw) * u128::from(ns) / 3_600_000_000_000 * 1000
                + u128::from(uw) * u128::from(ns) % 3_600_000_000_000 * 1000 / 3_600_000_000_000;
            if !b.energy {
                milli = milli * 1_000_000 / u128::from(b.voltage_uv);
            }
            let milli = u64::try_from(milli).unwrap_or(u64::MAX);
            b.left_milli = match mains {
                true => b.left_milli.saturating_add(milli).min(full_milli),
                false => b.left_milli.saturating_sub(milli),
            };
            let moving = if mains { b.left_milli < full_milli } else { b.left_milli > 0 };
            b.drawn += if moving { u128::from(uw) * u128::from(ns) } else { 0 };
            b.since_ns = b.since_ns.saturating_add(ns);
            if b.since_ns >= update {
                b.shown = b.left_milli / 1000;
                b.shown_uw = (b.drawn / u128::from(b.since_ns)) as u64;
                (b.since_ns, b.drawn) = (0, 0);
            }
        }
    }

    pub(super) fn heat(&mut self, ns: u64) {
        let share = 1.0 - (-(ns as f64) / TAU_NS as f64).exp();
        let packages: Vec<u32> = self.heat_mc.keys().copied().collect();
        for package in packages {
            let watts = self.package_uw(package).1 / 1000;
            let goal = self.physics.ambient_mc + watts as i64 * self.physics.rise_mc_per_w / 1000;
            if let Some(now) = self.heat_mc.get_mut(&package) {
                *now += ((goal - *now) as f64 * share).round() as i64;
            }
        }
    }

    /// How its packages get warm.
    pub(crate) fn cooling(&self) -> Thermal {
        Thermal {
            ambient_c: self.physics.ambient_mc as f64 * 1e-3,
            c_per_w: self.physics.rise_mc_per_w as f64 * 1e-3,
            tau_s: TAU_NS as f64 * 1e-9,
            critical_c: truth::HOTTEST_C,
            leakage_per_c: self.truth.as_ref().map_or(0.0, |t| t.leakage_per_c),
        }
    }
}
