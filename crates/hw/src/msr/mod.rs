//! Model-specific registers: the mechanism below the kernel's drivers.
//!
//! Study 004 writes registers from a kernel module because, of what it wanted (T-states, P-states
//! held by one thread, the switch of boost), the files of sysfs offer some on some machines and none
//! on others. Study 003 shows the other side: where a driver owns a state, a register written behind
//! its back is overwritten at the next tick, and both then report something else. So the order is
//! **sysfs first, then the register**: cpufreq, cpuidle, powercap and the rest have drivers that know
//! the model's errata; registers are for what has no file (clock modulation, HDC, thermal logs,
//! boost of one thread), and for looking at what a driver really did.
//!
//! A wrong bit here stops a machine, so nothing pokes:
//!
//! 1. Registers are *declared*, in `machines/registers/*.toml` ([`register_toml`] has the format): address,
//!    bits, meaning, the models and CPUID features that they need. What is not declared for this CPU
//!    does not exist for us, and a bit of no field is reserved.
//! 2. [`Registers::for_cpu`] is the allowlist of one CPU model, [`Registers::check_write`] its rule: a
//!    write may change only bits whose field is writable and not refused. Every refusal is one line
//!    with its reason.
//! 3. [`MsrDevice`] is the only writer. It reads, changes, checks, writes and reads back.
//! 4. Log bits that are cleared by writing 0 are written as 1 unless they are to be cleared: a log that
//!    the hardware sets between our read and our write is not lost.
//! 5. Reading wakes: the kernel interrupts the CPU whose register it is. A reader says whether it may
//!    ([`Wake`]).
//!
//! [`tstate`] and [`pstate`] know the values, [`fake`] stands in for the hardware.

pub mod awake;
#[cfg(test)]
mod bit_tests;
pub mod counters;
mod device;
pub mod fake;
pub mod pstate;
mod register;
pub mod register_toml;
pub mod tstate;

pub use crate::msr::awake::{Awake, Wake};
pub use crate::msr::device::{MsrChange, MsrDevice, MsrError};
pub use crate::msr::register::{Decoded, Field, FieldAccess, Register, RegisterError, Scope};
pub use crate::msr::register_toml::{Absent, RegisterFile, RegisterFileError};

use crate::cpus::cpuid::CpuFacts;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The bundled register files, by name: text as it lies in `machines/registers/`.
pub const BUNDLED: &[(&str, &str)] = &[
    ("intel.toml", include_str!("../../../../machines/registers/intel.toml")),
    ("amd.toml", include_str!("../../../../machines/registers/amd.toml")),
];

static FILES: LazyLock<Vec<RegisterFile>> = LazyLock::new(|| {
    BUNDLED
        .iter()
        // A test parses them: this cannot fail in a program that was released.
        .map(|(name, text)| crate::msr::register_toml::parse(text, name).unwrap_or_else(|e| panic!("{e}")))
        .collect()
});

/// A write that is not made, and why. One line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{register} ({address:#X}): {why}")]
pub struct Refused {
    /// The register's name, or `register` if we know none.
    pub register: String,
    /// Its address.
    pub address: u32,
    /// The rule that refuses.
    pub why: String,
}

/// The registers that one CPU has, and the rule for writing them.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    /// By address.
    by_address: BTreeMap<u32, Register>,
    absent: Vec<Absent>,
}

impl Registers {
    /// The bundled registers that this CPU has.
    pub fn for_cpu(cpu: &CpuFacts) -> Registers {
        Registers::from_files(&FILES, cpu)
    }

    /// Those of the given files that this CPU has.
    pub fn from_files(files: &[RegisterFile], cpu: &CpuFacts) -> Registers {
        let mut all = Registers::default();
        for file in files {
            let (present, absent) = file.for_cpu(cpu);
            all.by_address.extend(present.into_iter().map(|r| (r.address, r)));
            all.absent.extend(absent);
        }
        all
    }

    /// The register of this name.
    ///
    /// # Errors
    /// [`RegisterError::NoRegister`] with the model or the feature that is missing.
    pub fn get(&self, name: &str) -> Result<&Register, RegisterError> {
        self.by_address.values().find(|r| r.name == name).ok_or_else(|| {
            let why = self.absent.iter().find(|a| a.name == name).map(|a| a.why.clone());
            RegisterError::NoRegister {
                name: name.to_owned(),
                why: why.unwrap_or_else(|| "no register of this name is known for this vendor's CPUs".into()),
            }
        })
    }

    /// The register at this address, if the CPU has one there that we know.
    pub fn at(&self, address: u32) -> Option<&Register> {
        self.by_address.get(&address)
    }

    /// All of them, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Register> {
        self.by_address.values()
    }

    /// The registers of the vendor's file that this CPU does not have, each with the reason.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// Whether a register that holds `old` may be given `new`: all bits that differ must be ones that we
    /// may write on this model, a log bit may only be cleared, and no lock may be set.
    ///
    /// # Errors
    /// [`Refused`], with the first bit that may not change and the reason.
    pub fn check_write(&self, address: u32, old: u64, new: u64) -> Result<(), Refused> {
        let Some(register) = self.at(address) else {
            let absent = self.absent.iter().find(|a| a.address == address);
            return Err(Refused {
                register: absent.map_or("register".into(), |a| a.name.clone()),
                address,
                why: absent.map_or("not a register that we know on this CPU".into(), |a| a.why.clone()),
            });
        };
        let refused = |why: String| Err(Refused { register: register.name.clone(), address, why });
        let changed = old ^ new;
        if changed == 0 {
            return Ok(());
        }
        if register.hardware_mask() == 0 {
            return refused("the register is read-only".into());
        }
        let wrong = changed & !register.write_mask();
        if wrong != 0 {
            let bit = wrong.trailing_zeros();
            let field = register.fields.iter().find(|f| f.mask() >> bit & 1 == 1);
            return refused(match field {
                None => format!("bit {bit} is reserved on this model"),
                Some(Field { name, refuse: Some(why), .. }) => {
                    format!("bit {bit} ({name}) is not written: {why}")
                }
                Some(Field { name, .. }) => format!("bit {bit} ({name}) is read-only"),
            });
        }
        let set_log = new & !old & register.log_mask();
        if set_log != 0 {
            return refused(format!("bit {} is a log: it can only be cleared", set_log.trailing_zeros()));
        }
        let locked = changed & register.locked(old);
        if locked != 0 {
            return refused(format!("bit {} is locked by firmware until reset", locked.trailing_zeros()));
        }
        Ok(())
    }

    /// What to write so that the register goes from `old` to `new`: the same, but log bits that are not
    /// to be cleared are written as 1, which leaves them as they are even if the hardware has set one
    /// since it was read.
    pub fn value_to_write(register: &Register, old: u64, new: u64) -> u64 {
        let cleared = old & !new;
        new | register.log_mask() & !cleared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::cpuid::{Feature, Vendor};
    use std::collections::BTreeSet;

    fn skylake() -> CpuFacts {
        CpuFacts::of(Vendor::Intel, 6, 0x55).with(&[
            Feature::Est,
            Feature::ClockModulation,
            Feature::Tm2,
            Feature::Hwp,
            Feature::HwpEpp,
            Feature::Turbo,
        ])
    }

    #[test]
    fn bundled_files_are_sound() {
        for (name, text) in BUNDLED {
            let file = register_toml::parse(text, name).unwrap();
            assert_eq!(file.name(), *name);
            // For every processor that it names: registers, each name and each address once.
            for (vendor, (family, model)) in
                file.vendors().iter().flat_map(|v| file.models().into_iter().map(move |m| (v, m)))
            {
                let cpu = CpuFacts::of(vendor.clone(), family, model).with(Feature::ALL);
                let registers = Registers::from_files(std::slice::from_ref(&file), &cpu);
                let count = registers.iter().count();
                let names: BTreeSet<&str> = registers.iter().map(|r| r.name.as_str()).collect();
                let addresses: BTreeSet<u32> = registers.iter().map(|r| r.address).collect();
                assert_eq!((names.len(), addresses.len()), (count, count), "{name} {family:x}h.{model:x}h");
                assert!(names.contains("IA32_APERF"), "{name} {family:x}h.{model:x}h: {names:?}");
            }
        }
    }

    #[test]
    fn a_model_gets_its_registers_and_the_reason_for_the_others() {
        let registers = Registers::for_cpu(&skylake());
        assert_eq!(registers.get("IA32_HWP_REQUEST").unwrap().address, 0x774);
        let words = registers.get("MSR_PP1_ENERGY_STATUS").unwrap_err().to_string();
        assert_eq!(words, "MSR_PP1_ENERGY_STATUS: not on Intel family 6h model 55h");
        let words = registers.get("IA32_PKG_HDC_CTL").unwrap_err().to_string();
        assert!(words.contains("only CPUID can tell"), "{words}");
        let words = registers.get("CPPC_REQ").unwrap_err().to_string();
        assert!(words.contains("no register of this name"), "{words}");
        // Fields follow the features too.
        let request = registers.get("IA32_HWP_REQUEST").unwrap();
        assert!(request.field("epp").is_ok());
        assert!(request.field("window_mantissa").is_err());
    }

    #[test]
    fn refusals_say_why() {
        let registers = Registers::for_cpu(&skylake());
        let why = |address, old, new| registers.check_write(address, old, new).unwrap_err().to_string();
        assert_eq!(why(0x198, 0, 1), "IA32_PERF_STATUS (0x198): the register is read-only");
        assert_eq!(why(0x19A, 0, 1 << 5), "IA32_CLOCK_MODULATION (0x19A): bit 5 is reserved on this model");
        assert_eq!(why(0x19A, 0, 1), "IA32_CLOCK_MODULATION (0x19A): bit 0 is reserved on this model");
        assert!(why(0x770, 0, 1).contains("cannot be cleared until reset"));
        assert_eq!(
            why(0x19C, 0, 1 << 1),
            "IA32_THERM_STATUS (0x19C): bit 1 is a log: it can only be cleared"
        );
        assert_eq!(why(0x19C, 0, 1), "IA32_THERM_STATUS (0x19C): bit 0 (hot) is read-only");
        assert_eq!(why(0x10, 0, 1), "register (0x10): not a register that we know on this CPU");
        assert!(why(0x641, 0, 1).contains("not on Intel family 6h model 55h"));
        assert!(why(0x610, 1 << 63, 1 << 63 | 1).contains("locked"));
        assert_eq!(registers.check_write(0x19A, 0, 0x1e), Ok(()));
        assert_eq!(registers.check_write(0x19C, 0b11, 0b01), Ok(()));
        assert_eq!(registers.check_write(0x198, 5, 5), Ok(()));
    }

    #[test]
    fn fields_read_and_write_their_own_bits() {
        let registers = Registers::for_cpu(&skylake());
        let modulation = registers.get("IA32_CLOCK_MODULATION").unwrap();
        let duty = modulation.field("duty").unwrap();
        assert_eq!((duty.hi, duty.lo), (3, 1));
        assert_eq!(duty.get(0b1_1010), 5);
        assert_eq!(duty.set(u64::MAX, 0), Ok(!0b1110));
        let wide = duty.set(0, 8).unwrap_err().to_string();
        assert_eq!(wide, "IA32_CLOCK_MODULATION.duty: 8 does not fit: 0 to 7");
        let decoded = modulation.decode(0b1_1010);
        assert_eq!((decoded[0].value, decoded[0].scaled, decoded[0].unit), (5, Some(62.5), Some("%")));
        let status = registers.get("IA32_PERF_STATUS").unwrap();
        assert!(matches!(status.field("control").unwrap().set(0, 1), Err(RegisterError::ReadOnly(_))));
    }

    #[test]
    fn a_log_that_is_not_to_be_cleared_is_written_as_one() {
        let registers = Registers::for_cpu(&skylake());
        let status = registers.get("IA32_THERM_STATUS").unwrap();
        // Bit 1 is to be cleared; 3 to 15 have not been set yet, but might be by the time of the write.
        let written = Registers::value_to_write(status, 0b10, 0);
        assert_eq!(written & 0b10, 0);
        assert_eq!(written, status.log_mask() & !0b10);
    }
}
