//! P-states: the control values behind the speeds (004, sections 2.3.3 and 3.4.2).
//!
//! What `IA32_PERF_CTL` takes is 16 bits that mean nothing by themselves: a bus ratio and a voltage
//! code on a Pentium M, a ratio in bits 15:8 since Nehalem. Where there is a cpufreq driver, speeds are
//! set through it, in kHz, and nobody needs the values. They are needed where a thread sets its own
//! state without the driver, and to check what a driver did. In order:
//!
//! 1. `_PSS` of the ACPI tables ([`PStates::from_acpi`]): control and status values as firmware has
//!    them. Only if `_PCT` says that the control register is the CPU's own; else the values are for an
//!    I/O port.
//! 2. 004's fallback ([`Sweep`]): under the governor `userspace`, set each speed of
//!    `scaling_available_frequencies` on all CPUs and read from `IA32_PERF_STATUS` what it became. It
//!    changes the machine for a moment: it says beforehand what it will touch, so that a caller can
//!    write that down, and puts everything back on every path.
//!
//! AMD numbers its P-states, and registers tell what each is: [`amd_definition`].

use crate::acpi::{Acpi, ControlSpace, Processor};
use crate::cpus::cpuid::{CpuFacts, Vendor};
use crate::msr::{MsrDevice, MsrError, RegisterError, Wake};
use crate::root;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::time::Duration;

/// A control value of `IA32_PERF_CTL`, or the number of an AMD P-state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Control(pub u16);

/// A multiple of the bus clock (100 MHz since Sandy Bridge, 133 before).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ratio(pub u8);

impl Control {
    /// The ratio in bits 15:8. On CPUs before Nehalem bit 14 means "and a half" and bits 7:0 a voltage.
    pub fn ratio(self) -> Ratio {
        Ratio((self.0 >> 8) as u8)
    }
}

impl Ratio {
    /// The control value of CPUs since Nehalem.
    pub fn control(self) -> Control {
        Control(u16::from(self.0) << 8)
    }

    /// The speed, kHz, on a bus of so many kHz.
    pub fn khz(self, bus_khz: u32) -> u32 {
        u32::from(self.0) * bus_khz
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// Who told us the control values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PStateSource {
    /// `_PSS`, by the name that holds the list.
    Acpi(String),
    /// A sweep over the frequencies.
    Sweep,
}

/// One P-state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PState {
    /// Speed, kHz.
    pub khz: u32,
    /// What is written.
    pub control: Control,
    /// What the status register shows then.
    pub status: Control,
    /// Power at full load, mW, by firmware.
    pub power_mw: Option<u32>,
    /// Longest time that the change takes, µs, by firmware.
    pub latency_us: Option<u32>,
    /// Longest time that bus masters cannot reach memory meanwhile, µs, by firmware.
    pub bus_master_latency_us: Option<u32>,
}

/// The P-states of a machine, fastest first: P0, P1 and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PStates {
    /// Who told us.
    pub source: PStateSource,
    /// The states.
    pub states: Vec<PState>,
}

/// Why there are no P-states. One line.
#[derive(Debug, thiserror::Error)]
pub enum PStateError {
    /// Firmware lists none; in its words.
    #[error("{0}")]
    NotInAcpi(String),
    /// Firmware's values are for something else than the CPU's register.
    #[error(
        "{path}: _PCT says that P-states are written to {space}, so its control values are not for the CPU's register"
    )]
    NotARegister {
        /// The processor.
        path: String,
        /// Where they are written.
        space: String,
    },
    /// A value has more than the register's 16 bits.
    #[error("{name}: control value {control:#x} has more than 16 bits")]
    Wide {
        /// The list.
        name: String,
        /// The value.
        control: u32,
    },
    /// A sweep cannot be made here.
    #[error("no sweep: {0}")]
    NoSweep(String),
    /// A file could not be written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A register could not be read.
    #[error(transparent)]
    Msr(#[from] MsrError),
    /// The CPU has not the register.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// After a sweep that ended as `outcome` says, these files do not hold what they held before.
    #[error("{outcome}; not restored: {}", left.join(", "))]
    NotRestored {
        /// How the sweep itself ended.
        outcome: String,
        /// Each file with the reason.
        left: Vec<String>,
    },
}

impl PStates {
    /// The P-states that firmware lists for the first processor that has any.
    ///
    /// # Errors
    /// As [`PStates::of_processor`].
    pub fn from_acpi(acpi: &Acpi) -> Result<PStates, PStateError> {
        match acpi.processors.iter().find(|p| p.pss.is_some()) {
            Some(processor) => PStates::of_processor(processor),
            None => Err(PStateError::NotInAcpi(acpi.summary())),
        }
    }

    /// The P-states that firmware lists for one processor; [`Acpi::processor_of`] finds that of a CPU.
    /// `_PCT` is looked at if it is there as a constant.
    ///
    /// # Errors
    /// When there are none, in a sentence, or when they are not for the CPU's register.
    pub fn of_processor(processor: &Processor) -> Result<PStates, PStateError> {
        let Some(list) = &processor.pss else {
            return Err(PStateError::NotInAcpi(format!("{}: firmware lists no P-states", processor.path)));
        };
        match processor.pct {
            None | Some(ControlSpace::FixedHardware) => {}
            Some(other) => {
                let space = match other {
                    ControlSpace::Port(port) => format!("I/O port {port:#x}"),
                    ControlSpace::Other(space) => format!("ACPI address space {space}"),
                    ControlSpace::FixedHardware => "the CPU".into(),
                };
                return Err(PStateError::NotARegister { path: processor.path.clone(), space });
            }
        }
        let narrow = |control: u32| {
            u16::try_from(control)
                .map(Control)
                .map_err(|_| PStateError::Wide { name: list.name.clone(), control })
        };
        let mut states = Vec::new();
        for s in &list.states {
            states.push(PState {
                khz: s.mhz.saturating_mul(1000),
                control: narrow(s.control)?,
                // Firmware may put more above the 16 bits that the status register shows.
                status: Control(s.status as u16),
                power_mw: Some(s.power_mw),
                latency_us: Some(s.latency_us),
                bus_master_latency_us: Some(s.bus_master_latency_us),
            });
        }
        Ok(PStates { source: PStateSource::Acpi(list.name.clone()), states })
    }
}

/// A file that a sweep changes, and what it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// The file.
    pub path: String,
    /// Its value before.
    pub value: String,
}

/// 004's fallback: every speed set and its control value read. Made in two steps, so that what it will
/// change can be written down in between.
#[derive(Debug, Clone)]
pub struct Sweep {
    cpus: Vec<u32>,
    khz: Vec<u32>,
    originals: Vec<Original>,
}

/// How often the status is read until two readings agree.
const TRIES: u32 = 20;

impl Sweep {
    /// Looks at the machine and changes nothing. `cpus` are those to set, all that may share a clock: on
    /// the machines that need this, all. The status is read on the first.
    ///
    /// # Errors
    /// [`PStateError::NoSweep`] when a CPU has no cpufreq, no governor `userspace`, or no list of
    /// frequencies.
    pub fn plan(root: &dyn Root, cpus: &[u32]) -> Result<Sweep, PStateError> {
        let no = |why: String| PStateError::NoSweep(why);
        let mut khz: Vec<u32> = Vec::new();
        let mut originals = Vec::new();
        for &cpu in cpus {
            let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
            let must = |name: &str| {
                root::text(root, &file(name))
                    .ok_or_else(|| no(format!("{}: not there or not readable", file(name))))
            };
            let governor = must("scaling_governor")?;
            let governors = must("scaling_available_governors")?;
            if !governors.split_whitespace().any(|g| g == "userspace") {
                let driver = root::text(root, &file("scaling_driver")).unwrap_or_default();
                return Err(no(format!(
                    "cpu{cpu} has no governor `userspace`, only {governors} (driver {driver}); it exists with \
                     acpi-cpufreq and with intel_pstate=passive"
                )));
            }
            if khz.is_empty() {
                for word in must("scaling_available_frequencies")?.split_whitespace() {
                    khz.push(word.parse().map_err(|_| {
                        no(format!("{}: `{word}` is not a frequency", file("scaling_available_frequencies")))
                    })?);
                }
            }
            // In the order in which they are put back: the speed needs the governor, so it comes last; the
            // limits are at their widest then, so either order of those two is valid.
            for name in ["scaling_max_freq", "scaling_min_freq"] {
                originals.push(Original { path: file(name), value: must(name)? });
            }
            originals.push(Original { path: file("scaling_governor"), value: governor.clone() });
            if governor == "userspace" {
                originals.push(Original { path: file("scaling_setspeed"), value: must("scaling_setspeed")? });
            }
        }
        if khz.is_empty() {
            return Err(no("there is no list of frequencies".into()));
        }
        khz.sort_unstable_by(|a, b| b.cmp(a));
        khz.dedup();
        Ok(Sweep { cpus: cpus.to_vec(), khz, originals })
    }

    /// The files that [`Sweep::run`] changes, with what they hold now.
    pub fn originals(&self) -> &[Original] {
        &self.originals
    }

    /// Sets each frequency on all CPUs, fastest first, and reads the status register until it stands
    /// still, `wait`ing `settle` before each reading. Whatever happens, what was changed is put back.
    ///
    /// # Errors
    /// The first fault, after everything was restored; or [`PStateError::NotRestored`].
    pub fn run(
        &self,
        root: &dyn Root,
        msr: &mut MsrDevice<'_>,
        settle: Duration,
        wait: &mut dyn FnMut(Duration),
    ) -> Result<PStates, PStateError> {
        let mut guard = Restore { root, originals: &self.originals, done: false };
        let swept = self.sweep(root, msr, settle, wait);
        let left = guard.restore();
        if !left.is_empty() {
            let outcome = match &swept {
                Ok(_) => "the sweep was made".to_owned(),
                Err(e) => e.to_string(),
            };
            return Err(PStateError::NotRestored { outcome, left });
        }
        swept
    }

    fn sweep(
        &self,
        root: &dyn Root,
        msr: &mut MsrDevice<'_>,
        settle: Duration,
        wait: &mut dyn FnMut(Duration),
    ) -> Result<PStates, PStateError> {
        let registers = msr.registers();
        let status = registers.get("IA32_PERF_STATUS")?;
        let field = status.field("control")?;
        let Some(&first) = self.cpus.first() else { return Err(PStateError::NoSweep("no CPU".into())) };
        let write = |path: String, value: &str| {
            root.write(&path, value.as_bytes()).map_err(|error| PStateError::Io { path, error })
        };
        let file = |cpu: u32, name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
        // A first reading before anything is changed: without the register there is no sense in it.
        msr.read(first, status, Wake::Yes)?;
        for &cpu in &self.cpus {
            // Within narrower limits a speed would be moved to the limit, silently.
            for (limit, name) in
                [("cpuinfo_max_freq", "scaling_max_freq"), ("cpuinfo_min_freq", "scaling_min_freq")]
            {
                if let Some(value) = root::text(root, &file(cpu, limit)) {
                    write(file(cpu, name), &value)?;
                }
            }
            write(file(cpu, "scaling_governor"), "userspace")?;
        }
        let mut states = Vec::new();
        for &khz in &self.khz {
            for &cpu in &self.cpus {
                write(file(cpu, "scaling_setspeed"), &khz.to_string())?;
            }
            let mut before = None;
            for _ in 0..TRIES {
                wait(settle);
                let now = field.get(msr.read(first, status, Wake::Yes)?) as u16;
                if before == Some(now) {
                    break;
                }
                before = Some(now);
            }
            let control = Control(before.unwrap_or(0));
            states.push(PState {
                khz,
                control,
                status: control,
                power_mw: None,
                latency_us: None,
                bus_master_latency_us: None,
            });
        }
        let moved = states.iter().any(|s| s.status != states[0].status);
        if states.len() > 1 && !moved {
            return Err(PStateError::NoSweep(format!(
                "cpu{first}: IA32_PERF_STATUS shows {} at every speed: the driver or a hypervisor ignores them",
                states[0].status
            )));
        }
        Ok(PStates { source: PStateSource::Sweep, states })
    }
}

/// Puts the originals back, also when unwinding.
struct Restore<'a> {
    root: &'a dyn Root,
    originals: &'a [Original],
    done: bool,
}

impl Restore<'_> {
    /// The files that could not be restored, with the reason.
    fn restore(&mut self) -> Vec<String> {
        self.done = true;
        let mut left = Vec::new();
        for original in self.originals {
            if root::text(self.root, &original.path).as_ref() == Some(&original.value) {
                continue;
            }
            if let Err(e) = self.root.write(&original.path, original.value.as_bytes()) {
                left.push(format!("{} (was {}): {e}", original.path, original.value));
            }
        }
        left
    }
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.restore();
        }
    }
}

/// What an AMD P-state register says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmdPState {
    /// Whether the P-state exists.
    pub valid: bool,
    /// Clock, MHz.
    pub mhz: u32,
    /// Core voltage, mV, where the encoding is published and the same for all boards of the family.
    pub millivolts: Option<u32>,
}

/// Reads `PSTATE_DEF_n` (C001_0064 to 6B).
///
/// | family | clock, MHz | voltage |
/// |---|---|---|
/// | 10h, 15h, 16h | 100 (FID\[5:0\] + 16) >> DID\[8:6\] | VID\[15:9\] in 12.5 mV (SVI1), from 15h model 30h on and 16h VID\[16:9\] in 6.25 mV (SVI2) |
/// | 11h | 100 (FID + 8) >> DID | not published alike |
/// | 12h | 100 (FID\[8:4\] + 16) / divisor of DID\[3:0\] | VID\[15:9\], SVI1 |
/// | 17h, 18h, 19h | 200 FID\[7:0\] / DID\[13:8\] | VID\[21:14\], SVI2; not from Zen 4 on (SVI3) |
/// | 1Ah | 5 FID\[11:0\] | SVI3, not decoded |
///
/// Family 14h's clock hangs on a PCI register as well, and is refused. Sources: BKDG 31116 (10h), 41256
/// (11h), 41131 (12h), 42301 (15h), 48751 (16h); PPR 54945 (17h), 55898 (19h); Linux
/// `tools/power/cpupower/utils/helpers/amd.c`.
///
/// # Errors
/// For a family whose encoding is not known, and for a divisor that is none.
pub fn amd_definition(cpu: &CpuFacts, raw: u64) -> Result<AmdPState, RegisterError> {
    let refuse = |why: &str| {
        Err(RegisterError::NotEncodable(format!(
            "P-state {raw:#x} of {} family {:X}h model {:X}h: {why}",
            cpu.vendor, cpu.family, cpu.model
        )))
    };
    if !matches!(cpu.vendor, Vendor::Amd | Vendor::Hygon) {
        return refuse("only AMD and Hygon have this register");
    }
    let bits = |hi: u32, lo: u32| (raw >> lo & ((1 << (hi - lo + 1)) - 1)) as u32;
    // 1.55 V less so many steps; at 0 V and below, off. In units of 0.01 mV.
    let millivolts = |vid: u32, step: u32| 155_000u32.checked_sub(vid * step).map(|v| v / 100);
    let (mhz, volts) = match cpu.family {
        family @ (0x10 | 0x11 | 0x15 | 0x16) => {
            let base = if family == 0x11 { 8 } else { 16 };
            let svi2 = family == 0x16 || family == 0x15 && cpu.model >= 0x30;
            let volts = match family {
                _ if svi2 => millivolts(bits(16, 9), 625),
                // 15h models 10h to 2Fh: SVI2 on some boards and SVI1 on others.
                0x10 => millivolts(bits(15, 9), 1250),
                0x15 if cpu.model < 0x10 => millivolts(bits(15, 9), 1250),
                _ => None,
            };
            ((100 * (bits(5, 0) + base)) >> bits(8, 6), volts)
        }
        0x12 => {
            // In halves.
            let Some(divisor) = [2, 3, 4, 6, 8, 12, 16, 24, 32].get(bits(3, 0) as usize) else {
                return refuse("its divisor is reserved");
            };
            (200 * (bits(8, 4) + 16) / divisor, millivolts(bits(15, 9), 1250))
        }
        family @ 0x17..=0x19 => {
            let divisor = bits(13, 8);
            if divisor == 0 {
                if raw >> 63 == 1 {
                    return refuse("its divisor is 0, off");
                }
                return Ok(AmdPState { valid: false, mhz: 0, millivolts: None });
            }
            let zen4 = family == 0x19 && matches!(cpu.model, 0x10..=0x1f | 0x60..=0xff);
            let volts = if zen4 { None } else { millivolts(bits(21, 14), 625) };
            (200 * bits(7, 0) / divisor, volts)
        }
        0x1a => (5 * bits(11, 0), None),
        0x14 => return refuse("its clock hangs on a PCI register too"),
        _ => return refuse("the encoding of this family is not known"),
    };
    Ok(AmdPState { valid: raw >> 63 == 1, mhz, millivolts: volts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acpi;
    use crate::cpus::cpuid::Feature;
    use crate::msr::Registers;
    use crate::msr::fake::{FakeMsr, FakeMsrRoot};
    use crate::root::{Access, DirRoot, Node};
    use std::path::Path;

    fn tables(names: &[&str]) -> Acpi {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acpi");
        let read = |n: &&str| ((*n).to_owned(), std::fs::read(folder.join(n)).unwrap());
        acpi::parse(&names.iter().map(read).collect::<Vec<_>>())
    }

    #[test]
    fn firmware_s_list_becomes_p_states() {
        let states = PStates::from_acpi(&tables(&["processor.aml"])).unwrap();
        assert_eq!(states.source, PStateSource::Acpi("\\_PR.CPU0._PSS".into()));
        assert_eq!(states.states.len(), 3);
        assert_eq!(states.states[0].khz, 1_700_000);
        assert_eq!(states.states[0].control, Control(0x1029));
        assert_eq!(states.states[2].power_mw, Some(6000));
        assert_eq!(Control(0x1900).ratio(), Ratio(25));
        assert_eq!((Ratio(25).control(), Ratio(25).khz(100_000)), (Control(0x1900), 2_500_000));
    }

    #[test]
    fn values_for_a_port_or_of_too_many_bits_are_refused() {
        let mut acpi = tables(&["processor.aml"]);
        acpi.processors[0].pct = Some(ControlSpace::Port(0xB2));
        let words = PStates::from_acpi(&acpi).unwrap_err().to_string();
        assert!(words.contains("I/O port 0xb2"), "{words}");
        let mut acpi = tables(&["processor.aml"]);
        acpi.processors[0].pss.as_mut().unwrap().states[0].control = 0x1_0000;
        assert!(matches!(PStates::from_acpi(&acpi), Err(PStateError::Wide { .. })));
        let words = PStates::from_acpi(&Acpi::default()).unwrap_err().to_string();
        assert!(words.contains("none of the ACPI tables"), "{words}");
    }

    const KHZ: [u32; 3] = [1_700_000, 1_400_000, 600_000];

    /// A folder with cpufreq files, over which a write of a speed moves the status registers.
    struct Machine {
        folder: tempfile::TempDir,
        files: DirRoot,
        msr: FakeMsrRoot,
        fail: Option<&'static str>,
        deaf: bool,
    }

    struct Watched<'a> {
        machine: &'a Machine,
        path: String,
        node: Box<dyn Node>,
    }

    impl Machine {
        fn new(governor: &str) -> Machine {
            let folder = tempfile::tempdir().unwrap();
            for cpu in 0..2 {
                let at = folder.path().join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"));
                std::fs::create_dir_all(&at).unwrap();
                for (name, value) in [
                    ("scaling_governor", governor),
                    ("scaling_available_governors", "ondemand userspace"),
                    ("scaling_available_frequencies", "1700000 1400000 600000 "),
                    ("scaling_min_freq", "1400000"),
                    ("scaling_max_freq", "1400000"),
                    ("scaling_setspeed", if governor == "userspace" { "1400000" } else { "<unsupported>" }),
                    ("cpuinfo_min_freq", "600000"),
                    ("cpuinfo_max_freq", "1700000"),
                ] {
                    std::fs::write(at.join(name), value).unwrap();
                }
            }
            let registers = Registers::for_cpu(&CpuFacts::of(Vendor::Intel, 6, 0xD).with(&[Feature::Est]));
            let files = DirRoot::new(folder.path());
            Machine {
                folder,
                files,
                msr: FakeMsrRoot::new(FakeMsr::new(registers, [0, 1])),
                fail: None,
                deaf: false,
            }
        }

        fn snapshot(&self) -> Vec<(String, String)> {
            let base = "sys/devices/system/cpu";
            let mut all = Vec::new();
            for cpu in ["cpu0", "cpu1"] {
                for name in self.files.list(&format!("{base}/{cpu}/cpufreq")).unwrap() {
                    let path = format!("{base}/{cpu}/cpufreq/{name}");
                    all.push((path.clone(), root::text(&self.files, &path).unwrap()));
                }
            }
            all
        }

        fn registers(&self) -> Registers {
            Registers::for_cpu(&CpuFacts::of(Vendor::Intel, 6, 0xD).with(&[Feature::Est]))
        }

        fn sweep(&self) -> Result<PStates, PStateError> {
            let mut msr = MsrDevice::for_reading(&self.msr, self.registers());
            Sweep::plan(self, &[0, 1])?.run(self, &mut msr, Duration::from_millis(1), &mut |_| {})
        }
    }

    impl Root for Machine {
        fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
            self.files.open(path, access)
        }
        fn list(&self, path: &str) -> io::Result<Vec<String>> {
            self.files.list(path)
        }
        fn describe(&self) -> String {
            self.folder.path().display().to_string()
        }
        fn write(&self, path: &str, value: &[u8]) -> io::Result<()> {
            if self.fail.is_some_and(|f| f.split(' ').eq([path, std::str::from_utf8(value).unwrap()])) {
                return Err(io::Error::from_raw_os_error(libc::EBUSY));
            }
            Watched { machine: self, path: path.to_owned(), node: self.open(path, Access::Write)? }
                .write(value)
        }
    }

    impl Watched<'_> {
        fn write(&mut self, value: &[u8]) -> io::Result<()> {
            self.node.write_at(0, value)?;
            if self.path.ends_with("scaling_setspeed") && !self.machine.deaf {
                let khz: u32 = std::str::from_utf8(value).unwrap().parse().unwrap_or(0);
                let code = [0x1029, 0x0E20, 0x0612][KHZ.iter().position(|k| *k == khz).unwrap()];
                for cpu in 0..2 {
                    self.machine.msr.msr().set(cpu, 0x198, 0xF << 32 | code);
                }
            }
            Ok(())
        }
    }

    #[test]
    fn a_sweep_finds_the_values_and_leaves_no_trace() {
        for governor in ["ondemand", "userspace"] {
            let machine = Machine::new(governor);
            let before = machine.snapshot();
            let states = machine.sweep().unwrap();
            assert_eq!(states.source, PStateSource::Sweep);
            let found: Vec<_> = states.states.iter().map(|s| (s.khz, s.control.0)).collect();
            assert_eq!(found, [(1_700_000, 0x1029), (1_400_000, 0x0E20), (600_000, 0x0612)]);
            let after = machine.snapshot();
            let same = |(path, value): &&(String, String)| {
                // Outside `userspace` the kernel shows <unsupported> again; a plain file does not.
                governor == "userspace" || !path.ends_with("scaling_setspeed") && !value.is_empty()
            };
            assert!(before.iter().filter(same).eq(after.iter().filter(same)), "{after:?}");
            let plan = Sweep::plan(&machine, &[0, 1]).unwrap();
            assert_eq!(plan.originals().len(), if governor == "userspace" { 8 } else { 6 });
        }
    }

    #[test]
    fn a_sweep_that_fails_anywhere_restores() {
        let cpufreq = "sys/devices/system/cpu/cpu1/cpufreq";
        for (file, value) in [
            ("scaling_setspeed", "600000"),
            ("scaling_governor", "userspace"),
            ("scaling_min_freq", "600000"),
            ("scaling_max_freq", "1700000"),
        ] {
            let mut machine = Machine::new("ondemand");
            let before = machine.snapshot();
            machine.fail = Some(Box::leak(format!("{cpufreq}/{file} {value}").into_boxed_str()));
            let words = machine.sweep().unwrap_err().to_string();
            assert!(words.contains(file), "{words}");
            let after = machine.snapshot();
            for (b, a) in before.iter().zip(&after).filter(|(b, _)| !b.0.ends_with("setspeed")) {
                assert_eq!(b, a, "after {file} failed");
            }
        }
        // The register is gone half-way: the same.
        let machine = Machine::new("ondemand");
        let before = machine.snapshot();
        let mut msr = MsrDevice::for_reading(&machine.msr, machine.registers());
        let plan = Sweep::plan(&machine, &[0, 1]).unwrap();
        let mut n = 0;
        let result = plan.run(&machine, &mut msr, Duration::ZERO, &mut |_| {
            n += 1;
            if n == 4 {
                machine.msr.msr().set_online(0, false);
            }
        });
        assert!(matches!(result, Err(PStateError::Msr(MsrError::Offline { cpu: 0 }))), "{result:?}");
        assert_eq!(before[5..7], machine.snapshot()[5..7]);
    }

    #[test]
    fn what_cannot_be_restored_is_named_and_the_rest_is() {
        let mut machine = Machine::new("ondemand");
        machine.fail = Some("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor ondemand");
        let words = machine.sweep().unwrap_err().to_string();
        assert!(words.contains("the sweep was made; not restored:"), "{words}");
        assert!(words.contains("cpu0/cpufreq/scaling_governor (was ondemand)"), "{words}");
        let of = |cpu: u32, name: &str| {
            root::text(&machine, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")).unwrap()
        };
        assert_eq!(of(1, "scaling_governor"), "ondemand");
        assert_eq!(
            (of(0, "scaling_min_freq"), of(0, "scaling_max_freq")),
            ("1400000".into(), "1400000".into())
        );
    }

    #[test]
    fn a_status_that_never_moves_is_no_result() {
        let mut machine = Machine::new("ondemand");
        machine.deaf = true;
        let words = machine.sweep().unwrap_err().to_string();
        assert!(words.contains("shows 0x0000 at every speed"), "{words}");
    }

    #[test]
    fn a_panic_restores_too() {
        let machine = Machine::new("ondemand");
        let mut msr = MsrDevice::for_reading(&machine.msr, machine.registers());
        let plan = Sweep::plan(&machine, &[0, 1]).unwrap();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            plan.run(&machine, &mut msr, Duration::ZERO, &mut |_| panic!("in the middle"))
        }));
        assert!(result.is_err());
        assert_eq!(
            root::text(&machine, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor").as_deref(),
            Some("ondemand")
        );
    }

    #[test]
    fn where_no_sweep_is_possible_it_says_why_before_it_writes() {
        let machine = Machine::new("ondemand");
        let governors = "sys/devices/system/cpu/cpu1/cpufreq/scaling_available_governors";
        std::fs::write(machine.folder.path().join(governors), "performance powersave").unwrap();
        let before = machine.snapshot();
        let words = machine.sweep().unwrap_err().to_string();
        assert!(words.contains("intel_pstate=passive"), "{words}");
        assert_eq!(before, machine.snapshot());
        let words = Sweep::plan(&machine, &[7]).unwrap_err().to_string();
        assert!(words.contains("cpu7/cpufreq/scaling_governor"), "{words}");
    }

    #[test]
    fn amd_s_definitions_by_family() {
        let of = |family, model, raw| amd_definition(&CpuFacts::of(Vendor::Amd, family, model), raw);
        let valid = 1u64 << 63;
        let state = |mhz, millivolts| Ok(AmdPState { valid: true, mhz, millivolts });
        // Zen 2, 3.6 GHz: FID 90h, DID 8, VID 48h: 1.55 - 72 * 0.00625 = 1.1 V.
        assert_eq!(of(0x17, 0x71, valid | 0x48 << 14 | 8 << 8 | 0x90), state(3600, Some(1100)));
        assert_eq!(of(0x19, 0x21, valid | 0x48 << 14 | 12 << 8 | 0x84), state(2200, Some(1100)));
        assert_eq!(of(0x19, 0x61, valid | 0x48 << 14 | 8 << 8 | 0x90), state(3600, None));
        assert_eq!(of(0x1a, 0x44, valid | 860), state(4300, None));
        // Phenom: FID 10h, DID 0, VID 14h: 3.2 GHz at 1.3 V.
        assert_eq!(of(0x10, 4, valid | 0x14 << 9 | 0x10), state(3200, Some(1300)));
        assert_eq!(of(0x10, 4, valid | 0x14 << 9 | 1 << 6 | 0x10), state(1600, Some(1300)));
        assert_eq!(of(0x11, 3, valid | 0xc), state(2000, None));
        assert_eq!(of(0x12, 1, valid | 0x14 << 9 | 8 << 4 | 1), state(1600, Some(1300)));
        assert_eq!(of(0x15, 2, valid | 0x14 << 9 | 0x13), state(3500, Some(1300)));
        assert_eq!(of(0x16, 0, valid | 0x28 << 9 | 4), state(2000, Some(1300)));
        assert_eq!(of(0x17, 1, 0), Ok(AmdPState { valid: false, mhz: 0, millivolts: None }));
        for (family, raw) in [(0x14, valid), (0x0f, valid), (0x1b, valid), (0x17, valid), (0x12, valid | 9)] {
            let words = of(family, 1, raw).unwrap_err().to_string();
            assert!(words.contains("family") && !words.contains('\n'), "{words}");
        }
        assert!(amd_definition(&CpuFacts::of(Vendor::Intel, 6, 1), 0).is_err());
    }
}
