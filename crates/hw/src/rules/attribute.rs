//! A row of the table: an attribute, where it is, what it takes.

use super::ask::{Ask, TakenWrite};
use super::refusal::Refusal;

/// A row of the table.
pub struct Attribute {
    /// Where it is. A `*` after a name stands for a number (`cpu*`, `intel-rapl:*`), a folder `*`
    /// for any one folder.
    pub pattern: &'static str,
    /// Other places of the same attribute.
    pub also: &'static [&'static str],
    /// What it does.
    pub what: &'static str,
    /// The unit of what is written; empty for words.
    pub unit: &'static str,
    /// What it takes, in words.
    pub values: &'static str,
    /// What the kernel refuses.
    pub refusals: &'static [Refusal],
    /// Whether it can only be read; every write is refused.
    pub read_only: bool,
    pub(super) decide: fn(&Ask) -> Result<TakenWrite, Refusal>,
}

impl Attribute {
    /// Whether this row is about `path`.
    pub fn covers(&self, path: &str) -> bool {
        let path = path.trim_start_matches('/');
        std::iter::once(&self.pattern).chain(self.also).any(|p| matches(p, path))
    }
}

impl std::fmt::Debug for Attribute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attribute").field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    // A `*` is a folder's name, and these are none.
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return false;
    }
    let mut pattern = pattern.split('/');
    let mut path = path.split('/');
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(p), Some(s)) if p == "*" || segment(p, s) => {}
            _ => return false,
        }
    }
}

/// One folder's name; a `*` is a number, or numbers with `:` between.
fn segment(pattern: &str, name: &str) -> bool {
    let Some((stem, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(tail) = name.strip_prefix(stem) else { return false };
    let end = tail.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(tail.len());
    end > 0 && segment(rest, &tail[end..])
}
