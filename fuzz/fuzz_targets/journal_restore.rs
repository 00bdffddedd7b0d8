//! From a journal to `restore`: any bytes in a folder of journals are refused in one line, or put back on an emulated machine
//! what the rules know and nothing else; seeds: a journal as wattwise writes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::os::unix::fs::PermissionsExt;
use wattwise_control::set::journal::{self, OpenJournal};
use wattwise_control::set::original::put_back_all;
use wattwise_hw::root::tree::register_device;
use wattwise_hw::rules;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    // Two of them, where the input has a form feed.
    for (number, text) in bytes.splitn(2, |b| *b == 0x0c).enumerate() {
        let file = folder.path().join(format!("{:06}.jsonl", number + 1));
        std::fs::write(&file, text).expect("writable");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("ours");
    }
    let machine = wattwise_emulator::named("core-i5-2gen").expect("a machine");
    let listing = journal::list(folder.path()).expect("a folder of journals");
    for (_, why) in &listing.unreadable {
        assert!(!why.contains('\n'), "{why}");
    }
    let all = put_back_all(&machine, listing.journals.iter().map(OpenJournal::layer));
    for (found, restored) in listing.journals.into_iter().filter(|f| !f.held).zip(&all) {
        found.finish(restored).expect("writable");
    }
    for (path, _) in machine.writes() {
        let known = rules::attribute(&path).is_some_and(|a| !a.read_only);
        assert!(known || register_device(&path).is_some(), "{path} was written");
    }
});
