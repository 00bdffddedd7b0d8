//! What is shown of a sample: order, place, pause. No terminal here.

use super::Sort;
use std::cmp::Ordering;
use wattwise_figure::one_line;
use wattwise_live::top::sample::{CpuSample, Sample, TaskSample};

impl Sort {
    pub(super) fn next(self) -> Sort {
        match self {
            Sort::Cpu => Sort::Busy,
            Sort::Busy => Sort::Speed,
            Sort::Speed => Sort::Wakeups,
            Sort::Wakeups => Sort::Cpu,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Sort::Cpu => "number",
            Sort::Busy => "busy",
            Sort::Speed => "speed",
            Sort::Wakeups => "wake-ups",
        }
    }

    fn order(self, a: &CpuSample, b: &CpuSample) -> Ordering {
        let most = |x: Option<f64>, y: Option<f64>| y.unwrap_or(-1.0).total_cmp(&x.unwrap_or(-1.0));
        let by = match self {
            Sort::Cpu => Ordering::Equal,
            Sort::Busy => most(a.busy, b.busy),
            Sort::Speed => b.khz.cmp(&a.khz),
            Sort::Wakeups => most(a.wakeups, b.wakeups),
        };
        by.then(a.cpu.cmp(&b.cpu))
    }
}

/// How it is looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TopView {
    pub(super) sort: Sort,
    /// CPUs above the first one that is shown.
    pub(super) scroll: usize,
    /// The sample stands still.
    pub(super) paused: bool,
    /// The capture that is being written.
    pub(super) recording: Option<String>,
    /// A capture is shown.
    pub(super) playing: bool,
    /// It has no further moment.
    pub(super) ended: bool,
}

/// What is drawn: a sample in order, without anything that a terminal would act on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShownSample {
    pub(super) sample: Sample,
    pub(super) view: TopView,
}

impl TopView {
    /// A sample as this view shows it. Names come from strangers: programs name themselves.
    pub(super) fn shown(&self, sample: &Sample) -> ShownSample {
        let mut sample = sample.clone();
        sample.cpus.sort_by(|a, b| self.sort.order(a, b));
        sample.machine = one_line(&sample.machine);
        sample.energy = one_line(&sample.energy);
        let policy = &mut sample.policy;
        let texts = [&mut policy.driver, &mut policy.profile, &mut policy.idle_governor, &mut policy.why];
        texts.into_iter().flatten().for_each(|t| *t = one_line(t));
        policy.governors.iter_mut().chain(&mut policy.epps).for_each(|t| *t = one_line(t));
        sample.states.iter_mut().for_each(|s| *s = one_line(s));
        for TaskSample { name, .. } in &mut sample.tasks {
            *name = one_line(name);
        }
        let view = TopView { recording: self.recording.as_deref().map(one_line), ..self.clone() };
        ShownSample { sample, view }
    }
}
