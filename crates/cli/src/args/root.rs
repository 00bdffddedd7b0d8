//! What the commands about hardware share: which machine, where the journal is.

use crate::exit::Failure;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use wattwise_hw::capture;
use wattwise_hw::root::{DirRoot, Root};
use wattwise_output::Scratch;

/// Which machine is meant.
#[derive(clap::Args, Default)]
pub(crate) struct RootArgs {
    /// Another machine than this one: a capture, a tree of files, or emulated:NAME
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
    /// Where changes are journalled [default: /run/wattwise; beside the tree for another root]
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
    /// An emulated machine is gone with the command, and so is its journal.
    #[arg(skip)]
    passing: OnceCell<Scratch>,
}

/// Opens a machine: this one, or another as `flag` names it.
pub(crate) fn open(root: Option<&str>, flag: &str) -> Result<Box<dyn Root>, Failure> {
    let Some(root) = root else { return Ok(Box::new(DirRoot::this_machine())) };
    if let Some(name) = root.strip_prefix("emulated:") {
        // Lives as long as this command: for looking, and for trying what `set` would do.
        let machine =
            wattwise_emulator::named(name).map_err(|e| Failure::input(format!("{flag} {root}: {e}")))?;
        return Ok(Box::new(machine));
    }
    let path = Path::new(root);
    match std::fs::metadata(path) {
        Ok(m) if m.is_dir() => match DirRoot::open(path) {
            Ok(tree) => Ok(Box::new(tree)),
            Err(e) => Err(Failure::input(format!("{flag} {root}: {e}"))),
        },
        Ok(_) => capture::open(path)
            .map(|tree| Box::new(tree) as _)
            .map_err(|e| Failure::input(format!("{flag} {e}"))),
        Err(e) => Err(Failure::input(format!(
            "{flag} {root}: {e}; expected a folder, a capture made by 'wattwise capture', or emulated:NAME"
        ))),
    }
}

impl RootArgs {
    /// The emulated machine, where one is named.
    pub(crate) fn emulated(&self) -> Result<Option<wattwise_emulator::Emulator>, Failure> {
        let name = self.root.as_deref().and_then(|root| root.strip_prefix("emulated:"));
        let machine =
            name.map(|n| wattwise_emulator::named(n).map_err(|e| Failure::input(format!("--root: {e}"))));
        machine.transpose()
    }

    /// Opens it.
    pub(crate) fn open(&self) -> Result<Box<dyn Root>, Failure> {
        open(self.root.as_deref(), "--root")
    }

    /// Whether the machine ends with the command, and with it all that was changed.
    pub(crate) fn is_passing(&self) -> bool {
        self.journal.is_none() && self.root.as_ref().is_some_and(|root| root.starts_with("emulated:"))
    }

    /// The folder of the journals for this root.
    pub(crate) fn journal(&self) -> Result<PathBuf, Failure> {
        Ok(match (&self.journal, &self.root) {
            (Some(folder), _) => folder.clone(),
            (None, None) => PathBuf::from("/run/wattwise"),
            (None, Some(root)) if root.starts_with("emulated:") => match self.passing.get() {
                Some(folder) => folder.path().to_owned(),
                None => {
                    let folder = Scratch::new().map_err(|e| {
                        Failure::work(format!("no folder for an emulated machine's journal: {e}; set TMPDIR"))
                    })?;
                    self.passing.get_or_init(|| folder).path().to_owned()
                }
            },
            (None, Some(root)) => {
                let root = std::path::absolute(root).unwrap_or_else(|_| PathBuf::from(root));
                let mut name = root.file_name().map(|n| n.to_os_string()).unwrap_or_else(|| "root".into());
                name.push(".journal");
                root.with_file_name(name)
            }
        })
    }
}
