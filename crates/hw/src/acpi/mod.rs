//! What firmware says of the processors' states: `_PSS`, `_TSS`, `_CST` and their kin in ACPI's tables.
//!
//! A P-state's control value differs from model to model; firmware has the list. Study 004 (section
//! 3.4.2) found it by running `acpidump`, `acpixtract` and `iasl` and by reading the listing with a
//! script. The kernel shows the same bytes in `sys/firmware/acpi/tables`, so we read them ourselves: the
//! header, then as much of the byte code as it takes to find named packages ([`aml`](self) walks, it
//! never executes). The mechanism comes after sysfs and before 004's fallback: where a cpufreq driver
//! runs, its `scaling_available_frequencies` tell the speeds; the control values are only here; and
//! where firmware has no `_PSS`, as on servers with HWP and in virtual machines, they are found by
//! [a sweep](crate::msr::pstate).
//!
//! Firmware writes the list in many ways: as a name in a `Processor`, in a `Scope` of one, in a
//! `Device`; or as a method that returns one of several (`LPSS`, `TPSS`, `SPSS`, `NPSS`), depending on
//! what the system said it can do. Of several, the longest is taken and the others are named: they
//! describe the same hardware, the shorter ones for systems that could not take more.
//!
//! Tables come from strangers (captures too): one that is broken gives one line with its name and the
//! offset, and does not hide the others.

mod aml;
mod error;
#[cfg(test)]
mod tests;

pub use error::{AcpiError, TABLES};

use crate::acpi::aml::{AmlObject, AmlValue, Namespace};
use crate::root;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// A P-state as firmware lists it (ACPI 6.5, 8.4.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PssState {
    /// Clock, MHz; firmware adds 1 to mean "with boost".
    pub mhz: u32,
    /// Power at full load, mW.
    pub power_mw: u32,
    /// Longest time that the change takes, µs.
    pub latency_us: u32,
    /// Longest time that bus masters cannot reach memory meanwhile, µs.
    pub bus_master_latency_us: u32,
    /// What is written to the control register.
    pub control: u32,
    /// What the status register then shows.
    pub status: u32,
}

/// A T-state as firmware lists it (ACPI 6.5, 8.4.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TssState {
    /// Share of full speed, per cent.
    pub percent: u32,
    /// Power, mW.
    pub power_mw: u32,
    /// Longest time that the change takes, µs.
    pub latency_us: u32,
    /// What is written to the control register.
    pub control: u32,
    /// What the status register then shows.
    pub status: u32,
}

/// A C-state as firmware lists it (ACPI 6.5, 8.4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CstState {
    /// 1, 2 or 3.
    pub kind: u32,
    /// Time to leave it, µs.
    pub latency_us: u32,
    /// Power in it, mW.
    pub power_mw: u32,
    /// How it is entered: ACPI's address space (1 port, 7Fh the CPU's own way) and address, which for
    /// 7Fh is the hint for MWAIT. `None` if the register could not be read.
    pub entry: Option<(u8, u64)>,
}

/// Which CPUs change together (`_PSD`, `_TSD`; ACPI 6.5, 8.4.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// The domain's number.
    pub domain: u32,
    /// FCh: software sets all; FDh: software sets any; FEh: the hardware coordinates.
    pub coordination: u32,
    /// How many CPUs it has.
    pub cpus: u32,
}

/// A list and where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry<T> {
    /// The name that holds it, such as `\_PR.CPU0.TPSS`.
    pub name: String,
    /// The table.
    pub table: String,
    /// The entries; fastest or shallowest first, as firmware orders them.
    pub states: Vec<T>,
    /// Entries left out because firmware never filled them in (80000000h).
    pub unfilled: u32,
    /// Other lists that the same object may give.
    pub others: Vec<String>,
}

/// How P- or T-states are set: the control register of `_PCT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlSpace {
    /// The CPU's own register (`IA32_PERF_CTL`, `PSTATE_CTL`): control values are what the MSR takes.
    FixedHardware,
    /// An I/O port at this address: control values mean nothing to an MSR.
    Port(u64),
    /// Another address space of ACPI.
    Other(u8),
}

/// What firmware says of one processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Processor {
    /// Its path, such as `\_PR.CPU0` or `\_SB.C000`.
    pub path: String,
    /// Its ACPI id, if it is a `Processor` object. As in `_MAT` and the MADT; not Linux's number.
    pub acpi_id: Option<u8>,
    /// P-states.
    pub pss: Option<TableEntry<PssState>>,
    /// The fastest P-state allowed at present, as a constant; usually a method, then `None`.
    pub ppc: Option<u32>,
    /// Where P-states are written.
    pub pct: Option<ControlSpace>,
    /// Who changes P-states together.
    pub psd: Option<Domain>,
    /// T-states.
    pub tss: Option<TableEntry<TssState>>,
    /// Who changes T-states together.
    pub tsd: Option<Domain>,
    /// C-states.
    pub cst: Option<TableEntry<CstState>>,
}

/// What firmware says of the processors, and what could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acpi {
    /// The tables that were read.
    pub tables: Vec<String>,
    /// The processors of which any of this is said, by path.
    pub processors: Vec<Processor>,
    /// Tables, or lists in them, that are broken or could not be read.
    pub faults: Vec<AcpiError>,
}

impl Acpi {
    /// What firmware says of Linux's CPU of this number, by the kernel's own link to the ACPI object
    /// (`cpuN/firmware_node/path`). `None` without that link, or when firmware says nothing of it.
    pub fn processor_of(&self, root: &dyn Root, cpu: u32) -> Option<&Processor> {
        let path = root::text(root, &format!("sys/devices/system/cpu/cpu{cpu}/firmware_node/path"))?;
        // The kernel shows names with their padding: `\_PR_.CPU0`.
        let plain = |segment: &str| match segment.trim_end_matches('_') {
            "" => segment[..segment.len().min(1)].to_owned(),
            short => short.to_owned(),
        };
        let path = path.trim_start_matches('\\').split('.').map(plain).collect::<Vec<_>>().join(".");
        self.processors.iter().find(|p| p.path.trim_start_matches('\\') == path)
    }

    /// Whether there are P-states, and if not why, in one sentence.
    pub fn summary(&self) -> String {
        let with = self.processors.iter().filter(|p| p.pss.is_some()).count();
        let tables = self.tables.join(", ");
        let broken = match self.faults.len() {
            0 => String::new(),
            1 => "; 1 fault".into(),
            n => format!("; {n} faults"),
        };
        if with > 0 {
            let states = self.processors.iter().filter_map(|p| p.pss.as_ref()).map(|p| p.states.len()).max();
            format!(
                "firmware lists up to {} P-states for {with} processors ({tables}){broken}",
                states.unwrap_or(0)
            )
        } else if self.tables.is_empty() {
            format!("none of the ACPI tables could be read{broken}")
        } else {
            format!(
                "firmware lists no P-states: no _PSS in {tables}{broken}; usual in virtual machines and where \
                 the hardware chooses by itself (HWP, CPPC)"
            )
        }
    }
}

/// Reads `DSDT`, `SSDT*` and `dynamic/*` and what they say of processors.
///
/// # Errors
/// [`AcpiError::NoTables`]. Tables that are unreadable or broken are in [`Acpi::faults`].
pub fn read(root: &dyn Root) -> Result<Acpi, AcpiError> {
    let names = root.list(TABLES).map_err(|_| AcpiError::NoTables(root.describe()))?;
    let mut paths: Vec<String> =
        names.into_iter().filter(|n| n.starts_with("DSDT") || n.starts_with("SSDT")).collect();
    if root::exists(root, &format!("{TABLES}/dynamic"))
        && let Ok(names) = root.list(&format!("{TABLES}/dynamic"))
    {
        paths.extend(names.into_iter().filter(|n| n.starts_with("SSDT")).map(|n| format!("dynamic/{n}")));
    }
    let (mut tables, mut faults) = (Vec::new(), Vec::new());
    for name in paths {
        match root.read(&format!("{TABLES}/{name}")) {
            Ok(bytes) => tables.push((name, bytes)),
            Err(e) => faults.push(AcpiError::Unreadable {
                path: format!("{TABLES}/{name}"),
                why: match e.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "no permission: only root reads it; run as root or add read permission".into()
                    }
                    _ => e.to_string(),
                },
            }),
        }
    }
    let mut acpi = parse(&tables);
    faults.append(&mut acpi.faults);
    acpi.faults = faults;
    Ok(acpi)
}

/// The same from the tables themselves: names and bytes.
pub fn parse(tables: &[(String, Vec<u8>)]) -> Acpi {
    let mut acpi = Acpi::default();
    let mut names = Namespace::default();
    for (name, bytes) in tables {
        let walked = header(name, bytes).and_then(|length| {
            acpi.tables.push(name.clone());
            crate::acpi::aml::walk(name, &bytes[..length], HEADER, &mut names, &|n| KINDS.contains(&n))
        });
        acpi.faults.extend(walked.err());
    }
    let mut scopes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for path in names.objects.keys() {
        let last = path.rsplit(['.', '\\']).next().unwrap_or_default();
        if KINDS.iter().any(|k| k.as_slice() == last.as_bytes()) {
            scopes.entry(crate::acpi::aml::parent(path)).or_default().push(last);
        }
    }
    for (scope, found) in scopes {
        let mut processor = Processor {
            acpi_id: names.processors.get(&scope).copied(),
            path: scope.clone(),
            ..Processor::default()
        };
        let mut reader = AcpiReader { names: &names, scope: &scope, faults: &mut acpi.faults };
        // Bare lists, of which no _PSS says which counts: 004 took those too.
        let pss: Vec<&str> = match found.contains(&"_PSS") {
            true => vec!["_PSS"],
            false => found.iter().copied().filter(|n| BARE.contains(n)).collect(),
        };
        processor.pss = reader.list(&pss, &pss_state);
        processor.tss = reader.list(&["_TSS"], &tss_state);
        processor.cst = reader.cst();
        processor.psd = reader.domain("_PSD");
        processor.tsd = reader.domain("_TSD");
        processor.pct = reader.pct();
        processor.ppc = reader.integer("_PPC");
        // A scope of nothing but unreadable methods says nothing.
        let empty = Processor { path: scope.clone(), acpi_id: processor.acpi_id, ..Processor::default() };
        if processor != empty {
            acpi.processors.push(processor);
        }
    }
    acpi
}

/// The names that we look for.
const KINDS: [&[u8; 4]; 11] =
    [b"_PSS", b"_PPC", b"_PCT", b"_PSD", b"_TSS", b"_TSD", b"_CST", b"LPSS", b"TPSS", b"SPSS", b"NPSS"];
/// The lists that a `_PSS` usually chooses from.
const BARE: [&str; 4] = ["TPSS", "LPSS", "SPSS", "NPSS"];

/// Bytes of a table's header.
const HEADER: usize = 36;

/// Checks signature, length and checksum. The table's length.
fn header(name: &str, bytes: &[u8]) -> Result<usize, AcpiError> {
    let fault = |offset, what: String| Err(AcpiError::Malformed { table: name.to_owned(), offset, what });
    if bytes.len() < HEADER {
        return fault(0, format!("{} bytes, where the header alone has {HEADER}", bytes.len()));
    }
    if !matches!(&bytes[..4], b"DSDT" | b"SSDT") {
        let signature = String::from_utf8_lossy(&bytes[..4]).escape_debug().to_string();
        return fault(0, format!("signature `{signature}` where DSDT or SSDT was expected"));
    }
    let length = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
    if length < HEADER || length > bytes.len() {
        return fault(4, format!("says that it has {length} bytes, and there are {}", bytes.len()));
    }
    match bytes[..length].iter().fold(0u8, |sum, b| sum.wrapping_add(*b)) {
        0 => Ok(length),
        sum => fault(9, format!("checksum: the bytes add up to {sum:#04x} where 0 was expected")),
    }
}

/// Reads the objects of one processor.
struct AcpiReader<'a> {
    names: &'a Namespace,
    scope: &'a str,
    faults: &'a mut Vec<AcpiError>,
}

/// A constant with the name, table and offset of its declaration.
struct Constant<'a> {
    value: &'a AmlValue,
    path: &'a str,
    table: &'a str,
    offset: usize,
}

impl<'a> AcpiReader<'a> {
    /// All constants that a name may stand for: itself, or what its method may return.
    fn constants(&self, name: &str) -> Vec<Constant<'a>> {
        let path = if self.scope == "\\" { format!("\\{name}") } else { format!("{}.{name}", self.scope) };
        let mut all = Vec::new();
        if let Some((path, declared)) = self.names.objects.get_key_value(&path) {
            self.follow(path, declared, 0, &mut all);
        }
        all
    }

    fn follow(
        &self,
        path: &'a str,
        declared: &'a crate::acpi::aml::Declared,
        depth: u32,
        all: &mut Vec<Constant<'a>>,
    ) {
        // One method returns what another returns, at most; circles end here, and so do method trees.
        if depth > 6 || all.len() > 16 {
            return;
        }
        let mut add = |value: &'a AmlValue, scope: &str| match value {
            AmlValue::Reference(name) => {
                if let Some((path, declared)) = self.names.find(name, scope) {
                    self.follow(path, declared, depth + 1, all);
                }
            }
            value if all.iter().all(|c| c.path != path) => {
                let (table, offset) = (declared.table.as_str(), declared.offset);
                all.push(Constant { value, path, table, offset });
            }
            _ => {}
        };
        match &declared.object {
            AmlObject::Value(value) => add(value, &crate::acpi::aml::parent(path)),
            // Names in a method are looked for from the method's own scope upwards.
            AmlObject::Method(returns) => returns.iter().for_each(|value| add(value, path)),
            AmlObject::Alias(name) => {
                if let Some((path, declared)) = self.names.find(name, &crate::acpi::aml::parent(path)) {
                    self.follow(path, declared, depth + 1, all);
                }
            }
        }
    }

    fn fault(&mut self, at: &Constant<'_>, what: String) {
        let (table, offset) = (at.table.to_owned(), at.offset);
        self.faults.push(AcpiError::Malformed { table, offset, what: format!("{}: {what}", at.path) });
    }

    /// The longest list that one of these names may stand for.
    fn list<T>(
        &mut self,
        names: &[&str],
        row: &dyn Fn(&AmlValue) -> Result<Option<T>, String>,
    ) -> Option<TableEntry<T>> {
        let mut best: Option<TableEntry<T>> = None;
        let constants: Vec<Constant<'_>> = names.iter().flat_map(|n| self.constants(n)).collect();
        for constant in constants {
            // A method that gives 0 says "none".
            let AmlValue::Package(rows) = constant.value else { continue };
            let mut found = TableEntry {
                name: constant.path.to_owned(),
                table: constant.table.to_owned(),
                states: Vec::new(),
                unfilled: 0,
                others: Vec::new(),
            };
            let read = rows.iter().enumerate().try_for_each(|(i, value)| {
                match row(value).map_err(|e| format!("entry {i}: {e}"))? {
                    Some(state) => found.states.push(state),
                    None => found.unfilled += 1,
                }
                Ok::<_, String>(())
            });
            if let Err(e) = read {
                self.fault(&constant, e);
                continue;
            }
            best = Some(match best.take() {
                None => found,
                Some(mut other) if found.states.len() > other.states.len() => {
                    found.others.append(&mut other.others);
                    found.others.push(other.name);
                    found
                }
                Some(mut best) => {
                    best.others.push(found.name);
                    best
                }
            });
        }
        best.filter(|found| !found.states.is_empty())
    }

    fn cst(&mut self) -> Option<TableEntry<CstState>> {
        // The first element is the number of the others.
        self.list(&["_CST"], &|value| match value {
            AmlValue::Integer(_) => Ok(None),
            value => cst_state(value).map(Some),
        })
        .map(|found| TableEntry { unfilled: 0, ..found })
    }

    fn domain(&mut self, name: &str) -> Option<Domain> {
        let constant = self.constants(name).into_iter().next()?;
        let read = match constant.value {
            AmlValue::Package(rows) => rows.first().map(integers::<5>),
            _ => None,
        };
        match read {
            Some(Ok([_, _, domain, coordination, cpus])) => Some(Domain { domain, coordination, cpus }),
            Some(Err(e)) => {
                self.fault(&constant, e);
                None
            }
            None => None,
        }
    }

    fn pct(&mut self) -> Option<ControlSpace> {
        let constant = self.constants("_PCT").into_iter().next()?;
        let AmlValue::Package(registers) = constant.value else { return None };
        let (space, address) = generic_address(registers.first()?)?;
        Some(match space {
            0x7f => ControlSpace::FixedHardware,
            1 => ControlSpace::Port(address),
            other => ControlSpace::Other(other),
        })
    }

    fn integer(&mut self, name: &str) -> Option<u32> {
        match self.constants(name).into_iter().next()?.value {
            AmlValue::Integer(value) => u32::try_from(*value).ok(),
            _ => None,
        }
    }
}

/// The address space and address of a Generic Register Descriptor (ACPI 6.5, 6.4.3.7) in a buffer.
fn generic_address(value: &AmlValue) -> Option<(u8, u64)> {
    let AmlValue::Buffer(bytes) = value else { return None };
    let [0x82, 0x0c, 0x00, space, _, _, _, address @ ..] = bytes.as_slice() else { return None };
    Some((*space, u64::from_le_bytes(address.get(..8)?.try_into().ok()?)))
}

/// A package of exactly so many integers of 32 bits.
fn integers<const N: usize>(row: &AmlValue) -> Result<[u32; N], String> {
    let AmlValue::Package(values) = row else { return Err(format!("expected a package of {N} integers")) };
    let mut all = [0; N];
    if values.len() != N {
        return Err(format!("{} elements, where {N} were expected", values.len()));
    }
    for (i, (to, value)) in all.iter_mut().zip(values).enumerate() {
        *to = match value {
            AmlValue::Integer(value) => {
                u32::try_from(*value).map_err(|_| format!("element {i}: {value:#x} has more than 32 bits"))?
            }
            _ => return Err(format!("element {i} is not an integer")),
        };
    }
    Ok(all)
}

/// What firmware leaves in entries that it means to fill in at boot, and did not.
const UNFILLED: u32 = 0x8000_0000;

fn pss_state(row: &AmlValue) -> Result<Option<PssState>, String> {
    let [mhz, power_mw, latency_us, bus_master_latency_us, control, status] = integers::<6>(row)?;
    let state = PssState { mhz, power_mw, latency_us, bus_master_latency_us, control, status };
    Ok((mhz != 0 && mhz != UNFILLED && control != UNFILLED).then_some(state))
}

fn tss_state(row: &AmlValue) -> Result<Option<TssState>, String> {
    let [percent, power_mw, latency_us, control, status] = integers::<5>(row)?;
    let state = TssState { percent, power_mw, latency_us, control, status };
    Ok((percent != 0 && percent != UNFILLED && control != UNFILLED).then_some(state))
}

fn cst_state(row: &AmlValue) -> Result<CstState, String> {
    let AmlValue::Package(values) = row else { return Err("expected a package".into()) };
    let [register, rest @ ..] = values.as_slice() else { return Err("an empty package".into()) };
    let [kind, latency_us, power_mw] = integers::<3>(&AmlValue::Package(rest.to_vec()))?;
    Ok(CstState { kind, latency_us, power_mw, entry: generic_address(register) })
}
