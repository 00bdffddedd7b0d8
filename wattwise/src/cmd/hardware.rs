//! What the commands about hardware share: which machine, where the journal is.

use super::Failure;
use crate::hw::capture;
use crate::hw::emulator;
use crate::hw::root::{DirRoot, Root};
use std::path::{Path, PathBuf};

/// Which machine is meant.
#[derive(clap::Args)]
pub(super) struct RootArgs {
    /// Another machine than this one: a capture, a tree of files, or emulated:NAME
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
    /// Where changes are journalled [default: /run/wattwise; beside the tree for another root]
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

impl RootArgs {
    /// Opens it.
    pub(super) fn open(&self) -> Result<Box<dyn Root>, Failure> {
        let Some(root) = &self.root else { return Ok(Box::new(DirRoot::this_machine())) };
        if let Some(name) = root.strip_prefix("emulated:") {
            // Lives as long as this command: for looking, and for trying what `set` would do.
            let machine = emulator::named(name).map_err(|e| Failure::input(format!("--root {root}: {e}")))?;
            return Ok(Box::new(machine));
        }
        let path = Path::new(root);
        match std::fs::metadata(path) {
            Ok(m) if m.is_dir() => Ok(Box::new(DirRoot::new(path))),
            Ok(_) => capture::open(path)
                .map(|tree| Box::new(tree) as _)
                .map_err(|e| Failure::input(format!("--root {e}"))),
            Err(e) => Err(Failure::input(format!(
                "--root {root}: {e}; expected a folder, a capture made by 'wattwise capture', or emulated:NAME"
            ))),
        }
    }

    /// The folder of the journals for this root.
    pub(super) fn journal(&self) -> PathBuf {
        match (&self.journal, &self.root) {
            (Some(folder), _) => folder.clone(),
            (None, None) => PathBuf::from("/run/wattwise"),
            // Gone with this command, and its journal is nobody's business afterwards.
            (None, Some(root)) if root.starts_with("emulated:") => {
                std::env::temp_dir().join(format!("wattwise-{}", std::process::id()))
            }
            (None, Some(root)) => {
                let root = std::path::absolute(root).unwrap_or_else(|_| PathBuf::from(root));
                let mut name = root.file_name().map(|n| n.to_os_string()).unwrap_or_else(|| "root".into());
                name.push(".journal");
                root.with_file_name(name)
            }
        }
    }
}
