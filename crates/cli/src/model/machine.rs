//! A machine as `--machine` takes it: a bundled model, a machine file, `this`, a tree, a capture, or an emulated one.

use crate::args::root;
use crate::exit::Failure;
use crate::model::own::{self, KeptCalibration};
use std::io::Read;
use wattwise_calibrate::estimate::{Estimate, estimate};
use wattwise_calibrate::gather::SeenMachine;
use wattwise_hw::identity::Identity;
use wattwise_hw::root::Root;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{ClockOrigin, Workload};
use wattwise_replay::library::{self, LibraryError};
use wattwise_trace::record;

/// This machine's name.
pub(crate) use crate::args::root::THIS;
/// What a capture begins with: it is compressed by zstd.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The machine of that name.
///
/// # Errors
/// Bad input: an unknown name, a file that is none, a machine whose files list no CPU.
pub(crate) fn machine(given: &str) -> Result<MachineModel, Failure> {
    machine_of("--machine", given)
}

/// The same, named by another flag.
fn machine_of(flag: &'static str, given: &str) -> Result<MachineModel, Failure> {
    if given == THIS {
        return this(record::clock_khz).map(|(model, _)| model);
    }
    match estimated(flag, given)? {
        Some(estimate) => library::parsed(&estimate.text, given).map_err(Failure::work),
        None => library::machine(given).map_err(|e| {
            let e = match e {
                LibraryError::Unknown { given, nearest, list, .. } => {
                    LibraryError::Unknown { flag, given, nearest, list }
                }
                e => e,
            };
            match wattwise_emulator::names().any(|n| n == given) {
                true => Failure::input(format!("{e}; the emulated machine of that name is emulated:{given}")),
                false => Failure::input(e),
            }
        }),
    }
}

/// The machine by whose watts unmetered time is priced, as `--watts-of` names it: `this` is the machine at hand, calibrated or
/// estimated; none where its files list no CPU.
pub(crate) fn prices(given: &str, root: &dyn Root) -> Result<Option<MachineModel>, Failure> {
    if given != THIS {
        return machine_of("--watts-of", given).map(Some);
    }
    let Some(seen) = SeenMachine::read(root) else { return Ok(None) };
    let (mut model, word) = match root.is_this_machine() {
        true => (machine(THIS)?, if is_calibrated()? { "calibrated" } else { "estimated" }),
        false => (library::parsed(&estimate(&seen, THIS).text, THIS).map_err(Failure::work)?, "estimated"),
    };
    model.name = format!("this machine, {word}");
    Ok(Some(model))
}

/// The file of a machine; none where a model is named.
pub(crate) fn file_of(given: &str) -> Result<Option<String>, Failure> {
    if given == THIS {
        return this(record::clock_khz).map(|(_, text)| Some(text));
    }
    Ok(estimated("--machine", given)?.map(|estimate| estimate.text))
}

/// This machine as it was calibrated, else its estimate, with the clock that `khz` measures where its kernel does not
/// tell one; and the file.
fn this(khz: impl FnOnce() -> Option<u32>) -> Result<(MachineModel, String), Failure> {
    let root = root::open(None, "--machine")?;
    let seen =
        SeenMachine::read(&*root).ok_or_else(|| Failure::impossible("this machine's sysfs lists no CPU"))?;
    let not_used = match own::kept(&*root, &seen)? {
        KeptCalibration::Calibrated(model, text) => return Ok((*model, text)),
        KeptCalibration::NotUsed(why) => Some(why),
        KeptCalibration::Nothing => None,
    };
    let seen = match khz() {
        Some(khz) => seen.with_clock(u64::from(khz)),
        None => seen,
    };
    let text = estimate(&seen, THIS).text;
    let mut model = library::parsed(&text, THIS).map_err(Failure::work)?;
    // First: who calibrated takes the watts for measured.
    model.notes.splice(0..0, not_used);
    Ok((model, text))
}

/// What tells a machine that is there as files, this one among them, from another; none where a model is named.
pub(crate) fn identity(given: &str) -> Result<Option<Identity>, Failure> {
    if given != THIS && !is_as_files(given) {
        return Ok(None);
    }
    Ok(Some(Identity::read(&*root::open(Some(given), "--machine")?)))
}

/// Whether somebody has calibrated this machine.
fn is_calibrated() -> Result<bool, Failure> {
    let root = root::open(None, "--machine")?;
    let Some(seen) = SeenMachine::read(&*root) else { return Ok(false) };
    Ok(matches!(own::kept(&*root, &seen)?, KeptCalibration::Calibrated(..)))
}

/// Whether a machine is there as files, a real one's or as if it were: a tree, a capture, or an emulated one.
pub(crate) fn is_as_files(given: &str) -> bool {
    can_be_set(given) || is_capture(given)
}

/// Whether settings can be made there by `--root`: a tree, or an emulated machine.
pub(crate) fn can_be_set(given: &str) -> bool {
    given.starts_with("emulated:") || std::path::Path::new(given).is_dir()
}

/// What a machine that is there as files is called.
pub(crate) fn stem(given: &str) -> String {
    let path = std::path::Path::new(given);
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map_or_else(|| given.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// What machines are called that are named together: by their stems, and where two have the same one as they are named.
pub(crate) fn apart(given: &[String]) -> Vec<String> {
    let stems: Vec<String> = given.iter().map(|g| stem(g)).collect();
    let is_once = |stem: &String| stems.iter().filter(|s| *s == stem).count() == 1;
    let own = |(given, stem): (&String, &String)| if is_once(stem) { stem.clone() } else { given.clone() };
    given.iter().zip(&stems).map(own).collect()
}

/// The estimate of a machine that is there as files; none where a model is named.
fn estimated(flag: &str, given: &str) -> Result<Option<Estimate>, Failure> {
    if !is_as_files(given) {
        return Ok(None);
    }
    let root = root::open(Some(given), flag)?;
    let seen = SeenMachine::read(&*root)
        .ok_or_else(|| Failure::input(format!("{flag} {given}: its files list no CPU")))?;
    Ok(Some(estimate(&seen, &stem(given))))
}

/// Whether a file is packed as captures are.
pub(crate) fn is_capture(path: &str) -> bool {
    let mut head = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut f| f.read_exact(&mut head));
    read.is_ok() && head == ZSTD
}

/// The machine for a workload when none is named: this machine, where the recording was made on one with its processor and as
/// many CPUs and somebody has calibrated it; a bundled model of the recorded processor; this machine's estimate. For
/// bundled and generated work the default model.
pub(crate) fn machine_for(workload: &Workload) -> Result<MachineModel, Failure> {
    if let Some(r) = &workload.recorded
        && !library::is_bundled(workload)
        && is_here(r.cpu_name.as_deref(), r.cpus)
        && is_calibrated()?
    {
        return machine(THIS);
    }
    let no_model = match library::machine_for(workload) {
        Ok(machine) => return Ok(machine),
        Err(e) => e,
    };
    match &workload.recorded {
        // The clock that the recording ran at is this machine's, where nothing else tells it.
        Some(r) if is_here(r.cpu_name.as_deref(), r.cpus) => {
            let measured = (r.clock == ClockOrigin::Measured).then_some(r.khz);
            this(|| measured.or_else(record::clock_khz)).map(|(model, _)| model)
        }
        _ => Err(Failure::input(no_model)),
    }
}

fn is_here(cpu_name: Option<&str>, cpus: u16) -> bool {
    cpu_name.is_some() && cpu_name == record::cpu_name().as_deref() && cpus == cpus_here()
}

fn cpus_here() -> u16 {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(usize::from(u16::MAX)) as u16)
}

/// The model of this machine: its calibrated one, else a bundled one of its processor, else its estimate.
pub(crate) fn here() -> Result<MachineModel, Failure> {
    if is_calibrated()? {
        return machine(THIS);
    }
    let known = library::machine_of("this machine", record::cpu_name().as_deref(), cpus_here());
    known.or_else(|_| machine(THIS))
}
