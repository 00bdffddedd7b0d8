//! Arms on the live machine: settings held, the command run, the window waited out, everything written down.

use crate::ab::conduct::{Bench, ExperimentProgress, Place, Trial};
use crate::ab::log::{AbLogWriter, Header, Line, Of, Run};
use crate::ab::warmth::{Warmth, WarmthLook};
use crate::run::Measured;
use crate::run::child;
use crate::run::child::{CommandJob, Signals};
use crate::run::observe::Observer;
use regex_lite::Regex;
use std::path::Path;
use std::time::{Duration, Instant};
use wattwise_control::hold::{Wishes, hold};
use wattwise_figure::shell;
use wattwise_hw::root::Root;

/// Longer than the longest run of the warm-up by this, the window leaves room for a slow one.
const ROOM: f64 = 1.1;
/// Meters that move every millisecond without a time stamp want at least this, s.
const LEAST_WINDOW_S: f64 = 1.0;

/// One arm, ready to run.
pub struct Arm {
    /// Held while it runs and while its window lasts.
    pub wishes: Wishes,
    /// The command.
    pub job: CommandJob,
}

/// The live machine as [`Bench`].
pub struct LiveBench<'r> {
    root: &'r dyn Root,
    journal: &'r Path,
    header: &'r Header,
    arms: Vec<Arm>,
    observer: Observer<'r>,
    signals: &'r Signals,
    file: AbLogWriter,
    metric: Option<Regex>,
    cpus: usize,
    window_s: Option<f64>,
    longest_s: f64,
    celsius: Option<f64>,
    /// What keeps the experiment from going on.
    broken: Option<String>,
    /// The exit code of an experiment that failed.
    code: u8,
    tell: Box<dyn FnMut(&ExperimentProgress) + 'r>,
}

/// What [`LiveBench`] is made of.
pub struct Parts<'r> {
    /// The machine.
    pub root: &'r dyn Root,
    /// Where changes are journalled.
    pub journal: &'r Path,
    /// The plan.
    pub header: &'r Header,
    /// Its arms, in the header's order.
    pub arms: Vec<Arm>,
    /// Watches the machine.
    pub observer: Observer<'r>,
    /// Ends the experiment in good order.
    pub signals: &'r Signals,
    /// Where everything is written.
    pub file: AbLogWriter,
    /// The window, where it is known.
    pub window_s: Option<f64>,
    /// Finds the command's figure.
    pub metric: Option<Regex>,
    /// Told how far it has come.
    pub tell: Box<dyn FnMut(&ExperimentProgress) + 'r>,
}

impl<'r> LiveBench<'r> {
    /// Ready for its first run.
    pub fn new(parts: Parts<'r>) -> LiveBench<'r> {
        let Parts { root, journal, header, arms, observer, signals, file, window_s, metric, tell } = parts;
        let cpus = wattwise_hw::cpus::topology::Topology::read(root).online.iter().count().max(1);
        LiveBench {
            root,
            journal,
            header,
            arms,
            observer,
            signals,
            file,
            metric,
            cpus,
            window_s,
            longest_s: 0.0,
            celsius: None,
            broken: None,
            code: 1,
            tell,
        }
    }

    /// The exit code of an experiment that failed: a shell's where a command does not start.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// The file, for what comes after the last run.
    pub fn into_file(self) -> AbLogWriter {
        self.file
    }

    /// Idle power of the machine, W, watched for a time.
    pub fn floor(&mut self, time: Duration) -> Result<Option<f64>, String> {
        self.observer.begin();
        self.wait(time);
        let idle = self.observer.end(0.0);
        let floor = idle.joules.map(|j| j / idle.window_s);
        if let Some(w) = floor {
            self.file.line(&Line::Floor(w))?;
        }
        Ok(floor)
    }

    /// Waits, following counters that could wrap.
    fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        let pace = self.observer.pace().unwrap_or(time);
        while self.signals.caught().is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.signals.sleep(left.min(pace));
            self.observer.beat();
        }
    }

    /// The window of runs that count; fixed once, before the first of them.
    fn window(&mut self) -> Result<f64, String> {
        if self.header.of != Of::Energy {
            return Ok(0.0);
        }
        if let Some(s) = self.window_s {
            return Ok(s);
        }
        let s = self.header.window_s.unwrap_or((self.longest_s * ROOM).max(LEAST_WINDOW_S));
        self.file.line(&Line::Window(s))?;
        self.window_s = Some(s);
        Ok(s)
    }

    /// Waits until the machine is as warm as it was at the first run ([`Warmth`]). Says why not.
    fn same_temperature(&mut self) -> Option<String> {
        let now = self.observer.celsius()?;
        let wanted = *self.celsius.get_or_insert(now);
        let mut warmth = Warmth::wait_for(wanted, self.header.temperature_c);
        let start = Instant::now();
        loop {
            let now = self.observer.celsius()?;
            match warmth.look(now, start.elapsed().as_secs_f64()) {
                _ if self.signals.caught().is_some() => return None,
                WarmthLook::There => return None,
                WarmthLook::Wait => self.signals.sleep(Duration::from_millis(500)),
                WarmthLook::NoNearer(off) => {
                    self.celsius = Some(now);
                    return Some(format!(
                        "it began {} °C off the first run's {wanted:.1} °C, and came no nearer; those after it are held against {now:.1} °C",
                        wattwise_figure::signed(off, 1)
                    ));
                }
            }
        }
    }

    fn carry_out(&mut self, at: usize, place: Place) -> Result<Run, String> {
        let mut dropped = if place.warm_up { None } else { self.same_temperature() };
        let window_s = if place.warm_up { 0.0 } else { self.window()? };
        let header = self.header;
        let name = &header.arms[at].name;
        let job = self.arms[at].job.clone();
        let mut held = hold(
            self.root,
            self.journal,
            &format!("wattwise ab, policy {name}"),
            &self.arms[at].wishes,
            &|| self.signals.reason(),
        )
        .map_err(|e| e.of(name).to_string())?;
        let pace = self.observer.pace();
        self.observer.begin();
        let begun = Instant::now();
        let ended = child::run(&job, self.signals, pace, &mut || self.observer.beat()).map_err(|e| {
            self.code = e.code();
            e.to_string()
        })?;
        // Ctrl-C may have reached the command alone.
        if let Some(signal) = wattwise_child::interrupted(ended.status) {
            self.signals.as_if_caught(signal);
        }
        let cpu_s = ended.user_s + ended.system_s;
        let own_j = self.observer.joules_so_far(cpu_s);
        let left_s = window_s - begun.elapsed().as_secs_f64();
        if left_s > 0.0 {
            self.wait(Duration::from_secs_f64(left_s));
        }
        let measured = Measured::of(&ended, self.observer.end(cpu_s));
        if let Some(held) = &mut held {
            let restored = held.undo();
            if !restored.failed.is_empty() {
                return Err(format!("{name}: {restored}"));
            }
            if !restored.foreign.is_empty() {
                dropped = dropped.or(Some(format!("another program changed settings: {restored}")));
            }
        }
        if let Some(failure) = &measured.failure {
            let end = ended
                .output
                .trim_end()
                .lines()
                .last()
                .map_or(String::new(), |l| format!("; it printed last: {l}"));
            return Err(format!("{name}: {} {failure}{end}", shell::line(&job.command)));
        }
        if window_s > 0.0 && measured.wall_s > window_s {
            let why = format!("it took {:.2} s, longer than the window of {window_s:.2} s", measured.wall_s);
            dropped = dropped.or(Some(why));
        }
        dropped = dropped.or_else(|| measured.machine.disturbed.first().cloned());
        let metric = match &self.metric {
            None => None,
            Some(pattern) => {
                Some(crate::ab::figure(pattern, &ended.output).map_err(|e| format!("{name}: {e}"))?)
            }
        };
        let value = match self.header.of {
            Of::Time => Some(measured.wall_s),
            Of::Cpu => Some(cpu_s),
            Of::Metric => metric,
            Of::Energy => measured.machine.joules,
        };
        let value = match value {
            Some(value) => value,
            // A warm-up run has no window to wait out: a counter may not have moved. Time shows a trend as well.
            None if place.warm_up => measured.wall_s,
            None => {
                let why = measured.machine.energy.as_ref().map_or(String::new(), ToString::to_string);
                dropped = dropped.or(Some(format!("energy is {why}")));
                0.0
            }
        };
        let others = measured.machine.others_s.unwrap_or(0.0)
            / (measured.machine.window_s * self.cpus as f64).max(1e-9);
        if others > self.header.others && measured.machine.window_s > 0.5 {
            dropped = dropped.or(Some(format!("others used {:.0} % of the CPUs", others * 100.0)));
        }
        self.longest_s = self.longest_s.max(measured.wall_s);
        let trial = Trial { value, dropped, cost_s: 0.0 };
        Ok(Run { arm: at, place, trial, own_j, metric, measured })
    }
}

impl Bench for LiveBench<'_> {
    fn run(&mut self, arm: usize, place: Place) -> Result<Trial, String> {
        let begun = Instant::now();
        let run = self.carry_out(arm, place);
        // Ctrl-C ends the command too, and that is no failure of it.
        if let Some(signal) = self.signals.caught() {
            self.broken = Some(format!("signal {signal} came"));
            return Ok(Trial { value: 0.0, dropped: self.broken.clone(), cost_s: 0.0 });
        }
        let mut run = run?;
        run.trial.cost_s = begun.elapsed().as_secs_f64();
        let trial = run.trial.clone();
        self.file.line(&Line::Run(Box::new(run)))?;
        Ok(trial)
    }

    fn stop(&mut self) -> Option<String> {
        self.broken.clone().or_else(|| self.signals.reason())
    }

    fn progress(&mut self, progress: &ExperimentProgress) {
        (self.tell)(progress);
    }
}
