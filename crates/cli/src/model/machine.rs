//! A machine as `--machine` takes it: a bundled model, a machine file, `this`, a capture, or an emulated one.

use crate::args::root;
use crate::exit::Failure;
use std::io::Read;
use wattwise_calibrate::estimate::{Estimate, estimate};
use wattwise_calibrate::gather::Seen;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{ClockOrigin, Workload};
use wattwise_replay::library;
use wattwise_trace::record;

/// This machine's name.
pub(crate) const THIS: &str = "this";
/// What a capture begins with: it is compressed by zstd.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The machine of that name.
///
/// # Errors
/// Bad input: an unknown name, a file that is none, a machine whose files list no CPU.
pub(crate) fn machine(given: &str) -> Result<MachineModel, Failure> {
    match file_of(given)? {
        Some(estimate) => library::parsed(&estimate.text, given).map_err(Failure::work),
        None => library::machine(given).map_err(Failure::input),
    }
}

/// The estimate of this machine, whose clock is `khz` where its kernel does not tell.
fn this(khz: Option<u32>) -> Result<Estimate, Failure> {
    let root = root::open(None, "--machine")?;
    let seen = Seen::read(&*root).ok_or_else(|| Failure::impossible("this machine's sysfs lists no CPU"))?;
    let seen = match khz {
        Some(khz) => seen.with_clock(u64::from(khz)),
        None => seen,
    };
    Ok(estimate(&seen, THIS))
}

/// The estimate of a machine that is there as files; none where a model is named.
pub(crate) fn file_of(given: &str) -> Result<Option<Estimate>, Failure> {
    let root = match given {
        THIS => return this(record::clock_khz()).map(Some),
        _ if given.starts_with("emulated:") || is_capture(given) => root::open(Some(given), "--machine")?,
        _ => return Ok(None),
    };
    let seen = Seen::read(&*root)
        .ok_or_else(|| Failure::input(format!("--machine {given}: its files list no CPU")))?;
    let stem = std::path::Path::new(given).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(estimate(&seen, &stem)))
}

fn is_capture(path: &str) -> bool {
    let mut head = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut f| f.read_exact(&mut head));
    read.is_ok() && head == ZSTD
}

/// The machine for a workload when none is named: a model of the recorded processor, else this machine if the recording
/// was made on one with the same processor and as many CPUs; for bundled and generated work the default model.
pub(crate) fn machine_for(workload: &Workload) -> Result<MachineModel, Failure> {
    let no_model = match library::machine_for(workload) {
        Ok(machine) => return Ok(machine),
        Err(e) => e,
    };
    match &workload.recorded {
        // The clock that the recording ran at is this machine's, where nothing else tells it.
        Some(r) if is_here(r.cpu_name.as_deref(), r.cpus) => {
            let measured = (r.clock == ClockOrigin::Measured).then_some(r.khz);
            let estimate = this(measured.or_else(record::clock_khz))?;
            library::parsed(&estimate.text, THIS).map_err(Failure::work)
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

/// The model of this machine: a bundled one of its processor, else its estimate.
pub(crate) fn here() -> Result<MachineModel, Failure> {
    let known = library::machine_of("this machine", record::cpu_name().as_deref(), cpus_here());
    known.or_else(|_| machine(THIS))
}
