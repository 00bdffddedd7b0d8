//! The one place where a value is read from, or written to, a file or a register.

use serde::{Deserialize, Serialize};
use std::io;
use std::time::{Duration, Instant};
use wattwise_hw::cpus::cpuid::CpuFacts;
use wattwise_hw::msr::Registers;
use wattwise_hw::root::{Access, Root, read_register};
use wattwise_hw::rules;

/// How long a write waits for its effect, where the kernel has left that to a worker.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Something that holds a value which can be changed and put back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An attribute; its value is its text without the white space around it.
    File(String),
    /// Some bits of a register of one CPU; the value is those bits in place, in hexadecimal.
    Register {
        /// Whose.
        cpu: u32,
        /// Its address.
        address: u32,
        /// Its bits that are ours to change.
        mask: u64,
    },
}

impl Target {
    /// The file behind it.
    pub fn path(&self) -> String {
        match self {
            Target::File(path) => path.clone(),
            Target::Register { cpu, .. } => format!("dev/cpu/{cpu}/msr"),
        }
    }

    /// An attribute is named by a journal, and journals are files: only those that the rules know are touched.
    fn known(&self) -> io::Result<()> {
        match self {
            Target::File(path) if rules::attribute(path).is_none_or(|a| a.read_only) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "is no attribute that wattwise sets; nothing was done with it",
            )),
            _ => Ok(()),
        }
    }

    /// Its value now.
    pub fn read(&self, root: &dyn Root) -> io::Result<String> {
        self.known()?;
        match self {
            Target::File(path) => {
                let text = String::from_utf8_lossy(&root.read(path)?).trim().to_owned();
                Ok(chosen(&text).unwrap_or(text))
            }
            Target::Register { address, mask, .. } => {
                let raw = read_register(&mut *root.open(&self.path(), Access::Read)?, *address)?;
                Ok(format!("{:#x}", raw & mask))
            }
        }
    }

    /// Writes it; of a register, the bits under the mask alone.
    pub fn write(&self, root: &dyn Root, value: &str) -> io::Result<()> {
        self.known()?;
        match self {
            Target::File(path) => {
                let expected = limit_shows(root, path, value);
                root.write(path, value.as_bytes())?;
                if let Some(expected) = expected {
                    self.wait_until_shown(root, &expected);
                }
                Ok(())
            }
            Target::Register { cpu, address, mask } => {
                let bits = value.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                let bits = bits.filter(|b| b & !mask == 0).ok_or(io::ErrorKind::InvalidInput)?;
                let mut node = root.open(&self.path(), Access::Write)?;
                let raw = read_register(&mut *node, *address)?;
                let new = (raw & !mask) | bits;
                // A journal is a file, and files can be edited: the allowlist judges here as well.
                let facts = CpuFacts::read(root, *cpu).map_err(io::Error::other)?;
                let registers = Registers::for_cpu(&facts);
                registers
                    .check_write(*address, raw, new)
                    .map_err(|e| io::Error::new(io::ErrorKind::PermissionDenied, e))?;
                let new = registers.at(*address).map_or(new, |r| Registers::value_to_write(r, raw, new));
                node.write_at(u64::from(*address), &new.to_le_bytes())
            }
        }
    }

    /// Reads until `expected` is shown, for [`LONGEST_WAIT`] at most: another limit, which the rules cannot see, may hold it
    /// elsewhere (a thermal one).
    fn wait_until_shown(&self, root: &dyn Root, expected: &str) {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(50);
        while self.read(root).is_ok_and(|now| now != expected) && begun.elapsed() < LONGEST_WAIT {
            std::thread::sleep(pause);
            pause *= 2;
        }
    }
}

/// What a limit of a cpufreq policy will show once `value` is in force. Nothing for other attributes, which show it at once.
///
/// Since Linux 5.3 the limits are QoS requests, and a kernel worker applies them after the write has returned
/// (`cpufreq_notifier_max()` of `drivers/cpufreq/cpufreq.c`): on a busy machine the old limit is read for a while.
fn limit_shows(root: &dyn Root, path: &str, value: &str) -> Option<String> {
    let is_limit = path.ends_with("/scaling_min_freq") || path.ends_with("/scaling_max_freq");
    is_limit.then(|| rules::judge(&root, path, value).ok()).flatten()
}

/// Attributes that list all choices and bracket the one in force (`[active] passive`).
pub(super) fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (choice, _) = rest.split_once(']')?;
    Some(choice.to_owned())
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::File(path) => write!(f, "/{path}"),
            Target::Register { cpu, address, mask } => {
                write!(f, "CPU {cpu} register {address:#x} bits {mask:#x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::faults::Fixed;
    use std::sync::Mutex;
    use wattwise_emulator::Emulator;
    use wattwise_hw::root::{DirRoot, Node};

    const LIMIT: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq";

    /// A machine that applies a limit late: the next reads of it after a write still show the old one.
    struct Late {
        machine: Emulator,
        reads: usize,
        stale: Mutex<(usize, Vec<u8>)>,
    }

    impl Root for Late {
        fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
            if path == LIMIT {
                let mut stale = self.stale.lock().expect("no thread panicked");
                match access {
                    Access::Write => *stale = (self.reads, self.machine.read(path)?),
                    Access::Read if stale.0 > 0 => {
                        stale.0 -= 1;
                        return Ok(Box::new(Fixed(stale.1.clone())));
                    }
                    Access::Read => {}
                }
            }
            self.machine.open(path, access)
        }
        fn list(&self, path: &str) -> io::Result<Vec<String>> {
            self.machine.list(path)
        }
        fn describe(&self) -> String {
            self.machine.describe()
        }
    }

    fn late(reads: usize) -> Late {
        let machine = wattwise_emulator::named("core-i5-2gen").expect("it is bundled");
        Late { machine, reads, stale: Mutex::default() }
    }

    #[test]
    fn a_limit_that_takes_effect_late_is_waited_for() {
        let machine = late(5);
        let target = Target::File(LIMIT.into());
        let before = target.read(&machine).expect("a limit");
        target.write(&machine, "1600000").expect("it is taken");
        assert_ne!(before, "1600000");
        assert_eq!(target.read(&machine).expect("a limit"), "1600000");
    }

    #[test]
    fn a_limit_that_never_takes_effect_is_not_waited_for_forever() {
        let machine = late(usize::MAX);
        let target = Target::File(LIMIT.into());
        let before = target.read(&machine).expect("a limit");
        target.write(&machine, "1600000").expect("it is taken");
        assert_eq!(target.read(&machine).expect("a limit"), before);
    }

    #[test]
    fn only_attributes_that_the_rules_know_are_touched() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let base = folder.path().join("tree");
        std::fs::create_dir_all(base.join("sys/devices/system/cpu/cpufreq"))?;
        std::fs::create_dir_all(base.join("proc/irq/7"))?;
        for path in [
            "x",
            "tree/etc",
            "tree/sys/devices/system/cpu/cpufreq/boost",
            "tree/proc/irq/7/smp_affinity_list",
        ] {
            std::fs::write(folder.path().join(path), "0")?;
        }
        let root = DirRoot::new(&base);
        for path in [
            "../x",
            "etc",
            "/etc",
            "sys/devices/../../etc",
            "sys/devices/system/cpu/cpufreq/../../../../../../x",
            "proc/irq/../smp_affinity_list",
        ] {
            let target = Target::File(path.into());
            for e in [target.write(&root, "1").err(), target.read(&root).err()] {
                assert!(e.is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied), "{path}");
            }
        }
        for path in ["sys/devices/system/cpu/cpufreq/boost", "proc/irq/7/smp_affinity_list"] {
            Target::File(path.into()).write(&root, "1")?;
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("x"))?, "0");
        Ok(())
    }
}
