//! The one place where a value is read from, or written to, a file or a register.

use serde::{Deserialize, Serialize};
use std::io;
use wattwise_hw::cpus::cpuid::CpuFacts;
use wattwise_hw::msr::Registers;
use wattwise_hw::root::{Access, Root, read_register};
use wattwise_hw::rules;

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
            Target::File(path) => root.write(path, value.as_bytes()),
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
    use wattwise_hw::root::DirRoot;

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
