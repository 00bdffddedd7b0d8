//! Which CPUs may be read without waking them.
//!
//! The kernel reads a register by an interrupt to the CPU that owns it. A CPU in a deep state then
//! wakes, burns some millijoules, and stays shallow for a while: a meter that polls registers keeps
//! the machine from the very states it wants to see. So every repeated read says [`Wake::No`] with a
//! judge, and a CPU that idles is left out of that sample. Counters lose nothing: they go on, and the
//! next difference spans the gap.
//!
//! [`Awake`] is such a judge from `proc/stat`, which costs no interrupt: a CPU is awake if it has run
//! something since the last look, or if it is the one that we run on.

use crate::cpus::proc_stat::{Stat, Ticks, whole};
use crate::root::{Access, Node, Root};
use std::collections::BTreeMap;
use std::io;

/// Whether a read may wake a CPU that idles.
#[derive(Clone, Copy)]
pub enum Wake<'a> {
    /// Yes: a single look, or a change that was asked for.
    Yes,
    /// No: reads only CPUs of which this says that they are awake.
    No(&'a dyn Fn(u32) -> bool),
}

/// Who is awake, from `proc/stat`. The kernel counts there in ticks (usually 10 ms): looks that are
/// closer together than that find nobody.
pub struct Awake {
    stat: Box<dyn Node>,
    us: Option<Box<dyn Node>>,
    bytes: Vec<u8>,
    busy: BTreeMap<u32, (u64, bool)>,
    running_on: Option<u32>,
}

impl Awake {
    /// Opens what is read and takes the first look, after which only our own CPU counts as awake.
    ///
    /// # Errors
    /// Those of opening and reading `proc/stat`. A capture without `proc/thread-self/stat` is none.
    pub fn new(root: &dyn Root) -> io::Result<Awake> {
        let mut awake = Awake {
            stat: root.open("proc/stat", Access::Read)?,
            us: root.open("proc/thread-self/stat", Access::Read).ok(),
            bytes: vec![0; 4096],
            busy: BTreeMap::new(),
            running_on: None,
        };
        awake.look()?;
        Ok(awake)
    }

    /// Takes another look.
    ///
    /// # Errors
    /// Those of reading `proc/stat`.
    pub fn look(&mut self) -> io::Result<()> {
        let text = whole(&mut *self.stat, &mut self.bytes)?;
        for cpu in self.busy.values_mut() {
            // One that is gone from the list is offline: surely not awake.
            cpu.1 = false;
        }
        for Ticks { cpu, busy, .. } in Stat::parse(&text).cpus {
            let first = !self.busy.contains_key(&cpu);
            let entry = self.busy.entry(cpu).or_insert((busy, false));
            *entry = (busy, !first && entry.0 != busy);
        }
        self.running_on = match &mut self.us {
            // Field 39; the second one, the name, may hold spaces and brackets.
            Some(node) => whole(&mut **node, &mut self.bytes)?
                .rsplit_once(')')
                .and_then(|(_, rest)| rest.split_whitespace().nth(36)?.parse().ok()),
            None => None,
        };
        Ok(())
    }

    /// Whether the CPU was awake at the last look.
    pub fn is_awake(&self, cpu: u32) -> bool {
        self.running_on == Some(cpu) || self.busy.get(&cpu).is_some_and(|(_, awake)| *awake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::DirRoot;

    #[test]
    fn a_cpu_is_awake_that_ran_or_that_we_run_on() {
        let folder = tempfile::tempdir().unwrap();
        let stat = |text: &str| std::fs::write(folder.path().join("proc/stat"), text).unwrap();
        std::fs::create_dir_all(folder.path().join("proc/thread-self")).unwrap();
        let fields = format!("7 (a ) b) S {} 3 0", vec!["0"; 35].join(" "));
        std::fs::write(folder.path().join("proc/thread-self/stat"), fields).unwrap();
        stat("cpu  9 9 9 9 9\ncpu0 1 0 0 50 0 0 0 0\ncpu1 1 0 0 50 0 0 0 0\ncpu3 1 0 0 9 0 0 0 0\nintr 5\n");
        let mut awake = Awake::new(&DirRoot::new(folder.path())).unwrap();
        assert_eq!([0, 1, 2, 3].map(|c| awake.is_awake(c)), [false, false, false, true]);
        stat("cpu  9 9 9 9 9\ncpu0 1 0 0 90 7 0 0 0\ncpu1 1 0 0 50 0 0 1 0\n");
        awake.look().unwrap();
        assert_eq!([0, 1, 2, 3].map(|c| awake.is_awake(c)), [false, true, false, true]);
    }

    #[test]
    fn on_this_machine_somebody_is_awake() {
        let root = DirRoot::this_machine();
        let awake = Awake::new(&root).unwrap();
        assert!((0..8192).any(|cpu| awake.is_awake(cpu)), "we run somewhere");
    }
}
