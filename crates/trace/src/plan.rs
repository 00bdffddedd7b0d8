//! What of a recording is used, and how: what only a reading of the whole can tell.
//!
//! A recording is read once as it is. Where that shows that it has to be read in another way (it is out of order, the machine was
//! suspended, its rings were overwritten), it is read again by a plan of that, and the first reading's results are dropped. Sound
//! recordings, which are most, are read once.
//!
//! | found at the first reading | in the plan of the next |
//! |---|---|
//! | events that go back in time | they are sorted |
//! | rings that were overwritten, a file that is cut short | only what all CPUs cover |
//! | `suspend_resume: machine_suspend`; a clock that ran on beside the monotonic one; a minute without a word of any CPU | that time is cut out |
//! | CPUs that wrote nothing, between others that did, on a machine that has fewer | CPUs are numbered without holes |
//! | numbers of tasks as another PID namespace has them | who is on a CPU is taken from the switches |
//! | a ring buffer without a switch, beside another | that other |

use std::collections::BTreeMap;

/// How a recording is to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadPlan {
    /// Its events are sorted before anything sees them.
    pub(crate) sorted: bool,
    /// Before and after this not all CPUs are covered.
    pub(crate) covered: Option<(u64, u64)>,
    /// A CPU of which nothing is recorded, though it was at work.
    pub(crate) missing: Option<u16>,
    /// Time that is taken out, in order, apart from each other.
    pub(crate) cuts: Vec<Cut>,
    /// The CPUs, where their numbers have holes that are not to be kept.
    pub(crate) cpus: Vec<u16>,
    /// Who was on each CPU at first, where the heads of events do not tell it.
    pub(crate) currents: Vec<(u16, u32)>,
    /// What the kernel calls the threads that the file calls otherwise, for numbers of another PID namespace than the kernel's.
    pub(crate) numbers: BTreeMap<u32, u32>,
    /// Which of several ring buffers.
    pub(crate) buffer: usize,
}

/// Why time is no time of the work's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Away {
    /// The machine was suspended: its own events say so, or two of its clocks.
    Suspended,
    /// Nothing was recorded.
    Silent,
}

/// A stretch of time on the recording's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) why: Away,
}

/// What a reader finds that asks for a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanNeeds {
    pub(crate) disordered: bool,
    pub(crate) covered_from: Option<u64>,
    pub(crate) covered_to: Option<u64>,
    pub(crate) currents: Vec<(u16, u32)>,
    pub(crate) numbers: BTreeMap<u32, u32>,
    /// Rings may have been overwritten without a sign of it in the file.
    pub(crate) unsure: bool,
    /// Ring buffers of the file.
    pub(crate) buffers: usize,
}

/// The kernel's number of a thread that the file calls otherwise; `None` where it is not known.
pub(crate) fn kernels(numbers: &BTreeMap<u32, u32>, tid: u32) -> Option<u32> {
    if numbers.is_empty() { Some(tid) } else { numbers.get(&tid).copied() }
}

impl ReadPlan {
    /// A time of the recording's, without what is cut out before it.
    #[inline]
    pub(crate) fn time(&self, time: u64) -> u64 {
        let before = self.cuts.iter().take_while(|cut| cut.from < time);
        time - before.map(|cut| cut.to.min(time) - cut.from).sum::<u64>()
    }

    /// So much was cut out for this reason, in so many pieces.
    pub(crate) fn away(&self, why: Away) -> (u64, usize) {
        let cuts = self.cuts.iter().filter(|cut| cut.why == why);
        cuts.fold((0, 0), |(ns, n), cut| (ns + (cut.to - cut.from), n + 1))
    }

    /// Whether enough is left of a recording of this span: else why not.
    pub(crate) fn is_enough(&self, span: (u64, u64)) -> Result<(), String> {
        if let Some((from, to)) = self.covered {
            let (begin, end) = span;
            let (kept, whole) = (to.min(end).saturating_sub(from.max(begin)), end.saturating_sub(begin));
            // A hundredth is chance: nothing of the work can be told from it.
            if kept <= whole / 100 {
                return Err(format!(
                    "not all CPUs are recorded all the time (rings were overwritten, or the file is cut short), and all cover only {} of {}",
                    length(kept),
                    length(whole)
                ));
            }
        }
        match self.missing {
            Some(cpu) => Err(format!("nothing of CPU {cpu} is recorded, where tasks were woken")),
            None => Ok(()),
        }
    }

    /// What is to be said of it, a sentence each. `span` is that of the whole recording.
    pub(crate) fn warnings(&self, span: (u64, u64)) -> Vec<String> {
        let mut all = Vec::new();
        if let Some((from, to)) = self.covered {
            let (begin, end) = span;
            let (kept, whole) = (to.min(end).saturating_sub(from.max(begin)), end.saturating_sub(begin));
            let (why, remedy) = match from > begin {
                true => ("rings were overwritten, or the file is cut short", "; a larger buffer keeps more"),
                false => ("the file is cut short", ""),
            };
            all.push(format!(
                "Not all CPUs are recorded all the time ({why}): {} of {} are used, which all cover{remedy}.",
                length(kept),
                length(whole)
            ));
        }
        for (why, what) in [
            (Away::Suspended, "The machine was suspended"),
            (
                Away::Silent,
                "Nothing at all was recorded for more than a minute, as in a suspend or a pause of the recording,",
            ),
        ] {
            let (ns, n) = self.away(why);
            if n > 0 {
                let times = if n == 1 { "once".to_owned() } else { format!("{n} times") };
                all.push(format!("{what} {times}, {} in all; that time is taken out.", length(ns)));
            }
        }
        if !self.cpus.is_empty() {
            let cpus: Vec<String> = self.cpus.iter().map(u16::to_string).collect();
            all.push(format!(
                "CPUs {} were recorded and count as 0 to {}; others were off, or are not in the recording.",
                cpus.join(", "),
                self.cpus.len() - 1
            ));
        }
        if !self.currents.is_empty() {
            all.push(
                "The text shows tasks by name alone, or by the numbers of a PID namespace; who was on a CPU is taken from its switches.".into(),
            );
        }
        all
    }
}

/// A length of time for people.
fn length(ns: u64) -> String {
    let s = ns as f64 * 1e-9;
    match ns / 1_000_000_000 {
        0..120 => format!("{s:.3} s"),
        whole => format!("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_where_a_cut_begins() {
        let cut = |from, to| Cut { from, to, why: Away::Suspended };
        let plan = ReadPlan { cuts: vec![cut(100, 400), cut(500, 501)], ..ReadPlan::default() };
        let times: Vec<u64> = [0, 100, 250, 400, 450, 500, 501, 600].map(|t| plan.time(t)).to_vec();
        assert_eq!(times, [0, 100, 100, 100, 150, 200, 200, 299]);
        assert_eq!(plan.away(Away::Suspended), (301, 2));
        assert_eq!(plan.away(Away::Silent), (0, 0));
    }
}
