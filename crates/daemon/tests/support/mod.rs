//! A machine of the emulator with files laid over it, and a daemon on it in virtual time.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use wattwise_daemon::brain::{Brain, BrainEvent};
use wattwise_daemon::config::Config;
use wattwise_daemon::engine::{Engine, KernelInput, LogKind, Note};
use wattwise_emulator::{Emulator, named};
use wattwise_hw::root::{Access, Node, Root, sort_names};

pub(crate) const CPU: &str = "sys/devices/system/cpu";
pub(crate) const SUPPLY: &str = "sys/class/power_supply";
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Files over an emulated machine. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) machine: Emulator,
    pub(crate) over: Arc<Mutex<BTreeMap<String, String>>>,
    /// Folders whose own files are not shown.
    pub(crate) hidden: Arc<Mutex<BTreeSet<String>>>,
}

/// A file that was laid over: an open one shows what is there now, as the kernel's do.
struct Text {
    over: Arc<Mutex<BTreeMap<String, String>>>,
    path: String,
}

impl Node for Text {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let over = self.over.lock().expect("whole");
        let text = over.get(&self.path).map_or(&[][..], |text| text.as_bytes());
        let from = (offset as usize).min(text.len());
        let n = into.len().min(text.len() - from);
        into[..n].copy_from_slice(&text[from..from + n]);
        Ok(n)
    }
    fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(rustix::io::Errno::ACCESS.into())
    }
}

impl Scene {
    pub(crate) fn of(name: &str) -> Scene {
        let machine = named(name).expect("bundled");
        Scene { machine, over: Arc::default(), hidden: Arc::default() }
    }

    /// Lays a file over the machine's.
    pub(crate) fn put(&self, path: &str, value: &str) -> &Scene {
        self.over.lock().expect("whole").insert(path.to_owned(), format!("{value}\n"));
        self
    }

    /// Takes the machine's own supplies away.
    pub(crate) fn no_supplies(&self) -> &Scene {
        self.hidden.lock().expect("whole").insert(SUPPLY.to_owned());
        self
    }

    /// A supply with its files.
    pub(crate) fn supply(&self, name: &str, files: &[(&str, &str)]) -> &Scene {
        files.iter().for_each(|(file, value)| _ = self.put(&format!("{SUPPLY}/{name}/{file}"), value));
        self
    }

    /// A machine with one adapter and one battery, on battery.
    pub(crate) fn notebook(name: &str) -> Scene {
        let scene = Scene::of(name);
        scene.no_supplies();
        scene.supply("AC", &[("type", "Mains"), ("online", "0")]);
        scene.supply(
            "BAT0",
            &[("type", "Battery"), ("present", "1"), ("status", "Discharging"), ("capacity", "80")],
        );
        scene
    }

    /// Plugs its charger in or out; the battery says so too.
    pub(crate) fn plug(&self, online: bool) {
        self.supply("AC", &[("online", if online { "1" } else { "0" })]);
        self.supply("BAT0", &[("status", if online { "Charging" } else { "Discharging" })]);
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.read(path).unwrap_or_default()).trim().to_owned()
    }

    pub(crate) fn epp(&self, policy: u32) -> String {
        self.text(&format!("{CPU}/cpufreq/policy{policy}/energy_performance_preference"))
    }

    pub(crate) fn set_epp(&self, policy: u32, value: &str) {
        let path = format!("{CPU}/cpufreq/policy{policy}/energy_performance_preference");
        self.write(&path, value.as_bytes()).expect("taken");
    }

    pub(crate) fn governor(&self, policy: u32) -> String {
        self.text(&format!("{CPU}/cpufreq/policy{policy}/scaling_governor"))
    }

    fn is_hidden(&self, path: &str) -> bool {
        let hidden = self.hidden.lock().expect("whole");
        hidden.iter().any(|h| path == h || path.starts_with(&format!("{h}/")))
    }
}

impl Root for Scene {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        let path = path.trim_matches('/');
        if self.over.lock().expect("whole").contains_key(path) {
            return Ok(Box::new(Text { over: Arc::clone(&self.over), path: path.to_owned() }));
        }
        match self.is_hidden(path) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => self.machine.open(path, access),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{}/", path.trim_matches('/'));
        let over = self.over.lock().expect("whole");
        let mine = over.keys().filter_map(|k| k.strip_prefix(&prefix));
        let mut names: BTreeSet<String> =
            mine.map(|rest| rest.split('/').next().unwrap_or_default().to_owned()).collect();
        if !self.is_hidden(path.trim_matches('/')) {
            match self.machine.list(path) {
                Ok(theirs) => names.extend(theirs),
                Err(e) if names.is_empty() => return Err(e),
                Err(_) => {}
            }
        }
        let mut names: Vec<String> = names.into_iter().collect();
        sort_names(&mut names);
        Ok(names)
    }

    fn describe(&self) -> String {
        self.machine.describe()
    }
}

/// A daemon on a scene, with its clock.
pub(crate) struct Day<'r> {
    pub(crate) scene: Scene,
    pub(crate) engine: Engine<'r>,
    pub(crate) now: u64,
    pub(crate) log: Vec<Note>,
    _folder: tempfile::TempDir,
}

impl<'r> Day<'r> {
    pub(crate) fn begin(scene: &'r Scene, config: &str) -> Day<'r> {
        Day::remembered(scene, config, None)
    }

    pub(crate) fn remembered(scene: &'r Scene, config: &str, profile: Option<&str>) -> Day<'r> {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config::from_text("test.toml", config).expect("no mistake");
        let mut engine = Engine::new(scene, folder.path(), Brain::new(config, profile));
        engine.start(0, 12 * 60);
        let log = engine.notes();
        Day { scene: scene.clone(), engine, now: 0, log, _folder: folder }
    }

    /// Lets time pass; whatever is due happens on the way.
    pub(crate) fn pass(&mut self, ns: u64) {
        let until = self.now + ns;
        while self.engine.due_ns() <= until {
            let at = self.engine.due_ns().max(self.now);
            self.scene.machine.advance(at - self.now);
            self.now = at;
            self.engine.tick(self.now, 12 * 60);
        }
        self.scene.machine.advance(until - self.now);
        self.now = until;
        self.log.extend(self.engine.notes());
    }

    pub(crate) fn input(&mut self, input: KernelInput) {
        self.engine.input(self.now, input);
        self.log.extend(self.engine.notes());
    }

    pub(crate) fn event(&mut self, event: BrainEvent) {
        self.engine.event(self.now, event);
        self.log.extend(self.engine.notes());
    }

    /// Lines of a kind since the beginning.
    pub(crate) fn lines(&self, kind: LogKind) -> Vec<&str> {
        self.log.iter().filter(|n| n.kind == kind).map(|n| n.text.as_str()).collect()
    }

    pub(crate) fn end(mut self) -> wattwise_control::set::original::Restored {
        self.engine.end()
    }
}
