//! The handle to an emulated machine: a root like the real one, with faults and a record of what was written.

use crate::fault::{Armed, Fault, Op, fits};
use crate::host::{Host, Physics, Truth};
use crate::registers::RegisterDevice;
use crate::tree::{Id, LiveAttribute, NodeKind, Tree};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wattwise_hw::root::{Access, Node, Root, sort_names};
use wattwise_hw::rules;
use wattwise_hw::rules::Refusal;
use wattwise_model::machine::Thermal;

/// One file of a tree from which a machine is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEntry {
    /// An attribute: its path and bytes.
    File(String, Vec<u8>),
    /// A link: its path and the path from the root that it leads to.
    Link(String, String),
}

/// How long a CPU was busy and idle while it was online.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnlineTimes {
    /// CPU.
    pub cpu: u32,
    /// Busy, in ns.
    pub busy_ns: u64,
    /// Idle, in ns.
    pub idle_ns: u64,
}

pub(crate) struct Inner {
    pub(crate) machine: Host,
    faults: Vec<Armed>,
    operations: u64,
    writes: Vec<(String, String)>,
    refused: Vec<(String, Refusal)>,
}

/// An emulated machine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Emulator {
    inner: Arc<Mutex<Inner>>,
    pub(crate) name: Arc<str>,
}

impl Emulator {
    pub(crate) fn new(name: &str, tree: Tree, physics: Physics, seed: u64) -> Emulator {
        let inner = Inner {
            machine: Host::new(tree, physics, seed),
            faults: Vec::new(),
            operations: 0,
            writes: Vec::new(),
            refused: Vec::new(),
        };
        Emulator { inner: Arc::new(Mutex::new(inner)), name: name.into() }
    }

    /// A machine from any tree of files, for example a capture.
    pub fn from_files(name: &str, files: impl IntoIterator<Item = TreeEntry>) -> Emulator {
        let mut tree = Tree::new();
        for entry in files {
            match entry {
                TreeEntry::File(path, bytes) => _ = tree.put(path.trim_matches('/'), NodeKind::Text(bytes)),
                TreeEntry::Link(path, to) => _ = tree.link(path.trim_matches('/'), &to),
            }
        }
        let physics = Physics { idle_leaves_with_cpu: leaves(&tree), ..Physics::default() };
        Emulator::new(name, tree, physics, 1)
    }

    /// A machine from the files of a capture.
    pub fn from_tree(name: &str, tree: &wattwise_hw::root::tree::Tree) -> Emulator {
        let files = tree.files.iter().map(|(path, bytes)| TreeEntry::File(path.clone(), bytes.clone()));
        // Links are relative to their own folder; the path that they lead to is their target's.
        let links = tree.links.keys().map(|path| TreeEntry::Link(path.clone(), tree.resolve(path)));
        Emulator::from_files(name, files.chain(links))
    }

    /// A machine from a folder that holds `sys`, `proc` and perhaps `dev`.
    ///
    /// # Errors
    /// The folder cannot be read, or is nested deeper than any machine's.
    pub fn from_dir(folder: &Path) -> io::Result<Emulator> {
        let mut files = Vec::new();
        gather(folder, folder, 0, &mut files)?;
        Ok(Emulator::from_files(&folder.display().to_string(), files))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `ns` nanoseconds pass.
    pub fn advance(&self, ns: u64) {
        self.lock().machine.advance(ns);
    }

    /// Virtual time since the start, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.lock().machine.now_ns
    }

    /// How its packages get warm, and what leakage adds where a truth is behind them.
    pub fn cooling(&self) -> Thermal {
        self.lock().machine.cooling()
    }

    /// What each package may draw in the long term, in W: by its limits of power and of heat.
    pub fn limits_w(&self) -> Vec<f64> {
        self.lock().machine.limits_w()
    }

    /// How busy a CPU is from now on, in thousandths. Governors follow at once.
    pub fn set_load(&self, cpu: u32, permille: u32) {
        self.set_loads(&[(cpu, permille)]);
    }

    /// The same for several CPUs.
    pub fn set_loads(&self, loads: &[(u32, u32)]) {
        self.lock().set_loads(loads);
    }

    /// What it draws from now on is what this machine model does.
    pub fn set_truth(&self, truth: Truth) {
        let machine = &mut self.lock().machine;
        machine.stir(truth.noise_seed);
        machine.truth = Some(Arc::new(truth));
    }

    /// What it really is, where that was set.
    pub fn truth(&self) -> Option<Arc<Truth>> {
        self.lock().machine.truth.clone()
    }

    /// A speed that its hardware does not pass from now on, whatever is asked for, in kHz.
    pub fn set_ceiling(&self, khz: Option<u32>) {
        self.lock().machine.ceiling_khz = khz;
    }

    /// Plugs the charger in or out.
    pub fn set_mains(&self, online: bool) {
        self.lock().machine.set_mains(online);
    }

    /// Takes a CPU offline or brings it back, as another program would. The last one stays.
    pub fn plug(&self, cpu: u32, online: bool) {
        self.lock().machine.plug(cpu, online);
    }

    /// The CPUs that are online.
    pub fn online(&self) -> Vec<u32> {
        self.lock().machine.online()
    }

    /// The CPUs that are not.
    pub fn offline(&self) -> Vec<u32> {
        self.lock().machine.unplugged()
    }

    /// Another device behind `dev/cpu/N/msr`.
    pub fn set_registers(&self, device: Box<dyn RegisterDevice>) {
        self.lock().machine.registers = device;
    }

    /// Makes something go wrong, now or when its moment comes.
    pub fn inject(&self, fault: Fault) {
        self.lock().inject(fault);
    }

    /// Takes back every fault that has not happened yet.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Every write that was taken so far, in order: the attribute's path and what was written.
    /// Registers are written as `0xADDRESS=0xVALUE`.
    pub fn writes(&self) -> Vec<(String, String)> {
        self.lock().writes.clone()
    }

    /// Every write that the rules refused, in order.
    pub fn refused(&self) -> Vec<(String, Refusal)> {
        self.lock().refused.clone()
    }

    /// Operations of any kind so far.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// How often a file was opened.
    pub fn opens(&self, path: &str) -> u64 {
        let inner = self.lock();
        let tree = &inner.machine.tree;
        tree.find(path, true).and_then(|id| tree.file(id)).map_or(0, |f| f.opens)
    }

    /// Everything that can be set, byte for byte, by its own path (links left out).
    pub fn snapshot(&self) -> BTreeMap<String, Vec<u8>> {
        let inner = self.lock();
        let machine = &inner.machine;
        let below = machine.tree.below("sys").into_iter();
        below
            .filter(|(_, id)| machine.tree.file(*id).is_some_and(|f| f.writable))
            .filter_map(|(path, id)| Some((path, machine.render(id).ok()?)))
            .collect()
    }

    /// Every file, byte for byte, and every link.
    pub fn files(&self) -> Vec<TreeEntry> {
        let inner = self.lock();
        let machine = &inner.machine;
        let below = machine.tree.below("").into_iter();
        below
            .filter_map(|(path, id)| match &machine.tree.file(id)?.kind {
                NodeKind::Link(to) => Some(TreeEntry::Link(path, to.clone())),
                NodeKind::Live(LiveAttribute::Registers { .. } | LiveAttribute::Console(_)) => None,
                _ => Some(TreeEntry::File(path, machine.render(id).ok()?)),
            })
            .collect()
    }

    /// Power of each RAPL zone now, in microwatts, in the order of the tree.
    pub fn zone_power_uw(&self) -> Vec<u64> {
        let inner = self.lock();
        inner.machine.zones.iter().map(|z| inner.machine.zone_uw(z)).collect()
    }

    /// Energy of each RAPL zone since the start without wraps, in microjoules.
    pub fn zone_total_uj(&self) -> Vec<u128> {
        self.lock().machine.zones.iter().map(|z| z.total_uj).collect()
    }

    /// How long each CPU was busy and idle while it was online.
    pub fn cpu_times(&self) -> Vec<OnlineTimes> {
        let inner = self.lock();
        let cpus = inner.machine.cpus.iter();
        cpus.map(|c| OnlineTimes { cpu: c.id, busy_ns: c.busy_ns, idle_ns: c.idle_ns }).collect()
    }

    /// Nanoseconds that each policy was at each of its levels, by the policy's number.
    pub fn residency_ns(&self) -> Vec<(u32, Vec<(u32, u64)>)> {
        self.lock().machine.policies.iter().map(|p| (p.number, p.residency.clone())).collect()
    }
}

impl Root for Emulator {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        let id = self.lock().open(path, access)?;
        Ok(Box::new(OpenFile { emulator: self.clone(), id, path: clean(path).to_owned(), access }))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = self.lock().list(path)?;
        sort_names(&mut names);
        Ok(names)
    }

    fn describe(&self) -> String {
        format!("the emulated machine '{}'", self.name)
    }
}

struct OpenFile {
    emulator: Emulator,
    id: Id,
    path: String,
    access: Access,
}

impl Node for OpenFile {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        Ok(self.emulator.lock().read_at(self.id, &self.path, offset, into)?)
    }

    fn write_at(&mut self, offset: u64, value: &[u8]) -> io::Result<()> {
        if self.access == Access::Read {
            return Err(Errno::BADF.into());
        }
        Ok(self.emulator.lock().write_at(self.id, &self.path, offset, value)?)
    }
}

fn clean(path: &str) -> &str {
    path.trim_matches('/')
}

impl Inner {
    fn inject(&mut self, fault: Fault) {
        match fault {
            Fault::Wrap { pattern } => self.machine.near_wrap(|path| fits(&pattern, path)),
            Fault::Suspend { ns } => self.machine.suspend(ns),
            fault => {
                self.faults.push(Armed { fault, seen: 0 });
                self.fire();
            }
        }
    }

    /// Faults whose moment has come.
    fn fire(&mut self) {
        let mut due = Vec::new();
        self.faults.retain(|armed| match &armed.fault {
            Fault::Unplug { after, .. } | Fault::Vanish { after, .. } if armed.seen >= *after => {
                due.push(armed.fault.clone());
                false
            }
            _ => true,
        });
        for fault in due {
            match fault {
                Fault::Unplug { cpu, .. } => self.machine.plug(cpu, false),
                Fault::Vanish { pattern, .. } => self.vanish(&pattern),
                _ => {}
            }
        }
    }

    fn vanish(&mut self, pattern: &str) {
        let mut paths: Vec<String> = Vec::new();
        for (path, _) in self.machine.tree.below("") {
            // The file itself, or the highest folder above it that fits.
            let mut ends = path.match_indices('/').map(|(i, _)| i).chain([path.len()]);
            if let Some(end) = ends.find(|&end| fits(pattern, &path[..end])) {
                paths.push(path[..end].to_owned());
            }
        }
        paths.dedup();
        for path in paths {
            self.machine.tree.detach(&path);
        }
    }

    /// Counts an operation and lets faults happen: what is due, then an error for this one.
    pub(crate) fn operation(&mut self, path: &str, op: Op) -> Result<(), Errno> {
        self.operations = self.operations.wrapping_add(1);
        if self.faults.is_empty() {
            return Ok(());
        }
        let mut error = None;
        for armed in &mut self.faults {
            match &armed.fault {
                Fault::Errno { pattern, op: which, nth, errno }
                    if (*which == op || *which == Op::Any) && fits(pattern, path) =>
                {
                    armed.seen += 1;
                    if *nth == 0 || armed.seen == *nth {
                        error = error.or(Some(*errno));
                    }
                }
                Fault::Unplug { .. } | Fault::Vanish { .. } => armed.seen += 1,
                _ => {}
            }
        }
        self.fire();
        error.map_or(Ok(()), Err)
    }

    pub(crate) fn open(&mut self, path: &str, access: Access) -> Result<Id, Errno> {
        self.operation(clean(path), Op::Open)?;
        let id = self.machine.tree.find(path, true).ok_or(Errno::NOENT)?;
        let file = self.machine.tree.file_mut(id).ok_or(Errno::NOENT)?;
        if matches!(file.kind, NodeKind::Folder(_)) {
            return Err(Errno::ISDIR);
        }
        // fs/kernfs/file.c: an attribute that cannot be written is not opened for it, even by root.
        if access == Access::Write && !file.writable {
            return Err(Errno::ACCESS);
        }
        file.opens += 1;
        Ok(id)
    }

    pub(crate) fn list(&mut self, path: &str) -> Result<Vec<String>, Errno> {
        self.operation(clean(path), Op::List)?;
        let id = self.machine.tree.find(path, true).ok_or(Errno::NOENT)?;
        let names = self.machine.tree.names(id).ok_or(Errno::NOTDIR)?;
        Ok(names.keys().cloned().collect())
    }

    pub(crate) fn read_at(
        &mut self,
        id: Id,
        path: &str,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Errno> {
        if let Some(NodeKind::Live(LiveAttribute::Registers { cpu })) =
            self.machine.tree.file(id).map(|f| &f.kind)
        {
            let cpu = *cpu;
            self.operation(path, Op::Read)?;
            return self.read_register(cpu, offset, into);
        }
        if offset == 0 {
            self.operation(path, Op::Read)?;
        }
        let bytes = match self.machine.tree.file(id).map(|f| &f.kind) {
            Some(NodeKind::Live(LiveAttribute::Console(console))) => self.console_text(*console).into_bytes(),
            _ => self.machine.render(id)?,
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let rest = &bytes[from..];
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn read_register(&self, cpu: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
        if into.len() < 8 {
            return Err(Errno::INVAL);
        }
        let value = self.machine.register(cpu, u32::try_from(address).map_err(|_| Errno::IO)?)?;
        into[..8].copy_from_slice(&value.to_le_bytes());
        Ok(8)
    }

    pub(crate) fn write_at(&mut self, id: Id, path: &str, offset: u64, value: &[u8]) -> Result<(), Errno> {
        self.operation(path, Op::Write)?;
        let file = self.machine.tree.file(id).ok_or(Errno::NOENT)?;
        if let NodeKind::Live(LiveAttribute::Registers { cpu }) = file.kind {
            return self.write_register(cpu, path, offset, value);
        }
        if let NodeKind::Live(LiveAttribute::Console(console)) = file.kind {
            return self.console(console, &String::from_utf8_lossy(value));
        }
        if !file.attached {
            return Err(Errno::NODEV);
        }
        if !file.writable {
            return Err(Errno::ACCESS);
        }
        // A whole value from the start, at most a page: fs/kernfs/file.c.
        if offset != 0 || value.len() > 4096 {
            return Err(Errno::INVAL);
        }
        let text = String::from_utf8_lossy(value).into_owned();
        let own = self.machine.tree.path(id);
        let shows = match rules::judge(&self.machine, &own, &text) {
            Ok(shows) => shows,
            Err(refusal) => {
                self.refused.push((own, refusal));
                return Err(refusal.errno);
            }
        };
        self.writes.push((own.clone(), text.trim_end_matches(['\n', '\0']).to_owned()));
        let ignored = self.faults.iter().any(
            |a| matches!(&a.fault, Fault::Ignore { pattern } if fits(pattern, &own) || fits(pattern, path)),
        );
        if !ignored {
            self.machine.apply(&own, &text, &shows);
        }
        Ok(())
    }

    fn write_register(&mut self, cpu: u32, path: &str, address: u64, value: &[u8]) -> Result<(), Errno> {
        let address = u32::try_from(address).map_err(|_| Errno::IO)?;
        let value = u64::from_le_bytes(value.try_into().map_err(|_| Errno::INVAL)?);
        let ignored =
            self.faults.iter().any(|a| matches!(&a.fault, Fault::Ignore { pattern } if fits(pattern, path)));
        if !ignored {
            self.machine.set_register(cpu, address, value)?;
        }
        self.writes.push((path.to_owned(), format!("{address:#x}={value:#x}")));
        Ok(())
    }
}

/// haltpoll registers its idle states anew with each CPU (drivers/cpuidle/cpuidle-haltpoll.c).
fn leaves(tree: &Tree) -> bool {
    let driver = tree.find("sys/devices/system/cpu/cpuidle/current_driver", true);
    matches!(driver.and_then(|id| tree.file(id)).map(|f| &f.kind), Some(NodeKind::Text(t)) if t.starts_with(b"haltpoll"))
}

/// A real folder's files. Links become paths from the top; what cannot be read is left out.
fn gather(top: &Path, folder: &Path, depth: usize, files: &mut Vec<TreeEntry>) -> io::Result<()> {
    const MOST_BYTES: u64 = 1 << 20;
    if depth > 32 {
        return Err(io::Error::other(format!("{}: folders nested too deeply", folder.display())));
    }
    let inside = |path: &Path| path.strip_prefix(top).ok().map(|p| p.to_string_lossy().into_owned());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let Some(own) = inside(&path) else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            gather(top, &path, depth + 1, files)?;
        } else if kind.is_symlink() {
            let to = std::fs::read_link(&path)?;
            let mut full: Vec<_> = match to.is_absolute() {
                true => Vec::new(),
                false => own.rsplit_once('/').map_or("", |(f, _)| f).split('/').map(str::to_owned).collect(),
            };
            for part in to.to_string_lossy().split('/').filter(|p| !p.is_empty() && *p != ".") {
                if part == ".." { _ = full.pop() } else { full.push(part.to_owned()) }
            }
            files.push(TreeEntry::Link(own, full.join("/")));
        } else if kind.is_file() {
            use std::io::Read;
            let mut bytes = Vec::new();
            if std::fs::File::open(&path).and_then(|f| f.take(MOST_BYTES).read_to_end(&mut bytes)).is_ok() {
                files.push(TreeEntry::File(own, bytes));
            }
        }
    }
    Ok(())
}
