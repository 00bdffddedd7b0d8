//! A machine's files in memory: what a capture holds, and what the emulator brings to life.

use crate::root::{Access, Node, Root, sort_names};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Files, folders by implication, links and registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Content by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Folders that hold nothing.
    pub folders: BTreeSet<String>,
    /// Paths that stand for other paths, relative to their own folder as in sysfs.
    pub links: BTreeMap<String, String>,
    /// Registers by CPU and address.
    pub registers: BTreeMap<(u32, u32), u64>,
}

impl Tree {
    /// The path with every link on the way followed, to a depth that no sane tree reaches.
    pub fn resolve(&self, path: &str) -> String {
        let mut path = path.trim_matches('/').to_owned();
        for _ in 0..8 {
            // Every folder on the way may be a link.
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            let hit = ends.into_iter().find_map(|end| {
                let to = self.links.get(&path[..end])?;
                Some(join(&path[..end], to) + &path[end..])
            });
            match hit {
                Some(next) => path = next,
                None => break,
            }
        }
        path
    }

    /// The names below a folder, sorted; `None` where there is no such folder.
    pub fn list(&self, path: &str) -> Option<Vec<String>> {
        let path = self.resolve(path);
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let from = prefix.clone()..;
        let below = |key: &&String| key.starts_with(&prefix);
        let files = self.files.range(from.clone()).map(|(key, _)| key).take_while(below);
        let links = self.links.range(from.clone()).map(|(key, _)| key).take_while(below);
        let folders = self.folders.range(from).take_while(below);
        let name = |key: &String| key[prefix.len()..].split('/').next().unwrap_or_default().to_owned();
        let names: BTreeSet<String> = files.chain(links).chain(folders).map(name).collect();
        if names.is_empty() && !self.folders.contains(&path) {
            return None;
        }
        let mut names: Vec<String> = names.into_iter().filter(|n| !n.is_empty()).collect();
        sort_names(&mut names);
        Some(names)
    }

    /// Whether there is a register device for a CPU.
    pub fn has_registers(&self, cpu: u32) -> bool {
        self.registers.range((cpu, 0)..=(cpu, u32::MAX)).next().is_some()
    }
}

/// A link's target as a path from the top.
fn join(link: &str, to: &str) -> String {
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The CPU of `dev/cpu/N/msr`.
pub fn register_device(path: &str) -> Option<u32> {
    path.strip_prefix("dev/cpu/")?.strip_suffix("/msr")?.parse().ok()
}

/// A tree that is looked at and never changed: a capture.
pub struct TreeRoot {
    tree: Tree,
    name: String,
}

impl TreeRoot {
    /// Shows a tree under a name.
    pub fn new(tree: Tree, name: impl Into<String>) -> TreeRoot {
        TreeRoot { tree, name: name.into() }
    }

    /// What it shows.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }
}

enum OpenNode {
    File(Vec<u8>),
    Registers(BTreeMap<u32, u64>),
}

impl Node for OpenNode {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match self {
            OpenNode::File(bytes) => {
                let from = usize::try_from(offset).map_or(bytes.len(), |o| o.min(bytes.len()));
                let n = into.len().min(bytes.len() - from);
                into[..n].copy_from_slice(&bytes[from..from + n]);
                Ok(n)
            }
            OpenNode::Registers(values) => {
                let value = u32::try_from(offset).ok().and_then(|address| values.get(&address));
                let value = value.ok_or_else(|| io::Error::from_raw_os_error(libc::EIO))?;
                let n = into.len().min(8);
                into[..n].copy_from_slice(&value.to_le_bytes()[..n]);
                Ok(n)
            }
        }
    }

    fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EROFS))
    }
}

impl Root for TreeRoot {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        let path = self.tree.resolve(path);
        if access == Access::Write {
            return Err(io::Error::from_raw_os_error(libc::EROFS));
        }
        if let Some(cpu) = register_device(&path)
            && self.tree.has_registers(cpu)
        {
            let registers = self.tree.registers.range((cpu, 0)..=(cpu, u32::MAX));
            return Ok(Box::new(OpenNode::Registers(
                registers.map(|((_, address), value)| (*address, *value)).collect(),
            )));
        }
        match self.tree.files.get(&path) {
            Some(bytes) => Ok(Box::new(OpenNode::File(bytes.clone()))),
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.tree.list(path).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn describe(&self) -> String {
        self.name.clone()
    }
}
