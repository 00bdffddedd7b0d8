//! What the commands about hardware share: which machine, where the journal is.

use crate::args::guard;
use crate::exit::Failure;
use crate::show::screen::say;
use rustix::fs::OFlags;
use std::cell::OnceCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wattwise_control::cores::held;
use wattwise_control::cores::hold::{self, Released};
use wattwise_control::private::PrivateFolder;
use wattwise_control::set::left::{abandoned, restore_abandoned};
use wattwise_control::set::original::Restored;
use wattwise_emulator::Emulator;
use wattwise_hw::capture;
use wattwise_hw::cpus::topology::present;
use wattwise_hw::replaced;
use wattwise_hw::root::{DirRoot, Root};
use wattwise_output::Scratch;

/// Which machine is meant.
#[derive(clap::Args, Default)]
pub(crate) struct RootArgs {
    /// Another machine than this one: a capture, a tree of files, or emulated:NAME (which is gone with the command)
    #[arg(long, value_name = "ROOT", global = true)]
    root: Option<String>,
    /// Where changes are journalled [default: /run/wattwise; next to the tree for another root]
    #[arg(long, value_name = "FOLDER", global = true)]
    journal: Option<PathBuf>,
    /// An emulated machine is gone with the command, and so is its journal.
    #[arg(skip)]
    passing: OnceCell<Scratch>,
}

/// A machine whose time runs.
pub(crate) struct RunningMachine {
    pub(crate) root: Box<dyn Root>,
    /// Of an emulated machine, which has none of its own.
    #[expect(dead_code, reason = "it runs until the value ends")]
    clock: Option<EmulatedClock>,
}

/// Lets an emulated machine's time follow the clock until the value ends.
struct EmulatedClock {
    stop: Arc<AtomicBool>,
    beats: Option<JoinHandle<()>>,
}

/// How finely it follows: a window's ends are that sharp.
const BEAT: Duration = Duration::from_millis(5);

impl EmulatedClock {
    fn start(machine: &Emulator) -> EmulatedClock {
        let stop = Arc::new(AtomicBool::new(false));
        let (machine, stopped) = (machine.clone(), Arc::clone(&stop));
        let beats = std::thread::Builder::new().spawn(move || {
            let mut last = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(BEAT);
                let passed = last.elapsed();
                last = Instant::now();
                machine.advance(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX));
            }
        });
        // Without a thread its counters stand still, and are said to.
        EmulatedClock { stop, beats: beats.ok() }
    }
}

impl Drop for EmulatedClock {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.beats.take().map(JoinHandle::join);
    }
}

/// What is said where a setting is to stay on a machine that does not.
pub(crate) const PASSING: &str = "an emulated machine ends with this command, and nothing of it persists; one that stays: 'wattwise emulate NAME DIR'";

/// The name of this machine, for `--root` as for `--machine`.
pub(crate) const THIS: &str = "this";

/// Opens a machine: this one, or another as `flag` names it.
pub(crate) fn open(root: Option<&str>, flag: &str) -> Result<Box<dyn Root>, Failure> {
    let Some(root) = root.filter(|root| *root != THIS) else { return Ok(Box::new(DirRoot::this_machine())) };
    if let Some(name) = root.strip_prefix("emulated:") {
        // Lives as long as this command: for looking, and for trying what `set` would do.
        let machine =
            wattwise_emulator::named(name).map_err(|e| Failure::input(format!("{flag} {root}: {e}")))?;
        return Ok(Box::new(machine));
    }
    let path = Path::new(root);
    let found: Box<dyn Root> = match std::fs::metadata(path) {
        Ok(m) if m.is_dir() => match DirRoot::open(path) {
            Ok(tree) => noted(Box::new(tree), &beside(path)),
            Err(e) => return Err(Failure::input(format!("{flag} {root}: {e}"))),
        },
        Ok(_) => Box::new(capture::open(path).map_err(|e| Failure::input(format!("{flag} {e}")))?),
        Err(e) => {
            let meant = if wattwise_model::machine::builtin::text(root).is_some() {
                " (it is a machine model, which has no files: -m takes it)".to_owned()
            } else if wattwise_emulator::names().any(|name| name == root) {
                format!(" (there is emulated:{root})")
            } else {
                String::new()
            };
            return Err(Failure::input(format!(
                "{flag} {root}: {e}{meant}; expected a folder, a capture made by 'wattwise capture', emulated:NAME, or this"
            )));
        }
    };
    match present(&*found).is_empty() {
        true => Err(Failure::input(format!(
            "{flag} {root}: no CPU below sys/devices/system/cpu; expected /, a tree of a machine, or a capture"
        ))),
        false => Ok(found),
    }
}

/// The folder of the journals of a tree.
fn beside(root: &Path) -> PathBuf {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let mut name = root.file_name().map(|n| n.to_os_string()).unwrap_or_else(|| "root".into());
    name.push(".journal");
    root.with_file_name(name)
}

/// The most that is read of a note; the rest is as if it were not there.
const MOST_NOTE: u64 = 1 << 20;

/// A machine with the note of what was replaced on it, where its journals' folder has one.
fn noted(root: Box<dyn Root>, journals: &Path) -> Box<dyn Root> {
    let file = PrivateFolder::open(journals).and_then(|folder| folder.file(replaced::NAME, OFlags::RDONLY));
    match file.and_then(|file| std::io::read_to_string(file.take(MOST_NOTE))) {
        Ok(note) => Box::new(replaced::noted(root, note)),
        Err(_) => root,
    }
}

impl RootArgs {
    /// The emulated machine, where one is named.
    pub(crate) fn emulated(&self) -> Result<Option<Emulator>, Failure> {
        let name = self.root.as_deref().and_then(|root| root.strip_prefix("emulated:"));
        let machine =
            name.map(|n| wattwise_emulator::named(n).map_err(|e| Failure::input(format!("--root: {e}"))));
        machine.transpose()
    }

    /// As it was named.
    pub(crate) fn given(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// Opens it to be looked at.
    pub(crate) fn open(&self) -> Result<Box<dyn Root>, Failure> {
        let root = open(self.root.as_deref(), "--root")?;
        Ok(match &self.journal {
            Some(journal) => noted(root, journal),
            None => root,
        })
    }

    /// Opens it to be changed, or measured: what a killed wattwise left changed is put back first.
    pub(crate) fn open_to_change(&self) -> Result<Box<dyn Root>, Failure> {
        let root = self.open()?;
        self.put_back(&*root)?;
        Ok(root)
    }

    /// The same, to hold settings for a while: from now on they go back even if this process is killed.
    pub(crate) fn open_to_hold(&self) -> Result<Box<dyn Root>, Failure> {
        let root = self.open_to_change()?;
        self.start_guard()?;
        Ok(root)
    }

    fn start_guard(&self) -> Result<(), Failure> {
        if !self.is_passing() {
            guard::start(self.absolute(), &self.journal()?);
        }
        Ok(())
    }

    /// Puts back what a killed wattwise left changed. What cannot be is said, and stays for `restore`.
    pub(crate) fn put_back(&self, root: &dyn Root) -> Result<(), Failure> {
        // Who may not read what is in the folder has left nothing there, and is told when he needs it.
        self.put_back_all(root).map(|_| ())
    }

    /// The same: whether all of it could be. `Err` within where the folder of journals cannot be read.
    pub(crate) fn put_back_all(&self, root: &dyn Root) -> Result<std::io::Result<bool>, Failure> {
        if self.is_passing() {
            return Ok(Ok(true));
        }
        let folder = self.journal()?;
        let mut all = true;
        if held::read(&folder).is_ok_and(|state| state.is_some()) {
            match hold::clean(root, &folder, false) {
                Ok(Released::State(state)) => {
                    say!("a killed wattwise kept work on CPU {}; it may run on every CPU again", state.kept);
                }
                Ok(_) => {}
                Err(e) => {
                    all = false;
                    say!("a killed wattwise kept CPUs: {e}; 'wattwise coreidle off' tries again");
                }
            }
        }
        let restored = match restore_abandoned(root, &folder) {
            Ok(restored) => restored,
            Err(e) => return Ok(Err(e)),
        };
        for (command, restored) in restored {
            all &= restored.failed.is_empty();
            let told = Restored { unchanged: 0, ..restored };
            if told != Restored::default() {
                let remedy = if told.failed.is_empty() { "" } else { "; 'wattwise restore' tries again" };
                say!("'{command}' was killed and had left settings changed: {told}{remedy}");
            }
        }
        Ok(Ok(all))
    }

    /// Says that a killed wattwise left this machine changed, where one only looks.
    pub(crate) fn tell_left(&self, root: &dyn Root) -> Result<(), Failure> {
        if self.is_passing() {
            return Ok(());
        }
        for command in abandoned(root, &self.journal()?).unwrap_or_default() {
            say!("'{command}' was killed and left settings changed; 'wattwise restore' puts them back");
        }
        Ok(())
    }

    /// The same, with another machine where none is named.
    pub(crate) fn or(&self, root: Option<&str>) -> RootArgs {
        RootArgs {
            root: self.root.clone().or_else(|| root.map(str::to_owned)),
            journal: self.journal.clone(),
            passing: OnceCell::new(),
        }
    }

    /// The machine as it can be named from any folder; none is this one.
    pub(crate) fn absolute(&self) -> Option<String> {
        let root = self.root.as_deref().filter(|root| *root != THIS)?;
        if root.starts_with("emulated:") {
            return Some(root.to_owned());
        }
        let path = std::path::absolute(root).unwrap_or_else(|_| PathBuf::from(root));
        Some(path.to_string_lossy().into_owned())
    }

    /// Opens it to be measured over, as [`Self::open_to_hold`]: an emulated machine's time runs with the clock meanwhile.
    ///
    /// # Errors
    /// As [`open`]; a capture, in which nothing moves.
    pub(crate) fn open_running(&self, command: &str) -> Result<RunningMachine, Failure> {
        let running = self.open_watched(command)?;
        self.put_back(&*running.root)?;
        self.start_guard()?;
        Ok(running)
    }

    /// The same, only to be looked at.
    pub(crate) fn open_watched(&self, command: &str) -> Result<RunningMachine, Failure> {
        if let Some(root) = self.root.as_deref().filter(|root| Path::new(root).is_file()) {
            return Err(Failure::impossible(format!(
                "{command} --root {root}: a capture stands still, so nothing can be measured over it; expected this machine, a \
                 mounted one ('wattwise emulate {} DIR'), or emulated:NAME",
                wattwise_figure::shell::file(root)
            )));
        }
        match self.emulated()? {
            Some(machine) => {
                Ok(RunningMachine { clock: Some(EmulatedClock::start(&machine)), root: Box::new(machine) })
            }
            None => Ok(RunningMachine { clock: None, root: self.open()? }),
        }
    }

    /// The capture, where one is named.
    pub(crate) fn capture(&self) -> Option<&Path> {
        self.root.as_deref().map(Path::new).filter(|root| root.is_file())
    }

    /// Whether the machine ends with the command, and with it all that was changed.
    pub(crate) fn is_passing(&self) -> bool {
        self.journal.is_none() && self.root.as_ref().is_some_and(|root| root.starts_with("emulated:"))
    }

    /// The folder of the journals for this root.
    pub(crate) fn journal(&self) -> Result<PathBuf, Failure> {
        Ok(match (&self.journal, &self.root) {
            (Some(folder), _) => folder.clone(),
            (None, None) => PathBuf::from("/run/wattwise"),
            (None, Some(root)) if root == THIS => PathBuf::from("/run/wattwise"),
            (None, Some(root)) if root.starts_with("emulated:") => match self.passing.get() {
                Some(folder) => folder.path().to_owned(),
                None => {
                    let folder = Scratch::new().map_err(|e| {
                        Failure::work(format!("no folder for an emulated machine's journal: {e}; set TMPDIR"))
                    })?;
                    self.passing.get_or_init(|| folder).path().to_owned()
                }
            },
            (None, Some(root)) => beside(Path::new(root)),
        })
    }
}
