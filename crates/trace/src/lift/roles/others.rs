//! Other programs' share of the CPU time: that of all tasks but the work's, the kernel's and the recorder's. One figure, for `trace`,
//! `import` and `compare`.

use super::{Cast, RECORDERS, Roles, TaskNode};
use crate::events::{Comm, Comms};
use std::collections::BTreeMap;
use wattwise_model::workload::Strangers;

/// Other programs' share of the CPU time from which on the figures of the work are those of a crowded machine.
const CROWDED: f64 = 0.1;

/// Says how much of a recording other programs had, where that is much.
pub(super) fn crowded(others: &Strangers) -> Option<String> {
    let s = |ns: u64| ns as f64 * 1e-9;
    let (name, most) = others.greatest.as_ref().filter(|_| others.share() > CROWDED)?;
    let name = if name.is_empty() { "a program without a name in the recording" } else { name };
    Some(format!(
        "Other programs had {:.1} % of the CPU time ({:.3} of {:.3} s), most of it {name} ({:.3} s): the work waited for them, and \
         would take less on a quiet machine; --only-foreground leaves them out.",
        others.share() * 100.0,
        s(others.busy_ns),
        s(others.all_ns),
        s(*most),
    ))
}

impl Roles<'_> {
    /// The recorder's own tasks: its process, which started the command, and what it started besides under a recorder's name. Where
    /// no command is known, all that have such a name. Another program of that name is as much a stranger as any.
    pub(super) fn recorder(&self, names: &[Comm], comms: &Comms) -> Vec<bool> {
        let named = |task: usize| RECORDERS.contains(&comms.name(names[task]));
        let Some(command) = self.command else { return (0..self.kin.len()).map(named).collect() };
        let Some(parent) = self.kin[command.task as usize].parent else {
            return (0..self.kin.len()).map(named).collect();
        };
        let process = match parent {
            TaskNode::Task(t) => self.kin[t as usize].pid,
            TaskNode::Tid(t) => self.old.get(&t).map_or(0, |o| o.pid),
        };
        let of_process = |node: TaskNode| match node {
            TaskNode::Task(t) => parent == node || (process > 0 && self.kin[t as usize].pid == process),
            TaskNode::Tid(t) => {
                parent == node || (process > 0 && self.old.get(&t).is_some_and(|o| o.pid == process))
            }
        };
        let started = self.with_descendants(of_process);
        let is = |(t, started): (usize, bool)| started && (named(t) || of_process(TaskNode::Task(t as u32)));
        started.into_iter().enumerate().map(is).collect()
    }

    /// Other programs' share of the CPU time: that of all tasks but the work's, the kernel's and the recorder's.
    pub(super) fn strangers(&self, cast: &Cast, names: &[Comm], comms: &Comms) -> Strangers {
        let mut strangers = Strangers::default();
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        let of_others =
            cast.fates.iter().zip(&cast.recorder).map(|(fate, recorder)| fate.stranger && !recorder);
        for ((kin, of_others), comm) in self.kin.iter().zip(of_others).zip(names) {
            strangers.all_ns = strangers.all_ns.saturating_add(kin.busy_ns);
            let name = comms.name(*comm);
            if of_others {
                strangers.busy_ns = strangers.busy_ns.saturating_add(kin.busy_ns);
                let sum = by_name.entry(name).or_default();
                *sum = sum.saturating_add(kin.busy_ns);
            }
        }
        // Of equals the first by name.
        let greatest = by_name.into_iter().rev().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0);
        strangers.greatest = greatest.map(|(name, ns)| (name.to_owned(), ns));
        strangers
    }
}
