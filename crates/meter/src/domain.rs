//! What is metered, and what holds what.
//!
//! Meters overlap: psys holds the package, the package holds core and uncore, and the same package may be
//! shown by MSR, MMIO and perf at once. What nests is never summed: domains are put into a tree by name,
//! and a total is the sum of the *roots* alone.

use serde::{Deserialize, Serialize};

/// A part of the machine whose energy can be metered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Domain {
    /// The whole machine at its battery.
    Battery,
    /// The platform, as the firmware's meter sees it.
    Psys,
    /// A package, or one of its dies where each is metered by itself ([`of_die`]).
    Package {
        /// Which.
        package: u32,
    },
    /// The cores of a package.
    Core {
        /// Of which.
        package: u32,
    },
    /// What is around the cores (on laptops: the graphics).
    Uncore {
        /// Of which package.
        package: u32,
    },
    /// Memory of a package: beside it, not in it.
    Dram {
        /// Of which.
        package: u32,
    },
    /// A sensor somewhere on the board, by number.
    Sensor {
        /// Which.
        number: u32,
    },
}

impl Domain {
    /// From the name of a powercap zone. `package` is the package within which the zone lies, for `core` and
    /// `dram`, whose names do not tell.
    pub fn from_zone(name: &str, package: Option<u32>) -> Option<Domain> {
        let number =
            |stem: &str| name.strip_prefix(stem).and_then(|n| n.trim_start_matches('-').parse().ok());
        match name {
            "psys" => Some(Domain::Psys),
            "core" => package.map(|package| Domain::Core { package }),
            "uncore" => package.map(|package| Domain::Uncore { package }),
            "dram" => package.map(|package| Domain::Dram { package }),
            _ if name.starts_with("package") => {
                // `package-0-die-1`: a die is metered as its package is elsewhere.
                match name.strip_prefix("package-").and_then(|rest| rest.split_once("-die-")) {
                    Some((package, die)) => {
                        Some(Domain::Package { package: of_die(package.parse().ok()?, die.parse().ok()?) })
                    }
                    None => number("package").map(|package| Domain::Package { package }),
                }
            }
            _ => None,
        }
    }

    /// Whether the other's energy is part of this one's.
    pub fn holds(self, other: Domain) -> bool {
        use Domain::{Battery, Core, Dram, Package, Psys, Sensor, Uncore};
        match (self, other) {
            (a, b) if a == b => false,
            (_, Sensor { .. }) | (Sensor { .. }, _) => false,
            (Battery, _) => true,
            (_, Battery) => false,
            (Psys, _) => true,
            (Package { package: p }, Core { package: q } | Uncore { package: q }) => p == q,
            (Package { .. } | Core { .. } | Uncore { .. } | Dram { .. }, _) => false,
        }
    }
}

/// Numbers from here on are dies, of machines that meter each of a package's dies by itself.
const DIES: u32 = 1 << 16;
/// No package has as many.
const DIES_OF_A_PACKAGE: u32 = 64;

/// The number of a package's die, as a domain has it in place of a package's.
pub fn of_die(package: u32, die: u32) -> u32 {
    DIES + package * DIES_OF_A_PACKAGE + die % DIES_OF_A_PACKAGE
}

/// As the kernel names it: `0`, `0-die-1`.
fn place(number: u32) -> String {
    match number.checked_sub(DIES) {
        Some(die) => format!("{}-die-{}", die / DIES_OF_A_PACKAGE, die % DIES_OF_A_PACKAGE),
        None => number.to_string(),
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Domain::Battery => f.write_str("battery"),
            Domain::Psys => f.write_str("psys"),
            Domain::Package { package } => write!(f, "package-{}", place(*package)),
            Domain::Core { package } => write!(f, "core-{}", place(*package)),
            Domain::Uncore { package } => write!(f, "uncore-{}", place(*package)),
            Domain::Dram { package } => write!(f, "dram-{}", place(*package)),
            Domain::Sensor { number } => write!(f, "sensor-{number}"),
        }
    }
}

/// Those that lie in no other: their sum is the machine's, as far as it is metered.
pub fn roots(domains: &[Domain]) -> Vec<Domain> {
    let mut roots: Vec<Domain> =
        domains.iter().copied().filter(|d| !domains.iter().any(|other| other.holds(*d))).collect();
    // The same domain by two doors is one.
    roots.sort_unstable();
    roots.dedup();
    // A sensor's place is unknown: it may hold anything, and is never added to what is known.
    if roots.iter().any(|d| !matches!(d, Domain::Sensor { .. })) {
        roots.retain(|d| !matches!(d, Domain::Sensor { .. }));
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_is_not_summed() {
        let package = |package| Domain::Package { package };
        let two_sockets = [
            package(0),
            Domain::Core { package: 0 },
            Domain::Dram { package: 0 },
            package(1),
            package(1),
            Domain::Dram { package: 1 },
        ];
        assert_eq!(
            roots(&two_sockets),
            [package(0), package(1), Domain::Dram { package: 0 }, Domain::Dram { package: 1 }]
        );
        assert_eq!(roots(&[package(0), Domain::Psys, Domain::Uncore { package: 0 }]), [Domain::Psys]);
        assert_eq!(roots(&[Domain::Sensor { number: 0 }, package(0)]), [package(0)]);
    }

    #[test]
    fn zones_by_name() {
        assert_eq!(Domain::from_zone("package-1", None), Some(Domain::Package { package: 1 }));
        let die = Domain::from_zone("package-1-die-1", None);
        assert_eq!(die, Some(Domain::Package { package: of_die(1, 1) }));
        assert_eq!(die.map(|d| d.to_string()).as_deref(), Some("package-1-die-1"));
        // A machine of seventeen packages has one of that number.
        assert_ne!(die, Domain::from_zone("package-17", None));
        assert_eq!(Domain::from_zone("core", Some(1)), Some(Domain::Core { package: 1 }));
        assert_eq!(Domain::from_zone("core", None), None);
        assert_eq!(Domain::from_zone("psys", None), Some(Domain::Psys));
        assert_eq!(Domain::from_zone("mystery", None), None);
    }
}
