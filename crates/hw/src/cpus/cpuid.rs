//! What a CPU says about itself: who made it, which model it is, and which power mechanisms it has.
//!
//! Every register has its reason here. Study 004 (sections 2.3.2 to 2.3.9) gives each mechanism the
//! CPUID bit that says whether it is there, and it ran the instruction from its kernel module. We ask
//! through [`Root`] instead, so that a capture and an emulated machine answer the same way:
//!
//! 1. `proc/cpuinfo`, which every x86 Linux has: vendor, family, model, stepping, and the flags that
//!    the kernel gives a name. It wakes nobody.
//! 2. `dev/cpu/N/cpuid`, when the module is loaded and we may read it: 16 bytes (EAX, EBX, ECX, EDX)
//!    at the offset `leaf | subleaf << 32` (Linux `arch/x86/kernel/cpuid.c`). The kernel runs the
//!    instruction *on CPU N*, which wakes it: so it is asked once and of one CPU of each kind.
//!
//! Where both answer, the instruction wins for what the kernel does not show (6.25 % clock modulation,
//! HDC, hybrid, MWAIT's sub-states), and it wins for the rest too; but each fact keeps its
//! [`Origin`], and what nobody told us stays unknown (`None`), which is not the same as absent. A
//! register that needs an unknown feature is not written.

use crate::root;
use crate::root::{Access, Node, Root};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// Who made a CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    /// `GenuineIntel`.
    Intel,
    /// `AuthenticAMD`.
    Amd,
    /// `HygonGenuine`: AMD's family 17h under licence, numbered family 18h.
    Hygon,
    /// Any other x86 vendor, in its own words.
    Other(String),
}

impl Vendor {
    fn from_id(id: &str) -> Vendor {
        match id {
            "GenuineIntel" => Vendor::Intel,
            "AuthenticAMD" => Vendor::Amd,
            "HygonGenuine" => Vendor::Hygon,
            other => Vendor::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Vendor::Intel => "Intel",
            Vendor::Amd => "AMD",
            Vendor::Hygon => "Hygon",
            Vendor::Other(name) => name,
        })
    }
}

/// Who told us a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The CPUID instruction, through `dev/cpu/N/cpuid`.
    Instruction,
    /// `proc/cpuinfo`.
    CpuInfo,
    /// A file of sysfs.
    Sysfs,
}

/// The kind of a core in a hybrid package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreType {
    /// An efficient core (Intel Atom, leaf 1Ah type 20h).
    Efficient,
    /// A performance core (Intel Core, leaf 1Ah type 40h).
    Performance,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reg {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $leaf:literal, $reg:ident[$bit:literal], $flag:expr;)*) => {
        /// A mechanism that a CPUID bit announces. In register files and JSON it has the name of
        /// [`Feature::name`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Feature {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Feature {
            /// All of them, in the order of their leaves.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),*];

            /// The short name, as in the register files.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name,)* }
            }

            /// Where the bit is: leaf, register, bit; and the flag of `proc/cpuinfo`, if it has one.
            fn place(self) -> (u32, Reg, u32, Option<&'static str>) {
                match self { $(Feature::$variant => ($leaf, Reg::$reg, $bit, $flag),)* }
            }
        }
    };
}

features! {
    /// MONITOR and MWAIT (004, 2.3.8).
    Monitor = "monitor", 1, Ecx[3], Some("monitor");
    /// Enhanced SpeedStep: IA32_PERF_CTL and IA32_PERF_STATUS (004, 2.3.3).
    Est = "est", 1, Ecx[7], Some("est");
    /// Thermal Monitor 2: thermal thresholds in IA32_THERM_STATUS.
    Tm2 = "tm2", 1, Ecx[8], Some("tm2");
    /// Runs under a hypervisor, which may answer for any register as it likes.
    Hypervisor = "hypervisor", 1, Ecx[31], Some("hypervisor");
    /// Thermal monitor and software controlled clock modulation: T-states (004, 2.3.2).
    ClockModulation = "acpi", 1, Edx[22], Some("acpi");
    /// A digital thermal sensor.
    DigitalSensor = "dtherm", 6, Eax[0], Some("dtherm");
    /// Turbo Boost or Dynamic Acceleration (004, 2.3.4). Clear too when firmware switched it off.
    Turbo = "turbo", 6, Eax[1], Some("ida");
    /// Power limit notification.
    PowerLimitNotification = "pln", 6, Eax[4], Some("pln");
    /// Clock modulation in 6.25 % steps (004, 2.3.2). The kernel has no name for it.
    ExtendedClockModulation = "ecmd", 6, Eax[5], None;
    /// Package thermal management: IA32_PACKAGE_THERM_STATUS.
    PackageThermal = "ptm", 6, Eax[6], Some("pts");
    /// Hardware-controlled P-states (004, 2.3.6).
    Hwp = "hwp", 6, Eax[7], Some("hwp");
    /// HWP tells of changes by interrupt.
    HwpNotify = "hwp_notify", 6, Eax[8], Some("hwp_notify");
    /// HWP's activity window.
    HwpActivityWindow = "hwp_act_window", 6, Eax[9], Some("hwp_act_window");
    /// HWP's energy performance preference.
    HwpEpp = "hwp_epp", 6, Eax[10], Some("hwp_epp");
    /// HWP requests for the package as a whole.
    HwpPackageRequest = "hwp_pkg_req", 6, Eax[11], Some("hwp_pkg_req");
    /// Hardware duty cycling (004, 2.3.9).
    Hdc = "hdc", 6, Eax[13], None;
    /// Hardware feedback interface (Thread Director's table).
    Hfi = "hfi", 6, Eax[19], Some("hfi");
    /// APERF and MPERF (004, 2.3.3).
    AperfMperf = "aperfmperf", 6, Ecx[0], Some("aperfmperf");
    /// IA32_ENERGY_PERF_BIAS.
    Epb = "epb", 6, Ecx[3], Some("epb");
    /// TPAUSE, UMONITOR and UMWAIT: waiting in user mode.
    Waitpkg = "waitpkg", 7, Ecx[5], Some("waitpkg");
    /// Cores of more than one kind. The kernel does not show it as a flag.
    Hybrid = "hybrid", 7, Edx[15], None;
    /// AMD: MONITORX and MWAITX, in user mode.
    Mwaitx = "mwaitx", 0x8000_0001, Ecx[29], Some("mwaitx");
    /// AMD: P-state registers C001_0061 to C001_006B.
    HwPstate = "hw_pstate", 0x8000_0007, Edx[7], Some("hw_pstate");
    /// The time stamp counter runs at one speed in all states.
    InvariantTsc = "invariant_tsc", 0x8000_0007, Edx[8], Some("nonstop_tsc");
    /// AMD: core performance boost.
    Cpb = "cpb", 0x8000_0007, Edx[9], Some("cpb");
    /// AMD: energy counters C001_0299 to C001_029B.
    Rapl = "rapl", 0x8000_0007, Edx[14], Some("rapl");
    /// AMD: collaborative processor performance control registers C001_02B0 to C001_02B4.
    Cppc = "cppc", 0x8000_0008, Ebx[27], Some("cppc");
}

impl Feature {
    /// The feature of a short name.
    pub fn from_name(name: &str) -> Option<Feature> {
        Feature::ALL.iter().copied().find(|f| f.name() == name)
    }
}

/// Whether a feature is there, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Whether the CPU has it.
    pub present: bool,
    /// Who says so.
    pub origin: Origin,
}

/// What is known of a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// Who made it.
    pub vendor: Vendor,
    /// Display family, extended part added (6 for most of Intel's, 19h = 25 for Zen 3).
    pub family: u32,
    /// Display model, extended part in its high digit.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// Who told us vendor, family, model and stepping.
    pub identity: Origin,
    /// The features that we have word of. One that is missing here is unknown, not absent.
    pub features: BTreeMap<Feature, Known>,
    /// The kind of core, where cores differ.
    pub core_type: Option<CoreType>,
    /// MWAIT's number of sub-states of C0 to C7 (leaf 5, EDX, four bits each). Instruction only.
    pub mwait_substates: Option<[u8; 8]>,
    /// The hypervisor's signature (leaf 4000_0000h), such as `KVMKVMKVM`. Instruction only.
    pub hypervisor: Option<String>,
}

/// Why nothing is known of a CPU. One line each.
#[derive(Debug, thiserror::Error)]
pub enum CpuidError {
    /// `proc/cpuinfo` cannot be read and there is no `dev/cpu/N/cpuid`.
    #[error("proc/cpuinfo of {root}: {error}; without it the CPU's model is unknown")]
    Unreadable {
        /// The tree that was read.
        root: String,
        /// What the system said.
        error: io::Error,
    },
    /// The file is that of another architecture.
    #[error(
        "proc/cpuinfo of {0}: no vendor_id, cpu family and model: not an x86 processor, so it has no MSRs"
    )]
    NotX86(String),
    /// The CPU is not listed, as an offline one is not.
    #[error("cpu{cpu} is not in proc/cpuinfo of {root}: it is offline or does not exist")]
    NoSuchCpu {
        /// The CPU that was asked for.
        cpu: u32,
        /// The tree that was read.
        root: String,
    },
}

impl CpuFacts {
    /// What is known of one CPU. It runs CPUID on it, which wakes it: see the module's head.
    pub fn read(root: &dyn Root, cpu: u32) -> Result<CpuFacts, CpuidError> {
        let mut facts = match read_cpuinfo(root) {
            Ok(mut all) => {
                all.remove(&cpu).ok_or_else(|| CpuidError::NoSuchCpu { cpu, root: root.describe() })?
            }
            // The instruction alone is enough, should /proc be missing.
            Err(e) => CpuFacts::by_instruction(root, cpu).ok_or(e)?,
        };
        if let Some(mut asked) = Instruction::open(root, cpu) {
            facts.complete(&mut asked);
        }
        add_core_types(root, [(cpu, &mut facts)].into_iter());
        Ok(facts)
    }

    /// What is known of all online CPUs, for a page of information: `proc/cpuinfo` is read once and
    /// the instruction asked of the first CPU of each kind only, so 255 of 256 sleep on.
    pub fn read_all(root: &dyn Root) -> Result<BTreeMap<u32, CpuFacts>, CpuidError> {
        let mut all = read_cpuinfo(root)?;
        let types = sysfs_core_types(root);
        let mut asked: Vec<(CpuFacts, Option<CoreType>, CpuFacts)> = Vec::new();
        for (&cpu, facts) in &mut all {
            let kind = types.get(&cpu).copied();
            if let Some((.., complete)) = asked.iter().find(|(before, k, _)| before == facts && *k == kind) {
                *facts = complete.clone();
                continue;
            }
            let before = facts.clone();
            if let Some(mut instruction) = Instruction::open(root, cpu) {
                facts.complete(&mut instruction);
            }
            asked.push((before, kind, facts.clone()));
        }
        add_core_types(root, all.iter_mut().map(|(&cpu, facts)| (cpu, facts)));
        Ok(all)
    }

    /// A CPU of this identity, of whose features nothing is known. For tests and the emulator, which
    /// add what theirs has with [`CpuFacts::with`].
    pub fn of(vendor: Vendor, family: u32, model: u32) -> CpuFacts {
        CpuFacts {
            vendor,
            family,
            model,
            stepping: 0,
            identity: Origin::CpuInfo,
            features: BTreeMap::new(),
            core_type: None,
            mwait_substates: None,
            hypervisor: None,
        }
    }

    /// The same with these features present.
    pub fn with(mut self, features: &[Feature]) -> CpuFacts {
        for f in features {
            self.features.insert(*f, Known { present: true, origin: Origin::CpuInfo });
        }
        self
    }

    /// Whether the CPU has a feature; `None` when nobody told us.
    pub fn has(&self, feature: Feature) -> Option<bool> {
        self.features.get(&feature).map(|k| k.present)
    }

    /// Whether the CPU is known to have a feature.
    pub fn surely(&self, feature: Feature) -> bool {
        self.has(feature) == Some(true)
    }

    fn by_instruction(root: &dyn Root, cpu: u32) -> Option<CpuFacts> {
        let mut instruction = Instruction::open(root, cpu)?;
        let mut facts = CpuFacts::of(Vendor::Other(String::new()), 0, 0);
        facts.complete(&mut instruction);
        (facts.identity == Origin::Instruction).then_some(facts)
    }

    /// Asks the instruction for what it knows. A leaf that cannot be read leaves things as they were.
    fn complete(&mut self, instruction: &mut Instruction) {
        let Some([basic, b, c, d]) = instruction.leaf(0, 0) else { return };
        let Some(version) = instruction.leaf(1, 0) else { return };
        self.vendor = Vendor::from_id(&letters(&[b, d, c]));
        let (family, model, stepping) = version_of(version[0]);
        (self.family, self.model, self.stepping) = (family, model, stepping);
        self.identity = Origin::Instruction;
        let extended = match instruction.leaf(0x8000_0000, 0) {
            Some([highest, ..]) if highest >= 0x8000_0000 => highest,
            _ => 0,
        };
        let mut leaves: BTreeMap<u32, Option<[u32; 4]>> = BTreeMap::new();
        for &feature in Feature::ALL {
            let (leaf, reg, bit, _) = feature.place();
            // Above the highest leaf an Intel CPU answers with some other leaf's data.
            let highest = if leaf >= 0x8000_0000 { extended } else { basic };
            let answer = if leaf > highest {
                Some([0; 4])
            } else {
                *leaves.entry(leaf).or_insert_with(|| instruction.leaf(leaf, 0))
            };
            let Some(answer) = answer else { continue };
            let word = match reg {
                Reg::Eax => answer[0],
                Reg::Ebx => answer[1],
                Reg::Ecx => answer[2],
                Reg::Edx => answer[3],
            };
            let known = Known { present: word >> bit & 1 == 1, origin: Origin::Instruction };
            self.features.insert(feature, known);
        }
        if self.surely(Feature::Monitor)
            && basic >= 5
            && let Some([.., edx]) = instruction.leaf(5, 0)
        {
            self.mwait_substates = Some(std::array::from_fn(|i| (edx >> (4 * i) & 0xf) as u8));
        }
        if self.surely(Feature::Hybrid)
            && basic >= 0x1a
            && let Some([eax, ..]) = instruction.leaf(0x1a, 0)
        {
            self.core_type = match eax >> 24 {
                0x20 => Some(CoreType::Efficient),
                0x40 => Some(CoreType::Performance),
                _ => None,
            };
        }
        if self.surely(Feature::Hypervisor)
            && let Some([_, b, c, d]) = instruction.leaf(0x4000_0000, 0)
        {
            let name = letters(&[b, c, d]);
            self.hypervisor = (!name.is_empty()).then_some(name);
        }
    }
}

/// Display family, model and stepping of leaf 1's EAX (Intel SDM vol. 2A, CPUID; AMD APM vol. 3).
fn version_of(eax: u32) -> (u32, u32, u32) {
    let (stepping, model, family) = (eax & 0xf, eax >> 4 & 0xf, eax >> 8 & 0xf);
    let (more_model, more_family) = (eax >> 16 & 0xf, eax >> 20 & 0xff);
    let shown_family = if family == 0xf { family + more_family } else { family };
    let shown_model = if family == 6 || family == 0xf { model | more_model << 4 } else { model };
    (shown_family, shown_model, stepping)
}

fn letters(words: &[u32]) -> String {
    words
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .filter(|b| b.is_ascii_graphic() || *b == b' ')
        .map(char::from)
        .collect::<String>()
        .trim()
        .to_owned()
}

struct Instruction {
    node: Box<dyn Node>,
}

impl Instruction {
    fn open(root: &dyn Root, cpu: u32) -> Option<Instruction> {
        Some(Instruction { node: root.open(&format!("dev/cpu/{cpu}/cpuid"), Access::Read).ok()? })
    }

    /// EAX, EBX, ECX, EDX of a leaf.
    fn leaf(&mut self, leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
        let mut bytes = [0; 16];
        let offset = u64::from(leaf) | u64::from(subleaf) << 32;
        if self.node.read_at(offset, &mut bytes).ok()? != bytes.len() {
            return None;
        }
        let word = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Some([word(0), word(4), word(8), word(12)])
    }
}

/// The CPUs of `proc/cpuinfo`.
fn read_cpuinfo(root: &dyn Root) -> Result<BTreeMap<u32, CpuFacts>, CpuidError> {
    let bytes =
        root.read("proc/cpuinfo").map_err(|error| CpuidError::Unreadable { root: root.describe(), error })?;
    let all = parse_cpuinfo(&String::from_utf8_lossy(&bytes));
    if all.is_empty() { Err(CpuidError::NotX86(root.describe())) } else { Ok(all) }
}

/// What the text of `proc/cpuinfo` says. A block without an x86 identity is left out.
pub fn parse_cpuinfo(text: &str) -> BTreeMap<u32, CpuFacts> {
    let mut all = BTreeMap::new();
    for block in text.split("\n\n") {
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        for line in block.lines() {
            if let Some((key, value)) = line.split_once(':') {
                values.insert(key.trim(), value.trim());
            }
        }
        let number = |key: &str| values.get(key).and_then(|v| v.parse::<u32>().ok());
        let (Some(cpu), Some(vendor), Some(family), Some(model)) =
            (number("processor"), values.get("vendor_id"), number("cpu family"), number("model"))
        else {
            continue;
        };
        let mut facts = CpuFacts::of(Vendor::from_id(vendor), family, model);
        facts.stepping = number("stepping").unwrap_or(0);
        if let Some(flags) = values.get("flags") {
            let flags: std::collections::BTreeSet<&str> = flags.split_whitespace().collect();
            for &feature in Feature::ALL {
                if let Some(flag) = feature.place().3 {
                    let known = Known { present: flags.contains(flag), origin: Origin::CpuInfo };
                    facts.features.insert(feature, known);
                }
            }
        }
        all.insert(cpu, facts);
    }
    all
}

/// The kinds of cores by the perf devices that the kernel has for each kind. It wakes nobody.
fn sysfs_core_types(root: &dyn Root) -> BTreeMap<u32, CoreType> {
    let mut types = BTreeMap::new();
    for (device, kind) in [("cpu_core", CoreType::Performance), ("cpu_atom", CoreType::Efficient)] {
        let Some(list) = root::text(root, &format!("sys/devices/{device}/cpus")) else { continue };
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
                // No Linux has more CPUs than 8192: a longer list is nonsense.
                types.extend((first..=last).take(8192).map(|cpu| (cpu, kind)));
            }
        }
    }
    types
}

fn add_core_types<'a>(root: &dyn Root, cpus: impl Iterator<Item = (u32, &'a mut CpuFacts)>) {
    let types = sysfs_core_types(root);
    for (cpu, facts) in cpus {
        if let Some(&kind) = types.get(&cpu) {
            facts.core_type = Some(kind);
            facts.features.entry(Feature::Hybrid).or_insert(Known { present: true, origin: Origin::Sysfs });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::DirRoot;

    const SKYLAKE: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
        model name\t: Xeon\nstepping\t: 7\nflags\t\t: fpu acpi monitor est tm2 ida epb pln pts hwp hwp_epp \
        aperfmperf nonstop_tsc dtherm\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n\
        model\t\t: 85\nstepping\t: 7\nflags\t\t: fpu acpi\n\n";

    fn tree(files: &[(&str, &[u8])]) -> (tempfile::TempDir, DirRoot) {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let root = DirRoot::new(folder.path());
        (folder, root)
    }

    /// A `cpuid` device. Real leaves are 16 bytes at offsets 1 apart, which no plain file can be.
    struct Leaves {
        base: DirRoot,
        leaves: BTreeMap<(u32, u64), [u32; 4]>,
        opened: std::sync::Mutex<Vec<u32>>,
    }

    struct LeafNode(BTreeMap<u64, [u32; 4]>);

    impl Node for LeafNode {
        fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            if !into.len().is_multiple_of(16) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let words = self.0.get(&offset).copied().unwrap_or([0; 4]);
            for (to, word) in into.chunks_mut(4).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            Ok(16)
        }
        fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    impl Root for Leaves {
        fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
            let cpu = path.strip_prefix("dev/cpu/").and_then(|p| p.strip_suffix("/cpuid"));
            let Some(cpu) = cpu.and_then(|c| c.parse().ok()) else { return self.base.open(path, access) };
            self.opened.lock().unwrap().push(cpu);
            let of_cpu = self.leaves.iter().filter(|((c, _), _)| *c == cpu);
            let node = LeafNode(of_cpu.map(|((_, leaf), words)| (*leaf, *words)).collect());
            if node.0.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(Box::new(node)) }
        }
        fn list(&self, path: &str) -> io::Result<Vec<String>> {
            self.base.list(path)
        }
        fn describe(&self) -> String {
            "leaves".into()
        }
    }

    #[test]
    fn cpuinfo_alone_knows_flags_and_says_what_it_does_not_know() {
        let (_folder, root) = tree(&[("proc/cpuinfo", SKYLAKE.as_bytes())]);
        let facts = CpuFacts::read(&root, 0).unwrap();
        assert_eq!(
            (facts.vendor.clone(), facts.family, facts.model, facts.stepping),
            (Vendor::Intel, 6, 85, 7)
        );
        assert_eq!(facts.identity, Origin::CpuInfo);
        assert_eq!(facts.has(Feature::Est), Some(true));
        assert_eq!(facts.has(Feature::HwpPackageRequest), Some(false));
        assert_eq!(facts.has(Feature::ExtendedClockModulation), None);
        assert_eq!(facts.has(Feature::Hdc), None);
        let json = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<CpuFacts>(&json).unwrap(), facts);
        assert!(json.contains(r#""est":{"present":true,"origin":"cpu_info"}"#), "{json}");
    }

    #[test]
    fn the_instruction_adds_the_leaves_and_is_asked_of_one_cpu_of_a_kind() {
        let (_folder, base) = tree(&[(
            "proc/cpuinfo",
            SKYLAKE
                .replace(
                    "fpu acpi\n",
                    "fpu acpi monitor est tm2 ida epb pln pts hwp hwp_epp aperfmperf nonstop_tsc dtherm\n",
                )
                .as_bytes(),
        )]);
        let mut leaves = BTreeMap::new();
        let id = |s: &str| u32::from_le_bytes(s.as_bytes().try_into().unwrap());
        for cpu in 0..2 {
            leaves.insert((cpu, 0), [0x1a, id("Genu"), id("ntel"), id("ineI")]);
            leaves.insert((cpu, 1), [0x0005_0657, 0, 1 << 3 | 1 << 7 | 1 << 31, 1 << 22]);
            leaves.insert((cpu, 5), [64, 64, 3, 0x0000_2020]);
            leaves.insert((cpu, 6), [1 << 5 | 1 << 7 | 1 << 13 | 1 << 1, 0, 1, 0]);
            leaves.insert((cpu, 7), [0, 0, 1 << 5, 1 << 15]);
            leaves.insert((cpu, 0x1a), [0x40 << 24, 0, 0, 0]);
            leaves.insert((cpu, 0x4000_0000), [0, id("KVMK"), id("VMKV"), id("M\0\0\0")]);
            leaves.insert((cpu, 0x8000_0000), [0x8000_0008, 0, 0, 0]);
            leaves.insert((cpu, 0x8000_0007), [0, 0, 0, 1 << 8]);
        }
        let root = Leaves { base, leaves, opened: Default::default() };
        let all = CpuFacts::read_all(&root).unwrap();
        assert_eq!(*root.opened.lock().unwrap(), [0], "the second CPU of the same kind sleeps on");
        for facts in all.values() {
            assert_eq!((facts.family, facts.model, facts.stepping), (6, 0x55, 7));
            assert_eq!(facts.identity, Origin::Instruction);
            for f in [Feature::ExtendedClockModulation, Feature::Hdc, Feature::Hybrid, Feature::Waitpkg] {
                let known = Known { present: true, origin: Origin::Instruction };
                assert_eq!(facts.features.get(&f), Some(&known), "{f:?}");
            }
            assert_eq!(facts.has(Feature::Epb), Some(false));
            assert_eq!(facts.mwait_substates, Some([0, 2, 0, 2, 0, 0, 0, 0]));
            assert_eq!(facts.core_type, Some(CoreType::Performance));
            assert_eq!(facts.hypervisor.as_deref(), Some("KVMKVMKVM"));
        }
    }

    #[test]
    fn leaves_above_the_highest_are_absent_whatever_the_cpu_answers() {
        let (_folder, base) = tree(&[("proc/cpuinfo", SKYLAKE.as_bytes())]);
        let mut leaves = BTreeMap::new();
        leaves.insert((0, 0), [4, 0, 0, 0]);
        leaves.insert((0, 1), [0x0000_06d8, 0, 1 << 7, 1 << 22]);
        leaves.insert((0, 6), [u32::MAX; 4]);
        leaves.insert((0, 0x8000_0007), [u32::MAX; 4]);
        let root = Leaves { base, leaves, opened: Default::default() };
        let facts = CpuFacts::read(&root, 0).unwrap();
        assert_eq!((facts.family, facts.model, facts.stepping), (6, 0x0d, 8));
        assert_eq!(facts.has(Feature::Hwp), Some(false));
        assert_eq!(facts.has(Feature::InvariantTsc), Some(false));
        assert_eq!(facts.has(Feature::Est), Some(true));
    }

    #[test]
    fn core_types_of_a_capture_come_from_sysfs() {
        let (_folder, root) = tree(&[
            ("proc/cpuinfo", SKYLAKE.as_bytes()),
            ("sys/devices/cpu_core/cpus", b"0\n"),
            ("sys/devices/cpu_atom/cpus", b"1-4\n"),
        ]);
        let all = CpuFacts::read_all(&root).unwrap();
        assert_eq!(all[&0].core_type, Some(CoreType::Performance));
        assert_eq!(all[&1].core_type, Some(CoreType::Efficient));
        assert_eq!(all[&1].features[&Feature::Hybrid].origin, Origin::Sysfs);
    }

    #[test]
    fn what_is_not_x86_or_not_there_is_said_in_one_line() {
        let (_folder, arm) = tree(&[("proc/cpuinfo", b"processor\t: 0\nCPU implementer\t: 0x41\n")]);
        let words = CpuFacts::read(&arm, 0).unwrap_err().to_string();
        assert!(words.contains("not an x86 processor"), "{words}");
        let (_folder, none) = tree(&[]);
        let words = CpuFacts::read_all(&none).unwrap_err().to_string();
        assert!(words.contains("proc/cpuinfo"), "{words}");
        let (_folder, two) = tree(&[("proc/cpuinfo", SKYLAKE.as_bytes())]);
        let words = CpuFacts::read(&two, 7).unwrap_err().to_string();
        assert!(words.contains("cpu7") && words.contains("offline"), "{words}");
    }

    #[test]
    fn a_device_that_answers_short_changes_nothing() {
        let (_folder, root) = tree(&[("proc/cpuinfo", SKYLAKE.as_bytes()), ("dev/cpu/0/cpuid", b"short")]);
        assert_eq!(CpuFacts::read(&root, 0).unwrap().identity, Origin::CpuInfo);
    }

    #[test]
    fn family_and_model_are_the_display_ones() {
        assert_eq!(version_of(0x0005_0657), (6, 0x55, 7));
        assert_eq!(version_of(0x0000_0f29), (0xf, 2, 9));
        assert_eq!(version_of(0x00a2_0f10), (0x19, 0x21, 0));
        assert_eq!(version_of(0x0000_06d8), (6, 0xd, 8));
    }

    #[test]
    fn this_machine_answers_or_says_why() {
        let root = DirRoot::this_machine();
        match CpuFacts::read_all(&root) {
            Ok(all) => {
                // The CPUs of proc/cpuinfo, and the same processor whoever was asked.
                let listed = parse_cpuinfo(&std::fs::read_to_string("/proc/cpuinfo").unwrap());
                let who = |all: &BTreeMap<u32, CpuFacts>| -> Vec<_> {
                    all.iter().map(|(cpu, f)| (*cpu, f.vendor.clone(), f.family, f.model)).collect()
                };
                assert!(listed.contains_key(all.keys().next().unwrap()), "{all:?}");
                assert_eq!(who(&all), who(&listed));
            }
            Err(e) => {
                let words = e.to_string();
                assert!(words.contains("proc/cpuinfo") && !words.contains('\n'), "{words}");
            }
        }
    }
}
