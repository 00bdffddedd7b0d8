//! The one place where a value is read from, or written to, a file or a register.

use serde::{Deserialize, Serialize};
use std::io;
use wattwise_hw::cpus::cpuid::CpuFacts;
use wattwise_hw::msr::Registers;
use wattwise_hw::root::{Access, Root, read_register};

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

    /// Its value now.
    pub fn read(&self, root: &dyn Root) -> io::Result<String> {
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
fn chosen(text: &str) -> Option<String> {
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
