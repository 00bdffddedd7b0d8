//! What is remembered over boots: the profile that was chosen last.
//!
//! A line in a folder that is ours alone (`/var/lib/wattwise`), replaced whole. A name that is no profile any more says nothing.

use crate::config::check_name;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use wattwise_control::private::PrivateFolder;

const FILE: &str = "profile";

/// The remembered profile.
#[derive(Debug, Clone)]
pub struct RememberedProfile {
    folder: PathBuf,
}

impl RememberedProfile {
    /// In a folder, which is made when something is remembered.
    pub fn new(folder: &Path) -> RememberedProfile {
        RememberedProfile { folder: folder.to_owned() }
    }

    /// What is remembered.
    pub fn profile(&self) -> Option<String> {
        let folder = PrivateFolder::open(&self.folder).ok()?;
        let mut text = String::new();
        let file = folder.file(FILE, rustix::fs::OFlags::RDONLY).ok()?;
        file.take(256).read_to_string(&mut text).ok()?;
        let name = text.trim();
        check_name(name).ok().map(|()| name.to_owned())
    }

    /// Remembers a profile; on disk when it returns.
    ///
    /// # Errors
    /// The folder cannot be written, or is not ours alone.
    pub fn remember(&self, name: &str) -> io::Result<()> {
        if self.profile().as_deref() == Some(name) {
            return Ok(());
        }
        let folder = PrivateFolder::make(&self.folder)?;
        folder.replace(FILE, format!("{name}\n").as_bytes())?;
        folder.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_remembered_and_nonsense_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = RememberedProfile::new(&folder.path().join("state"));
        assert_eq!(memory.profile(), None);
        memory.remember("power-saver").expect("written");
        assert_eq!(memory.profile().as_deref(), Some("power-saver"));
        let file = folder.path().join("state/profile");
        std::fs::write(file, "../x\n").expect("written");
        assert_eq!(memory.profile(), None);
    }
}
