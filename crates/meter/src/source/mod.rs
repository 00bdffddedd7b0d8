//! Where energy is read: perf energy events, powercap, RAPL's registers, hwmon counters. One [`Channel`] is one
//! counter of one domain; nodes are opened once.

mod msr;

use crate::channel::{Channel, Channels, MOST_W, Unavailable};
use crate::counter::{CounterEnd, CounterShape};
use crate::domain::{Domain, of_die};
use std::io;
use wattwise_hw::cpus::topology::{Cpu, Topology};
use wattwise_hw::probe::why;
use wattwise_hw::root::{Access, Node, Root, number, text};
use wattwise_hw::states::power::{Zone, zones};

/// An attribute that holds a number.
struct Attribute {
    domain: Domain,
    mechanism: &'static str,
    shape: CounterShape,
    node: Box<dyn Node>,
}

impl Channel for Attribute {
    fn domain(&self) -> Domain {
        self.domain
    }
    fn mechanism(&self) -> &'static str {
        self.mechanism
    }
    fn shape(&self) -> CounterShape {
        self.shape
    }
    fn read(&mut self) -> io::Result<u64> {
        let mut page = [0; 64];
        let n = self.node.read_at(0, &mut page)?;
        let digits = std::str::from_utf8(&page[..n]).ok().and_then(|t| t.trim().parse().ok());
        digits.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "holds no number"))
    }
}

/// Every channel of a machine, best mechanism first for each domain; and what gave none.
pub fn channels(root: &dyn Root) -> (Vec<Box<dyn Channel>>, Vec<Unavailable>) {
    let mut channels: Vec<Box<dyn Channel>> = Vec::new();
    let mut missing = Vec::new();
    for mechanism in [perf, powercap, registers, hwmon] {
        let have: Vec<Domain> = channels.iter().map(|c| c.domain()).collect();
        let (mut found, mut none) = mechanism(root, &have);
        found.retain(|c| !have.contains(&c.domain()));
        channels.append(&mut found);
        missing.append(&mut none);
    }
    (channels, missing)
}

/// powercap's zones.
fn powercap(root: &dyn Root, _: &[Domain]) -> Channels {
    let found = zones(root);
    let mut channels: Vec<Box<dyn Channel>> = Vec::new();
    let mut missing = Vec::new();
    let Some(top) = &found.value else {
        return (channels, vec![Unavailable { what: "powercap".into(), why: found.why_not() }]);
    };
    for outer in top {
        let package = match Domain::from_zone(&outer.name, None) {
            Some(Domain::Package { package }) => Some(package),
            _ => None,
        };
        for zone in outer.walk() {
            match zone_channel(root, zone, package) {
                Ok(channel) => {
                    if channel.shape().end == CounterEnd::Unknown {
                        let why = "max_energy_range_uj does not tell where its counter wraps: a step back is a gap, not counted over";
                        missing.push(Unavailable {
                            what: format!("powercap {}'s range", zone.name),
                            why: why.into(),
                        });
                    }
                    channels.push(channel);
                }
                Err(why) => missing.push(Unavailable { what: format!("powercap {}", zone.name), why }),
            }
        }
    }
    (channels, missing)
}

fn zone_channel(root: &dyn Root, zone: &Zone, package: Option<u32>) -> Result<Box<dyn Channel>, String> {
    let domain = Domain::from_zone(&zone.name, package).ok_or("is a zone of no known kind")?;
    let path = format!("{}/energy_uj", zone.path);
    let node = root.open(&path, Access::Read).map_err(|e| why(&e, &path, root))?;
    let end = zone.max_energy_uj.map_or(CounterEnd::Unknown, CounterEnd::After);
    let most_w = zone
        .limits
        .iter()
        .filter_map(|l| l.most_uw)
        .max()
        .map_or(MOST_W, |uw| (uw as f64 / 1e6 * 2.0).max(MOST_W));
    let shape = CounterShape { joules_per_unit: 1e-6, end, most_w };
    Ok(Box::new(Attribute { domain, mechanism: "powercap", shape, node }))
}

/// RAPL's registers: a CPU is interrupted to read one, so only of what no driver shows. A machine with a driver
/// that shows packages shows all that it has.
fn registers(root: &dyn Root, have: &[Domain]) -> Channels {
    if have.iter().any(|d| matches!(d, Domain::Package { .. })) {
        return (Vec::new(), Vec::new());
    }
    crate::source::msr::channels(root, |domain| !have.contains(&domain))
}

/// hwmon's energy counters (`energyN_input`, uJ, as amd_energy and many boards show).
fn hwmon(root: &dyn Root, _: &[Domain]) -> Channels {
    let sensors = wattwise_hw::states::sensors::sensors(root);
    let mut channels: Vec<Box<dyn Channel>> = Vec::new();
    let mut missing = Vec::new();
    let counters = sensors.power.iter().filter(|s| s.joules.is_some());
    for (at, sensor) in counters.enumerate() {
        let domain = Domain::Sensor { number: at as u32 };
        match root.open(&sensor.path, Access::Read) {
            Ok(node) => {
                let shape = CounterShape { joules_per_unit: 1e-6, end: CounterEnd::Never, most_w: MOST_W };
                channels.push(Box::new(Attribute { domain, mechanism: "hwmon", shape, node }));
            }
            Err(e) => {
                missing.push(Unavailable { what: sensor.name.clone(), why: why(&e, &sensor.path, root) })
            }
        }
    }
    (channels, missing)
}

/// The number of the package that a CPU is in, or of its die where the kernel meters each die by itself: where any package
/// has more than one (drivers/powercap/intel_rapl_common.c names its zones so, the PMU has a counter for each).
fn number_of(topology: &Topology, cpu: u32) -> Option<u32> {
    let of = |c: &Cpu| Some((u32::try_from(c.package?).ok()?, c.die.map_or(0, |d| d.max(0) as u32)));
    let (package, die) = of(topology.cpu(cpu)?)?;
    let dies = topology.count(|c| of(c)) > topology.count(|c| c.package);
    Some(if dies { of_die(package, die) } else { package })
}

/// The kernel's `power` PMU.
fn perf(root: &dyn Root, _: &[Domain]) -> Channels {
    const PMU: &str = "sys/bus/event_source/devices/power";
    let none = |why: String| (Vec::new(), vec![Unavailable { what: "perf energy events".into(), why }]);
    if !root.is_this_machine() {
        return none("are a system call: only this machine has them".into());
    }
    let Some(kind) = number::<u32>(root, &format!("{PMU}/type")) else {
        return none("the kernel has no power PMU (a virtual machine is given none)".into());
    };
    let cpus =
        text(root, &format!("{PMU}/cpumask")).and_then(|l| wattwise_hw::cpus::set::CpuSet::parse(&l).ok());
    let topology = Topology::read(root);
    let mut channels: Vec<Box<dyn Channel>> = Vec::new();
    let mut missing = Vec::new();
    for event in root.list(&format!("{PMU}/events")).unwrap_or_default() {
        let at = format!("{PMU}/events/{event}");
        let (Some(name), Some(config), Some(scale)) = (
            event.strip_prefix("energy-"),
            text(root, &at).as_deref().and_then(config),
            number::<f64>(root, &format!("{at}.scale")),
        ) else {
            continue;
        };
        for (at, cpu) in cpus.iter().flat_map(|c| c.iter()).enumerate() {
            let package = number_of(&topology, cpu).unwrap_or(at as u32);
            let domain = match name {
                "psys" if at == 0 => Domain::Psys,
                "pkg" => Domain::Package { package },
                "cores" => Domain::Core { package },
                "gpu" => Domain::Uncore { package },
                "ram" => Domain::Dram { package },
                _ => continue,
            };
            match event::EnergyCounter::open(kind, config, cpu) {
                Ok(counter) => channels.push(Box::new(event::EnergyReading { domain, scale, counter })),
                Err(e) => {
                    let why = match e.raw_os_error() {
                        Some(libc::EACCES | libc::EPERM) => {
                            "not permitted; needs CAP_PERFMON, or /proc/sys/kernel/perf_event_paranoid at 0"
                                .to_owned()
                        }
                        _ => e.to_string(),
                    };
                    missing.push(Unavailable { what: format!("perf {event} of {domain}"), why });
                }
            }
        }
    }
    (channels, missing)
}

/// `event=0x02` of a PMU's event file.
fn config(text: &str) -> Option<u64> {
    u64::from_str_radix(text.split(',').find_map(|t| t.strip_prefix("event="))?.strip_prefix("0x")?, 16).ok()
}

mod event {
    //! One perf counter.

    use super::{CounterEnd, CounterShape, Domain};
    use crate::channel::{Channel, MOST_W};
    use perf_event_open_sys::bindings::perf_event_attr;
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::FromRawFd;

    pub(super) struct EnergyCounter(File);

    impl EnergyCounter {
        pub(super) fn open(kind: u32, config: u64, cpu: u32) -> io::Result<EnergyCounter> {
            let mut attr = perf_event_attr::default();
            attr.type_ = kind;
            attr.size = std::mem::size_of::<perf_event_attr>() as u32;
            attr.config = config;
            // SAFETY: attr is a whole, initialised structure of the size it names; the kernel only reads it.
            let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, -1, cpu as i32, -1, 8) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
            Ok(EnergyCounter(unsafe { File::from_raw_fd(fd) }))
        }
    }

    pub(super) struct EnergyReading {
        pub(super) domain: Domain,
        pub(super) scale: f64,
        pub(super) counter: EnergyCounter,
    }

    impl Channel for EnergyReading {
        fn domain(&self) -> Domain {
            self.domain
        }
        fn mechanism(&self) -> &'static str {
            "perf"
        }
        fn shape(&self) -> CounterShape {
            // The kernel follows the hardware's wraps itself.
            CounterShape { joules_per_unit: self.scale, end: CounterEnd::Never, most_w: MOST_W }
        }
        fn read(&mut self) -> io::Result<u64> {
            let mut bytes = [0; 8];
            self.counter.0.read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        }
    }
}
