//! This machine as a site.

use super::changes::{Ask, Changes, try_changes};
use super::{Paced, Site, work};
use std::cell::RefCell;
use std::time::Duration;
use wattwise_control::delays::{transition, wake};
use wattwise_figure::Random;
use wattwise_hw::clock::{Moment, now};
use wattwise_hw::root::Root;
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// This machine: a thread on each busy CPU.
pub struct LiveSite<'a> {
    root: &'a dyn Root,
    burners: RefCell<Vec<Burner>>,
    stop: &'a dyn Fn(Duration) -> Option<String>,
}

struct Burner {
    cpu: u32,
    /// Its CPU time so far, in ns.
    used_ns: std::sync::Arc<std::sync::atomic::AtomicU64>,
    end: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.end.store(true, std::sync::atomic::Ordering::Relaxed);
        // A thread that computes cannot panic; if it has, it has ended.
        _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// How long a CPU that is busy for part of the time takes to work and rest once, on average.
const PERIOD: Duration = Duration::from_millis(20);

/// The lengths of a CPU's periods, each by chance between half of that and one and a half. With the same length on all CPUs their
/// work would begin together, and a package would sleep for longer than its CPUs' shares tell.
fn rhythm(cpu: u32) -> impl Iterator<Item = Duration> {
    let mut random = Random::new(u64::from(cpu));
    std::iter::repeat_with(move || PERIOD.mul_f64(0.5 + random.unit()))
}

impl<'a> LiveSite<'a> {
    /// On this machine. `sleep` waits for a time, and says why to stop where there is a reason.
    pub fn new(root: &'a dyn Root, sleep: &'a dyn Fn(Duration) -> Option<String>) -> LiveSite<'a> {
        LiveSite { root, burners: RefCell::default(), stop: sleep }
    }
}

impl LiveSite<'_> {
    /// Tries changes of speed from the CPU that this thread runs on.
    fn changes_here(&self, policy: &CpufreqPolicy, ask: &Ask<'_>) -> Result<Changes, String> {
        let mut levels_khz = ask.levels_khz;
        let mut stage = loop {
            match transition::LiveDomain::open(self.root, policy, levels_khz) {
                Ok(stage) => break stage,
                // The highest may be a boost that the hardware does not give: then it cannot be told from the next one.
                Err(_) if levels_khz.len() > 2 => levels_khz = &levels_khz[1..],
                Err(why) => return Err(why),
            }
        };
        let within_us = stage.within_us();
        try_changes(&mut stage, within_us, &Ask { levels_khz, ..*ask })
    }
}

impl Site for LiveSite<'_> {
    fn changes(&self, policy: &CpufreqPolicy, cpu: u32, ask: &Ask<'_>) -> Result<Option<Changes>, String> {
        let before = rustix::thread::sched_getaffinity(None).map_err(|e| e.to_string())?;
        // A timed loop has to feel the speed.
        wake::pin(cpu as usize)?;
        let tried = self.changes_here(policy, ask);
        rustix::thread::sched_setaffinity(None, &before).map_err(|e| e.to_string())?;
        tried.map(Some)
    }

    fn late(&self, cpu: u32, sleep: Duration, times: usize) -> Result<Option<Vec<f64>>, String> {
        wake::timer(cpu as usize, sleep, times).map(Some)
    }

    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Paced>>, String> {
        work::run(self.root, cpus, each).map(Some)
    }

    fn root(&self) -> &dyn Root {
        self.root
    }

    fn load(&self, cpus: &[(u32, f64)]) -> Result<(), String> {
        self.burners.borrow_mut().clear();
        let started = cpus.iter().filter(|(_, share)| *share > 0.0).map(|(cpu, share)| burner(*cpu, *share));
        *self.burners.borrow_mut() = started.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn pass(&self, time: Duration) -> Result<(), String> {
        (self.stop)(time).map_or(Ok(()), Err)
    }

    fn wake(&self, cpus: &[u32]) {
        wattwise_hw::cpus::wake::wake(cpus.iter().copied());
    }

    fn moment(&self) -> Moment {
        now()
    }

    fn own_cpu(&self) -> u32 {
        rustix::thread::sched_getcpu() as u32
    }

    fn load_s(&self, cpu: u32) -> f64 {
        let burners = self.burners.borrow();
        let of_cpu = burners.iter().find(|b| b.cpu == cpu);
        of_cpu.map_or(0.0, |b| b.used_ns.load(std::sync::atomic::Ordering::Relaxed) as f64 * 1e-9)
    }

    fn own_s(&self) -> f64 {
        thread_ns() as f64 * 1e-9
    }
}

/// CPU time of this thread.
fn thread_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A thread that is busy on a CPU for a share of the time, until the value ends.
fn burner(cpu: u32, share: f64) -> Result<Burner, String> {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let end = std::sync::Arc::new(AtomicBool::new(false));
    let used_ns = std::sync::Arc::new(AtomicU64::new(0));
    let used = std::sync::Arc::clone(&used_ns);
    let (ended, (tell, told)) = (std::sync::Arc::clone(&end), std::sync::mpsc::channel());
    let thread = wattwise_threads::named(&format!("burn-{cpu}")).spawn(move || {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu as usize);
        let pinned = rustix::thread::sched_setaffinity(None, &set);
        let failed = pinned.is_err();
        _ = tell.send(pinned);
        let mut state = u64::from(cpu) | 1;
        for period in rhythm(cpu) {
            if failed || ended.load(Ordering::Relaxed) {
                break;
            }
            let begun = std::time::Instant::now();
            while begun.elapsed() < period.mul_f64(share) && !ended.load(Ordering::Relaxed) {
                for _ in 0..4096 {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                }
                std::hint::black_box(state);
            }
            used.store(thread_ns(), Ordering::Relaxed);
            if share < 1.0 {
                std::thread::sleep(period.saturating_sub(begun.elapsed()));
            }
        }
    });
    let thread = Some(thread.map_err(|e| format!("no thread for CPU {cpu}: {e}"))?);
    let burner = Burner { cpu, used_ns, end, thread };
    match told.recv() {
        Ok(Ok(())) => Ok(burner),
        Ok(Err(e)) => Err(format!("no work can be kept on CPU {cpu}: {e}")),
        Err(_) => Err(format!("the work on CPU {cpu} ended at once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load says what CPU time it took: some, and no more than has passed.
    #[test]
    fn a_load_says_what_it_took() {
        let cpu = rustix::thread::sched_getcpu() as u32;
        let root = wattwise_hw::root::DirRoot::new("/");
        let sleep = |time| {
            std::thread::sleep(time);
            None
        };
        let site = LiveSite::new(&root, &sleep);
        let begun = std::time::Instant::now();
        site.load(&[(cpu, 0.5)]).unwrap();
        let waits = (0..1000).take_while(|_| site.load_s(cpu) == 0.0);
        waits.for_each(|_| site.pass(PERIOD).unwrap());
        let took = site.load_s(cpu);
        assert!(took > 0.0 && took <= begun.elapsed().as_secs_f64(), "{took}");
        assert_eq!(site.load_s(cpu + 1), 0.0);
        site.load(&[]).unwrap();
        assert_eq!(site.load_s(cpu), 0.0);
    }

    /// Two CPUs that are busy for a share of the time are both idle for as long as chance has it: the product of their idle
    /// shares.
    #[test]
    fn cpus_rest_independently_of_each_other() {
        const SHARE: f64 = 0.4;
        // After 0.6 s to settle, for 1.7 s, looked at each tenth of a millisecond.
        const LOOKS: usize = 17_000;
        let idle = |cpu: u32| -> Vec<bool> {
            let looks = rhythm(cpu).flat_map(|period| {
                let looks = period.as_secs_f64() * 1e4;
                (0..looks.round() as usize).map(move |at| at as f64 >= looks * SHARE)
            });
            looks.skip(6_000).take(LOOKS).collect()
        };
        let all: Vec<Vec<bool>> = (0..8).map(idle).collect();
        let share =
            |of: &mut dyn Iterator<Item = bool>| of.filter(|idle| *idle).count() as f64 / LOOKS as f64;
        let own: Vec<f64> = all.iter().map(|a| share(&mut a.iter().copied())).collect();
        assert!(own.iter().all(|s| (s - (1.0 - SHARE)).abs() < 0.02), "{own:?}");
        let pairs = (0..8).flat_map(|a| (0..a).map(move |b| (a, b)));
        let more = pairs.map(|(a, b)| {
            share(&mut all[a].iter().zip(&all[b]).map(|(a, b)| *a && *b)) / (own[a] * own[b]) - 1.0
        });
        let more: Vec<f64> = more.collect();
        let mean = more.iter().sum::<f64>() / more.len() as f64;
        assert!(mean.abs() < 0.1 && more.iter().all(|m| m.abs() < 0.4), "{mean} {more:?}");
    }

    /// A policy that cannot be opened is an error, and the thread may run afterwards where it could before.
    #[test]
    fn a_timing_that_fails_leaves_the_thread_where_it_was() {
        let emulated = wattwise_emulator::named("core-i5-2gen").unwrap();
        let cpufreq = wattwise_hw::states::cpufreq::Cpufreq::read(&emulated);
        let folder = tempfile::tempdir().unwrap();
        let root = wattwise_hw::root::DirRoot::new(folder.path());
        let sleep = |_| None;
        let site = LiveSite::new(&root, &sleep);
        let ours = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = rustix::thread::sched_getcpu() as u32;
        let ask = Ask { levels_khz: &[2, 1], most: Duration::from_secs(1), stop: &|| None };
        let got = site.changes(&cpufreq.policies()[0], cpu, &ask);
        assert!(got.is_err_and(|why| why.contains("scaling_setspeed")));
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), ours);
    }
}
