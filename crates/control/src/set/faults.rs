//! Two transactions, one begun in the middle of the other, with every operation refused in turn, and with the process or the
//! machine ending before and after every operation: originals come back, or what differs is named.

use crate::private::fault::{self, FaultPlan, Mode, arm, disarm};
use crate::set::journal::{self, Listing, OpenJournal};
use crate::set::original::{Layer, boot_id, put_back_all};
use crate::set::target::Target;
use crate::set::transaction::{Change, Transaction};
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wattwise_emulator::Emulator;
use wattwise_hw::root::{Access, Node, Root};

const MACHINE: &str = "core-i5-2gen";
const FIRST: &str = "sys/devices/system/cpu/cpufreq/policy0";
const SECOND: &str = "sys/devices/system/cpu/cpufreq/policy1";

/// An emulated machine that fails as the plan has it, in a boot of its own.
pub(super) struct Failing {
    pub(super) machine: Emulator,
    pub(super) boot: &'static str,
}

struct FailingNode(Box<dyn Node>);

impl Node for FailingNode {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        fault::around(|| self.0.read_at(offset, into))
    }
    fn write_at(&mut self, offset: u64, value: &[u8]) -> io::Result<()> {
        fault::around(|| self.0.write_at(offset, value))
    }
}

/// A file whose text stays, as the boot's name, which is no part of what fails.
pub(super) struct Fixed(pub(super) Vec<u8>);

impl Node for Fixed {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let left = self.0.get(offset as usize..).unwrap_or_default();
        let n = left.len().min(into.len());
        into[..n].copy_from_slice(&left[..n]);
        Ok(n)
    }
    fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

impl Root for Failing {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        if path.ends_with("boot_id") {
            return Ok(Box::new(Fixed(self.boot.into())));
        }
        Ok(Box::new(FailingNode(self.machine.open(path, access)?)))
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.machine.list(path)
    }
    fn describe(&self) -> String {
        self.machine.describe()
    }
}

fn booted(boot: &'static str) -> Failing {
    Failing { machine: wattwise_emulator::named(MACHINE).expect(MACHINE), boot }
}

fn change(folder: &str, name: &str, value: &str) -> Change {
    let target = Target::File(format!("{folder}/{name}"));
    Change { what: target.to_string(), target, value: value.into(), elsewhere: None }
}

/// A governor and limits of one policy; the second sets one of these too, and another policy's.
fn changes() -> [Vec<Change>; 2] {
    [
        vec![
            change(FIRST, "scaling_governor", "powersave"),
            change(FIRST, "scaling_max_freq", "1200000"),
            change(FIRST, "scaling_min_freq", "1000000"),
        ],
        vec![change(FIRST, "scaling_max_freq", "1400000"), change(SECOND, "scaling_governor", "performance")],
    ]
}

fn values(root: &dyn Root) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = changes()
        .concat()
        .iter()
        .map(|c| (c.what.clone(), c.target.read(root).expect("readable without faults")))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// What becomes of the two once both are in force.
#[derive(Debug, Clone, Copy)]
enum FaultEnd {
    OlderFirst,
    NewerFirst,
    BothKept,
}

/// Both transactions, the second begun before the first's write number `within`. What was said.
fn play(root: &dyn Root, folder: &Path, within: usize, end: FaultEnd) -> String {
    let [older, newer] = changes();
    let said = RefCell::new(String::new());
    let say = |text: String| said.borrow_mut().push_str(&text);
    let inner = RefCell::new(None);
    let writes = RefCell::new(0);
    let stop = || {
        *writes.borrow_mut() += 1;
        if *writes.borrow() == within {
            match Transaction::apply(root, folder, "newer", &newer, &[], &|| None) {
                Ok(made) => *inner.borrow_mut() = Some(made),
                Err(e) => say(e.to_string()),
            }
        }
        None
    };
    let outer = match Transaction::apply(root, folder, "older", &older, &[], &stop) {
        Ok(made) => Some(made),
        Err(e) => {
            say(e.to_string());
            None
        }
    };
    let both = match end {
        FaultEnd::OlderFirst => [outer, inner.into_inner()],
        FaultEnd::NewerFirst | FaultEnd::BothKept => [inner.into_inner(), outer],
    };
    for mut made in both.into_iter().flatten() {
        match end {
            FaultEnd::BothKept => made.keep(),
            _ => say(made.undo().to_string()),
        }
    }
    said.into_inner()
}

/// The journals of a folder, of which nobody lives who could hold one. A child that another test has forked and that has not begun its
/// program yet has our files, and so their locks: it is waited for.
fn unheld(folder: &Path) -> Listing {
    let begun = Instant::now();
    loop {
        let listing = journal::list(folder).expect("a folder of journals");
        let held: Vec<_> =
            listing.journals.iter().filter(|found| found.held).map(|found| &found.path).collect();
        if held.is_empty() {
            return listing;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "held: {held:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What `restore` does, without faults. What it could not do.
pub(super) fn restore(root: &dyn Root, folder: &Path) -> Vec<(String, String)> {
    let listing = unheld(folder);
    assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
    let boot = boot_id(root);
    let layer = |found: &'_ OpenJournal| found.boot_id == boot;
    let layers = listing.journals.iter().map(|f| if layer(f) { f.layer() } else { Layer::Left(&[]) });
    let all = put_back_all(root, layers);
    for (found, restored) in listing.journals.into_iter().zip(&all) {
        found.finish(restored).expect("writable");
    }
    // What the newer one takes for somebody else's is the older one's, who puts it back: values are compared.
    all.into_iter().flat_map(|r| r.failed).collect()
}

/// In memory, where there is such a place: every journal is synced.
pub(super) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// A fault point; false: there are no more.
fn check(plan: FaultPlan, within: usize, end: FaultEnd) -> bool {
    let case = format!("{plan:?}, second begun before write {within}, {end:?}");
    let folder = folder();
    let root = booted("this one");
    let before = values(&root);
    arm(plan);
    let said = play(&root, folder.path(), within, end);
    let points = disarm();
    if plan.mode == Mode::Refused && !matches!(end, FaultEnd::BothKept) {
        // Both are over: what differs has been named, or waits in a journal to be put back.
        let waits = std::fs::read_dir(folder.path()).expect("folder").count() > 0;
        for ((what, was), (_, is)) in before.iter().zip(values(&root)) {
            assert!(*was == is || said.contains(what.as_str()) || waits, "{case}: {what} is {is}: {said}");
        }
    }
    if plan.mode != Mode::Refused {
        // The machine ended with the process: it has forgotten the settings, the disk has not forgotten the journals.
        let after = booted("the next one");
        let copy = self::folder();
        for file in std::fs::read_dir(folder.path()).expect("folder").flatten() {
            std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("copied");
        }
        assert_eq!(restore(&after, copy.path()), [], "{case}");
        assert_eq!(values(&after), before, "{case}: another boot's settings were put back");
    }
    assert_eq!(restore(&root, folder.path()), [], "{case}: {said}");
    assert_eq!(values(&root), before, "{case}: {said}");
    let left = std::fs::read_dir(folder.path()).expect("folder").count();
    assert_eq!(left, 0, "{case}: a journal is left");
    points >= plan.nth
}

#[test]
#[ignore = "long: make test runs it"]
fn two_interleaved_transactions_survive_a_fault_at_every_point() {
    let points = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for mode in [Mode::Refused, Mode::DiesBefore, Mode::DiesAfter] {
            let points = &points;
            scope.spawn(move || {
                for within in 1..=3 {
                    for end in [FaultEnd::OlderFirst, FaultEnd::NewerFirst, FaultEnd::BothKept] {
                        let last =
                            (1..).take_while(|nth| check(FaultPlan { nth: *nth, mode }, within, end)).count();
                        assert!(last > 30, "only {last} points");
                        points.fetch_add(last, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("{} points of failure", points.into_inner());
}
