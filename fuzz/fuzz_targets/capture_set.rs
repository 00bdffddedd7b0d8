//! From a captured machine to `set --dry-run`: any bytes as a capture, and an emulated machine in which any attributes
//! hold any bytes, give a plan or one line for every wish; seeds: lines of `NUMBER VALUE`, after the machine's number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattwise_control::set::plan::{Inventory, Setting, plan};
use wattwise_figure::setting::{IDLE_GOVERNOR, PROFILE};
use wattwise_figure::units::Speed;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::info::Info;
use wattwise_hw::root::Root;
use wattwise_hw::root::tree::{Tree, TreeRoot};

const MACHINES: [&str; 4] = ["core-i5-2gen", "hybrid-laptop", "amd-laptop", "arm-big-little"];

fuzz_target!(|bytes: &[u8]| {
    if let Ok((_, tree)) = wattwise_hw::capture::read(bytes) {
        dry_run(&TreeRoot::new(tree, "fuzz"));
    }
    let Some((machine, lines)) = bytes.split_first() else { return };
    let name = MACHINES[usize::from(*machine) % MACHINES.len()];
    let whole = wattwise_emulator::named(name).expect(name).snapshot();
    let names: Vec<&String> = whole.keys().collect();
    let mut tree = Tree { files: whole.clone(), ..Tree::default() };
    for line in lines.split(|b| *b == b'\n').take(64) {
        // A number of an attribute, and what it holds; without a value there is no such attribute.
        let mut words = line.splitn(2, |b| *b == b' ');
        let number = words.next().and_then(|n| std::str::from_utf8(n).ok()?.parse::<usize>().ok());
        let Some(name) = number.map(|n| names[n % names.len()]) else { continue };
        match words.next() {
            Some(value) => _ = tree.files.insert(name.clone(), value.to_vec()),
            None => _ = tree.files.remove(name),
        }
    }
    dry_run(&TreeRoot::new(tree, "fuzz"));
});

fn dry_run(root: &dyn Root) {
    let info = Info::read(root);
    serde_json::to_vec(&info).expect("an answer is JSON");
    let inventory = Inventory::read(root);
    let cpus: CpuSet = inventory.topology.present.iter().take(8).collect();
    let (half, fast) = (Speed::Percent(50.0), Speed::Percent(100.0));
    let wishes = [
        Setting::Online(false),
        Setting::DriverMode("passive".into()),
        Setting::Governor("powersave".into()),
        Setting::Limits(Some(half), Some(half)),
        Setting::Limits(None, Some(half)),
        Setting::Freq(fast),
        Setting::Epp("balance_power".into()),
        Setting::Epb("15".into()),
        Setting::Boost(false),
        Setting::CState("C1".into(), false),
        Setting::Latency(Some(1000)),
        Setting::Plain(&IDLE_GOVERNOR, "teo".into()),
        Setting::TState(50.0),
        Setting::PowerLimit { zone: None, constraint: None, power_uw: 1_000_000 },
        Setting::Uncore(Some(half), Some(fast)),
        Setting::Tunable("up_threshold".into(), "90".into()),
        Setting::Plain(&PROFILE, "low-power".into()),
    ];
    for wish in wishes {
        match plan(root, &inventory, &cpus, std::slice::from_ref(&wish)) {
            Ok(plan) => assert!(plan.steps.iter().all(|s| !s.change.value.contains('\n')), "{wish:?}"),
            Err(e) => assert!(!e.to_string().is_empty()),
        }
    }
}
