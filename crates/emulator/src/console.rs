//! What a mounted machine has beside its own files, in the folder `wattwise`: how busy its CPUs are and how its time passes, so
//! that another program can put it to work (`wattwise calibrate --root MOUNT`).
//!
//! | file | read | written |
//! |---|---|---|
//! | `load` | a line for each CPU online: its number, thousandths of its time | the same lines: CPUs that are not named keep theirs |
//! | `pass_ns` | its time so far, in ns | that much more time passes |
//! | `times` | what takes time on it ([`Times`]); empty without a truth | |
//! | `changes` | a line for each change of speed that takes time: from and to in kHz, ns; empty where they are in force at once | |

use crate::emulated::{Emulator, Inner};
use crate::host::{Truth, change};
use crate::tree::{Console, LiveAttribute, NodeKind, Tree};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;

/// Where its folder is, from the top of the machine.
const FOLDER: &str = "wattwise";
/// How busy its CPUs are.
pub const LOAD: &str = "wattwise/load";
/// Its time.
pub const PASS_NS: &str = "wattwise/pass_ns";
/// What takes time on it.
pub const TIMES: &str = "wattwise/times";

/// How long its changes of speed take.
pub const CHANGES: &str = "wattwise/changes";

/// What takes time on a machine whose truth is known: what its files do not show, and a program that runs on it would feel.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Seed for whatever jitters.
    pub seed: u64,
    /// By CPU.
    pub cpus: BTreeMap<u32, CpuTimes>,
}

/// The same of a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuTimes {
    /// Its core and its kind of core, by number.
    pub core: u16,
    /// The kind of its core, 0 the fastest.
    pub kind: u8,
    /// Work a cycle, beside that of a core of the first kind.
    pub ipc: f64,
    /// What a core does with so many threads at work, each of them, beside one alone.
    pub threads: Vec<f64>,
    /// A change of speed, until it is in force, ns.
    pub change_ns: u64,
    /// The way out of each cpuidle state, ns; none where it polls.
    pub exit_ns: Vec<Option<u64>>,
}

impl Times {
    /// Those of a truth.
    pub fn of(truth: &Truth) -> Times {
        let machine = &truth.machine;
        let one = |(cpu, number): (&u32, &u16)| {
            let core = machine.cores.get(usize::from(*number))?;
            let kind = &machine.kinds[usize::from(core.kind)];
            let transition = &machine.domains[usize::from(core.domain)].transition;
            let exit = |state: &Option<usize>| state.map(|s| kind.idle[s].exit_ns[0]);
            let times = CpuTimes {
                core: *number,
                kind: core.kind,
                ipc: kind.ipc,
                threads: kind.smt_throughput.clone(),
                change_ns: transition.delay_ns + transition.stall_ns.iter().max().copied().unwrap_or(0),
                // None on a machine without cpuidle.
                exit_ns: truth.state_of.get(cpu).into_iter().flatten().map(exit).collect(),
            };
            Some((*cpu, times))
        };
        Times { seed: truth.noise_seed, cpus: truth.core_of.iter().filter_map(one).collect() }
    }

    /// As [`fmt::Display`] writes it; none where it is not.
    pub fn parse(text: &str) -> Option<Times> {
        let (seed, rest) = text.split_once('\n')?;
        let cpu = |line: &str| {
            let mut words = line.split(' ');
            let mut next = || words.next();
            let cpu = next()?.parse().ok()?;
            let times = CpuTimes {
                core: next()?.parse().ok()?,
                kind: next()?.parse().ok()?,
                ipc: next()?.parse().ok().filter(|ipc: &f64| ipc.is_finite() && *ipc > 0.0)?,
                threads: next()?.split(',').map(|t| t.parse().ok()).collect::<Option<_>>()?,
                change_ns: next()?.parse().ok()?,
                // None without cpuidle; whoever reads the file may have cut the blank before it.
                exit_ns: next()
                    .unwrap_or_default()
                    .split(',')
                    .filter(|ns| !ns.is_empty())
                    .map(|ns| if ns == "-" { Some(None) } else { ns.parse().ok().map(Some) })
                    .collect::<Option<_>>()?,
            };
            Some((cpu, times))
        };
        let cpus = rest.lines().map(cpu).collect::<Option<BTreeMap<_, _>>>()?;
        let seed = seed.strip_prefix("seed ")?.parse().ok()?;
        (!cpus.is_empty()).then_some(Times { seed, cpus })
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (cpu, t) in &self.cpus {
            let threads: Vec<String> = t.threads.iter().map(f64::to_string).collect();
            let exit = t.exit_ns.iter().map(|ns| ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string()));
            let exit: Vec<String> = exit.collect();
            let (threads, exit) = (threads.join(","), exit.join(","));
            writeln!(f, "{cpu} {} {} {} {threads} {} {exit}", t.core, t.kind, t.ipc, t.change_ns)?;
        }
        Ok(())
    }
}

/// Puts the files into a tree.
pub(crate) fn furnish(tree: &mut Tree) {
    tree.folder(FOLDER);
    let files = [
        (LOAD, Console::Load),
        (PASS_NS, Console::PassNs),
        (TIMES, Console::Times),
        (CHANGES, Console::Changes),
    ];
    for (path, console) in files {
        let id = tree.put(path, NodeKind::Live(LiveAttribute::Console(console)));
        if let Some(file) = tree.file_mut(id) {
            file.writable = !matches!(console, Console::Times | Console::Changes);
        }
    }
}

impl Inner {
    /// What a file of the console shows.
    pub(crate) fn console_text(&self, console: Console) -> String {
        match console {
            Console::PassNs => format!("{}\n", self.machine.now_ns),
            Console::Changes => change::text(&self.machine.physics.changes),
            Console::Times => {
                self.machine.truth.as_ref().map_or_else(String::new, |t| Times::of(t).to_string())
            }
            Console::Load => {
                let online = self.machine.cpus.iter().filter(|cpu| cpu.online);
                online.map(|cpu| format!("{} {}\n", cpu.id, cpu.load_permille)).collect()
            }
        }
    }

    /// Does what is written to one. Long times are for several writes: nobody else is answered meanwhile.
    pub(crate) fn console(&mut self, console: Console, text: &str) -> Result<(), Errno> {
        const MOST_NS: u64 = 10_000_000_000;
        match console {
            Console::Times | Console::Changes => Err(Errno::ACCESS),
            Console::PassNs => {
                let ns = text.trim().parse::<u64>().map_err(|_| Errno::INVAL)?;
                if ns > MOST_NS {
                    return Err(Errno::INVAL);
                }
                self.machine.advance(ns);
                Ok(())
            }
            Console::Load => {
                let pair = |line: &str| {
                    let (cpu, permille) = line.trim().split_once(' ')?;
                    Some((cpu.parse::<u32>().ok()?, permille.parse::<u32>().ok().filter(|p| *p <= 1000)?))
                };
                let loads = text.lines().map(pair).collect::<Option<Vec<_>>>().ok_or(Errno::INVAL)?;
                self.set_loads(&loads);
                Ok(())
            }
        }
    }

    /// How busy CPUs are from now on, in thousandths. Governors follow at once.
    pub(crate) fn set_loads(&mut self, loads: &[(u32, u32)]) {
        for (cpu, permille) in loads {
            if let Some(c) = self.machine.cpus.iter_mut().find(|c| c.id == *cpu && c.online) {
                c.load_permille = (*permille).min(1000);
            }
        }
        for i in 0..self.machine.policies.len() {
            self.machine.refresh_policy(i);
        }
    }
}

impl Emulator {
    /// Gives the machine its console, as a mounted one has it.
    pub fn furnish(&self) {
        furnish(&mut self.lock().machine.tree);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_hw::root::{Root, text};

    #[test]
    fn times_come_back_as_written() {
        let cpu = |core, exit_ns| CpuTimes {
            core,
            kind: 0,
            ipc: 1.25,
            threads: vec![1.0, 0.62],
            change_ns: 23_000,
            exit_ns,
        };
        let times = Times {
            seed: 7,
            cpus: [(0, cpu(0, vec![None, Some(2000)])), (4, cpu(1, vec![Some(1)])), (5, cpu(2, vec![]))]
                .into(),
        };
        assert_eq!(Times::parse(times.to_string().trim_end()), Some(times.clone()));
        assert_eq!(Times::parse(&times.to_string()), Some(times));
        for wrong in
            ["", "seed 1\n", "seed x\n0 0 0 1 1 1 1\n", "seed 1\n0 0 0 nan 1 1 1\n", "seed 1\n0 0 0 1\n"]
        {
            assert_eq!(Times::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_console_loads_a_machine_and_lets_its_time_pass() {
        let machine = crate::description::named("core-i5-2gen").unwrap();
        let energy = |m: &Emulator| m.zone_total_uj()[0];
        machine.furnish();
        let joules = |load: &str| {
            machine.write(LOAD, load.as_bytes()).unwrap();
            let before = energy(&machine);
            machine.write(PASS_NS, b"1000000000\n").unwrap();
            energy(&machine) - before
        };
        let (idle, busy) = (joules("0 0\n1 0\n2 0\n3 0\n"), joules("0 1000\n1 1000\n2 1000\n3 1000\n"));
        assert!(busy > 2 * idle, "{busy} {idle}");
        assert_eq!(text(&machine, PASS_NS).as_deref(), Some("2000000000"));
        assert!(text(&machine, LOAD).is_some_and(|l| l.starts_with("0 1000\n1 1000")));
        assert_eq!(text(&machine, TIMES).as_deref(), Some(""));
        for (file, value) in [(LOAD, "0 1001"), (LOAD, "0"), (PASS_NS, "-1"), (PASS_NS, "10000000001")] {
            assert!(machine.write(file, value.as_bytes()).is_err(), "{file} {value}");
        }
        assert!(machine.write(TIMES, b"1").is_err());
    }
}
