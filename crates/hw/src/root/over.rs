//! A machine on which some files read otherwise.

use crate::root::{Access, Node, Root, sort_names};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Deref;

/// A root with other values, or with files more, for who reads it; writes go to what is underneath.
pub struct OverRoot<R> {
    under: R,
    values: BTreeMap<String, String>,
}

impl<R> OverRoot<R> {
    /// Puts values, by path, over a root.
    pub fn new(under: R, values: BTreeMap<String, String>) -> OverRoot<R> {
        OverRoot { under, values }
    }
}

impl<R> Root for OverRoot<R>
where
    R: Deref + Send + Sync,
    R::Target: Root,
{
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        match self.values.get(path) {
            Some(value) if access == Access::Read => {
                Ok(Box::new(OverText(format!("{value}\n").into_bytes())))
            }
            _ => self.under.open(path, access),
        }
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let below = |key: &String| {
            let rest = key.strip_prefix(path)?.strip_prefix('/')?;
            rest.split('/').next().map(str::to_owned)
        };
        let own: BTreeSet<String> = self.values.keys().filter_map(below).collect();
        let under = self.under.list(path);
        if own.is_empty() {
            return under;
        }
        let mut names: Vec<String> = own.into_iter().chain(under.into_iter().flatten()).collect();
        sort_names(&mut names);
        names.dedup();
        Ok(names)
    }
    fn describe(&self) -> String {
        self.under.describe()
    }
    fn is_this_machine(&self) -> bool {
        self.under.is_this_machine()
    }
}

struct OverText(Vec<u8>);

impl Node for OverText {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let n = into.len().min(self.0.len() - from);
        into[..n].copy_from_slice(&self.0[from..from + n]);
        Ok(n)
    }
    fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(rustix::io::Errno::ROFS.into())
    }
}
