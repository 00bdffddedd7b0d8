//! Registers that count or follow an attribute.

use super::parts::{HostDomain, Zone};
use super::{CPU, Host};
use wattwise_hw::msr::counters::{APERF, MPERF, TSC};

const PERF_STATUS: u32 = 0x198;
const ENERGY_PERF_BIAS: u32 = 0x1b0;
/// Energy counters, each with the zone whose energy it shows.
const ENERGY: [(u32, HostDomain); 6] = [
    (0x611, HostDomain::Package),
    (0x619, HostDomain::Dram),
    (0x639, HostDomain::Core),
    (0x641, HostDomain::Uncore),
    (0x64d, HostDomain::Platform),
    (0xc001_029b, HostDomain::Package),
];

impl Host {
    /// A register's value now; those that count or follow an attribute are made here.
    pub(crate) fn register(&self, cpu: u32, address: u32) -> Result<u64, rustix::io::Errno> {
        let c = self.cpus.iter().find(|c| c.id == cpu && c.online).ok_or(rustix::io::Errno::NXIO)?;
        let value = self.registers.read(cpu, address)?;
        let policy = c.policy.and_then(|i| self.policies.get(i));
        Ok(match address {
            TSC => value.wrapping_add(
                (u128::from(self.now_ns) * u128::from(policy.map_or(1_000_000, |p| p.nominal)) / 1_000_000)
                    as u64,
            ),
            _ if let Some(slept_ns) = self.package_slept_ns(c.id, address) => {
                let khz = policy.map_or(1_000_000, |p| p.nominal);
                value.wrapping_add((u128::from(slept_ns) * u128::from(khz) / 1_000_000) as u64)
            }
            MPERF => value.wrapping_add(c.mperf),
            APERF => value.wrapping_add(c.aperf),
            PERF_STATUS => policy.map_or(value, |p| (value & !0xff00) | u64::from(p.cur / 100_000) << 8),
            ENERGY_PERF_BIAS => self
                .number(&format!("{CPU}/cpu{cpu}/power/energy_perf_bias"))
                .map_or(value, |bias| (value & !0xf) | bias),
            _ if let Some((_, domain)) = ENERGY.iter().find(|e| e.0 == address) => {
                let of_package = |z: &&Zone| z.package == c.package || *domain == HostDomain::Platform;
                let zone = self.zones.iter().find(|z| z.domain == *domain && of_package(z));
                // 32 bits that wrap where the zone does.
                zone.map_or(value, |z| {
                    (z.total_uj * u128::from(u32::MAX) / u128::from(z.range_uj) + u128::from(value)) as u64
                        & u64::from(u32::MAX)
                })
            }
            _ => value,
        })
    }

    pub(crate) fn set_register(
        &mut self,
        cpu: u32,
        address: u32,
        value: u64,
    ) -> Result<(), rustix::io::Errno> {
        if !self.is_online(cpu) {
            return Err(rustix::io::Errno::NXIO);
        }
        self.registers.write(cpu, address, value)?;
        if address == ENERGY_PERF_BIAS {
            self.update(&format!("{CPU}/cpu{cpu}/power/energy_perf_bias"), value & 0xf);
        }
        Ok(())
    }
}
