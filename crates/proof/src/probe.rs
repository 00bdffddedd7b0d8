//! What a block shows beside energy: how well the machine served, and what the work was. Counters are opened once.

use crate::block::{Covariates, Service};
use perf_event_open_sys as sys;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};
use wattwise_hw::capture::expand;
use wattwise_hw::cpus::proc_stat::{Stat, StatFile};
use wattwise_hw::cpus::topology;
use wattwise_hw::root::{Root, number, text};

/// How often the probe wakes: its work of 4 ms is 0.04 % of one CPU then, alike under both policies.
pub const EVERY: Duration = Duration::from_secs(10);
/// Its work at the speed that it was calibrated at: about what a key press or a small request takes.
const WORK: Duration = Duration::from_millis(4);

/// Work that no compiler takes out and no cache is needed for.
fn work(loops: u64) -> u64 {
    (0..loops)
        .fold(1, |x: u64, _| std::hint::black_box(x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1)))
}

/// Loops that take 4 ms on a CPU that has been busy for a while.
pub fn calibrated() -> u64 {
    const TRY: u64 = 200_000;
    let begun = Instant::now();
    let mut best = Duration::MAX;
    while begun.elapsed() < Duration::from_millis(60) {
        let at = Instant::now();
        work(TRY);
        best = best.min(at.elapsed());
    }
    let loops = TRY as f64 * WORK.as_secs_f64() / best.as_secs_f64().max(1e-9);
    (loops as u64).clamp(1000, 100_000_000)
}

/// From the time that it was to wake to the end of its work, s. `at` is little ahead of now.
pub fn response(at: Instant, loops: u64) -> f64 {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
    work(loops);
    at.elapsed().as_secs_f64()
}

/// Instructions of one CPU, of all tasks.
struct Instructions(File);

impl Instructions {
    fn open(cpu: u32) -> Option<Instructions> {
        let mut attr = sys::bindings::perf_event_attr::default();
        attr.type_ = sys::bindings::PERF_TYPE_HARDWARE;
        attr.size = size_of::<sys::bindings::perf_event_attr>() as u32;
        attr.config = u64::from(sys::bindings::PERF_COUNT_HW_INSTRUCTIONS);
        attr.read_format = u64::from(
            sys::bindings::PERF_FORMAT_TOTAL_TIME_ENABLED | sys::bindings::PERF_FORMAT_TOTAL_TIME_RUNNING,
        );
        let flags = sys::bindings::PERF_FLAG_FD_CLOEXEC as std::ffi::c_ulong;
        // SAFETY: `attr` is a valid structure of the size that it states and outlives the call.
        let fd = unsafe { sys::perf_event_open(&mut attr, -1, i32::try_from(cpu).ok()?, -1, flags) };
        // SAFETY: a descriptor that is not negative is new and nobody else's.
        (fd >= 0).then(|| Instructions(unsafe { File::from_raw_fd(fd) }))
    }

    /// Scaled where the counter had to be shared.
    fn read(&mut self) -> Option<f64> {
        let mut raw = [0; 24];
        self.0.read_exact(&mut raw).ok()?;
        let field = |at: usize| raw[at * 8..].first_chunk::<8>().map(|b| u64::from_ne_bytes(*b) as f64);
        let (count, enabled, running) = (field(0)?, field(1)?, field(2)?);
        (running > 0.0).then(|| count * enabled / running)
    }
}

/// What is read at both ends of a block.
#[derive(Default, Clone)]
struct BlockLook {
    run_delay_ns: Option<u64>,
    pressure_us: Option<u64>,
    busy_s: Option<f64>,
    instructions: Option<f64>,
    brightness: Option<f64>,
    rc6_ms: Option<u64>,
}

/// Watches service and work over blocks.
pub struct ProbeWatch<'r> {
    root: &'r dyn Root,
    stat: Option<StatFile>,
    instructions: Vec<Instructions>,
    lights: Vec<String>,
    busy_files: Vec<String>,
    rc6_files: Vec<String>,
    start: BlockLook,
    responses: Vec<f64>,
    gpu: Vec<f64>,
}

impl<'r> ProbeWatch<'r> {
    /// Opens what there is.
    pub fn open(root: &'r dyn Root) -> ProbeWatch<'r> {
        let online = topology::online(root);
        let all: Option<Vec<Instructions>> = match root.is_this_machine() {
            true => online.iter().map(Instructions::open).collect(),
            false => None,
        };
        ProbeWatch {
            root,
            stat: StatFile::open(root).ok(),
            instructions: all.unwrap_or_default(),
            lights: expand(root, "sys/class/backlight/*/brightness"),
            busy_files: expand(root, "sys/class/drm/card*/device/gpu_busy_percent"),
            rc6_files: expand(root, "sys/class/drm/card*/gt/gt*/rc6_residency_ms"),
            start: BlockLook::default(),
            responses: Vec::new(),
            gpu: Vec::new(),
        }
    }

    /// Begins a block.
    pub fn begin(&mut self) {
        self.start = self.look();
        self.responses.clear();
        self.gpu.clear();
    }

    /// A response of the probe, and what is only seen in passing.
    pub fn tick(&mut self, response_s: Option<f64>) {
        self.responses.extend(response_s);
        let busy: Vec<f64> = self.busy_files.iter().filter_map(|f| number(self.root, f)).collect();
        self.gpu.extend(busy.into_iter().reduce(f64::max).map(|percent| percent / 100.0));
    }

    /// Ends a block of `seconds`.
    pub fn end(&mut self, seconds: f64) -> (Covariates, Service) {
        let (end, start) = (self.look(), std::mem::take(&mut self.start));
        let rate =
            |a: Option<u64>, b: Option<u64>, unit: f64| Some(b?.checked_sub(a?)? as f64 * unit / seconds);
        let mean = |v: &[f64]| (!v.is_empty()).then(|| v.iter().sum::<f64>() / v.len() as f64);
        let rc6 = rate(start.rc6_ms, end.rc6_ms, 1e-3).map(|asleep| (1.0 - asleep).clamp(0.0, 1.0));
        let instructions = start.instructions.zip(end.instructions).map(|(a, b)| (b - a) / seconds);
        let brightness = start.brightness.zip(end.brightness).map(|(a, b)| f64::midpoint(a, b));
        let work = Covariates { instructions, brightness, gpu: mean(&self.gpu).or(rc6) };
        let service = Service {
            run_delay: rate(start.run_delay_ns, end.run_delay_ns, 1e-9),
            pressure: rate(start.pressure_us, end.pressure_us, 1e-6),
            response_s: mean(&self.responses),
            busy: start.busy_s.zip(end.busy_s).map(|(a, b)| (b - a) / seconds),
        };
        (work, service)
    }

    fn look(&mut self) -> BlockLook {
        let root = self.root;
        let sum = |files: &[String]| {
            files.iter().map(|f| number::<u64>(root, f)).collect::<Option<Vec<_>>>().filter(|v| !v.is_empty())
        };
        let share = |f: &String| {
            let most: f64 = number(root, &f.replace("/brightness", "/max_brightness"))?;
            Some(number::<f64>(root, f)? / most).filter(|x| x.is_finite())
        };
        let lights: Option<Vec<f64>> = self.lights.iter().map(share).collect();
        let counted: Option<Vec<f64>> = self.instructions.iter_mut().map(Instructions::read).collect();
        BlockLook {
            run_delay_ns: text(root, "proc/schedstat").and_then(|t| run_delay(&t)),
            pressure_us: text(root, "proc/pressure/cpu").and_then(|t| pressure(&t)),
            busy_s: self.stat.as_mut().and_then(|s| s.look().ok()).and_then(|s| busy(&s)),
            instructions: counted.filter(|c| !c.is_empty()).map(|c| c.iter().sum()),
            brightness: lights.filter(|l| !l.is_empty()).map(|l| l.iter().sum::<f64>() / l.len() as f64),
            rc6_ms: sum(&self.rc6_files).map(|v| v.iter().sum()),
        }
    }
}

/// Time that tasks waited for a CPU, all CPUs, ns: the eighth number of each `cpuN` line.
fn run_delay(schedstat: &str) -> Option<u64> {
    let lines = schedstat.lines().filter(|l| l.starts_with("cpu"));
    let each = lines.map(|l| l.split_whitespace().nth(8)?.parse::<u64>().ok());
    each.collect::<Option<Vec<_>>>().filter(|v| !v.is_empty()).map(|v| v.iter().sum())
}

/// CPU time of all CPUs since the start of the machine, s: the kernel's ticks for user space are hundredths.
fn busy(stat: &Stat) -> Option<f64> {
    (!stat.cpus.is_empty()).then(|| stat.cpus.iter().map(|t| t.busy as f64).sum::<f64>() / 100.0)
}

/// Time that some task waited for a CPU, µs.
fn pressure(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|l| l.strip_prefix("some "))?;
    some.split_whitespace().find_map(|f| f.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_kernels_files() {
        // Linux 6.1, Documentation/scheduler/sched-stats.rst: the eighth field is the time waited.
        let stat = "version 15\ntimestamp 4298\ncpu0 0 0 9 4 5 3 700 50 5\ndomain0 3 1 2\ncpu1 0 0 9 4 5 3 700 7 5\n";
        assert_eq!(run_delay(stat), Some(57));
        assert_eq!(run_delay("version 15\ncpu0 1 2\n"), None);
        let psi = "some avg10=0.00 avg60=0.10 avg300=0.05 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(pressure(psi), Some(12345));
    }

    #[test]
    fn the_probe_tells_of_more_work() {
        let response =
            |loops| (0..7).map(|_| super::response(Instant::now(), loops)).fold(f64::INFINITY, f64::min);
        assert!(response(2_000_000) > 2.0 * response(200_000));
    }
}
