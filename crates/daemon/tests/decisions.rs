//! A policy that the daemon follows decides as the model of it does, to the last decision.
//!
//! `compare`'s own run of the model has a recorder around the policy: it keeps CPU time as of each decision, and what was decided. A daemon on
//! an emulated machine with the same levels then reads that CPU time in `/proc/stat`, rounded to ticks as the kernel does, at the same
//! moments. One decision that differs would give other speeds, and other CPU time from there on: so all must be the same.

mod support;

use std::cell::RefCell;
use std::fmt::Write as _;
use support::{Day, SECOND, Scene};
use wattwise_advice::watched::watch;
use wattwise_daemon::config::Config;
use wattwise_daemon::engine::{KernelInput, LogKind};
use wattwise_emulator::{Fault, from_text};
use wattwise_model::machine::MachineModel;
use wattwise_policy::speed::Cadence;
use wattwise_policy::ticks::TICK_NS;
use wattwise_policy::{
    DomainInfo, Intent, Observation, Platform, PowerSource, SampleScope, Settings, Speed, SpeedPolicy,
};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::Event;

/// CPU time since the start, in ns: busy, idle, waiting for a device.
type Sums = [u64; 3];

/// One decision.
#[derive(Clone, Debug, PartialEq)]
struct Decision {
    at_ns: u64,
    /// Of each CPU.
    sums: Vec<Sums>,
    /// Of each domain, the speed from now on, kHz.
    khz: Vec<u32>,
}

#[derive(Default)]
struct Log {
    begun_ns: u64,
    sums: Vec<Sums>,
    domains: Vec<DomainInfo>,
    decisions: Vec<Decision>,
}

thread_local! {
    static LOG: RefCell<Log> = RefCell::default();
    /// What the recorder is put around.
    static INNER: RefCell<&'static str> = const { RefCell::new("powerd") };
}

/// A policy with a recorder around it.
struct Recorder(Box<dyn SpeedPolicy>);

impl Log {
    fn khz(&self, intent: &Intent) -> Vec<u32> {
        self.domains.iter().zip(&intent.domains).map(|(d, want)| d.at_least(want.desired).0).collect()
    }

    fn add(&mut self, obs: &Observation<'_>, intent: &Intent) {
        let at_ns = obs.now_ns - self.begun_ns;
        let khz = self.khz(intent);
        // Every CPU's tick comes at the same time: that is one look of the daemon's.
        match self.decisions.last_mut().filter(|last| last.at_ns == at_ns) {
            Some(last) => (last.sums, last.khz) = (self.sums.clone(), khz),
            None => self.decisions.push(Decision { at_ns, sums: self.sums.clone(), khz }),
        }
    }
}

impl SpeedPolicy for Recorder {
    fn cadence(&self) -> Cadence {
        self.0.cadence()
    }
    fn cost_ns(&self) -> u64 {
        self.0.cost_ns()
    }
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.0.start(obs, out);
        LOG.with_borrow_mut(|log| {
            log.begun_ns = obs.now_ns;
            log.add(obs, out);
        });
    }
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        LOG.with_borrow_mut(|log| {
            let news = |cpu: usize, log: &mut Log| {
                let passed = &obs.cpus[cpu];
                let passed = [passed.busy_ns, passed.idle_ns, passed.iowait_ns];
                log.sums[cpu].iter_mut().zip(passed).for_each(|(sum, ns)| *sum += ns);
            };
            match obs.scope {
                SampleScope::Cpu(cpu) => news(usize::from(cpu), log),
                SampleScope::All | SampleScope::Domain(_) => {
                    (0..obs.cpus.len()).for_each(|cpu| news(cpu, log))
                }
            }
        });
        self.0.observe(obs, out);
        LOG.with_borrow_mut(|log| log.add(obs, out));
    }
}

/// The policy sees ticks within the recorder, which sees all.
fn recorded(platform: &Platform, _: &Settings) -> Box<dyn SpeedPolicy> {
    let text = INNER.with_borrow(|inner| format!("{inner}+ticks"));
    LOG.with_borrow_mut(|log| {
        *log = Log {
            sums: vec![Sums::default(); usize::from(platform.cpus)],
            domains: platform.domains.clone(),
            ..Log::default()
        };
    });
    Box::new(Recorder(PolicySpec::parse(&text).expect("a policy").build_speed(platform)))
}

static RECORDED: Speed = Speed {
    name: "recorded",
    summary: "a recorder around a policy",
    follows: "this test",
    source: "",
    params: &[],
    build: recorded,
};

/// The model's decisions, and how often its clocks changed speed.
fn of_model(
    machine: &MachineModel,
    work: &str,
    policy: &'static str,
    source: PowerSource,
    window_s: f64,
) -> (Vec<Decision>, usize) {
    let workload = library::workload(work, &Default::default()).expect("a workload");
    let spec = PolicySpec { text: "recorded".into(), ..PolicySpec::alone(&RECORDED) };
    let job = ReplayJob {
        machine,
        workload: &workload,
        policies: std::slice::from_ref(&spec),
        source,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: Default::default(),
    };
    INNER.set(policy);
    let mut events: Vec<(u64, Event)> = Vec::new();
    watch(&job, &spec, window_s, &mut events).expect("runs");
    let speeds = events.iter().filter(|(_, e)| matches!(e, Event::Speed { .. })).count();
    (LOG.with_borrow_mut(|log| std::mem::take(&mut log.decisions)), speeds - machine.domains.len())
}

/// An emulated machine with as many CPUs, the same levels and the same domains.
fn emulated(machine: &MachineModel) -> Scene {
    let khz: Vec<u32> = machine.kinds[0].levels.iter().map(|l| l.khz).collect();
    let (high, low) = (khz[0], khz[khz.len() - 1]);
    let threads = machine.cores[0].cpus.len();
    let span = if machine.domains.len() == machine.cores.len() { "core" } else { "package" };
    let of = |line: &str| match line.split_once(" = ").map(|(name, _)| name) {
        Some("count") => format!("count = {}", machine.cores.len()),
        Some("threads") => format!("threads = {threads}"),
        Some("min_khz") => format!("min_khz = {low}"),
        Some("max_khz") => format!("max_khz = {high}"),
        Some("nominal_khz") => format!("nominal_khz = {high}"),
        Some("levels_khz") => format!("levels_khz = {khz:?}"),
        Some("domain") => format!("domain = \"{span}\""),
        Some("boost") => "boost = false".to_owned(),
        // As a replay begins: at the highest speed.
        Some("governor") if line.contains("ondemand") => "governor = \"performance\"".to_owned(),
        _ => line.to_owned(),
    };
    let text = wattwise_emulator::text("core-i5-2gen").expect("bundled");
    let text = text.lines().map(of).collect::<Vec<_>>().join("\n");
    let machine = from_text("like-the-model.toml", &text).expect("a machine");
    let scene = Scene { machine, ..Scene::notebook("core-i5-2gen") };
    scene.put("proc/stat", "");
    scene
}

/// `/proc/stat` at that CPU time: the kernel cuts off what is no whole tick.
fn show(scene: &Scene, before: &[Sums], since: &[Sums]) {
    let mut text = String::from("cpu  0 0 0 0 0 0 0 0 0 0\n");
    for (cpu, (before, since)) in before.iter().zip(since).enumerate() {
        let [busy, idle, iowait] = [0, 1, 2].map(|at| before[at] + since[at] / TICK_NS);
        _ = writeln!(text, "cpu{cpu} {busy} 0 0 {idle} {iowait} 0 0 0 0 0");
    }
    // More run than there are CPUs: none of it is a CPU's own.
    scene.put("proc/stat", &format!("{text}ctxt 1\nprocs_running 9"));
}

/// The speed of each domain as it was asked for.
fn asked(scene: &Scene) -> Vec<u32> {
    let policies = scene.machine.snapshot();
    let mut files: Vec<&String> = policies.keys().filter(|p| p.ends_with("/scaling_setspeed")).collect();
    files.sort_by_key(|path| {
        path.split("policy").nth(1).and_then(|p| p.split('/').next()).and_then(|n| n.parse::<u32>().ok())
    });
    files.iter().map(|path| scene.text(path).parse().unwrap_or(0)).collect()
}

/// Has a daemon that has just begun to follow see what the model saw, and holds each decision against the model's.
fn same(what: &str, scene: &Scene, day: &mut Day<'_>, before: &[Sums], model: &[Decision]) {
    let begun = day.now;
    assert_eq!(asked(scene), model[0].khz, "{what}: the first");
    for (number, decision) in model.iter().enumerate().skip(1) {
        let at = begun + decision.at_ns;
        scene.machine.advance(at - day.now);
        day.now = at;
        show(scene, before, &decision.sums);
        day.engine.tick(at, 12 * 60);
        assert_eq!(asked(scene), decision.khz, "{what}: decision {number} of {}", model.len());
    }
    assert_eq!(day.engine.followed_decisions() + 1, model.len() as u64, "{what}");
    day.log.extend(day.engine.notes());
    assert_eq!(day.lines(LogKind::Foreign), Vec::<&str>::new(), "{what}");
    assert_eq!(day.engine.counts().failed, 0, "{what}");
}

#[test]
fn a_followed_policy_decides_as_its_model_to_the_last_decision() {
    // (machine, work, policy, source): polls of a program, timers of a kernel, and ticks.
    for (machine, work, policy, source) in [
        ("core-i5-2gen", "idle-server", "powerd:load=max", PowerSource::Mains),
        ("core-i5-2gen", "idle-browse", "powerd", PowerSource::Battery),
        ("core-i5-2gen", "video-play", "powerd:load=max", PowerSource::Battery),
        ("core-i5-2gen", "browse-app", "powerd++", PowerSource::Battery),
        ("core-i5-2gen", "containers", "powerd-2010", PowerSource::Mains),
        ("core-i5-2gen", "browse-canvas", "obsdfreqd", PowerSource::Battery),
        ("openbsd-laptop", "idle-browse", "obsdfreqd:min-battery=60", PowerSource::Battery),
        ("openbsd-laptop", "ml-vision", "openbsd-auto", PowerSource::Battery),
        ("openbsd-laptop", "build", "openbsd-auto:version=2021", PowerSource::Battery),
        ("openbsd-laptop", "build", "powersaving", PowerSource::Battery),
        ("openbsd-laptop", "browse-app", "burst", PowerSource::Battery),
        ("thinkpad-r51", "python-loop", "burst", PowerSource::Mains),
        ("thinkpad-r51", "python-loop", "burst:busy=1,idle=5,down=proportional", PowerSource::Mains),
        ("thinkpad-r51", "cyclictest", "powerd", PowerSource::Battery),
    ] {
        let what = format!("{policy} on {machine} with {work}");
        let model = library::machine(machine).expect("bundled");
        let (decisions, changes) = of_model(&model, work, policy, source, 0.0);
        let scene = emulated(&model);
        scene.plug(source == PowerSource::Mains);
        let none = vec![Sums::default(); model.cpus.len()];
        show(&scene, &none, &none);
        let config = format!("[profile.p]\nspeed = \"{policy}\"\n");
        let mut day = Day::remembered(&scene, &config, Some("p"));
        assert_eq!(day.engine.followed(), Some(policy), "{what}: {:?}", day.log);
        same(&what, &scene, &mut day, &none, &decisions);
        println!("{what}: {} decisions, {changes} changes of speed", decisions.len());
        assert!(
            decisions.len() > 5 && changes > 0,
            "{what}: {} decisions, {changes} changes",
            decisions.len()
        );
    }
}

/// A part of a day: what happens at its start, and the recorded work that follows.
type Part = (&'static [Happens], &'static str);

#[derive(Clone, Copy)]
enum Happens {
    Mains(bool),
    /// A charger at a port that sends no event.
    UsbC(bool),
    /// A phone is charged from a port.
    Phone,
    /// For so many seconds.
    Suspend(u64),
    /// A CPU goes, and comes back.
    Cpu(u32),
}

/// Work that was recorded, in the order in which a notebook may meet it, and what happens between.
const DAY: &[Part] = &[
    (&[], "idle-desktop"),
    (&[Happens::Mains(true)], "build"),
    (&[Happens::Mains(false), Happens::Mains(true), Happens::Mains(false)], "browse-app"),
    (&[Happens::Suspend(3600)], "video-play"),
    (&[Happens::UsbC(true)], "typescript"),
    (&[Happens::UsbC(false)], "idle-browse"),
    (&[Happens::Cpu(3), Happens::Cpu(2)], "search"),
    (&[Happens::Mains(true)], "java"),
    (&[Happens::Suspend(1800), Happens::Mains(false), Happens::Phone], "browse-canvas"),
    (&[Happens::Suspend(7200)], "idle-server"),
];

fn happen(scene: &Scene, day: &mut Day<'_>, what: Happens) {
    let ucsi = "ucsi-source-psy-USBC000:001";
    match what {
        Happens::Mains(online) => {
            scene.plug(online);
            (0..3).for_each(|_| day.input(KernelInput::Supply));
        }
        Happens::UsbC(online) => {
            scene.supply(ucsi, &[("type", "USB"), ("online", if online { "1" } else { "0" })]);
            scene.supply("BAT0", &[("status", if online { "Charging" } else { "Discharging" })]);
        }
        Happens::Phone => {
            scene.supply(ucsi, &[("type", "USB"), ("online", "1"), ("status", "Discharging")]);
            day.input(KernelInput::Supply);
        }
        Happens::Suspend(s) => {
            scene.machine.inject(Fault::Suspend { ns: s * SECOND });
            day.now += s * SECOND;
            day.input(KernelInput::Resumed);
        }
        Happens::Cpu(cpu) => {
            for online in [false, true] {
                scene.machine.plug(cpu, online);
                day.input(KernelInput::Cpus);
            }
        }
    }
}

/// Until what has happened is in force, and its later looks are over; the machine idles.
fn settle(scene: &Scene, day: &mut Day<'_>, sums: &mut [Sums]) {
    let none = vec![Sums::default(); sums.len()];
    for _ in 0..31 * SECOND / TICK_NS {
        sums.iter_mut().for_each(|sum| sum[1] += 1);
        show(scene, sums, &none);
        day.pass(TICK_NS);
    }
}

fn the_day_under(profile: &str, config: &str, policy: Option<&'static str>) -> (usize, usize) {
    let model = library::machine("openbsd-laptop").expect("bundled");
    let scene = emulated(&model);
    let mut sums = vec![Sums::default(); model.cpus.len()];
    let none = sums.clone();
    show(&scene, &sums, &none);
    let before = scene.machine.snapshot();
    let mut day = Day::remembered(&scene, config, Some(profile));
    let (mut decisions, mut changes) = (0, 0);
    for (happens, work) in DAY {
        happens.iter().for_each(|what| happen(&scene, &mut day, *what));
        settle(&scene, &mut day, &mut sums);
        let what = format!("{profile} with {work}");
        let source = day.engine.brain().facts().expect("it has looked").source;
        let on_battery = source == wattwise_hw::states::supply::SupplySource::Battery;
        let followed = policy.filter(|_| on_battery);
        assert_eq!(day.engine.followed(), followed, "{what}: {:?}", day.log);
        let Some(policy) = followed else { continue };
        // It begins anew at the highest speed, as a replay does.
        scene.plug(true);
        day.input(KernelInput::Supply);
        day.pass(SECOND);
        scene.plug(false);
        day.input(KernelInput::Supply);
        while day.engine.followed().is_none() {
            day.pass(TICK_NS);
        }
        let (model, moves) = of_model(&model, work, policy, PowerSource::Battery, 0.0);
        same(&what, &scene, &mut day, &sums, &model);
        for (sum, more) in sums.iter_mut().zip(&model[model.len() - 1].sums) {
            sum.iter_mut().zip(more).for_each(|(sum, ns)| *sum += ns / TICK_NS);
        }
        (decisions, changes) = (decisions + model.len(), changes + moves);
    }
    assert!(
        day.lines(LogKind::Wrote).iter().all(|line| line.contains('(')),
        "{profile}: each with its reason"
    );
    assert_eq!(day.engine.counts().writes, scene.machine.writes().len() as u64, "{profile}");
    assert!(scene.machine.refused().is_empty(), "{profile}: {:?}", scene.machine.refused());
    let restored = day.end();
    assert!(restored.failed.is_empty(), "{profile}: {restored}");
    let after = scene.machine.snapshot();
    let differ: Vec<_> = before.iter().filter(|(path, v)| after.get(*path) != Some(v)).collect();
    assert!(differ.is_empty(), "{profile}: {differ:?}");
    (decisions, changes)
}

/// A notebook's day of recorded work, with mains, suspends, chargers at ports and CPUs that go, under every built-in profile and two
/// policies that are followed: no fault, each change has its reason, all is as it was; and each decision is the model's.
#[test]
fn a_day_of_recorded_work_has_the_decisions_of_compare() {
    for profile in Config::builtin().profiles.keys() {
        let policy = match profile.as_str() {
            "auto" => Some("openbsd-auto"),
            "powersaving" => Some("powersaving"),
            _ => None,
        };
        let (decisions, changes) = the_day_under(profile, "", policy);
        println!("{profile}: {decisions} decisions, {changes} changes of speed");
        assert_eq!(decisions > 500 && changes > 5, policy.is_some(), "{profile}: {decisions}, {changes}");
    }
    for policy in ["powerd", "burst", "obsdfreqd"] {
        let config = format!(
            "[profile.p]\nspeed = \"performance\"\n[[profile.p.when]]\npower = \"battery\"\nspeed = \"{policy}\"\n"
        );
        let (decisions, changes) = the_day_under("p", &config, Some(policy));
        println!("{policy}: {decisions} decisions, {changes} changes of speed");
        assert!(decisions > 150 && changes > 5, "{policy}: {decisions}, {changes}");
    }
}
