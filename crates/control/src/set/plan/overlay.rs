//! The tree as it will be when the steps so far are made.

use std::collections::{BTreeMap, BTreeSet};
use wattwise_hw::root::{Root, text};
use wattwise_hw::rules;
use wattwise_hw::rules::AttributeView;

/// The tree as it will be when the steps so far are made.
pub(super) struct Overlay<'r> {
    pub(super) root: &'r dyn Root,
    pub(super) made: BTreeMap<String, String>,
    /// Folders of governors that are not in force yet.
    pub(super) coming: BTreeSet<String>,
    /// Attributes that a mode of the driver takes away.
    pub(super) hidden: BTreeSet<String>,
}

impl AttributeView for Overlay<'_> {
    fn text(&self, path: &str) -> Option<String> {
        if self.hidden.contains(path) {
            return None;
        }
        self.made.get(path).cloned().or_else(|| text(self.root, path))
    }
    fn list(&self, path: &str) -> Vec<String> {
        let governor = self.coming.get(path).and_then(|folder| folder.rsplit('/').next());
        if let Some(governor) = governor {
            return rules::tunables(governor).map(str::to_owned).collect();
        }
        let folder = format!("{path}/");
        let made = self.made.keys().filter_map(|p| p.strip_prefix(&folder)).filter(|n| !n.contains('/'));
        let mut names = self.root.list(path).unwrap_or_default();
        names.extend(made.map(str::to_owned));
        names.retain(|name| !self.hidden.contains(&format!("{folder}{name}")));
        names
    }
}
