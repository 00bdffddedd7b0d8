//! What a profile saves is proved while it is in force: days of an emulated machine in virtual time.

mod support;

use support::{CPU, Day, SECOND, Scene};
use wattwise_daemon::brain::{BrainEvent, Client, ProfileHold};
use wattwise_daemon::config::{Config, ConfigError};
use wattwise_daemon::engine::{KernelInput, LogKind};
use wattwise_daemon::proving::Proving;
use wattwise_emulator::{Fault, Op};
use wattwise_hw::clock::Moment;
use wattwise_proof::block::Reason;
use wattwise_proof::conduct::End;
use wattwise_proof::log;

const MINUTE: u64 = 60 * SECOND;
const CONFIG: &str =
    "[daemon]\nprove = \"untouched\"\nprove_for = \"100min\"\n[profile.slow]\nsettings = [\"max=50%\"]\n";

/// A day with a proof, and time asleep so far.
struct Week<'r> {
    day: Day<'r>,
    proving: Proving<'r>,
    asleep_ns: u64,
}

impl<'r> Week<'r> {
    fn begin(scene: &'r Scene, config: &str, state: &std::path::Path) -> Week<'r> {
        let day = Day::remembered(scene, config, Some("slow"));
        let mut week = Week { day, proving: Proving::new(scene, state), asleep_ns: 0 };
        week.step();
        week
    }

    fn step(&mut self) {
        let now = self.day.now;
        let at = Moment { monotonic_s: (now - self.asleep_ns) as f64 * 1e-9, boot_s: now as f64 * 1e-9 };
        self.proving.step(at, 1_700_000_000 + now / SECOND, &mut self.day.engine);
        self.day.log.extend(self.day.engine.notes());
    }

    fn pass(&mut self, ns: u64) {
        let until = self.day.now + ns;
        while self.day.now < until {
            let due = self.proving.due_ns().max(self.day.now).min(until);
            self.day.pass(due - self.day.now);
            self.step();
            if self.proving.due_ns() <= self.day.now {
                self.day.pass(1_000_000);
            }
        }
    }

    /// As in the daemon's loop, whatever comes has a step after it.
    fn event(&mut self, event: BrainEvent) {
        self.day.event(event);
        self.step();
    }

    fn sleep(&mut self, ns: u64) {
        self.day.scene.machine.inject(Fault::Suspend { ns });
        (self.day.now, self.asleep_ns) = (self.day.now + ns, self.asleep_ns + ns);
        self.day.input(KernelInput::Resumed);
        self.step();
    }
}

fn loaded() -> Scene {
    let scene = Scene::notebook("core-i5-2gen");
    let loads: Vec<(u32, u32)> = scene.machine.online().iter().map(|cpu| (*cpu, 600)).collect();
    scene.machine.set_loads(&loads);
    scene
}

fn joules(scene: &Scene, what: &mut Day<'_>) -> u128 {
    let before = scene.machine.zone_total_uj()[0];
    what.pass(10 * MINUTE);
    scene.machine.zone_total_uj()[0] - before
}

/// What it saves is known: the machine's own watts under each, taken one after the other.
#[test]
fn a_profile_is_proved_against_the_machine_without_it() {
    let truth = {
        let scene = loaded();
        let mut day = Day::remembered(&scene, CONFIG, Some("slow"));
        day.event(BrainEvent::Pause(Client::Socket(1), "the machine as it was".into()));
        let without = joules(&scene, &mut day);
        day.event(BrainEvent::Gone(Client::Socket(1)));
        1.0 - joules(&scene, &mut day) as f64 / without as f64
    };
    assert!(truth > 0.02, "{truth}");
    let scene = loaded();
    let state = tempfile::tempdir().expect("a folder");
    let mut week = Week::begin(&scene, CONFIG, state.path());
    week.pass(70 * MINUTE);
    let so_far = week.proving.told(0).expect("it is proved");
    assert!((30..=35).contains(&so_far.pairs) && so_far.planned == 50, "{so_far:?}");
    week.pass(31 * MINUTE);
    let told = week.proving.told(0).expect("it is proved");
    let [saved, low, high] = told.saving.expect("a figure");
    assert!((saved - truth).abs() < 0.005 && low <= saved && saved <= high, "{told:?}; truth {truth}");
    assert_eq!((told.pairs, told.planned, told.left_out_h), (50, 50, 0.0), "{told:?}");
    assert!(told.left_out_h.is_sign_positive(), "the metric of nothing is 0, not -0");
    assert!(told.line.ends_with("measured") && told.line.contains(" % ("), "{}", told.line);
    assert_eq!((told.baseline.as_str(), told.profile.as_str()), ("untouched", "slow"));
    let read = log::read(&state.path().join("proof.jsonl")).expect("a log");
    assert_eq!(read.end, Some(End::Reached));
    assert!(
        read.blocks.iter().all(|b| b.left_out.is_none() && (b.seconds - 55.0).abs() < 0.1),
        "{:?}",
        read.blocks
    );
    // It is over: the profile is in force, and desktops saw no other all the time.
    let most =
        |file: &str| scene.text(&format!("{CPU}/cpufreq/policy0/{file}")).parse::<f64>().unwrap_or(0.0);
    assert!(most("scaling_max_freq") <= 0.6 * most("cpuinfo_max_freq"));
    assert_eq!(week.day.engine.counts().transitions, 0);
    assert!(week.day.lines(LogKind::Wrote).len() <= 8, "turns are not told one by one: {:?}", week.day.log);
    week.pass(10 * MINUTE);
    assert_eq!(log::read(&state.path().join("proof.jsonl")).expect("a log").blocks.len(), 100);
}

/// What breaks a pair: each is left out whole, with its reason, and the proof goes on.
#[test]
fn what_breaks_a_pair_is_left_out_with_its_reason() {
    let scene = loaded();
    let state = tempfile::tempdir().expect("a folder");
    let mut week = Week::begin(&scene, CONFIG, state.path());
    week.pass(30 * SECOND);
    week.sleep(3600 * SECOND);
    week.pass(10 * MINUTE);
    week.pass(30 * SECOND);
    scene.plug(true);
    week.day.input(KernelInput::Supply);
    week.pass(10 * MINUTE);
    let hold = ProfileHold {
        cookie: 1,
        profile: "performance".into(),
        reason: String::new(),
        application: "a game".into(),
        client: Client::Socket(1),
    };
    week.event(BrainEvent::Hold(hold));
    week.pass(10 * MINUTE);
    assert_eq!(week.day.engine.decision().profile, "performance");
    week.event(BrainEvent::Gone(Client::Socket(1)));
    week.pass(20 * MINUTE);
    let read = log::read(&state.path().join("proof.jsonl")).expect("a log");
    let sorted = wattwise_proof::block::pairs(&read.blocks, 60.0);
    let mut reasons: Vec<Reason> = sorted.left_out.iter().map(|(why, _)| *why).collect();
    reasons.sort();
    assert_eq!(reasons, [Reason::Suspend, Reason::Mains, Reason::Click], "{:?}", sorted.left_out);
    let slept = sorted.left_out.iter().find(|(why, _)| *why == Reason::Suspend).expect("there").1;
    assert!((3600.0..4000.0).contains(&slept), "{slept}");
    assert!((16..=22).contains(&sorted.counted.len()), "{}", sorted.counted.len());
    let told = week.proving.told(0).expect("it is proved");
    assert!(told.line.contains("left out: suspend"), "{}", told.line);
}

/// A turn that the kernel refused in one file was not the policy's: its pair does not count.
#[test]
fn a_turn_that_was_refused_is_left_out() {
    let scene = loaded();
    let state = tempfile::tempdir().expect("a folder");
    let mut week = Week::begin(&scene, CONFIG, state.path());
    week.pass(10 * MINUTE);
    let (pattern, errno) = ("*/scaling_max_freq".to_owned(), rustix::io::Errno::BUSY);
    scene.machine.inject(Fault::Errno { pattern, op: Op::Write, nth: 0, errno });
    week.pass(2 * MINUTE);
    scene.machine.clear_faults();
    week.pass(20 * MINUTE);
    let read = log::read(&state.path().join("proof.jsonl")).expect("a log");
    let sorted = wattwise_proof::block::pairs(&read.blocks, 60.0);
    let reasons: Vec<Reason> = sorted.left_out.iter().map(|(why, _)| *why).collect();
    assert_eq!(reasons, [Reason::Refused], "{:?}", week.day.lines(LogKind::Refused));
    assert!(sorted.counted.len() >= 12, "{}", sorted.counted.len());
}

/// A boot goes on with the same plan; another profile begins another one, and the old log stays.
#[test]
fn a_boot_goes_on_and_another_profile_begins_anew() {
    let scene = loaded();
    let state = tempfile::tempdir().expect("a folder");
    let path = state.path().join("proof.jsonl");
    let mut week = Week::begin(&scene, CONFIG, state.path());
    week.pass(11 * MINUTE);
    drop(week.day.end());
    let first = log::read(&path).expect("a log");
    assert!((9..=11).contains(&first.blocks.len()), "{}", first.blocks.len());
    let mut week = Week::begin(&scene, CONFIG, state.path());
    week.pass(11 * MINUTE);
    let second = log::read(&path).expect("a log");
    assert_eq!(second.header, first.header);
    assert!((18..=22).contains(&second.blocks.len()), "{}", second.blocks.len());
    assert_eq!(week.proving.told(0).expect("it is proved").pairs, second.next_pair() as u64);
    week.event(BrainEvent::Choose("power-saver".into()));
    week.pass(5 * MINUTE);
    let third = log::read(&path).expect("a log");
    assert_eq!(third.header.sides[1].name, "power-saver");
    assert_eq!(std::fs::read_dir(state.path()).expect("a folder").count(), 2, "the old one stays");
    // The baseline itself cannot be proved against itself, and without the option nothing is.
    week.event(BrainEvent::Config(Box::new(Config::from_text("t", "").expect("no mistake"))));
    assert!(week.proving.told(0).is_none() && week.proving.due_ns() == u64::MAX);
    assert!(!week.day.engine.decision().turn);
}

/// Where nothing meters energy, that is said, and the profile is in force all the same.
#[test]
fn without_a_meter_it_is_said_and_nothing_is_proved() {
    let scene = loaded();
    for folder in ["sys/class/powercap", "sys/devices/virtual/powercap", "dev/cpu", "sys/class/hwmon"] {
        scene.hidden.lock().expect("whole").insert(folder.to_owned());
    }
    let state = tempfile::tempdir().expect("a folder");
    let mut week = Week::begin(&scene, CONFIG, state.path());
    week.pass(5 * MINUTE);
    let refused = week.day.lines(LogKind::Refused);
    assert!(refused.len() == 1 && refused[0].contains("nothing here meters energy"), "{refused:?}");
    assert!(week.proving.told(0).is_none_or(|p| p.pairs == 0) && !state.path().join("proof.jsonl").exists());
}

#[test]
fn mistakes_in_what_is_to_be_proved_have_their_place() {
    let wrong = |text: &str| -> ConfigError { Config::from_text("p.toml", text).expect_err("a mistake") };
    let e = wrong("[daemon]\nprove = \"balanc\"\n");
    assert!((e.line, e.column) == (2, 9) && e.message.contains("did you mean balanced"), "{e}");
    let e = wrong("[daemon]\nprove_for = \"5s\"\n");
    assert!((e.line, e.column) == (2, 13), "{e}");
}
