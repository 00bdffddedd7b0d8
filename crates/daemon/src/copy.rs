//! A copy of a machine on which can be tried what would be done: an emulated one, with the kernel's rules.

use wattwise_emulator::{Emulator, TreeEntry};
use wattwise_hw::root::Root;

/// Folders that the daemon looks at, and how deep.
const FOLDERS: [(&str, u32); 9] = [
    ("sys/devices/system/cpu", 5),
    ("sys/devices/virtual/powercap", 5),
    ("sys/class/power_supply", 2),
    ("sys/class/typec", 2),
    ("sys/class/powercap", 3),
    ("sys/firmware/acpi", 1),
    ("sys/class/thermal", 2),
    ("sys/class/hwmon", 2),
    ("sys/class/platform-profile", 2),
];
const FILES: [&str; 5] = [
    "proc/stat",
    "proc/cpuinfo",
    "proc/sys/kernel/random/boot_id",
    "proc/sys/kernel/osrelease",
    "proc/uptime",
];

/// The machine's files as an emulated machine.
pub(crate) fn of(root: &dyn Root) -> Emulator {
    let mut entries = Vec::new();
    for (folder, depth) in FOLDERS {
        gather(root, folder, depth, &mut entries);
    }
    for file in FILES {
        entries.extend(root.read(file).ok().map(|bytes| TreeEntry::File(file.to_owned(), bytes)));
    }
    Emulator::from_files("a copy", entries)
}

fn gather(root: &dyn Root, path: &str, depth: u32, entries: &mut Vec<TreeEntry>) {
    let Ok(names) = root.list(path) else { return };
    for name in names {
        let path = format!("{path}/{name}");
        match root.read(&path) {
            Ok(bytes) => entries.push(TreeEntry::File(path, bytes)),
            Err(_) if depth > 0 => gather(root, &path, depth - 1, entries),
            Err(_) => {}
        }
    }
}
