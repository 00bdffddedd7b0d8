//! A mask in force: taken charge of, changed, released; and what a killed holder left, released for it.

use crate::cores::check_mask;
use crate::cores::held as state;
use crate::cores::held::{Charge, HeldMask, Holder};
use crate::cores::mechanism;
use crate::cores::mechanism::{Cgroups, Mechanism, MechanismKind, Moved, Notes, Terms};
use crate::cores::steer;
use crate::cores::steer::Steering;
use crate::problem::Problem;
use crate::set::original::boot_id;
use std::path::{Path, PathBuf};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::Root;

/// How work is to be kept on few CPUs.
#[derive(Debug, Clone, Default)]
pub struct HoldOptions {
    /// By what; none is the best that there is.
    pub mechanism: Option<MechanismKind>,
    /// The cgroup below which work is confined; empty is the whole machine.
    pub within: PathBuf,
    /// Interrupts and unbound kernel work too.
    pub steer: bool,
    /// Pinned tasks too.
    pub pinned_too: bool,
}

/// A mask in force, while the value lives.
pub struct Force<'r> {
    root: &'r dyn Root,
    charge: Charge,
    state: HeldMask,
    mechanism: Box<dyn Mechanism + 'r>,
    steering: Option<Steering<'r>>,
    kept: CpuSet,
    /// Left in force on purpose, or released already.
    done: bool,
}

impl<'r> Force<'r> {
    /// Takes charge. What a killed process left is released first.
    ///
    /// # Errors
    /// Somebody else is in charge, or the machine has no way.
    pub fn begin(
        root: &'r dyn Root,
        folder: &'r Path,
        holder: Holder,
        options: &HoldOptions,
    ) -> Result<Force<'r>, Problem> {
        let in_charge = |state: Option<HeldMask>| match state.map(|s| s.holder) {
            Some(Holder::Process { pid, policy }) => format!("process {pid} keeps CPUs by '{policy}'"),
            _ => "another wattwise is changing the mask".to_owned(),
        };
        let Some(charge) = Charge::take(folder)? else {
            let who = in_charge(state::read(folder)?);
            return Err(Problem::Failed(format!("{who}; 'wattwise coreidle off' ends it")));
        };
        if let Some(found) = charge.found()? {
            match (&found.holder, &holder) {
                (Holder::User, Holder::Process { .. }) if found.boot_id == boot_id(root) => {
                    return Err(Problem::Failed(format!(
                        "CPUs {} are kept by 'wattwise coreidle set'; 'wattwise coreidle off' ends it",
                        found.kept
                    )));
                }
                _ => {
                    let left = release(root, folder, &charge, &found);
                    if !left.is_empty() {
                        return Err(Problem::Failed(left.join("; ")));
                    }
                }
            }
        }
        let cgroups = Cgroups::find(root);
        let kind = options.mechanism.map_or_else(|| cgroups.best(), Ok)?;
        let online = Topology::read(root).online;
        let terms = Terms {
            within: options.within.clone(),
            online: online.clone(),
            notes: Notes::default(),
            pinned_too: options.pinned_too,
        };
        let mechanism = mechanism::open(root, kind, &cgroups, terms)?;
        if holder == Holder::User && !mechanism.lasts() {
            return Err(Problem::Impossible(format!(
                "a {kind} lasts as long as its process: follow a policy with 'wattwise coreidle governor'"
            )));
        }
        let mut state = HeldMask::new(boot_id(root), holder, kind, options.within.clone());
        state.online = online.to_string();
        let steering = options.steer.then(|| Steering::new(root, folder));
        Ok(Force { root, charge, state, mechanism, steering, kept: online, done: false })
    }

    /// Keeps work on these CPUs, and takes up tasks that have come since.
    ///
    /// # Errors
    /// A mask that cannot be; what the kernel refuses.
    pub fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        if *kept != self.kept || self.state.kept.is_empty() {
            let mut topology = Topology::read(self.root);
            topology.online.extend(self.parked().iter());
            check_mask(kept, &topology)?;
            self.state.kept = kept.to_string();
            self.state.notes = self.mechanism.notes();
            self.charge.note(&self.state)?;
            if let Some(steering) = &mut self.steering {
                steering.to(kept).map_err(|e| Problem::Failed(e.to_string()))?;
            }
        }
        let moved = self.mechanism.keep(kept)?;
        if self.mechanism.notes() != self.state.notes {
            self.state.notes = self.mechanism.notes();
            self.charge.note(&self.state)?;
        }
        self.kept = kept.clone();
        Ok(moved)
    }

    /// CPUs that are offline because we took them there.
    pub fn parked(&self) -> CpuSet {
        match self.state.mechanism {
            MechanismKind::Hotplug => {
                CpuSet::parse(&self.state.online).unwrap_or_default().without(&self.kept)
            }
            _ => CpuSet::new(),
        }
    }

    /// By what.
    pub fn kind(&self) -> MechanismKind {
        self.state.mechanism
    }

    /// What can be steered and what cannot, if that was asked for.
    pub fn steering(&self) -> Option<&steer::Steerable> {
        self.steering.as_ref().map(Steering::what)
    }

    /// Leaves it in force beyond the end of this process.
    pub fn leave(mut self) {
        self.done = true;
        if let Some(steering) = self.steering.take() {
            steering.keep();
        }
    }

    /// Lets everything go. What could not be put back, one line each.
    pub fn release(&mut self) -> Vec<String> {
        self.done = true;
        let mut left = self.mechanism.release();
        if let Some(steering) = &mut self.steering {
            let restored = steering.release();
            left.extend(restored.failed.into_iter().map(|(what, why)| format!("{what}: {why}")));
        }
        if left.is_empty() {
            self.charge.clear();
        }
        left
    }
}

impl Drop for Force<'_> {
    fn drop(&mut self) {
        if !self.done {
            for line in self.release() {
                let line = wattwise_figure::one_line(&line);
                eprintln!("wattwise: {line}; 'wattwise coreidle off' tries again");
            }
        }
    }
}

/// Releases what a state says is in force, on behalf of its holder.
fn release(root: &dyn Root, folder: &Path, charge: &Charge, state: &HeldMask) -> Vec<String> {
    let mut left = Vec::new();
    // Another boot has none of it.
    if state.boot_id == boot_id(root) {
        match mechanism::open(root, state.mechanism, &Cgroups::find(root), state.terms()) {
            Ok(mut mechanism) => left.extend(mechanism.release()),
            // The group above went, and ours with it.
            Err(Problem::Input(_)) => {}
            Err(e) => left.push(e.to_string()),
        }
        left.extend(steer::put_back(root, folder));
    }
    if left.is_empty() {
        charge.clear();
    }
    left
}

/// What came of looking for something to release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// Nothing was in force.
    Nothing,
    /// This was, and is no more.
    State(Box<HeldMask>),
    /// A living process is in charge.
    Held(Option<u32>),
}

/// Releases what is in force and held by no living process; what the user set only if `users_too`.
///
/// # Errors
/// What could not be put back.
pub fn clean(root: &dyn Root, folder: &Path, users_too: bool) -> Result<Released, Problem> {
    let Some(state) = state::read(folder)? else { return Ok(Released::Nothing) };
    let Some(charge) = Charge::take(folder)? else {
        let pid = match state.holder {
            Holder::Process { pid, .. } => Some(pid),
            Holder::User => None,
        };
        return Ok(Released::Held(pid));
    };
    // It may have been released since we looked.
    let Some(state) = charge.found()? else { return Ok(Released::Nothing) };
    if state.holder == Holder::User && !users_too {
        return Ok(Released::Nothing);
    }
    let left = release(root, folder, &charge, &state);
    if left.is_empty() { Ok(Released::State(Box::new(state))) } else { Err(Problem::Failed(left.join("; "))) }
}
