//! RAPL's counters read as registers: where the kernel has no driver for them, or lets us open `dev/cpu/N/msr`
//! and not the files.
//!
//! A counter has 32 bits of 1/2^n J, n in the unit register. Three families deviate, as Linux
//! (drivers/powercap/intel_rapl_msr.c) knows them:
//!
//! 1. Servers of Haswell to Ice Lake count memory in units of 15.3 uJ, whatever the unit register says.
//! 2. Sapphire and Emerald Rapids count the platform in whole joules.
//! 3. The platform's counter is the same on every package: it is read on the first.
//!
//! Reading a register interrupts its CPU. A package is read on the CPU that we run on where that is one of its
//! own; else on its first: once at each end of a window, as perf's events do.

use crate::channel::{Channel, Channels, MOST_W, Unavailable};
use crate::counter::{CounterEnd, CounterShape};
use crate::domain::Domain;
use crate::source::number_of;
use std::collections::BTreeMap;
use std::io;
use wattwise_hw::cpus::cpuid::{CpuFacts, Vendor};
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::msr::Registers;
use wattwise_hw::root::{Access, Node, Root, read_register};

/// A domain of the package with that number.
type OfPackage = fn(u32) -> Domain;

/// The counters by the vendor's names, with what they meter in a package.
const COUNTERS: [(&str, OfPackage); 6] = [
    ("MSR_PLATFORM_ENERGY_COUNTER", |_| Domain::Psys),
    ("MSR_PKG_ENERGY_STATUS", |package| Domain::Package { package }),
    ("MSR_PP0_ENERGY_STATUS", |package| Domain::Core { package }),
    ("MSR_PP1_ENERGY_STATUS", |package| Domain::Uncore { package }),
    ("MSR_DRAM_ENERGY_STATUS", |package| Domain::Dram { package }),
    ("PKG_ENERGY_STAT", |package| Domain::Package { package }),
];
/// The registers with the unit.
const UNITS: [&str; 2] = ["MSR_RAPL_POWER_UNIT", "RAPL_PWR_UNIT"];

/// Models of family 6 whose memory counts in [`SERVER_DRAM_J`]: Haswell-X, Broadwell-X and -D, Skylake-X, Ice
/// Lake-X and -D.
const SERVER_DRAM: [u32; 6] = [0x3f, 0x4f, 0x56, 0x55, 0x6a, 0x6c];
const SERVER_DRAM_J: f64 = 15.3e-6;
/// Sapphire and Emerald Rapids.
const WHOLE_JOULES_PSYS: [u32; 2] = [0x8f, 0xcf];

fn joules_per_unit(domain: Domain, cpu: &CpuFacts, unit: u64) -> f64 {
    let intel = cpu.vendor == Vendor::Intel && cpu.family == 6;
    match domain {
        Domain::Dram { .. } if intel && SERVER_DRAM.contains(&cpu.model) => SERVER_DRAM_J,
        Domain::Psys if intel && WHOLE_JOULES_PSYS.contains(&cpu.model) => 1.0,
        _ => (unit as f64).exp2().recip(),
    }
}

/// One counter of one package.
struct MsrCounter {
    domain: Domain,
    address: u32,
    shape: CounterShape,
    node: Box<dyn Node>,
}

impl Channel for MsrCounter {
    fn domain(&self) -> Domain {
        self.domain
    }
    fn mechanism(&self) -> &'static str {
        "msr"
    }
    fn shape(&self) -> CounterShape {
        self.shape
    }
    fn read(&mut self) -> io::Result<u64> {
        // The upper half is reserved.
        Ok(read_register(&mut *self.node, self.address)? & u64::from(u32::MAX))
    }
}

/// The register counters of the domains that are `wanted`.
pub(super) fn channels(root: &dyn Root, wanted: impl Fn(Domain) -> bool) -> Channels {
    let none = |why: String| (Vec::new(), vec![Unavailable { what: "energy registers".into(), why }]);
    let topology = Topology::read(root);
    let mut packages: BTreeMap<u32, u32> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(|c| c.online) {
        packages.entry(number_of(&topology, cpu.cpu).unwrap_or(0)).or_insert(cpu.cpu);
    }
    let here = rustix::thread::sched_getcpu() as u32;
    if root.is_this_machine()
        && let Some(package) = number_of(&topology, here)
    {
        packages.insert(package, here);
    }
    let Some(facts) = packages.values().next().map(|&cpu| CpuFacts::read(root, cpu)) else {
        return none("no CPU is online".into());
    };
    let facts = match facts {
        Ok(facts) => facts,
        Err(e) => return none(e.to_string()),
    };
    let registers = Registers::for_cpu(&facts);
    let Some(unit_register) = UNITS.iter().find_map(|name| registers.get(name).ok()) else {
        return none("this processor has none that we know".into());
    };
    let mut channels: Vec<Box<dyn Channel>> = Vec::new();
    for (at, (package, cpu)) in packages.into_iter().enumerate() {
        for (name, domain) in COUNTERS {
            let domain = domain(package);
            let (Ok(register), true) =
                (registers.get(name), wanted(domain) && (at == 0 || domain != Domain::Psys))
            else {
                continue;
            };
            let path = format!("dev/cpu/{cpu}/msr");
            let opened = root.open(&path, Access::Read).and_then(|mut node| {
                let raw = read_register(&mut *node, unit_register.address)?;
                // A register that this machine has not is told at once, not at the first sample.
                read_register(&mut *node, register.address)?;
                Ok((node, unit_register.field("energy").map_or(0, |f| f.get(raw))))
            });
            match opened {
                Ok((node, unit)) => {
                    let shape = CounterShape {
                        joules_per_unit: joules_per_unit(domain, &facts, unit),
                        end: CounterEnd::After(u64::from(u32::MAX)),
                        most_w: MOST_W,
                    };
                    channels.push(Box::new(MsrCounter { domain, address: register.address, shape, node }));
                }
                // One word for all: without the device there is none.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return none(format!("{path}: not there: load the module `msr` (modprobe msr)"));
                }
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    return none(format!("{path}: no permission: needs CAP_SYS_RAWIO"));
                }
                // This part has no such counter.
                Err(_) => {}
            }
        }
    }
    (channels, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_by_hand() {
        let of = |model, domain, unit| joules_per_unit(domain, &CpuFacts::of(Vendor::Intel, 6, model), unit);
        let (package, dram) = (Domain::Package { package: 0 }, Domain::Dram { package: 0 });
        assert_eq!(of(0x2a, package, 16), 1.0 / 65536.0);
        assert_eq!(of(0x55, package, 14), 1.0 / 16384.0);
        assert_eq!(of(0x55, dram, 14), 15.3e-6);
        assert_eq!(of(0x9e, dram, 14), 1.0 / 16384.0, "a client's memory follows the register");
        assert_eq!(of(0x8f, Domain::Psys, 14), 1.0);
        assert_eq!(of(0x9e, Domain::Psys, 14), 1.0 / 16384.0);
        // An AMD model that happens to have the number of an Intel one.
        let amd = CpuFacts::of(Vendor::Amd, 0x19, 0x55);
        assert_eq!(joules_per_unit(dram, &amd, 16), 1.0 / 65536.0);
    }
}
