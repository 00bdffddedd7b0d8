//! Programs whose figures are known: what they print, and how they are usually run on one machine.

/// A program with a figure.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Finds the figure in what it prints: the first group.
    pub pattern: &'static str,
    /// The figure's unit.
    pub unit: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// What is run where no command is given.
    pub command: &'static [&'static str],
    /// What must run meanwhile.
    pub server: &'static [&'static str],
    /// Whether the two are a machine each, with a link between them, where that can be had.
    pub over_link: bool,
    /// What else it prints, beside the figure.
    pub printed: &'static [Printed],
    /// For people.
    pub says: &'static str,
}

/// A number that a program prints beside its figure.
#[derive(Debug, Clone, Copy)]
pub struct Printed {
    /// As the program names it.
    pub name: &'static str,
    /// Finds it: the first group.
    pub pattern: &'static str,
}

/// Where presets have their other end, if not over a link.
pub const LOOPBACK: &str = "127.0.0.1";

/// All presets. Patterns are checked against real output in the tests.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "nuttcp",
        pattern: r"=\s*([0-9.]+)\s+Mbps",
        unit: "Mbit/s",
        more_is_better: true,
        // 003's measurement.
        command: &["nuttcp", "-P", "15101", "-T", "2", LOOPBACK],
        server: &["nuttcp", "-S", "-P", "15101", "--nofork"],
        over_link: true,
        printed: &[
            Printed { name: "%TX", pattern: r"([0-9]+) %TX" },
            Printed { name: "%RX", pattern: r"([0-9]+) %RX" },
            Printed { name: "msRTT", pattern: r"([0-9.]+) msRTT" },
        ],
        says: "throughput of a TCP stream",
    },
    Preset {
        name: "iperf3",
        pattern: r"([0-9.]+)\s+Mbits/sec.*receiver",
        unit: "Mbit/s",
        more_is_better: true,
        command: &["iperf3", "-c", "127.0.0.1", "-p", "15102", "-t", "2", "-f", "m"],
        server: &["iperf3", "-s", "-p", "15102"],
        over_link: false,
        printed: &[],
        says: "throughput of a TCP stream, at the receiver",
    },
    Preset {
        name: "tbench",
        pattern: r"Throughput\s+([0-9.]+)\s+MB/sec",
        unit: "MB/s",
        more_is_better: true,
        command: &["tbench", "-t", "2", "2", "127.0.0.1"],
        server: &["tbench_srv"],
        over_link: false,
        printed: &[],
        says: "throughput of a file server's network load (002's)",
    },
    Preset {
        name: "cyclictest",
        pattern: r"Avg:\s*([0-9]+)",
        unit: "us",
        more_is_better: false,
        command: &["cyclictest", "-q", "-t", "2", "-i", "1000", "-l", "1000"],
        server: &[],
        over_link: false,
        printed: &[],
        says: "mean wake-up latency of the last thread",
    },
    Preset {
        name: "stress-ng",
        pattern: r"(?m)metrc:.*\s([0-9]+\.[0-9]+)\s+[0-9]+\.[0-9]+\s*$",
        unit: "bogo ops/s",
        more_is_better: true,
        command: &["stress-ng", "--cpu", "1", "--cpu-method", "int64", "-t", "2", "--metrics-brief"],
        server: &[],
        over_link: false,
        printed: &[],
        says: "operations a second of real time",
    },
];

/// The preset of a name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}
