//! What wattwise recommends stays recommended once it is applied: an answer is no first step of a stair on which each round gives
//! another tenth of the speed away. More machines, states and works, in many minutes: the example `kept`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kept;

use kept::{Kept, kept};

/// Machines whose answers give time away where the limit counts from what is in force alone: at their default, with a raised minimum,
/// in passive mode; and where it does not count from what the first answer replaced, because that was faster than the default.
#[test]
fn what_was_applied_is_kept() {
    for (name, state, work) in [
        ("hybrid-laptop", "as it is", "build"),
        ("hybrid-laptop", "min=60%", "build"),
        ("hybrid-laptop", "epp=power", "build"),
        ("hybrid-laptop", "passive", "build"),
        ("hybrid-laptop", "rapl=15W", "build"),
        ("amd-laptop", "passive", "build"),
        ("amd-laptop", "max=30%", "build"),
        ("amd-laptop", "performance", "build"),
        ("amd-laptop", "performance min=50%", "build"),
        ("amd-laptop", "passive performance", "build"),
        ("amd-server", "max=60%", "nginx"),
        ("core-i5-2gen", "conservative", "build"),
        ("core-i5-2gen", "max=30%", "nginx"),
        ("skylake-server-active", "epp=power", "build"),
        ("skylake-server-active", "rapl=15W", "nginx"),
        ("arm-big-little", "min=60%", "build"),
        ("bc10", "powersave", "build"),
        ("vm-2cpu", "as it is", "build"),
    ] {
        match kept(wattwise_emulator::named(name).unwrap(), state, work, 16) {
            Kept::Yes => {}
            Kept::NotTaken => assert!(state == "as it is", "{name} does not take {state}"),
            Kept::No(why) => panic!("{name}: {state}: {work}: {why}"),
        }
    }
}

/// The captures that are bundled with tests, each as a machine that can be set.
#[test]
fn bundled_captures_keep_what_was_applied() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/captures");
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (_, tree) = wattwise_hw::capture::read(std::fs::File::open(&path).unwrap()).unwrap();
        for state in ["as it is", "max=60%", "performance"] {
            let machine = wattwise_emulator::Emulator::from_tree("a capture", &tree);
            let found = kept(machine, state, "build", 16);
            assert!(!matches!(found, Kept::No(_)), "{}: {state}: {found:?}", path.display());
            tried += 1;
        }
    }
    assert!(tried > 0);
}
