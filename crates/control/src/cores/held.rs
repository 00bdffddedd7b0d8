//! What is in force: one file that `status` reads and the next start cleans up by.
//!
//! `FOLDER/coreidle.json` says which mechanism keeps which CPUs, since when and for whom. It is written before the
//! first change and removed after the last. Who holds `FOLDER/coreidle.lock` is in charge; the kernel drops the lock
//! with its holder, so a state of a governor whose lock is free was left by a killed one.

use crate::cores::mechanism::{MechanismKind, Notes, Terms};
use crate::private::PrivateFolder;
use crate::problem::Problem;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use wattwise_hw::cpus::set::CpuSet;

const SCHEMA: &str = "wattwise.coreidle/1";
const FILE: &str = "coreidle.json";
const LOCK: &str = "coreidle.lock";

/// On whose behalf a mask is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Holder {
    /// `coreidle set`: until `coreidle off`.
    User,
    /// A process that changes it and releases it when it ends.
    Process {
        /// Which.
        pid: u32,
        /// The policy that it follows.
        policy: String,
    },
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldMask {
    schema: String,
    /// The boot, after which all is gone by itself.
    pub boot_id: String,
    /// For whom.
    pub holder: Holder,
    /// By what.
    pub mechanism: MechanismKind,
    /// The cgroup below which work is confined; empty is the whole machine.
    pub within: PathBuf,
    /// CPUs kept, as a list; what a governor changes later is seen in the kernel alone.
    pub kept: String,
    /// CPUs that were online before.
    pub online: String,
    /// What has to be put back beside the mechanism's own group.
    pub notes: Notes,
}

impl HeldMask {
    /// A state of this boot.
    pub fn new(boot_id: String, holder: Holder, mechanism: MechanismKind, within: PathBuf) -> HeldMask {
        HeldMask {
            schema: SCHEMA.to_owned(),
            boot_id,
            holder,
            mechanism,
            within,
            kept: String::new(),
            online: String::new(),
            notes: Notes::default(),
        }
    }

    /// What its mechanism has to know to be taken up again.
    pub fn terms(&self) -> Terms {
        Terms {
            within: self.within.clone(),
            online: CpuSet::parse(&self.online).unwrap_or_default(),
            notes: self.notes.clone(),
            pinned_too: false,
        }
    }
}

/// The right to change what is in force, for as long as the value lives.
pub struct Charge {
    lock: File,
    folder: PrivateFolder,
}

/// What is in force, if anything is.
///
/// # Errors
/// A file that is none of ours.
pub fn read(folder: &Path) -> Result<Option<HeldMask>, Problem> {
    match PrivateFolder::open(folder) {
        Ok(folder) => read_in(&folder),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Problem::of_place(folder, &e)),
    }
}

/// Whether a living process is in charge. Only looks: makes neither the folder nor the lock.
///
/// # Errors
/// A folder or a lock that is none of ours.
pub fn somebody_is_in_charge(folder: &Path) -> Result<bool, Problem> {
    let lock = PrivateFolder::open(folder).and_then(|folder| folder.file(LOCK, OFlags::RDONLY));
    match lock {
        Ok(lock) => Ok(matches!(lock.try_lock(), Err(TryLockError::WouldBlock))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Problem::of_place(&folder.join(LOCK), &e)),
    }
}

fn read_in(folder: &PrivateFolder) -> Result<Option<HeldMask>, Problem> {
    let path = folder.path().join(FILE);
    let read = folder.file(FILE, OFlags::RDONLY).and_then(std::io::read_to_string);
    let text = match read {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Problem::of_place(&path, &e)),
    };
    match serde_json::from_str::<HeldMask>(&text) {
        Ok(state) if state.schema == SCHEMA => Ok(Some(state)),
        Ok(state) => Err(Problem::Failed(format!(
            "{}: is of version '{}', not {SCHEMA}: made by another wattwise, which can end it",
            path.display(),
            state.schema
        ))),
        Err(e) => Err(Problem::Failed(format!("{}: {e}; expected what 'coreidle' writes", path.display()))),
    }
}

impl Charge {
    /// Takes charge; none if a living process has it.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn take(folder: &Path) -> Result<Option<Charge>, Problem> {
        let cannot = |e: std::io::Error| Problem::of_place(&folder.join(LOCK), &e);
        let private = PrivateFolder::make(folder).map_err(cannot)?;
        let lock = private.file(LOCK, OFlags::CREATE | OFlags::WRONLY).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Charge { lock, folder: private })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(cannot(e)),
        }
    }

    /// What an earlier one left in force.
    ///
    /// # Errors
    /// As [`read`].
    pub fn found(&self) -> Result<Option<HeldMask>, Problem> {
        read_in(&self.folder)
    }

    /// Writes what is in force: all or nothing.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn note(&self, state: &HeldMask) -> Result<(), Problem> {
        let text = serde_json::to_vec(state).map_err(|e| Problem::Failed(e.to_string()))?;
        self.folder.replace(FILE, &text).map_err(|e| Problem::of_place(&self.folder.path().join(FILE), &e))
    }

    /// Nothing is in force.
    pub fn clear(&self) {
        _ = self.folder.remove(FILE);
    }
}

impl Drop for Charge {
    /// Unlocked, not only closed: a child that is just being started has what is open here, and with it the lock, until
    /// it is a program of its own.
    fn drop(&mut self) {
        _ = self.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_in_charge_and_a_killed_one_leaves_its_state() -> Result<(), Problem> {
        let folder = tempfile::tempdir().map_err(|e| Problem::Failed(e.to_string()))?;
        assert!(!somebody_is_in_charge(folder.path())?);
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0, "looking makes nothing");
        let charge = Charge::take(folder.path())?.expect("free");
        assert!(Charge::take(folder.path())?.is_none());
        assert!(somebody_is_in_charge(folder.path())?);
        let holder = Holder::Process { pid: 7, policy: "lpmd".into() };
        let state = HeldMask::new("boot".into(), holder, MechanismKind::Group, PathBuf::new());
        charge.note(&state)?;
        drop(charge);
        assert!(!somebody_is_in_charge(folder.path())?);
        let next = Charge::take(folder.path())?.expect("free again");
        assert_eq!(next.found()?, Some(state));
        next.clear();
        assert_eq!(next.found()?, None);
        std::fs::write(folder.path().join("coreidle.json"), "{}").expect("written");
        assert!(read(folder.path()).is_err());
        Ok(())
    }
}
