//! The registers of a machine, read and written through its `dev/cpu/N/msr`.

use crate::msr::{Refused, Register, RegisterError, Registers, Wake};
use crate::root::{Access, Node, Root, read_register};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;

/// Why a register could not be read or written: one line with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum MsrError {
    /// There is no such device file.
    #[error("dev/cpu/{cpu}/msr: not there: load the module `msr` (modprobe msr), or cpu{cpu} does not exist")]
    NoDevice {
        /// The CPU.
        cpu: u32,
    },
    /// The kernel does not let us.
    #[error(
        "dev/cpu/{cpu}/msr: no permission to {verb}: it needs the capability CAP_SYS_RAWIO and {verb} access \
         to that file; under kernel lockdown registers cannot be written at all"
    )]
    Permission {
        /// The CPU.
        cpu: u32,
        /// `read` or `write`.
        verb: &'static str,
    },
    /// The CPU is offline.
    #[error("dev/cpu/{cpu}/msr: cpu{cpu} is offline")]
    Offline {
        /// The CPU.
        cpu: u32,
    },
    /// The CPU idles and the reader did not want to wake it.
    #[error("cpu{cpu} idles: {register} is not read, that would wake it")]
    Idle {
        /// The CPU.
        cpu: u32,
        /// The register.
        register: String,
    },
    /// The CPU refused the access (#GP): the model has no such register, or a hypervisor hides it.
    #[error(
        "cpu{cpu}: the CPU refuses to {verb} {register} ({address:#X}): this model or its hypervisor has it not"
    )]
    Fault {
        /// The CPU.
        cpu: u32,
        /// `read` or `write`.
        verb: &'static str,
        /// The register.
        register: String,
        /// Its address.
        address: u32,
    },
    /// The write is against the rules; nothing was written.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The value has no place in the register; nothing was written.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The device was opened for reading only.
    #[error("{0}: not written: the registers were opened for reading only")]
    ReadOnly(String),
    /// Anything else that the system said.
    #[error("dev/cpu/{cpu}/msr: {register}: {error}")]
    Io {
        /// The CPU.
        cpu: u32,
        /// The register.
        register: String,
        /// What the system said.
        error: io::Error,
    },
}

/// A change that was made: what was there, what was written, what is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MsrChange {
    /// Before.
    pub old: u64,
    /// What the register should hold now.
    pub asked: u64,
    /// What it holds, read back.
    pub got: u64,
    /// The bits that were to change.
    pub bits: u64,
}

impl MsrChange {
    /// Whether every bit that was to change has.
    pub fn held(&self) -> bool {
        (self.asked ^ self.got) & self.bits == 0
    }
}

/// The machine's register devices. A device stays open once it was used: a steady loop of reads opens
/// nothing twice.
pub struct MsrDevice<'r> {
    root: &'r dyn Root,
    registers: Arc<Registers>,
    access: Access,
    nodes: BTreeMap<u32, Box<dyn Node>>,
}

impl<'r> MsrDevice<'r> {
    /// For reading; [`MsrDevice::modify`] then always fails.
    pub fn for_reading(root: &'r dyn Root, registers: impl Into<Arc<Registers>>) -> MsrDevice<'r> {
        MsrDevice { root, registers: registers.into(), access: Access::Read, nodes: BTreeMap::new() }
    }

    /// For reading and writing. Every device is opened for both at once.
    pub fn for_changing(root: &'r dyn Root, registers: impl Into<Arc<Registers>>) -> MsrDevice<'r> {
        MsrDevice { root, registers: registers.into(), access: Access::Write, nodes: BTreeMap::new() }
    }

    /// The registers that may be used, with the rules for writing. Shared, so that one of them can be
    /// handed to [`MsrDevice::read`].
    pub fn registers(&self) -> Arc<Registers> {
        Arc::clone(&self.registers)
    }

    /// The value of a register.
    ///
    /// # Errors
    /// [`MsrError::Idle`] if `wake` forbids it; else what [`MsrError`] lists.
    pub fn read(&mut self, cpu: u32, register: &Register, wake: Wake<'_>) -> Result<u64, MsrError> {
        if let Wake::No(awake) = wake
            && !awake(cpu)
        {
            return Err(MsrError::Idle { cpu, register: register.name.clone() });
        }
        let node = self.node(cpu)?;
        read_register(node, register.address).map_err(|e| error(cpu, register, "read", e))
    }

    /// Reads, lets `change` compute the new value, checks it against the rules, writes it and reads
    /// back. A value that is the old one is not written. Only the bits that `change` changes are
    /// written differently; it wakes the CPU, being asked for.
    ///
    /// Two writers can still cross between read and write: the register has no lock. Changes to one
    /// machine go through one writer, and [`MsrChange::got`] shows what is left of ours.
    ///
    /// # Errors
    /// [`MsrError::Refused`] or [`MsrError::Register`] before anything is written; else what
    /// [`MsrError`] lists.
    pub fn modify(
        &mut self,
        cpu: u32,
        register: &Register,
        change: impl FnOnce(u64) -> Result<u64, RegisterError>,
    ) -> Result<MsrChange, MsrError> {
        if self.access == Access::Read {
            return Err(MsrError::ReadOnly(register.name.clone()));
        }
        let old = self.read(cpu, register, Wake::Yes)?;
        let asked = change(old)?;
        self.registers.check_write(register.address, old, asked)?;
        if asked == old {
            return Ok(MsrChange { old, asked, got: old, bits: 0 });
        }
        // The rules' own register counts, not the caller's copy of one.
        let rules = self.registers.at(register.address).unwrap_or(register);
        let value = Registers::value_to_write(rules, old, asked);
        let node = self.node(cpu)?;
        node.write_at(u64::from(register.address), &value.to_le_bytes())
            .map_err(|e| error(cpu, register, "write", e))?;
        let got = self.read(cpu, register, Wake::Yes)?;
        Ok(MsrChange { old, asked, got, bits: old ^ asked })
    }

    fn node(&mut self, cpu: u32) -> Result<&mut dyn Node, MsrError> {
        let node = match self.nodes.entry(cpu) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => {
                let verb = if self.access == Access::Read { "read" } else { "write" };
                let opened = self.root.open(&format!("dev/cpu/{cpu}/msr"), self.access);
                place.insert(opened.map_err(|e| match e.kind() {
                    io::ErrorKind::NotFound => MsrError::NoDevice { cpu },
                    io::ErrorKind::PermissionDenied => MsrError::Permission { cpu, verb },
                    _ if e.raw_os_error() == Some(libc::ENXIO) => MsrError::Offline { cpu },
                    _ => MsrError::Io { cpu, register: "open".into(), error: e },
                })?)
            }
        };
        Ok(&mut **node)
    }
}

fn error(cpu: u32, register: &Register, verb: &'static str, e: io::Error) -> MsrError {
    match e.raw_os_error() {
        Some(libc::EIO) => {
            MsrError::Fault { cpu, verb, register: register.name.clone(), address: register.address }
        }
        Some(libc::ENXIO | libc::ENODEV) => MsrError::Offline { cpu },
        Some(libc::EPERM | libc::EACCES) => MsrError::Permission { cpu, verb },
        _ => MsrError::Io { cpu, register: register.name.clone(), error: e },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::cpuid::{CpuFacts, Feature, Vendor};
    use crate::msr::fake::{FakeMsr, FakeMsrRoot};

    fn machine() -> (Registers, FakeMsrRoot) {
        let cpu = CpuFacts::of(Vendor::Intel, 6, 0x55).with(&[
            Feature::ClockModulation,
            Feature::Tm2,
            Feature::Est,
            Feature::AperfMperf,
        ]);
        let registers = Registers::for_cpu(&cpu);
        (registers.clone(), FakeMsrRoot::new(FakeMsr::new(registers, [0, 1])))
    }

    #[test]
    fn a_change_is_read_back_and_nothing_is_opened_twice() {
        let (registers, root) = machine();
        let mut device = MsrDevice::for_changing(&root, registers.clone());
        let modulation = registers.get("IA32_CLOCK_MODULATION").unwrap();
        for _ in 0..5 {
            let change = device.modify(1, modulation, |_| Ok(0b1_1000)).unwrap();
            assert!(change.held() && change.got == 0b1_1000, "{change:?}");
            device.read(0, modulation, Wake::Yes).unwrap();
        }
        assert_eq!(root.opened(), ["dev/cpu/1/msr", "dev/cpu/0/msr"]);
        assert_eq!(root.msr().writes().len(), 1, "the same value again is not written");
    }

    #[test]
    fn a_sleeper_is_not_read() {
        let (registers, root) = machine();
        let mut device = MsrDevice::for_reading(&root, registers.clone());
        let aperf = registers.get("IA32_APERF").unwrap();
        root.msr().set(1, 0xE8, 77);
        let awake = |cpu| cpu == 1;
        let refused = device.read(0, aperf, Wake::No(&awake)).unwrap_err();
        assert_eq!(refused.to_string(), "cpu0 idles: IA32_APERF is not read, that would wake it");
        assert!(root.opened().is_empty() && root.msr().reads() == 0);
        assert_eq!(device.read(1, aperf, Wake::No(&awake)).unwrap(), 77);
    }

    #[test]
    fn a_log_set_meanwhile_survives_clearing_another() {
        let (registers, root) = machine();
        let mut device = MsrDevice::for_changing(&root, registers.clone());
        let status = registers.get("IA32_THERM_STATUS").unwrap();
        root.msr().set(0, 0x19C, 0b10);
        let change = device
            .modify(0, status, |raw| {
                root.msr().set(0, 0x19C, 0b1010);
                status.field("hot_log")?.set(raw, 0)
            })
            .unwrap();
        assert_eq!(change.got, 0b1000);
        assert!(change.held());
    }

    #[test]
    fn errors_are_one_line_with_the_remedy() {
        let (registers, root) = machine();
        let perf = registers.get("IA32_PERF_CTL").unwrap().clone();
        let mut reading = MsrDevice::for_reading(&root, registers.clone());
        let words = reading.modify(0, &perf, Ok).unwrap_err().to_string();
        assert!(words.contains("for reading only"), "{words}");
        let mut device = MsrDevice::for_changing(&root, registers.clone());
        let words = device.read(9, &perf, Wake::Yes).unwrap_err().to_string();
        assert!(words.contains("modprobe msr"), "{words}");
        root.msr().set_online(1, false);
        let words = device.read(1, &perf, Wake::Yes).unwrap_err().to_string();
        assert_eq!(words, "dev/cpu/1/msr: cpu1 is offline");
        let mut strange = perf.clone();
        strange.address = 0x123;
        let words = device.read(0, &strange, Wake::Yes).unwrap_err().to_string();
        assert!(words.contains("refuses to read IA32_PERF_CTL (0x123)"), "{words}");
        let writes = root.msr().writes().len();
        let words = device.modify(0, &perf, |raw| Ok(raw | 1 << 40)).unwrap_err().to_string();
        assert_eq!(words, "IA32_PERF_CTL (0x199): bit 40 is reserved on this model");
        assert_eq!(root.msr().writes().len(), writes, "nothing reached the device");
        // A caller's register with its mask widened by hand does not widen the rule.
        let mut widened = perf.clone();
        widened.fields[0].hi = 40;
        assert!(matches!(device.modify(0, &widened, |raw| Ok(raw | 1 << 40)), Err(MsrError::Refused(_))));
    }

    #[test]
    fn this_machine_answers_or_says_why() {
        let root = crate::root::DirRoot::this_machine();
        let (registers, _) = machine();
        let mut device = MsrDevice::for_reading(&root, registers);
        let registers = device.registers();
        let register = registers.get("IA32_PERF_STATUS").unwrap();
        if let Err(e) = device.read(0, register, Wake::Yes) {
            assert!(!e.to_string().contains('\n'), "{e}");
        }
    }

    #[test]
    fn a_register_that_ignores_is_told() {
        let (registers, root) = machine();
        root.msr().stick(0x19A, true);
        let mut device = MsrDevice::for_changing(&root, registers.clone());
        let modulation = registers.get("IA32_CLOCK_MODULATION").unwrap();
        let change = device.modify(0, modulation, |_| Ok(0b1_1000)).unwrap();
        assert!(!change.held());
        assert_eq!((change.asked, change.got), (0b1_1000, 0));
    }
}
