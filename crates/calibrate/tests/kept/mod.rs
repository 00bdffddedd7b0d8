//! A machine in which something is in force, an answer for it, the answer applied, and the machine asked again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareOptions, search_best};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Rule;
use wattwise_calibrate::estimate::estimate;
use wattwise_calibrate::gather::SeenMachine;
use wattwise_control::set::plan::{Inventory, plan};
use wattwise_emulator::Emulator;
use wattwise_figure::setting::Setting;
use wattwise_figure::units::Speed;
use wattwise_hw::capture;
use wattwise_hw::cpus::select::Selector;
use wattwise_hw::replaced;
use wattwise_hw::root::over::OverRoot;
use wattwise_hw::root::tree::TreeRoot;
use wattwise_model::machine::MachineModel;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::apply;
use wattwise_replay::cases::Case;
use wattwise_replay::defaults::{default_policies, standards};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

/// What somebody has set, by name.
pub(crate) fn state(name: &str) -> Vec<Setting> {
    let governor = |name: &str| Setting::Governor(name.into());
    let min = |percent| Setting::Limits(Some(Speed::Percent(percent)), None);
    let max = |percent| Setting::Limits(None, Some(Speed::Percent(percent)));
    let mode = |name: &str| Setting::DriverMode(name.into());
    match name {
        "as it is" => Vec::new(),
        "max=30%" => vec![max(30.0)],
        "max=60%" => vec![max(60.0)],
        "min=30%" => vec![min(30.0)],
        "min=60%" => vec![min(60.0)],
        "min=90%" => vec![min(90.0)],
        "rapl=15W" => vec![Setting::PowerLimit { zone: None, constraint: None, power_uw: 15_000_000 }],
        "noboost" => vec![Setting::Boost(false)],
        "epp=power" => vec![Setting::Epp("power".into())],
        "epp=performance" => vec![Setting::Epp("performance".into())],
        "passive" => vec![mode("passive")],
        "passive conservative" => vec![mode("passive"), governor("conservative")],
        "passive performance" => vec![mode("passive"), governor("performance")],
        "passive min=60%" => vec![mode("passive"), min(60.0)],
        "performance min=50%" => vec![governor("performance"), min(50.0)],
        name => vec![governor(name)],
    }
}

/// A machine, and where its changes are journalled.
pub(crate) struct Machine {
    pub(crate) root: Emulator,
    journal: tempfile::TempDir,
}

impl Machine {
    pub(crate) fn new(root: Emulator) -> Machine {
        Machine { root, journal: tempfile::tempdir().unwrap() }
    }

    /// Makes changes that stay. `None` where the machine does not take them.
    pub(crate) fn set(&self, settings: &[Setting]) -> Option<()> {
        let inventory = Inventory::read(&self.root);
        let cpus = Selector::default().resolve(&inventory.topology, false).ok()?;
        let plan = plan(&self.root, &inventory, &cpus, settings).ok()?;
        if plan.refused().is_some() {
            return None;
        }
        let journal: &Path = self.journal.path();
        if let Some(made) = plan.apply(&self.root, journal, "a test", &|| None).ok()? {
            made.keep();
        }
        Some(())
    }

    /// How many writes settings would still take.
    pub(crate) fn changes(&self, settings: &[Setting]) -> usize {
        let inventory = Inventory::read(&self.root);
        let cpus = Selector::default().resolve(&inventory.topology, false).unwrap();
        plan(&self.root, &inventory, &cpus, settings).unwrap().steps.len()
    }

    /// A capture of it, as a model.
    pub(crate) fn captured(&self) -> MachineModel {
        let note = std::fs::read_to_string(self.journal.path().join(replaced::NAME)).unwrap_or_default();
        let noted = OverRoot::new(&self.root, BTreeMap::from([(replaced::PATH.to_owned(), note)]));
        let (tree, _) = capture::snapshot(&noted, &capture::CaptureOptions::default());
        let seen = SeenMachine::read(&TreeRoot::new(tree, "a capture")).unwrap();
        library::parsed(&estimate(&seen, "a capture").text, "a capture").unwrap()
    }
}

/// What is best on a machine, as `compare` asks without being told any policy.
pub(crate) fn compared(machine: &MachineModel, work: &str, replicas: u64) -> Comparison {
    let workload = library::workload(work, &Default::default()).unwrap();
    let usual = default_policies(machine, System::find(&machine.system));
    let case = Case::new(&workload, machine.clone(), usual, None).unwrap();
    let job = ReplayJob {
        machine,
        workload: &workload,
        policies: &case.policies,
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: wattwise_figure::Budget::default(),
    };
    let apply = apply::on(machine);
    let standards = standards(machine);
    let options = CompareOptions {
        rule: Rule::default(),
        replicas,
        reference: &case.reference,
        standards: &standards,
        apply: &apply,
        done: &|_| {},
        stop: &AtomicBool::new(false),
    };
    search_best(&job, &options, 1).unwrap().0
}

/// How a round went on.
#[derive(Debug)]
pub(crate) enum Kept {
    /// What is in force is best, or what was applied is kept.
    Yes,
    /// The machine does not take what was in force before, or what is best on it.
    NotTaken,
    /// What was in force, what took its place, and what was to take its place in turn; the time and the energy of the last beside
    /// those of the one before.
    No(String),
}

/// Something in force, an answer, the answer applied, and asked again.
pub(crate) fn kept(root: Emulator, state_name: &str, work: &str, replicas: u64) -> Kept {
    let machine = Machine::new(root);
    if machine.set(&state(state_name)).is_none() {
        return Kept::NotTaken;
    }
    let model = machine.captured();
    let first = compared(&model, work, replicas);
    if first.answer.recommended == first.reference {
        return Kept::Yes;
    }
    let best = PolicySpec::parse(&first.answer.recommended).unwrap();
    let commands = apply::on(&model)(&best);
    let Some(settings) = commands.as_ref().ok().and_then(|c| c.settings()) else { return Kept::NotTaken };
    machine.set(settings).unwrap();
    let second = compared(&machine.captured(), work, replicas);
    let changed = machine.changes(settings);
    if second.answer.recommended == second.reference && changed == 0 {
        return Kept::Yes;
    }
    let figures = |c: &Comparison| {
        let row = c.results.iter().find(|r| r.policy == c.answer.recommended).unwrap();
        (row.uncertain.time_ratio.median, c.answer.against_reference.map_or(1.0, |a| a.ratio.median))
    };
    Kept::No(format!(
        "{} -> {} {:?}; {changed} changes; {} -> {} {:?}; {}",
        first.reference,
        first.answer.recommended,
        figures(&first),
        second.reference,
        second.answer.recommended,
        figures(&second),
        second.answer.text
    ))
}
