//! The record owns what is counted along the way, and the timeline. It answers nothing until the end, but when the
//! timeline's next bin is full. A watcher, where there is one, is told what happens as it happens.

mod timeline;
mod watch;

pub(crate) use timeline::Reading;
pub use watch::{Event, Waker, Watcher, Why};

use crate::outcome::Timeline;
use timeline::Recorder;
use watch::WatchedRun;
use wattwise_figure::Histogram;

/// Counts, latencies and the timeline.
#[derive(Default)]
pub(crate) struct Record<'a> {
    timeline: Option<Recorder>,
    /// Who is told what happens.
    pub(crate) watched: Option<Box<WatchedRun<'a>>>,
    /// Time from a task's becoming runnable to its running.
    pub(crate) wake_latency: Histogram,
    /// Wake-ups of tasks.
    pub(crate) wakeups: u64,
    /// C-state exits.
    pub(crate) idle_exits: u64,
    /// Tasks moved between CPUs.
    pub(crate) migrations: u64,
    /// Cycles of the workload's own work carried out.
    pub(crate) cycles: f64,
    /// Events handled.
    pub(crate) events: u64,
}

impl<'a> Record<'a> {
    /// Nothing yet; with `timeline` one for a run of `span_ns` on so many CPUs.
    pub(crate) fn new(timeline: bool, span_ns: u64, cpus: usize) -> Record<'a> {
        Record { timeline: timeline.then(|| Recorder::new(span_ns, cpus)), ..Record::default() }
    }

    /// With somebody who is told what happens on so many CPUs and domains.
    pub(crate) fn watched_by(
        mut self,
        watcher: Option<Box<dyn Watcher + 'a>>,
        cpus: usize,
        domains: usize,
    ) -> Record<'a> {
        self.watched = watcher.map(|w| Box::new(WatchedRun::new(w, cpus, domains)));
        self
    }

    /// When the present bin ends, where a timeline is kept.
    pub(crate) fn next_bin_ns(&self) -> Option<u64> {
        self.timeline.as_ref().map(Recorder::next_ns)
    }

    /// A bin is full; `read` reads a CPU's accounts.
    pub(crate) fn close_bin(&mut self, now: u64, joules: f64, read: impl Fn(usize) -> Reading) {
        if let Some(timeline) = &mut self.timeline {
            timeline.close_bin(now, joules, read);
        }
        if let Some(watched) = &mut self.watched {
            watched.energy(now, joules);
        }
    }

    /// The timeline so far, where one is kept.
    pub(crate) fn timeline(&self) -> Option<Timeline> {
        self.timeline.as_ref().map(Recorder::finish)
    }
}
