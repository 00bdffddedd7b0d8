//! The other end of a preset's program: what listens while the program runs, slower on request.
//!
//! **Emulated speeds.** Where a machine's speeds are not those of the processor that we run on, what listens can be given the
//! share of the time that a slower clock would be of a full one: it is stopped and continued ([`SLICE`]). That slows its own work down as
//! a clock does; the kernel's work for its packets, which is done on the CPU that sends them, stays as fast as it is, and so does
//! the sender (003's was a PC). What a socket's buffer holds goes on arriving while it stands.

use crate::bench::link::{Link, dies_with_us};
use crate::run::preset::Preset;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// It is stopped once in so long: longer than what a socket's buffer (6 MB) lasts at 10 Gbit/s.
pub const SLICE: Duration = Duration::from_millis(20);

/// What listens, while this lives.
pub struct Peer(Child);

impl Peer {
    /// Starts it, at the far end of a link where there is one; none where the preset has none.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(preset: &Preset, link: Option<&Link>) -> io::Result<Option<Peer>> {
        let Some((program, arguments)) = preset.server.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: what it starts ends with it.
        command.process_group(0);
        dies_with_us(&mut command);
        let child = match link {
            Some(link) => link.far(|| command.spawn())??,
            None => command.spawn()?,
        };
        let peer = Peer(child);
        // Until it listens.
        std::thread::sleep(Duration::from_millis(300));
        Ok(Some(peer))
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Lets it run for a share of the time alone until the value ends.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn slowed(&self, share: f64) -> io::Result<Slowed> {
        let (stop, stopped) = mpsc::channel::<()>();
        let group = self.group();
        let thread = wattwise_threads::named("slowed").spawn(move || in_slices(group, share, &stopped))?;
        Ok(Slowed { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        _ = kill_process_group(self.group(), Signal::TERM);
        _ = self.0.wait();
    }
}

/// What listens runs for a share of the time, while this lives.
pub struct Slowed {
    /// Dropped to end it.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<f64>>,
}

impl Slowed {
    /// Ends it; the share of the time that it did run.
    pub fn end(mut self) -> f64 {
        self.join()
    }

    fn join(&mut self) -> f64 {
        self.stop = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(1.0)
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        _ = self.join();
    }
}

/// Stops and continues a group until it is told to end; the share of the time that it ran.
fn in_slices(group: Pid, share: f64, stopped: &mpsc::Receiver<()>) -> f64 {
    let goes_on = |time| matches!(stopped.recv_timeout(time), Err(mpsc::RecvTimeoutError::Timeout));
    let begun = Instant::now();
    let mut ran = Duration::ZERO;
    loop {
        let since = Instant::now();
        // As much as is missing at the end of this slice: what was too long by a late wake-up is made up for.
        let due = (begun.elapsed() + SLICE).mul_f64(share).saturating_sub(ran);
        let mut more = goes_on(due.min(SLICE));
        _ = kill_process_group(group, Signal::STOP);
        ran += since.elapsed();
        more = more && goes_on(SLICE.saturating_sub(since.elapsed()));
        _ = kill_process_group(group, Signal::CONT);
        if !more {
            return ran.as_secs_f64() / begun.elapsed().as_secs_f64().max(1e-9);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that is slowed has its share of a CPU's time, as its own clock counts it.
    #[test]
    fn it_runs_for_its_share_of_the_time() -> io::Result<()> {
        let mut busy = Command::new("sh");
        busy.args(["-c", "while :; do :; done"]).process_group(0);
        dies_with_us(&mut busy);
        let peer = Peer(busy.spawn()?);
        let ticks = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", peer.0.id())).unwrap_or_default();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            fields[11].parse::<f64>().expect("user time") + fields[12].parse::<f64>().expect("kernel's")
        };
        let slowed = peer.slowed(0.25)?;
        let (before, begun) = (ticks(), Instant::now());
        std::thread::sleep(Duration::from_secs(2));
        let cpu = (ticks() - before) / rustix::param::clock_ticks_per_second() as f64;
        let of_time = cpu / begun.elapsed().as_secs_f64();
        let share = slowed.end();
        assert!((share - 0.25).abs() < 0.05, "ran for {share} of the time");
        // Others may have its CPU while it runs, and nobody gives it more.
        assert!(of_time < 0.33, "{of_time} of a CPU");
        std::thread::sleep(Duration::from_millis(50));
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", peer.0.id()))?;
        assert!(!stat.contains(") T "), "it goes on afterwards: {stat}");
        Ok(())
    }
}
