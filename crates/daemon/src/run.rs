//! The loop of the real daemon: the kernel's events, the socket, signals, the clock; all else is [`Engine`]'s.
//!
//! It sleeps until something comes or is due. No command is started, no file is watched on sysfs (such watches die when the
//! kernel drops the inode): events come by netlink, and values are verified through descriptors that stay open.

use crate::asks::{Message, say};
use crate::brain::{Brain, BrainEvent, Client, ProfileHold};
use crate::config::{Config, ConfigError};
use crate::engine::{Engine, KernelInput, LogKind, has_control};
use crate::metrics::Metrics;
use crate::places::Places;
use crate::protocol::{Held, Listed, Missing, Reply, Request, Status};
use crate::proving::Proving;
use crate::scrape::serve_metrics;
use crate::sources::Sources;
use crate::state::RememberedProfile;
use crate::systemd::Systemd;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use wattwise_control::private::PrivateFolder;
use wattwise_control::set::left::restore_abandoned;
use wattwise_hw::clock::{self, Moment};
use wattwise_hw::root::Root;
use wattwise_hw::states::writers;
use wattwise_output::{Output, Scratch};

/// More time asleep than this between two looks at the clock is a suspend, s.
const SUSPEND_S: f64 = 0.1;
/// A proof is judged for metrics after so many more blocks: a week has ten thousand of them.
const MOST_STALE: usize = 10;

/// Why the daemon ends, or does not begin.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A mistake in the configuration.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Nothing can be set here.
    #[error("{0}")]
    Impossible(String),
    /// The system does not let us.
    #[error("{0}")]
    Failed(String),
}

impl DaemonError {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            DaemonError::Config(_) => 2,
            DaemonError::Impossible(_) => 3,
            DaemonError::Failed(_) => 1,
        }
    }
}

fn prints(root: &dyn Root, config: &Config, profile: Option<&str>, journal: &Path) -> String {
    let mut engine = Engine::new(root, journal, Brain::new(config.clone(), profile));
    engine.start(0, minute_of_day());
    let mut out = String::new();
    let decision = engine.decision().clone();
    out += &format!("{}: {}\nwants {}\n", decision.profile, decision.why, decision.wish);
    for note in engine.notes() {
        match note.kind {
            LogKind::Profile => {}
            LogKind::Refused => out += &format!("cannot be had: {}\n", note.text),
            _ => out += &format!("{}\n", note.text.split(" (").next().unwrap_or_default()),
        }
    }
    out
}

/// What would be done to a machine now, a line each. Nothing of it is changed: it is tried on a copy. Where nothing can be set, that is what
/// it says: the question is answered.
///
/// # Errors
/// There is no folder for the trial.
pub fn dry_run(root: &dyn Root, config: &Config, profile: Option<&str>) -> Result<String, DaemonError> {
    if let Err(why) = has_control(root) {
        return Ok(format!("nothing would be done: {why}; without --dry-run it ends with exit code 3\n"));
    }
    let tried = crate::copy::of(root);
    let journal = Scratch::new().map_err(|e| DaemonError::Failed(format!("a folder for a trial: {e}")))?;
    let mut out = conflicts(root).iter().map(|c| format!("{}: {}\n", c.what, c.why)).collect::<String>();
    out += &prints(&tried, config, profile, journal.path());
    Ok(out)
}

/// Programs that set the same things.
pub fn conflicts(root: &dyn Root) -> Vec<Missing> {
    let told = |w: writers::Writer| Missing {
        what: w.name.to_owned(),
        why: format!("{} and sets {}; {} makes it stop", w.seen, w.writes, w.pause),
    };
    writers::running(root).into_iter().map(told).collect()
}

/// One profile as it is told.
pub fn listed(config: &Config) -> Vec<Listed> {
    let of = |p: &crate::profile::Profile| Listed {
        name: p.name.clone(),
        summary: p.summary.clone(),
        ppd: p.ppd.name().to_owned(),
        wants: p.base.to_string(),
        cases: p
            .cases
            .iter()
            .map(|c| {
                let when: Vec<String> = c.when.iter().map(ToString::to_string).collect();
                (when.join(" and "), c.wish.to_string())
            })
            .collect(),
    };
    config.profiles.values().map(of).collect()
}

fn ns(at: Moment) -> u64 {
    (at.boot_s * 1e9) as u64
}

/// Seconds since 1970.
fn since_1970() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Minutes since midnight where the machine is.
fn minute_of_day() -> u16 {
    let time = since_1970() as libc::time_t;
    // SAFETY: both point to values of ours that live through the call; `localtime_r` writes the second alone.
    let local = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const time, &raw mut tm);
        tm
    };
    u16::try_from(local.tm_hour * 60 + local.tm_min).unwrap_or(0)
}

/// The daemon at work.
struct Daemon<'r> {
    root: &'r dyn Root,
    places: Places,
    engine: Engine<'r>,
    memory: RememberedProfile,
    metrics: Option<Metrics>,
    conflicts: Vec<Missing>,
    reload_ns: Option<u64>,
    textfile_ns: u64,
    proving: Proving<'r>,
}

impl<'r> Daemon<'r> {
    /// Puts back what a killed one left, names who else sets the same things, and puts the profile in force.
    fn begin(
        root: &'r dyn Root,
        places: &Places,
        config: Config,
        profile: Option<&str>,
        now: Moment,
    ) -> Daemon<'r> {
        match restore_abandoned(root, &places.journal) {
            Ok(all) => all.iter().for_each(|(command, r)| say(&format!("left by a killed '{command}': {r}"))),
            Err(e) => say(&format!("{}: {e}", places.journal.display())),
        }
        let conflicts = conflicts(root);
        conflicts.iter().for_each(|c| say(&format!("conflict: {}: {}", c.what, c.why)));
        let memory = RememberedProfile::new(&places.state);
        let chosen = profile.map(str::to_owned).or_else(|| memory.profile());
        let mut engine = Engine::new(root, &places.journal, Brain::new(config, chosen.as_deref()));
        engine.start(ns(now), minute_of_day());
        let (places, metrics, reload_ns) = (places.clone(), None, None);
        let proving = Proving::new(root, &places.state);
        Daemon { root, places, engine, memory, metrics, conflicts, reload_ns, textfile_ns: 0, proving }
    }

    fn answer(&mut self, now: Moment, request: Request, client: Client) -> Reply {
        let known = |engine: &mut Engine<'_>, name: &str| engine.brain().config().profile(name).map(|_| ());
        match request {
            Request::Status => {
                let proof = self.proving.told(0);
                Reply { status: Some(Status { proof, ..self.status() }), ..Reply::default() }
            }
            Request::List => Reply { profiles: listed(self.engine.brain().config()), ..Reply::default() },
            Request::Set { profile } => match known(&mut self.engine, &profile) {
                Err(why) => Reply::refused(2, why),
                Ok(()) => {
                    self.engine.event(ns(now), BrainEvent::Choose(profile.clone()));
                    match self.memory.remember(&profile) {
                        Ok(()) => Reply::default(),
                        Err(e) => {
                            Reply::refused(1, format!("{profile} is in force, but not remembered: {e}"))
                        }
                    }
                }
            },
            Request::Hold { profile, reason, application } => match known(&mut self.engine, &profile) {
                Err(why) => Reply::refused(2, why),
                Ok(()) => {
                    let cookie = self.engine.brain().cookie();
                    let hold = ProfileHold { cookie, profile, reason, application, client };
                    self.engine.event(ns(now), BrainEvent::Hold(hold));
                    Reply { cookie: Some(cookie), ..Reply::default() }
                }
            },
            Request::Release { cookie } => {
                match self.engine.brain().holds().iter().any(|h| h.cookie == cookie) {
                    false => Reply::refused(2, format!("no hold has the number {cookie}")),
                    true => {
                        self.engine.event(ns(now), BrainEvent::Release(cookie));
                        Reply::default()
                    }
                }
            }
            Request::Pause { why } => {
                self.engine.event(ns(now), BrainEvent::Pause(client, why));
                Reply::default()
            }
            Request::Reload => match self.reload(now) {
                Ok(()) => Reply::default(),
                Err(e) => Reply::refused(2, format!("{e}; the old configuration stays")),
            },
            Request::Metrics => {
                let metrics = self.metrics.get_or_insert_with(|| Metrics::open(self.root, now));
                Reply {
                    text: Some(metrics.text(
                        self.root,
                        &mut self.engine,
                        self.proving.told(MOST_STALE).as_ref(),
                        now,
                    )),
                    ..Reply::default()
                }
            }
            Request::BatteryAware { on } => {
                self.engine.event(ns(now), BrainEvent::BatteryAware(on));
                Reply::default()
            }
        }
    }

    /// What desktops are told: what is in force, and the holds that have ended since.
    fn told(&mut self) -> (Status, Vec<ProfileHold>) {
        (self.status(), self.engine.ended())
    }

    fn status(&mut self) -> Status {
        let counts = self.engine.counts();
        let decision = self.engine.decision().clone();
        let refused = self.engine.refused().iter();
        let refused = refused.map(|(what, why)| Missing { what: what.clone(), why: why.clone() }).collect();
        let (followed, values) = (self.engine.followed().map(str::to_owned), self.engine.values() as u64);
        let brain = self.engine.brain();
        Status {
            profile: decision.profile,
            ppd: decision.ppd.name().to_owned(),
            why: decision.why,
            chosen: brain.chosen().to_owned(),
            wants: decision.wish.to_string(),
            paused: decision.paused,
            source: brain.facts().map_or_else(String::new, |f| f.source.to_string()),
            battery_aware: brain.is_battery_aware(),
            holds: brain.holds().iter().map(Held::from).collect(),
            followed,
            refused,
            conflicts: self.conflicts.clone(),
            values,
            writes: counts.writes,
            transitions: counts.transitions,
            foreign_writes: counts.foreign,
            proof: None,
        }
    }

    fn reload(&mut self, now: Moment) -> Result<(), ConfigError> {
        let config = Config::read(&self.places.config)?;
        if config != *self.engine.brain().config() {
            self.engine.event(ns(now), BrainEvent::Config(Box::new(config)));
        }
        Ok(())
    }

    /// What is due by the clock, beside the engine.
    fn chores(&mut self, now: Moment) {
        if self.reload_ns.is_some_and(|at| at <= ns(now)) {
            self.reload_ns = None;
            if let Err(e) = self.reload(now) {
                say(&format!("{e}; the old configuration stays"));
            }
        }
        let options = self.engine.brain().config().options.clone();
        if let Some(file) = options.textfile.filter(|_| self.textfile_ns <= ns(now)) {
            self.textfile_ns = ns(now).saturating_add(options.look_ns);
            let text = self.answer(now, Request::Metrics, Client::Socket(0)).text.unwrap_or_default();
            if let Err(e) = replace(&file, &text) {
                say(&format!("{}: {e}; metrics are not written", file.display()));
            }
        }
        for note in self.engine.notes() {
            say(&note.text);
        }
    }

    fn due_ns(&self) -> u64 {
        self.engine.due_ns().min(self.proving.due_ns()).min(self.reload_ns.unwrap_or(u64::MAX))
    }
}

/// node_exporter reads whenever it likes: the whole file or the old one.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut out = Output::open(file)?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

/// Takes the lock of the one daemon; it ends with the process.
fn only_one(folder: &Path) -> Result<File, DaemonError> {
    let cannot = |e: io::Error| {
        DaemonError::Impossible(format!(
            "{}: {e}; wattwised runs as root, or with --journal FOLDER",
            folder.display()
        ))
    };
    let private = PrivateFolder::make(folder).map_err(cannot)?;
    private.lock("wattwised.lock").map_err(cannot)?.ok_or_else(|| {
        DaemonError::Failed(format!(
            "{}: another wattwised runs on this machine; 'systemctl stop wattwised' ends it",
            folder.display()
        ))
    })
}

/// Puts back what a killed daemon left: for the unit that follows its end. What a living process holds is left alone, and so is what
/// `wattwise set` was to leave in force.
///
/// # Errors
/// The journals cannot be read or finished.
pub fn restore(root: &dyn Root, places: &Places) -> Result<u8, DaemonError> {
    let failed = |e: String| DaemonError::Failed(format!("{}: {e}", places.journal.display()));
    if root.is_this_machine() {
        wattwise_control::cores::hold::clean(root, &places.journal, true)
            .map_err(|e| failed(e.to_string()))?;
    }
    let all = restore_abandoned(root, &places.journal).map_err(|e| failed(e.to_string()))?;
    all.iter().for_each(|(_, restored)| say(&restored.to_string()));
    Ok(u8::from(all.iter().any(|(_, restored)| !restored.failed.is_empty())))
}

/// Runs until a signal comes, and puts everything back.
///
/// # Errors
/// It cannot begin.
pub fn run(root: &dyn Root, places: &Places, profile: Option<&str>) -> Result<u8, DaemonError> {
    let config = Config::read(&places.config)?;
    has_control(root).map_err(DaemonError::Impossible)?;
    let _lock = only_one(&places.journal)?;
    let cannot = |e: io::Error| DaemonError::Failed(format!("signals and pipes: {e}"));
    let (mut sources, asks) = Sources::open(places).map_err(cannot)?;
    let mut before = clock::now();
    let mut daemon = Daemon::begin(root, places, config, profile, before);
    serve_metrics(daemon.engine.brain().config().options.listen.clone(), &asks);
    let bus = crate::bus::begin(places.bus.as_deref(), &asks);
    let mut systemd = Systemd::of_environment();
    systemd.tell("READY=1");
    // Desktops are told what has changed, and not each decision of a policy that is followed.
    let mut told = None;
    loop {
        daemon.chores(before);
        if told != Some(daemon.engine.revision()) {
            told = Some(daemon.engine.revision());
            bus.tell(|| daemon.told());
        }
        sources.wait(daemon.due_ns().min(systemd.due_ns()).saturating_sub(ns(clock::now())));
        let now = clock::now();
        systemd.alive(ns(now));
        let asleep_s = (now.boot_s - before.boot_s) - (now.monotonic_s - before.monotonic_s);
        before = now;
        if asleep_s > SUSPEND_S {
            daemon.engine.input(ns(now), KernelInput::Resumed);
        }
        let came = sources.take();
        if came.ends {
            systemd.tell("STOPPING=1");
            drop(sources);
            return Ok(end(&mut daemon));
        }
        if let Some(wait_ns) = came.reload_in_ns {
            daemon.reload_ns = Some(ns(now) + wait_ns);
        }
        came.inputs.into_iter().for_each(|input| daemon.engine.input(ns(now), input));
        for message in came.messages {
            match message {
                Message::Gone(client) => daemon.engine.event(ns(now), BrainEvent::Gone(client)),
                Message::Asked(asked) => {
                    let reply = daemon.answer(now, asked.request, asked.client);
                    bus.tell(|| daemon.told());
                    _ = asked.reply.send(reply);
                }
            }
        }
        let gone = sources.serve(&mut |request, client| daemon.answer(now, request, client));
        gone.into_iter().for_each(|client| daemon.engine.event(ns(now), BrainEvent::Gone(client)));
        daemon.engine.tick(ns(now), minute_of_day());
        daemon.proving.step(now, since_1970(), &mut daemon.engine);
    }
}

fn end(daemon: &mut Daemon<'_>) -> u8 {
    let restored = daemon.engine.end();
    say(&restored.to_string());
    u8::from(!restored.failed.is_empty())
}
