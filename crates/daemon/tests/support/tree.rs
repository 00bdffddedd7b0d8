//! An emulated machine's files as a folder of the disk.

use std::path::Path;
use wattwise_emulator::TreeEntry;

/// Writes them. Links are relative, so that they stay within the folder.
pub(crate) fn write(name: &str, at: &Path) {
    let made = |path: &Path| std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    for entry in wattwise_emulator::named(name).expect("bundled").files() {
        match entry {
            TreeEntry::File(path, bytes) => {
                let path = at.join(path);
                made(&path);
                std::fs::write(path, bytes).expect("written");
            }
            TreeEntry::Link(path, to) => {
                let up = "../".repeat(path.matches('/').count());
                made(&at.join(&path));
                std::os::unix::fs::symlink(up + &to, at.join(path)).expect("made");
            }
        }
    }
}
