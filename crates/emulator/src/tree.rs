//! The emulated machine's files: an arena of folders, attributes and links.
//!
//! A file keeps its number for good, so that something opened stays the same file; one that has
//! been unplugged is kept aside and answers ENODEV, as sysfs does (fs/kernfs/file.c,
//! `kernfs_get_active`).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// One of the files of a mounted machine's console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Console {
    Load,
    PassNs,
    Times,
    Changes,
}

/// A file's number.
pub(crate) type Id = u32;

/// The folder at the top.
pub(crate) const TOP: Id = 0;

/// A counter or reading that is made when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveAttribute {
    /// A policy's speed as the hardware gives it, or as the governor last set it.
    Speed {
        policy: u32,
    },
    TimeInState {
        policy: u32,
    },
    TotalTrans {
        policy: u32,
    },
    TransTable {
        policy: u32,
    },
    IdleUsage {
        cpu: u32,
        state: u32,
    },
    IdleTime {
        cpu: u32,
        state: u32,
    },
    IdleAbove {
        cpu: u32,
        state: u32,
    },
    IdleBelow {
        cpu: u32,
        state: u32,
    },
    IdleRejected {
        cpu: u32,
        state: u32,
    },
    Energy {
        zone: u32,
    },
    BatteryNow {
        battery: u32,
    },
    BatteryPower {
        battery: u32,
    },
    BatteryCurrent {
        battery: u32,
    },
    BatteryStatus {
        battery: u32,
    },
    BatteryCapacity {
        battery: u32,
    },
    Mains,
    Temperature {
        package: u32,
    },
    ProcStat,
    CpuInfo,
    Uptime,
    Registers {
        cpu: u32,
    },
    /// A file that no machine has.
    Console(Console),
}

#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    Folder(BTreeMap<String, Id>),
    Text(Vec<u8>),
    Live(LiveAttribute),
    /// A link, as its target's path from the top.
    Link(String),
}

#[derive(Debug, Clone)]
pub(crate) struct TreeFile {
    pub(crate) kind: NodeKind,
    /// In its folder, or in the one that it was taken out of.
    name: String,
    pub(crate) parent: Id,
    pub(crate) writable: bool,
    /// Times it was opened.
    pub(crate) opens: u64,
    /// Whether it hangs in the tree. What was unplugged does not.
    pub(crate) attached: bool,
}

/// The tree.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    files: Vec<TreeFile>,
    /// Paths that were found with links followed. What is asked of a machine is asked again and again; whatever takes a name away,
    /// or leads one elsewhere, forgets them all.
    found: RefCell<HashMap<String, Id>>,
}

/// As deep as links may lead, so that a circle ends.
const MOST_LINKS: usize = 16;
/// Paths that are remembered: more than a machine has files. Strangers may ask for one file under many.
const MOST_FOUND: usize = 1 << 14;

impl Tree {
    pub(crate) fn new() -> Tree {
        let top = TreeFile {
            kind: NodeKind::Folder(BTreeMap::new()),
            name: String::new(),
            parent: TOP,
            writable: false,
            opens: 0,
            attached: true,
        };
        Tree { files: vec![top], found: RefCell::default() }
    }

    pub(crate) fn file(&self, id: Id) -> Option<&TreeFile> {
        self.files.get(id as usize)
    }

    pub(crate) fn file_mut(&mut self, id: Id) -> Option<&mut TreeFile> {
        self.files.get_mut(id as usize)
    }

    pub(crate) fn names(&self, id: Id) -> Option<&BTreeMap<String, Id>> {
        match self.file(id).map(|f| &f.kind) {
            Some(NodeKind::Folder(names)) => Some(names),
            _ => None,
        }
    }

    /// Finds a path; a link at its end is followed only when `follow`.
    pub(crate) fn find(&self, path: &str, follow: bool) -> Option<Id> {
        if !follow {
            return self.walk(TOP, path, false, 0);
        }
        if let Some(&id) = self.found.borrow().get(path) {
            return Some(id);
        }
        let id = self.walk(TOP, path, true, 0)?;
        let mut found = self.found.borrow_mut();
        if found.len() >= MOST_FOUND {
            found.clear();
        }
        found.insert(path.to_owned(), id);
        Some(id)
    }

    /// The child of a folder, links not followed.
    pub(crate) fn child(&self, folder: Id, name: &str) -> Option<Id> {
        self.names(folder)?.get(name).copied()
    }

    fn walk(&self, from: Id, path: &str, follow: bool, links: usize) -> Option<Id> {
        let mut at = from;
        let mut parts = path.split('/').filter(|p| !p.is_empty() && *p != ".").peekable();
        while let Some(part) = parts.next() {
            if part == ".." {
                at = self.file(at)?.parent;
                continue;
            }
            let next = self.child(at, part)?;
            at = match &self.file(next)?.kind {
                NodeKind::Link(to) if follow || parts.peek().is_some() => {
                    if links >= MOST_LINKS {
                        return None;
                    }
                    self.walk(TOP, to, true, links + 1)?
                }
                _ => next,
            };
        }
        Some(at)
    }

    /// The path of a file from the top.
    pub(crate) fn path(&self, id: Id) -> String {
        let mut parts = Vec::new();
        let mut at = id;
        while at != TOP && parts.len() < 64 {
            let Some(file) = self.file(at) else { break };
            parts.push(file.name.as_str());
            at = file.parent;
        }
        parts.reverse();
        parts.join("/")
    }

    fn add(&mut self, parent: Id, name: &str, kind: NodeKind) -> Id {
        let id = self.files.len() as Id;
        let name = name.to_owned();
        self.files.push(TreeFile {
            kind,
            name: name.clone(),
            parent,
            writable: false,
            opens: 0,
            attached: true,
        });
        let replaced = match self.files.get_mut(parent as usize) {
            Some(TreeFile { kind: NodeKind::Folder(names), .. }) => names.insert(name, id).is_some(),
            _ => false,
        };
        if replaced {
            self.found.get_mut().clear();
        }
        id
    }

    /// The folder of this path, made with those above it. Something else in its place is replaced.
    pub(crate) fn folder(&mut self, path: &str) -> Id {
        let mut at = TOP;
        for part in path.split('/').filter(|p| !p.is_empty()) {
            at = match self.child(at, part) {
                Some(id) if self.names(id).is_some() => id,
                Some(id) => match self.file(id).map(|f| f.kind.clone()) {
                    Some(NodeKind::Link(to)) if self.find(&to, true).is_some() => {
                        self.find(&to, true).unwrap_or(id)
                    }
                    _ => self.add(at, part, NodeKind::Folder(BTreeMap::new())),
                },
                None => self.add(at, part, NodeKind::Folder(BTreeMap::new())),
            };
        }
        at
    }

    /// Adds or replaces a file of any kind.
    pub(crate) fn put(&mut self, path: &str, kind: NodeKind) -> Id {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.folder(folder);
        match self.child(parent, name) {
            Some(id) => {
                let leads = |kind: &NodeKind| matches!(kind, NodeKind::Folder(_) | NodeKind::Link(_));
                let mut leads_elsewhere = leads(&kind);
                if let Some(file) = self.file_mut(id) {
                    leads_elsewhere |= leads(&file.kind);
                    file.kind = kind;
                }
                if leads_elsewhere {
                    self.found.get_mut().clear();
                }
                id
            }
            None => self.add(parent, name, kind),
        }
    }

    /// An attribute with a line of text.
    pub(crate) fn text(&mut self, path: &str, value: impl std::fmt::Display) -> Id {
        self.put(path, NodeKind::Text(format!("{value}\n").into_bytes()))
    }

    pub(crate) fn link(&mut self, path: &str, to: &str) -> Id {
        self.put(path, NodeKind::Link(to.to_owned()))
    }

    /// Takes a name out of its folder. What hangs below stays together and can be put back.
    pub(crate) fn detach(&mut self, path: &str) -> Option<Id> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.find(folder, true)?;
        let id = match self.file_mut(parent).map(|f| &mut f.kind) {
            Some(NodeKind::Folder(names)) => names.remove(name)?,
            _ => return None,
        };
        self.found.get_mut().clear();
        self.mark(id, false);
        Some(id)
    }

    /// Puts a file back that was taken out.
    pub(crate) fn attach(&mut self, path: &str, id: Id) {
        self.found.get_mut().clear();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.folder(folder);
        if let Some(TreeFile { kind: NodeKind::Folder(names), .. }) = self.file_mut(parent) {
            names.insert(name.to_owned(), id);
        }
        if let Some(file) = self.file_mut(id) {
            file.parent = parent;
            name.clone_into(&mut file.name);
        }
        self.mark(id, true);
    }

    fn mark(&mut self, id: Id, attached: bool) {
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            if let Some(names) = self.names(id) {
                todo.extend(names.values().copied());
            }
            if let Some(file) = self.file_mut(id) {
                file.attached = attached;
            }
        }
    }

    /// Every file below a folder with its path, in order; links are not followed.
    pub(crate) fn below(&self, path: &str) -> Vec<(String, Id)> {
        let mut found = Vec::new();
        if let Some(id) = self.find(path, true) {
            self.gather(path.trim_matches('/'), id, &mut found);
        }
        found
    }

    fn gather(&self, path: &str, id: Id, found: &mut Vec<(String, Id)>) {
        match self.names(id) {
            Some(names) => {
                for (name, id) in names {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                    self.gather(&path, *id, found);
                }
            }
            None => found.push((path.to_owned(), id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is done to the tree, a path is found where a walk finds it.
    #[test]
    fn what_was_found_is_found_anew_after_a_change() {
        let mut tree = Tree::new();
        let paths = ["a/x", "a/b/y", "l/x", "l/b/y", "a//b/./y", "a", "l", "m", "n/y"];
        let look = |tree: &Tree, what: &str| {
            for follow in [true, false, true] {
                for path in paths {
                    assert_eq!(tree.find(path, follow), tree.walk(TOP, path, follow, 0), "{what}: {path}");
                }
            }
        };
        tree.text("a/x", 1);
        let y = tree.text("a/b/y", 2);
        tree.link("l", "a");
        look(&tree, "made");
        tree.text("a/x", 3);
        look(&tree, "written");
        tree.link("l", "a/b");
        look(&tree, "linked elsewhere");
        let folder = tree.detach("a/b").expect("there");
        assert_eq!(tree.find("a/b/y", true), None);
        look(&tree, "taken out");
        tree.attach("n", folder);
        assert_eq!(tree.find("n/y", true), Some(y));
        look(&tree, "put back elsewhere");
        tree.link("l", "n");
        look(&tree, "linked to it");
        tree.text("l", 4);
        look(&tree, "a file in place of a link");
        tree.link("n", "a");
        look(&tree, "a link in place of a folder");
        tree.text("m", 5);
        look(&tree, "a file");
        tree.text("m/k", 6);
        look(&tree, "a folder in place of a file");
        let taken = tree.detach("a/x").expect("there");
        tree.text("a/x", 7);
        look(&tree, "another file of its name");
        tree.attach("a/x", taken);
        look(&tree, "the first one again");
    }
}
