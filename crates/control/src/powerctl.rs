//! `/dev/powerctl`: a thread's own T-state, P-state, HWP request and energy preference.
//!
//! The device belongs to the module `kernel/powerctl`; `kernel/include/uapi/powerctl.h` is the contract, and
//! the structures here repeat it. Sizes and offsets are asserted on both sides, and a test has the C
//! compiler tell its own.
//!
//! A profile is the calling thread's and acts from the next instruction on. [`Powerctl::set`] returns a guard
//! that puts back what was there before; [`Powerctl::apply`] leaves it in force until the thread ends, and is
//! what a child calls between fork and exec, with [`WantedProfile::inherit`].

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the module puts it.
pub const DEVICE: &str = "/dev/powerctl";
/// The version that is spoken here.
pub const ABI: u32 = 1;
/// A duty cycle of 16 sixteenths: not modulated.
pub const TSTATE_FULL: u8 = 16;

const TSTATE: u32 = 1 << 0;
const PSTATE: u32 = 1 << 1;
const HWP: u32 = 1 << 2;
const EPP: u32 = 1 << 3;
const INHERIT: u32 = 1 << 4;

/// `struct powerctl_profile`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawProfile {
    size: u32,
    flags: u32,
    tstate: u32,
    pstate_khz: u32,
    hwp_min: u8,
    hwp_max: u8,
    hwp_desired: u8,
    epp: u8,
    reserved: [u32; 3],
}

/// `struct powerctl_caps`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawCaps {
    size: u32,
    abi: u32,
    backend: u32,
    settable: u32,
    cpu: u32,
    tstate_step: u32,
    khz_min: u32,
    khz_max: u32,
    khz_default: u32,
    mwait_substates: u32,
    monitor_bytes: u32,
    profiles: u32,
    profiles_max: u32,
    withdrawn: u32,
    withdrawals: u32,
    reserved: [u32; 1],
}

/// `struct powerctl_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawStats {
    size: u32,
    profiles: u32,
    set: u64,
    switches: u64,
    writes: u64,
    skipped: u64,
    failed: u64,
    reserved: [u64; 2],
}

const _: () = {
    assert!(size_of::<RawProfile>() == 32);
    assert!(offset_of!(RawProfile, hwp_min) == 16 && offset_of!(RawProfile, reserved) == 20);
    assert!(size_of::<RawCaps>() == 64);
    assert!(offset_of!(RawCaps, khz_min) == 24 && offset_of!(RawCaps, reserved) == 60);
    assert!(size_of::<RawStats>() == 64);
    assert!(offset_of!(RawStats, set) == 8 && offset_of!(RawStats, reserved) == 48);
};

/// An ioctl's number: direction (1 writes to the kernel, 2 reads), ordinal, size of its structure.
const fn number(direction: u32, ordinal: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | 0xb7 << 8 | ordinal
}

const SET: u32 = number(1, 1, size_of::<RawProfile>());
const GET: u32 = number(3, 2, size_of::<RawProfile>());
const CLEAR: u32 = number(0, 3, 0);
const CAPS: u32 = number(3, 4, size_of::<RawCaps>());
const STATS: u32 = number(3, 8, size_of::<RawStats>());

/// Why the device does not do as told: one line with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PowerctlError {
    /// There is no such device.
    #[error("{0}: not there: load the module `powerctl` (kernel/powerctl, by DKMS or `modprobe powerctl`)")]
    NoDevice(PathBuf),
    /// It may not be opened, or the profile asks for more than everybody has.
    #[error("{what}: no permission: {remedy}")]
    Permission {
        /// The device, or the request.
        what: String,
        /// What would help.
        remedy: &'static str,
    },
    /// Another ABI.
    #[error(
        "{DEVICE}: speaks version {0}, this program version {ABI}: build module and program from one source"
    )]
    Version(u32),
    /// The machine, or the back end, cannot.
    #[error(
        "thread profile: this machine's back end cannot set it; `settable` of the capabilities names what it can"
    )]
    NotSettable,
    /// It could, but a cpufreq governor or another driver has the speeds now.
    #[error(
        "thread profile: a cpufreq governor or driver sets the speeds now: choose the governor performance, powersave or userspace on every CPU"
    )]
    Withdrawn,
    /// A value out of the hardware's range.
    #[error(
        "thread profile: a value is beyond the hardware's: T-states 1 to 16 in steps of {tstate_step} sixteenths, speeds {khz_min} to {khz_max} kHz"
    )]
    Range {
        /// Granularity of T-states.
        tstate_step: u32,
        /// Slowest speed.
        khz_min: u32,
        /// Fastest speed.
        khz_max: u32,
    },
    /// Anything else that the system said.
    #[error("{DEVICE}: {0}")]
    Io(#[from] io::Error),
}

/// A hardware P-state request; 0 as `desired` leaves the choice to the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HwpRequest {
    /// Lowest performance.
    pub min: u8,
    /// Highest performance.
    pub max: u8,
    /// Wanted performance.
    pub desired: u8,
}

/// What a thread wants; what it leaves out is the machine's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedProfile {
    /// Sixteenths of the clock that pass, 1 to 16.
    pub tstate: Option<u8>,
    /// A clock in kHz; not beside `hwp`.
    pub khz: Option<u32>,
    /// A hardware P-state request.
    pub hwp: Option<HwpRequest>,
    /// 0 performance to 255 energy.
    pub epp: Option<u8>,
    /// Threads and processes started from this one begin with it, and it survives exec.
    pub inherit: bool,
}

impl WantedProfile {
    fn raw(&self) -> RawProfile {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let hwp = self.hwp.unwrap_or(HwpRequest { min: 0, max: 0, desired: 0 });
        RawProfile {
            size: size_of::<RawProfile>() as u32,
            flags: flag(self.tstate.is_some(), TSTATE)
                | flag(self.khz.is_some(), PSTATE)
                | flag(self.hwp.is_some(), HWP)
                | flag(self.epp.is_some(), EPP)
                | flag(self.inherit, INHERIT),
            tstate: self.tstate.unwrap_or(0).into(),
            pstate_khz: self.khz.unwrap_or(0),
            hwp_min: hwp.min,
            hwp_max: hwp.max,
            hwp_desired: hwp.desired,
            epp: self.epp.unwrap_or(0),
            reserved: [0; 3],
        }
    }

    fn from_raw(raw: &RawProfile) -> WantedProfile {
        let has = |bit: u32| raw.flags & bit != 0;
        WantedProfile {
            tstate: has(TSTATE).then_some(raw.tstate as u8),
            khz: has(PSTATE).then_some(raw.pstate_khz),
            hwp: has(HWP).then_some(HwpRequest {
                min: raw.hwp_min,
                max: raw.hwp_max,
                desired: raw.hwp_desired,
            }),
            epp: has(EPP).then_some(raw.epp),
            inherit: has(INHERIT),
        }
    }
}

/// `tstate=8,khz=1200000,epp=192,inherit` or `hwp=10:40:0`: a command line's words.
impl FromStr for WantedProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<WantedProfile, String> {
        const EXPECTED: &str = "expected tstate=1..16, khz=KHZ, hwp=MIN:MAX[:DESIRED], epp=0..255, inherit";
        let mut profile = WantedProfile::default();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let wrong = || format!("thread profile {part:?}: {EXPECTED}");
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "tstate" => {
                    let t: u8 = value.parse().map_err(|_| wrong())?;
                    profile.tstate = Some(t).filter(|t| (1..=TSTATE_FULL).contains(t));
                    profile.tstate.ok_or_else(wrong)?;
                }
                "khz" => profile.khz = Some(value.parse().map_err(|_| wrong())?),
                "epp" => profile.epp = Some(value.parse().map_err(|_| wrong())?),
                "hwp" => {
                    let numbers: Result<Vec<u8>, _> = value.split(':').map(str::parse).collect();
                    profile.hwp = Some(match numbers.map_err(|_| wrong())?.as_slice() {
                        [min, max] => HwpRequest { min: *min, max: *max, desired: 0 },
                        [min, max, desired] => HwpRequest { min: *min, max: *max, desired: *desired },
                        _ => return Err(wrong()),
                    });
                }
                "inherit" if value.is_empty() => profile.inherit = true,
                _ => return Err(wrong()),
            }
        }
        if profile.khz.is_some() && profile.hwp.is_some() {
            return Err(format!("thread profile {text:?}: khz and hwp exclude each other; {EXPECTED}"));
        }
        if profile == (WantedProfile { inherit: profile.inherit, ..WantedProfile::default() }) {
            return Err(format!("thread profile {text:?} sets nothing; {EXPECTED}"));
        }
        Ok(profile)
    }
}

/// What writes the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The processor's own.
    Msr,
    /// A cpufreq driver that switches fast.
    Cpufreq,
    /// vpower, for tests.
    Virtual,
    /// One that this program does not know.
    Other(u32),
}

/// Speeds that can be set, in kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedRange {
    /// The slowest.
    pub slowest_khz: u32,
    /// The one that is in force without a profile.
    pub usual_khz: u32,
    /// The fastest.
    pub fastest_khz: u32,
}

/// What the module can do here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What writes the registers.
    pub backend: Backend,
    /// Whether T-states can be set, and in steps of how many sixteenths.
    pub tstate_step: Option<u32>,
    /// The speeds, if they can be set.
    pub speeds: Option<SpeedRange>,
    /// Whether hardware P-state requests can be set.
    pub hwp: bool,
    /// Whether energy preferences can be.
    pub epp: bool,
    /// POWERCTL_CPU_* of the header: facts of the processor.
    pub cpu: u32,
    /// Profiles in force now.
    pub profiles: u32,
    /// How often a cpufreq governor or another driver took the speeds since the module was loaded. While one has
    /// them profiles have the default speed; `khz`, `hwp` and `epp` above are what can be set now.
    pub withdrawals: u32,
}

/// Counters since the module was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerctlStats {
    /// Profiles in force.
    pub profiles: u32,
    /// Profiles set.
    pub set: u64,
    /// Context switches from or to a thread with a profile.
    pub switches: u64,
    /// Register writes.
    pub writes: u64,
    /// Switches at which the registers held the values already.
    pub skipped: u64,
    /// Writes that the back end refused.
    pub failed: u64,
}

/// The open device.
#[derive(Debug)]
pub struct Powerctl {
    fd: OwnedFd,
    caps: RawCaps,
}

impl Powerctl {
    /// Opens [`DEVICE`].
    ///
    /// # Errors
    /// When it is not there, may not be opened, or speaks another version.
    pub fn open() -> Result<Powerctl, PowerctlError> {
        Powerctl::open_at(Path::new(DEVICE))
    }

    /// Opens the device at another path.
    ///
    /// # Errors
    /// As [`Powerctl::open`].
    pub fn open_at(path: &Path) -> Result<Powerctl, PowerctlError> {
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC | libc::O_NOCTTY)
            .open(path)
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => PowerctlError::NoDevice(path.to_owned()),
                io::ErrorKind::PermissionDenied => PowerctlError::Permission {
                    what: path.display().to_string(),
                    remedy: "become root or a member of the device's group",
                },
                _ => e.into(),
            })?;
        let mut device = Powerctl { fd: file.into(), caps: RawCaps::default() };
        device.caps = device.read_caps()?;
        if device.caps.abi != ABI {
            return Err(PowerctlError::Version(device.caps.abi));
        }
        Ok(device)
    }

    fn read_caps(&self) -> io::Result<RawCaps> {
        let mut caps = RawCaps { size: size_of::<RawCaps>() as u32, ..RawCaps::default() };
        self.call(CAPS, &mut caps)?;
        Ok(caps)
    }

    /// One ioctl with a structure whose size its number carries.
    fn call<T>(&self, number: u32, argument: &mut T) -> io::Result<()> {
        debug_assert_eq!((number >> 16 & 0x3fff) as usize, size_of::<T>());
        // SAFETY: `argument` is a live structure of the size in `number`, of integers alone; the module reads and
        // writes no more than that many bytes.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), number as _, std::ptr::from_mut(argument)) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// What can be set here.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn capabilities(&self) -> Result<Capabilities, PowerctlError> {
        let c = self.read_caps()?;
        let can = |bit: u32| c.settable & bit != 0;
        Ok(Capabilities {
            backend: match c.backend {
                1 => Backend::Msr,
                2 => Backend::Cpufreq,
                3 => Backend::Virtual,
                other => Backend::Other(other),
            },
            tstate_step: can(TSTATE).then_some(c.tstate_step),
            speeds: can(PSTATE).then_some(SpeedRange {
                slowest_khz: c.khz_min,
                usual_khz: c.khz_default,
                fastest_khz: c.khz_max,
            }),
            hwp: can(HWP),
            epp: can(EPP),
            cpu: c.cpu,
            profiles: c.profiles,
            withdrawals: c.withdrawals,
        })
    }

    /// Gives the calling thread a profile, until it ends or [`Powerctl::clear`]s it. One system call and no
    /// allocation unless it fails: fit for a child between fork and exec.
    ///
    /// # Errors
    /// When the machine cannot, the values are out of range, or rights are missing.
    pub fn apply(&self, profile: &WantedProfile) -> Result<(), PowerctlError> {
        self.call(SET, &mut profile.raw()).map_err(|e| self.refused(e))
    }

    fn refused(&self, e: io::Error) -> PowerctlError {
        match e.raw_os_error() {
            Some(libc::EPERM) => PowerctlError::Permission {
                what: "thread profile".into(),
                remedy: "raising above the default needs CAP_SYS_ADMIN",
            },
            Some(libc::EOPNOTSUPP) => PowerctlError::NotSettable,
            Some(libc::EBUSY) => PowerctlError::Withdrawn,
            Some(libc::ERANGE) => PowerctlError::Range {
                tstate_step: self.caps.tstate_step,
                khz_min: self.caps.khz_min,
                khz_max: self.caps.khz_max,
            },
            _ => e.into(),
        }
    }

    /// Gives the calling thread a profile for as long as the guard lives.
    ///
    /// # Errors
    /// As [`Powerctl::apply`].
    pub fn set(&self, profile: &WantedProfile) -> Result<ThreadProfile<'_>, PowerctlError> {
        let before = self.profile()?;
        self.apply(profile)?;
        Ok(ThreadProfile { device: self, before, not_send: PhantomData })
    }

    /// The calling thread's profile.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn profile(&self) -> Result<Option<WantedProfile>, PowerctlError> {
        let mut raw = RawProfile { size: size_of::<RawProfile>() as u32, ..RawProfile::default() };
        match self.call(GET, &mut raw) {
            Ok(()) => Ok(Some(WantedProfile::from_raw(&raw))),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Takes the calling thread's profile away, if it has one.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn clear(&self) -> Result<(), PowerctlError> {
        // SAFETY: the ioctl takes no argument.
        if unsafe { libc::ioctl(self.fd.as_raw_fd(), CLEAR as _) } >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            e if e.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            e => Err(e.into()),
        }
    }

    /// The module's counters.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn stats(&self) -> Result<PowerctlStats, PowerctlError> {
        let mut s = RawStats { size: size_of::<RawStats>() as u32, ..RawStats::default() };
        self.call(STATS, &mut s)?;
        Ok(PowerctlStats {
            profiles: s.profiles,
            set: s.set,
            switches: s.switches,
            writes: s.writes,
            skipped: s.skipped,
            failed: s.failed,
        })
    }
}

/// For those who got the descriptor from elsewhere: a service that opens it and drops its rights.
impl TryFrom<OwnedFd> for Powerctl {
    type Error = PowerctlError;

    fn try_from(fd: OwnedFd) -> Result<Powerctl, PowerctlError> {
        let mut device = Powerctl { fd, caps: RawCaps::default() };
        device.caps = device.read_caps()?;
        if device.caps.abi == ABI { Ok(device) } else { Err(PowerctlError::Version(device.caps.abi)) }
    }
}

/// A profile in force. Dropped, it puts back what its thread had before; it stays on its thread.
#[derive(Debug)]
#[must_use = "dropped at once, the profile is gone at once"]
pub struct ThreadProfile<'a> {
    device: &'a Powerctl,
    before: Option<WantedProfile>,
    /// The profile is the thread's: another could not take it back.
    not_send: PhantomData<*const ()>,
}

impl Drop for ThreadProfile<'_> {
    fn drop(&mut self) {
        // What fails here ends with the thread.
        let _ = match &self.before {
            Some(before) => self.device.apply(before),
            None => self.device.clear(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn words_of_a_profile() {
        let p: WantedProfile = "tstate=8, khz=1200000,inherit".parse().expect("valid");
        assert_eq!((p.tstate, p.khz, p.hwp, p.epp, p.inherit), (Some(8), Some(1_200_000), None, None, true));
        let p: WantedProfile = "hwp=10:40,epp=192".parse().expect("valid");
        assert_eq!((p.hwp, p.epp), (Some(HwpRequest { min: 10, max: 40, desired: 0 }), Some(192)));
        for wrong in
            ["", "inherit", "tstate=0", "tstate=17", "khz=fast", "hwp=1", "epp=256", "khz=1,hwp=1:2", "x=1"]
        {
            let why = wrong.parse::<WantedProfile>().expect_err(wrong);
            assert!(why.contains("expected tstate=1..16") && why.lines().count() == 1, "{why}");
        }
    }

    #[test]
    fn a_profile_comes_back_from_its_structure() {
        for text in ["tstate=8", "khz=1200000,inherit", "hwp=10:40:20,epp=192", "epp=0"] {
            let p: WantedProfile = text.parse().expect("valid");
            assert_eq!(WantedProfile::from_raw(&p.raw()), p);
        }
    }

    #[test]
    fn no_device_and_a_wrong_one_are_told() {
        let none = tempfile::tempdir().expect("a folder");
        let why = Powerctl::open_at(&none.path().join("powerctl")).expect_err("not there");
        assert!(why.to_string().contains("load the module `powerctl`"), "{why}");
        let why = Powerctl::open_at(Path::new("/dev/null")).expect_err("another device");
        assert!(matches!(why, PowerctlError::Io(_)), "{why}");
    }

    /// The C compiler's own view of the header.
    #[test]
    fn the_layout_is_the_header_s() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a repository");
        let folder = tempfile::tempdir().expect("a folder");
        let (source, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
        let mut wanted = String::new();
        let mut c = String::from(
            "#include <stddef.h>\n#include <stdio.h>\n#include \"uapi/powerctl.h\"\nint main(void) {\n",
        );
        let mut ask = |expression: String, ours: usize| {
            c += &format!("printf(\"{expression} %zu\\n\", (size_t)({expression}));\n");
            wanted += &format!("{expression} {ours}\n");
        };
        macro_rules! layout {
            ($c:literal, $rust:ty, $($field:ident)*) => {
                ask(format!("sizeof(struct {})", $c), size_of::<$rust>());
                $(ask(format!("offsetof(struct {}, {})", $c, stringify!($field)), offset_of!($rust, $field));)*
            };
        }
        layout!("powerctl_profile", RawProfile, size flags tstate pstate_khz hwp_min hwp_max hwp_desired epp reserved);
        layout!("powerctl_caps", RawCaps, size abi backend settable cpu tstate_step khz_min khz_max khz_default
            mwait_substates monitor_bytes profiles profiles_max withdrawn withdrawals reserved);
        layout!("powerctl_stats", RawStats, size profiles set switches writes skipped failed reserved);
        for (name, ours) in [
            ("POWERCTL_ABI", ABI),
            ("POWERCTL_TSTATE", TSTATE),
            ("POWERCTL_PSTATE", PSTATE),
            ("POWERCTL_HWP", HWP),
            ("POWERCTL_EPP", EPP),
            ("POWERCTL_INHERIT", INHERIT),
            ("POWERCTL_SET", SET),
            ("POWERCTL_GET", GET),
            ("POWERCTL_CLEAR", CLEAR),
            ("POWERCTL_CAPS", CAPS),
            ("POWERCTL_STATS", STATS),
        ] {
            ask(name.to_owned(), ours as usize);
        }
        c += "return 0; }\n";
        std::fs::write(&source, c).expect("written");
        let built = Command::new("cc")
            .arg(format!("-I{}", root.join("kernel/include").display()))
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(&source)
            .output()
            .expect("cc: `make tools` installs it");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let told = Command::new(&program).output().expect("runs");
        assert_eq!(String::from_utf8_lossy(&told.stdout), wanted);
    }
}
