//! What looking at a machine costs it while a calibration holds it at rest.
//!
//! `cost [MACHINE] [SECONDS]`: the files of an emulated machine are copied to a folder, where a thread keeps its energy counters
//! going. The calibration is the real one, with real waits and the CPU time of its own thread; only the work of its windows is
//! left out, since this machine may have fewer CPUs. Reading a real counter costs more than a file: some microseconds each.

use rustix::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_calibrate::calibration::calibrate;
use wattwise_calibrate::calibration::plan::CalibrationPlan;
use wattwise_calibrate::site::{Ask, Changes, Paced, Site};
use wattwise_emulator::named;
use wattwise_hw::clock::{Moment, now};
use wattwise_hw::root::{DirRoot, Root, text};
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// Digits of a counter: written over in place, a reader never sees half of it.
const DIGITS: usize = 12;

/// A folder that stands for a machine at rest.
struct Folder(DirRoot);

impl Site for Folder {
    fn root(&self) -> &dyn Root {
        &self.0
    }
    fn load(&self, _: &[(u32, f64)]) -> Result<(), String> {
        Ok(())
    }
    fn pass(&self, time: Duration) -> Result<(), String> {
        std::thread::sleep(time);
        Ok(())
    }
    fn pace(&self, _: &[u32], _: Duration) -> Result<Option<Vec<Paced>>, String> {
        Ok(None)
    }
    fn changes(&self, _: &CpufreqPolicy, _: u32, _: &Ask<'_>) -> Result<Option<Changes>, String> {
        Ok(None)
    }
    fn late(&self, _: u32, _: Duration, _: usize) -> Result<Option<Vec<f64>>, String> {
        Ok(None)
    }
    fn moment(&self) -> Moment {
        now()
    }
    fn own_cpu(&self) -> u32 {
        0
    }
    fn own_s(&self) -> f64 {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
    }
}

/// Copies what can be read as text; the paths of energy counters.
fn copy(from: &dyn Root, at: &str, to: &Path, counters: &mut Vec<PathBuf>) {
    let path = to.join(at);
    match from.list(at) {
        Ok(names) => {
            std::fs::create_dir_all(&path).expect("a folder");
            for name in names {
                let below = if at.is_empty() { name } else { format!("{at}/{name}") };
                copy(from, &below, to, counters);
            }
        }
        Err(_) => {
            let Some(content) = text(from, at) else { return };
            let counter = at.ends_with("energy_uj");
            let content = if counter { format!("{:0DIGITS$}", 1) } else { content };
            std::fs::write(&path, content).expect("a file");
            counters.extend(counter.then_some(path));
        }
    }
}

/// 5 W, until the end.
fn count(counters: &[PathBuf], end: &AtomicBool) {
    let open = |path: &PathBuf| std::fs::File::options().write(true).open(path).expect("a counter");
    let files: Vec<std::fs::File> = counters.iter().map(open).collect();
    let begun = Instant::now();
    while !end.load(Ordering::Relaxed) {
        let value = format!("{:0DIGITS$}", (begun.elapsed().as_secs_f64() * 5e6) as u64);
        for file in &files {
            rustix::io::pwrite(file.as_fd(), value.as_bytes(), 0).expect("a counter");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "hybrid-laptop".into());
    let seconds: f64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(60.0);
    let machine = named(&name).expect("an emulated machine");
    let folder = tempfile::tempdir().expect("a folder");
    let mut counters = Vec::new();
    for at in ["sys", "proc"] {
        copy(&machine, at, folder.path(), &mut counters);
    }
    let plan = CalibrationPlan {
        name: "this".into(),
        budget_s: seconds,
        journal: folder.path().join("journal"),
        kept: None,
        seed: 1,
        clock_khz: None,
        state: Vec::new(),
    };
    let end = AtomicBool::new(false);
    let calibrated = std::thread::scope(|s| {
        s.spawn(|| count(&counters, &end));
        let calibrated = calibrate(&Folder(DirRoot::new(folder.path())), &plan, &mut |_| {});
        end.store(true, Ordering::Relaxed);
        calibrated
    });
    match calibrated {
        Ok(c) => {
            let (own, all) = c.observations.iter().fold((0.0, 0.0), |(a, b), o| (a + o.own_s, b + o.seconds));
            println!(
                "{name}, {} CPUs: looking takes {:.3} % of a CPU ({own:.3} s of {all:.1} s in {} windows)",
                machine.online().len(),
                own / all * 100.0,
                c.observations.len()
            );
        }
        Err(e) => {
            println!("{name}: {e}");
            std::process::exit(1);
        }
    }
}
