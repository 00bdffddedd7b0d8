//! Model-specific registers, as `dev/cpu/N/msr` gives them.

use rustix::io::Errno;
use std::collections::BTreeMap;

/// Something that has registers. The emulator's own is a plain map; a fuller one can take its place.
pub trait RegisterDevice: Send {
    /// A register's value.
    ///
    /// # Errors
    /// EIO for a register that the processor does not have.
    fn read(&self, cpu: u32, address: u32) -> Result<u64, Errno>;
    /// Sets a register.
    ///
    /// # Errors
    /// EIO for a register that the processor does not have or does not let be written.
    fn write(&mut self, cpu: u32, address: u32, value: u64) -> Result<(), Errno>;
}

/// Registers with given start values, each CPU's own. Others do not exist.
#[derive(Debug, Clone)]
pub struct Registers {
    start: BTreeMap<u32, u64>,
    written: BTreeMap<(u32, u32), u64>,
}

impl Registers {
    /// These registers on every CPU.
    pub fn new(start: BTreeMap<u32, u64>) -> Registers {
        Registers { start, written: BTreeMap::new() }
    }
}

impl RegisterDevice for Registers {
    fn read(&self, cpu: u32, address: u32) -> Result<u64, Errno> {
        let written = self.written.get(&(cpu, address)).or_else(|| self.start.get(&address));
        written.copied().ok_or(Errno::IO)
    }

    fn write(&mut self, cpu: u32, address: u32, value: u64) -> Result<(), Errno> {
        if !self.start.contains_key(&address) {
            return Err(Errno::IO);
        }
        self.written.insert((cpu, address), value);
        Ok(())
    }
}
