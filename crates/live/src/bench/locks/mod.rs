//! Locks measured on this machine: the matrix run, its energy metered or priced.

pub mod measure;

use measure::{LockCounts, LockJob, Subject};
use std::time::Duration;
use wattwise_figure::Provenance;
use wattwise_hw::clock::now;
use wattwise_hw::root::Root;
use wattwise_lockbench::{Bench, LockMatrix, LockTurn, Place, Record, SCHEMA, jain};
use wattwise_meter::Meter;
use wattwise_model::machine::MachineModel;

/// Joules of a process where nothing is metered: its CPU time at the watts of a machine's model.
#[derive(Clone, Debug)]
pub struct Pricing {
    busy_w: f64,
    idle_w: f64,
    base_w: f64,
    cpus: f64,
    by: String,
}

impl Pricing {
    /// By a model's highest speed, first C-state and uncore. The platform is left out, as RAPL does.
    pub fn of(machine: &MachineModel) -> Pricing {
        let kind = &machine.kinds[0];
        let threads = machine.cores.first().map_or(1, |c| c.cpus.len()).max(1) as f64;
        let level = kind.levels.first().map_or(0.0, |l| l.busy_w);
        let idle = kind.idle.first().and_then(|s| s.watts.first()).copied().unwrap_or(0.0);
        Pricing {
            busy_w: level / threads,
            idle_w: idle / threads,
            base_w: machine.packages.iter().map(|p| p.uncore_w).sum(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from) as f64,
            by: format!(
                "CPU time at the watts of {} (highest speed, C1 when idle, waiting as dear as working)",
                machine.name
            ),
        }
    }

    fn joules(&self, cpu_s: f64, seconds: f64) -> f64 {
        let idle_s = (self.cpus * seconds - cpu_s).max(0.0);
        self.base_w * seconds + self.busy_w * cpu_s + self.idle_w * idle_s
    }
}

/// Runs a matrix on this machine, with a subject for each of its locks; `done` hears after each measurement how many there have been.
///
/// # Errors
/// The threads of a measurement cannot be started.
pub fn run(
    matrix: &LockMatrix,
    subjects: &[Subject],
    root: &dyn Root,
    pricing: &Pricing,
    mut done: impl FnMut(usize),
) -> Result<Bench, String> {
    let mut meter = Meter::open(root);
    meter.self_test(Duration::from_millis(100), std::thread::sleep);
    let mut energy = if meter.is_empty() {
        Provenance::Modelled { by: pricing.by.clone() }
    } else {
        meter.energy().provenance
    };
    let mut records = Vec::with_capacity(matrix.measurements());
    for repeat in 0..matrix.repeats {
        for LockTurn { threads, cs, ncs, lock } in matrix.order(repeat) {
            let subject = &subjects[lock];
            // The same lengths for every lock of a cell.
            let seed = matrix.seed.wrapping_add(repeat as u64 * 1_000_003);
            let job = LockJob { threads, cs, ncs, time: matrix.time, pin: matrix.pin, seed };
            meter.begin(now());
            let metered_from = now().monotonic_s;
            let counts = measure::run(subject, &job)
                .map_err(|e| format!("{threads} threads cannot be started: {e}"))?;
            meter.sample(now());
            let whole_s = now().monotonic_s - metered_from;
            let joules = if meter.is_empty() {
                Some(pricing.joules(counts.cpu_s, counts.seconds))
            } else {
                let read = meter.energy();
                energy = read.provenance;
                // The meter ran from before the threads began until after their end, at the same power.
                read.joules.map(|j| j * counts.seconds / whole_s)
            };
            records.push(record(
                repeat,
                subject.name(),
                Place { threads, cs_us: cs, ncs_us: ncs },
                &counts,
                joules,
            ));
            done(records.len());
        }
    }
    let mut notes = vec![
        "Sections last as long as the time-stamp counter says; steps of more than 1 us between its reads, in which \
         somebody else had the core, are left out."
            .to_owned(),
    ];
    if matches!(energy, Provenance::Modelled { .. }) {
        let why: Vec<String> = meter.unavailable.iter().map(|u| format!("{}: {}", u.what, u.why)).collect();
        let why = if why.is_empty() { "no meter was found".to_owned() } else { why.join("; ") };
        notes.push(format!("Energy is modelled, since nothing meters it here ({why})."));
    }
    notes.extend(subjects.iter().filter_map(Subject::caveat));
    let cells = wattwise_lockbench::judge::cells(&records);
    Ok(Bench {
        schema: SCHEMA.into(),
        machine: "this machine".to_owned(),
        figures: Provenance::Measured { by: "the time-stamp counter and the process's CPU time".to_owned() },
        energy,
        seed: matrix.seed,
        repeats: matrix.repeats,
        pinned: matrix.pin,
        notes,
        records,
        cells,
        verdict: None,
    })
}

fn record(repeat: usize, lock: &str, place: Place, counts: &LockCounts, energy_j: Option<f64>) -> Record {
    let total: u64 = counts.acquired.iter().sum();
    Record {
        repeat,
        lock: lock.to_owned(),
        place,
        window_s: counts.seconds,
        acquisitions_per_s: total as f64 / counts.seconds,
        cpus: counts.cpu_s / counts.seconds,
        cpu_s_per_acquisition: counts.cpu_s / total.max(1) as f64,
        jain: jain(&counts.acquired),
        wait_p50_us: counts.waits.quantile(0.5),
        wait_p99_us: counts.waits.quantile(0.99),
        wait_p999_us: counts.waits.quantile(0.999),
        wait_max_us: counts.waits.longest(),
        energy_j,
        acquisitions_per_j: energy_j.filter(|j| *j > 0.0).map(|j| total as f64 / j),
    }
}
