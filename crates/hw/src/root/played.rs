//! A capture whose series is played again: what moved on the machine moves once more, moment by moment.

use crate::root::tree::TreeRoot;
use crate::root::{Access, Node, Root};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use wattwise_figure::mistake::of_json_line;

/// What moves, as it stands at the moment, by path.
type Moving = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// One moment: s since the first, and which paths have which values from then on.
type Moment = (f64, Vec<(usize, String)>);

/// A capture in motion.
pub struct Played {
    still: TreeRoot,
    moving: Moving,
    paths: Vec<String>,
    moments: Vec<Moment>,
    next: std::sync::atomic::AtomicUsize,
}

impl Played {
    /// From a capture's tree and the lines of its series.
    ///
    /// # Errors
    /// A line that is none of a series. A series without a moment: nothing moves.
    pub(crate) fn new(still: TreeRoot, series: &[u8]) -> Result<Played, String> {
        let mut lines = series.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        let bad = |e: serde_json::Error| {
            format!("series.jsonl: {}; expected the series of a capture", of_json_line(&e.to_string()))
        };
        let paths: Vec<String> = match lines.next() {
            Some(first) => serde_json::from_slice(first).map_err(bad)?,
            None => Vec::new(),
        };
        let moments = lines.map(serde_json::from_slice).collect::<Result<Vec<Moment>, _>>().map_err(bad)?;
        let paths: Vec<String> = paths.iter().map(|p| still.tree().resolve(p)).collect();
        let known =
            |moment: &Moment| moment.0.is_finite() && moment.1.iter().all(|(at, _)| *at < paths.len());
        if !moments.iter().all(known) {
            return Err("series.jsonl: has a value of no path; expected the series of a capture".to_owned());
        }
        let played = Played {
            still,
            moving: Moving::default(),
            paths,
            moments,
            next: std::sync::atomic::AtomicUsize::new(0),
        };
        played.advance();
        Ok(played)
    }

    /// Whether anything moves.
    pub fn moves(&self) -> bool {
        self.moments.len() > 1
    }

    /// Goes on to the next moment: its time, s since the first. `None` after the last.
    pub fn advance(&self) -> Option<f64> {
        let at = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (time_s, changes) = self.moments.get(at)?;
        let mut moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, value) in changes {
            moving.insert(self.paths[*path].clone(), format!("{value}\n").into_bytes());
        }
        Some(*time_s)
    }
}

/// A file that moves, read as it stands.
struct Reading {
    path: String,
    moving: Moving,
}

impl Node for Reading {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = moving.get(&self.path).map_or(&[][..], Vec::as_slice);
        let from = usize::try_from(offset).map_or(bytes.len(), |o| o.min(bytes.len()));
        let n = into.len().min(bytes.len() - from);
        into[..n].copy_from_slice(&bytes[from..from + n]);
        Ok(n)
    }

    fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EROFS))
    }
}

impl Root for Played {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        let resolved = self.still.tree().resolve(path);
        let moves = self.moving.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&resolved);
        match moves && access == Access::Read {
            true => Ok(Box::new(Reading { path: resolved, moving: Arc::clone(&self.moving) })),
            false => self.still.open(path, access),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.still.list(path)
    }

    fn describe(&self) -> String {
        self.still.describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::text;
    use crate::root::tree::Tree;

    fn still() -> TreeRoot {
        let mut tree = Tree::default();
        tree.files.insert("sys/a/temp".into(), b"1\n".to_vec());
        tree.files.insert("sys/a/name".into(), b"x\n".to_vec());
        tree.links.insert("sys/b".into(), "a".into());
        TreeRoot::new(tree, "test")
    }

    #[test]
    fn what_moved_moves_again_by_every_path() {
        let series = b"[\"sys/b/temp\"]\n[0.0,[[0,\"5\"]]]\n[1.0,[]]\n[2.5,[[0,\"7\"]]]\n";
        let played = Played::new(still(), series).unwrap_or_else(|e| panic!("{e}"));
        let mut node = played.open("sys/a/temp", Access::Read).expect("there");
        let mut now = || {
            let mut page = [0; 8];
            let n = node.read_at(0, &mut page).expect("reads");
            String::from_utf8_lossy(&page[..n]).into_owned()
        };
        assert_eq!((now().as_str(), played.moves()), ("5\n", true));
        assert_eq!((played.advance(), now().as_str()), (Some(1.0), "5\n"));
        assert_eq!((played.advance(), now().as_str()), (Some(2.5), "7\n"));
        assert_eq!((played.advance(), now().as_str()), (None, "7\n"));
        assert_eq!(text(&played, "sys/b/name").as_deref(), Some("x"));
        assert!(played.open("sys/a/temp", Access::Write).is_err());
    }

    #[test]
    fn a_series_of_something_else_is_refused() {
        for series in [&b"[3]\n"[..], b"[\"a\"]\n[0.0,[[1,\"5\"]]]\n", b"[\"a\"]\n{}\n", b"\xff\n"] {
            assert!(Played::new(still(), series).is_err_and(|e| e.starts_with("series.jsonl:")));
        }
        assert!(!Played::new(still(), b"").expect("a still one").moves());
    }
}
