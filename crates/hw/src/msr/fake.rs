//! Registers that keep the hardware's rules, for tests and the emulator.
//!
//! What a CPU does and this does too: an address without a register, and a write to a read-only
//! register, fault (the kernel makes `EIO` of #GP); so does a write that changes a reserved bit;
//! read-only bits keep their value whatever is written; a log bit goes to 0 by writing 0 and stays as
//! it is by writing 1; bits under a set lock keep their value; a register of a core or package is one
//! register whichever thread reads it; an offline CPU gives `ENXIO`. Counters move when
//! [`FakeMsr::count`] says so and wrap at their width.
//!
//! It does not know our rules: bits that we refuse to write it accepts. That is the point.

use crate::msr::{Register, Registers, Scope};
use crate::root::{Access, Node, Root};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which CPU stands for all that share a register with this one.
type Home = Box<dyn Fn(Scope, u32) -> u32 + Send + Sync>;

/// A write to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsrWrite {
    /// CPU.
    pub cpu: u32,
    /// Address of the register.
    pub address: u32,
    /// Value.
    pub value: u64,
}

/// The registers of a machine.
pub struct FakeMsr {
    registers: Registers,
    /// Whether each CPU is online.
    cpus: BTreeMap<u32, bool>,
    home: Home,
    values: BTreeMap<(u32, u32), u64>,
    stuck: BTreeSet<u32>,
    writes: Vec<MsrWrite>,
    reads: u64,
}

fn os(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl FakeMsr {
    /// A machine with these CPUs, all online, each a core and a package of its own, all registers 0.
    pub fn new(registers: Registers, cpus: impl IntoIterator<Item = u32>) -> FakeMsr {
        FakeMsr {
            registers,
            cpus: cpus.into_iter().map(|cpu| (cpu, true)).collect(),
            home: Box::new(|_, cpu| cpu),
            values: BTreeMap::new(),
            stuck: BTreeSet::new(),
            writes: Vec::new(),
            reads: 0,
        }
    }

    /// With shared registers: `home` gives one CPU for all that share a register of that scope.
    pub fn with_topology(mut self, home: impl Fn(Scope, u32) -> u32 + Send + Sync + 'static) -> FakeMsr {
        self.home = Box::new(home);
        self
    }

    fn find(&self, cpu: u32, address: u32) -> io::Result<(&Register, (u32, u32))> {
        match self.cpus.get(&cpu) {
            Some(true) => {}
            _ => return Err(os(libc::ENXIO)),
        }
        let register = self.registers.at(address).ok_or_else(|| os(libc::EIO))?;
        Ok((register, ((self.home)(register.scope, cpu), address)))
    }

    /// What software reads.
    ///
    /// # Errors
    /// `ENXIO` offline or no such CPU, `EIO` no such register.
    pub fn read(&mut self, cpu: u32, address: u32) -> io::Result<u64> {
        self.reads += 1;
        let (_, place) = self.find(cpu, address)?;
        Ok(self.values.get(&place).copied().unwrap_or(0))
    }

    /// What software writes.
    ///
    /// # Errors
    /// `ENXIO` offline or no such CPU; `EIO` no such register, read-only, or a reserved bit changed.
    pub fn write(&mut self, cpu: u32, address: u32, value: u64) -> io::Result<()> {
        self.writes.push(MsrWrite { cpu, address, value });
        let (register, place) = self.find(cpu, address)?;
        let old = self.values.get(&place).copied().unwrap_or(0);
        let may = register.hardware_mask();
        if may == 0 || (old ^ value) & !register.known_mask() != 0 {
            return Err(os(libc::EIO));
        }
        let logs = register.log_mask();
        let moves = may & !logs & !register.locked(old);
        let new = old & !(moves | logs) | value & moves | old & value & logs;
        if !self.stuck.contains(&address) {
            self.values.insert(place, new);
        }
        Ok(())
    }

    /// What the hardware itself puts there. No rule holds but that the register is the one shared by
    /// all CPUs of its scope.
    pub fn set(&mut self, cpu: u32, address: u32, value: u64) {
        let scope = self.registers.at(address).map_or(Scope::Thread, |r| r.scope);
        self.values.insert(((self.home)(scope, cpu), address), value);
    }

    /// Moves a counter on, wrapping at its field's width. Registers without a counter stay.
    pub fn count(&mut self, cpu: u32, address: u32, by: u64) {
        let Some(register) = self.registers.at(address) else { return };
        let place = ((self.home)(register.scope, cpu), address);
        let Some(field) = register.fields.iter().find(|f| f.counter) else { return };
        let old = self.values.get(&place).copied().unwrap_or(0);
        let next = field.get(old).wrapping_add(by) & field.most();
        let new = old & !field.mask() | next << field.lo;
        self.values.insert(place, new);
    }

    /// Takes a CPU off line or back. Its registers keep their values.
    pub fn set_online(&mut self, cpu: u32, online: bool) {
        self.cpus.insert(cpu, online);
    }

    /// Whether a register takes no writes, silently, as one under a hypervisor may.
    pub fn stick(&mut self, address: u32, stuck: bool) {
        if stuck {
            self.stuck.insert(address);
        } else {
            self.stuck.remove(&address);
        }
    }

    /// Every write that came, also the ones that faulted.
    pub fn writes(&self) -> &[MsrWrite] {
        &self.writes
    }

    /// How many reads came.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// The CPUs, offline ones too.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.cpus.keys().copied().collect::<Vec<_>>().into_iter()
    }

    /// What `pread` on `dev/cpu/N/msr` does: 8 bytes at the register's address.
    ///
    /// # Errors
    /// As [`FakeMsr::read`]; `EINVAL` for a length that is no multiple of 8.
    pub fn read_at(&mut self, cpu: u32, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || !into.len().is_multiple_of(8) {
            return Err(os(libc::EINVAL));
        }
        for chunk in into.chunks_mut(8) {
            // The driver does not advance: every 8 bytes are the same register again.
            chunk.copy_from_slice(&self.read(cpu, offset as u32)?.to_le_bytes());
        }
        Ok(into.len())
    }

    /// What `pwrite` on `dev/cpu/N/msr` does.
    ///
    /// # Errors
    /// As [`FakeMsr::write`]; `EINVAL` for a length that is no multiple of 8.
    pub fn write_at(&mut self, cpu: u32, offset: u64, value: &[u8]) -> io::Result<()> {
        if value.is_empty() || !value.len().is_multiple_of(8) {
            return Err(os(libc::EINVAL));
        }
        for chunk in value.chunks(8) {
            let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.write(cpu, offset as u32, word)?;
        }
        Ok(())
    }
}

/// A tree of nothing but `dev/cpu/N/msr` over a [`FakeMsr`], and whatever another tree has besides.
pub struct FakeMsrRoot {
    msr: Arc<Mutex<FakeMsr>>,
    rest: Option<Box<dyn Root>>,
    opened: Mutex<Vec<String>>,
}

impl FakeMsrRoot {
    /// The devices alone.
    pub fn new(msr: FakeMsr) -> FakeMsrRoot {
        FakeMsrRoot { msr: Arc::new(Mutex::new(msr)), rest: None, opened: Mutex::default() }
    }

    /// The devices in front of another tree.
    pub fn over(msr: FakeMsr, rest: Box<dyn Root>) -> FakeMsrRoot {
        FakeMsrRoot { rest: Some(rest), ..FakeMsrRoot::new(msr) }
    }

    /// The registers behind the devices.
    pub fn msr(&self) -> MutexGuard<'_, FakeMsr> {
        self.msr.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every path that was opened, in order.
    pub fn opened(&self) -> Vec<String> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct FakeNode {
    msr: Arc<Mutex<FakeMsr>>,
    cpu: u32,
    access: Access,
}

impl Node for FakeNode {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.msr.lock().unwrap_or_else(PoisonError::into_inner).read_at(self.cpu, offset, into)
    }

    fn write_at(&mut self, offset: u64, value: &[u8]) -> io::Result<()> {
        if self.access == Access::Read {
            return Err(os(libc::EBADF));
        }
        self.msr.lock().unwrap_or_else(PoisonError::into_inner).write_at(self.cpu, offset, value)
    }
}

fn cpu_of(path: &str) -> Option<u32> {
    path.trim_start_matches('/').strip_prefix("dev/cpu/")?.strip_suffix("/msr")?.parse().ok()
}

impl Root for FakeMsrRoot {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        match (cpu_of(path), &self.rest) {
            (Some(cpu), _) => match self.msr().cpus.get(&cpu) {
                None => Err(os(libc::ENOENT)),
                Some(false) => Err(os(libc::ENXIO)),
                Some(true) => Ok(Box::new(FakeNode { msr: Arc::clone(&self.msr), cpu, access })),
            },
            (None, Some(rest)) => rest.open(path, access),
            (None, None) => Err(os(libc::ENOENT)),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        match (path.trim_matches('/'), &self.rest) {
            ("dev/cpu", _) => Ok(self.msr().cpus().map(|cpu| cpu.to_string()).collect()),
            (_, Some(rest)) => rest.list(path),
            _ => Err(os(libc::ENOENT)),
        }
    }

    fn describe(&self) -> String {
        "the fake register device".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::cpuid::{CpuFacts, Feature, Vendor};

    fn registers() -> Registers {
        Registers::for_cpu(
            &CpuFacts::of(Vendor::Intel, 6, 0x9E).with(&[Feature::ClockModulation, Feature::Est]),
        )
    }

    #[test]
    fn the_hardware_s_rules_hold() {
        let mut msr = FakeMsr::new(registers(), 0..4)
            .with_topology(|scope, cpu| if scope == Scope::Package { 0 } else { cpu });
        let code = |r: io::Result<()>| r.unwrap_err().raw_os_error().unwrap();
        assert_eq!(code(msr.read(0, 0x777).map(|_| ())), libc::EIO, "no HWP here");
        assert_eq!(code(msr.write(0, 0x198, 1)), libc::EIO, "read-only");
        assert_eq!(code(msr.write(0, 0x19A, 1 << 7)), libc::EIO, "reserved");
        assert_eq!(code(msr.write(9, 0x19A, 0)), libc::ENXIO);
        msr.set(0, 0x19C, 0b1111);
        msr.write(0, 0x19C, 0b1000).unwrap();
        assert_eq!(msr.read(0, 0x19C).unwrap(), 0b1101, "logs cleared by 0, kept by 1; states kept");
        // A package's register is one, whoever writes it.
        msr.write(3, 0x620, 0x0816).unwrap();
        assert_eq!(msr.read(1, 0x620).unwrap(), 0x0816);
        // A reserved bit that is set already is no fault when written back.
        msr.set(2, 0x19A, 1 << 9);
        msr.write(2, 0x19A, 1 << 9 | 0b1_0100).unwrap();
        // Energy wraps at 32 bits.
        msr.set(0, 0x611, u64::from(u32::MAX) - 1);
        msr.count(0, 0x611, 5);
        assert_eq!(msr.read(2, 0x611).unwrap(), 3);
        // What we refuse, the hardware takes: the lock, and it then holds.
        msr.write(0, 0x610, 1 << 63 | 7).unwrap();
        msr.write(0, 0x610, 1 << 63 | 9).unwrap();
        assert_eq!(msr.read(0, 0x610).unwrap(), 1 << 63 | 7);
    }
}
