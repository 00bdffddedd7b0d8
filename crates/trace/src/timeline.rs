//! Between a reader and what is made of its events: passes them on as the plan says, and looks for what the next one must say.

use crate::bounds::MAX_TID;
use crate::events::{Comms, Event, EventKind, Sink, TraceRead};
use crate::plan::{Away, Cut, PlanNeeds, ReadPlan};
use std::collections::HashMap;

/// Two steps of a suspend lie closer together, unless the machine was off between them.
const MOST_BETWEEN_STEPS_NS: u64 = 1_000_000_000;

/// A machine that runs has some wake-up within a minute: the kernel's own writeback alone looks every few seconds. Beyond a day
/// it is a damaged time.
const SILENCE_NS: std::ops::RangeInclusive<u64> = 60_000_000_000..=24 * 3600 * 1_000_000_000;

/// Clocks differ by less for other reasons: frequency steering is under 500 ppm.
const MOST_DRIFT_NS: u64 = 1_000_000_000;

/// The stretch between two events without another.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    from: u64,
    to: u64,
}

impl Gap {
    fn ns(self) -> u64 {
        self.to - self.from
    }
}

/// Passes events on.
pub(crate) struct Timeline<'a, S: Sink> {
    plan: &'a ReadPlan,
    /// The plan changes no event.
    plain: bool,
    sink: &'a mut S,
    /// The recording's own times of the first and the last event.
    first: Option<u64>,
    last: u64,
    /// A silence that is not yet known to be one: a single event ahead is a damaged time.
    silent: Option<Gap>,
    /// Whether the last event was a step of a suspend.
    step: bool,
    /// Since when the machine is suspended, and the first event after that.
    asleep: Option<(u64, Option<u64>)>,
    /// The trace's clock and the monotonic one at the last mark that tells both, and the widest gap since.
    sync: Option<(u64, u64)>,
    widest: Gap,
    cuts: Vec<Cut>,
    /// Which CPUs have written.
    cpus: Vec<bool>,
    /// Threads that were seen on a CPU, by their id; and the wake-ups of others, by where they were to run.
    ran: Vec<bool>,
    waited: HashMap<u32, (u16, u32)>,
    /// When the last CPU began that had been asked to run something before and wrote nothing of it.
    late: Option<u64>,
    switches: u64,
}

impl<'a, S: Sink> Timeline<'a, S> {
    pub(crate) fn new(plan: &'a ReadPlan, sink: &'a mut S) -> Self {
        Timeline {
            plan,
            plain: *plan == ReadPlan { buffer: plan.buffer, sorted: plan.sorted, ..ReadPlan::default() },
            sink,
            first: None,
            last: 0,
            silent: None,
            step: false,
            asleep: None,
            sync: None,
            widest: Gap::default(),
            cuts: Vec::new(),
            cpus: Vec::new(),
            ran: Vec::new(),
            waited: HashMap::new(),
            late: None,
            switches: 0,
        }
    }

    /// From the first event to the last, as recorded.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.first.unwrap_or(0), self.last)
    }

    /// What the next reading is to be done by: this reading's own plan where nothing is left to do.
    pub(crate) fn next(mut self, found: &PlanNeeds, cpus: Option<u16>) -> ReadPlan {
        let mut plan = ReadPlan { buffer: self.plan.buffer, ..ReadPlan::default() };
        if self.switches == 0 && plan.buffer + 1 < found.buffers {
            plan.buffer += 1;
            return plan;
        }
        plan.sorted = self.plan.sorted || found.disordered;
        if plan.sorted && !self.plan.sorted {
            // What comes of times can only be seen when they are in order.
            return plan;
        }
        let from = found.covered_from.max(self.late.filter(|_| found.unsure));
        if from.is_some() || found.covered_to.is_some() {
            plan.covered = Some((from.unwrap_or(0), found.covered_to.unwrap_or(u64::MAX)));
        }
        // Where tasks are woken again and again and never seen to run, the CPU was at work and is not in the file.
        let unseen = |cpu: u16| self.cpus.get(usize::from(cpu)) != Some(&true);
        let missing = self.waited.values().filter(|&&(cpu, times)| times > 1 && unseen(cpu));
        plan.missing = missing.map(|(cpu, _)| *cpu).min();
        plan.currents.clone_from(&found.currents);
        plan.numbers.clone_from(&found.numbers);
        let seen: Vec<u16> = (0..self.cpus.len() as u16).filter(|cpu| self.cpus[usize::from(*cpu)]).collect();
        if self.cpus.len() > seen.len() && cpus.is_none_or(|n| usize::from(n) < self.cpus.len()) {
            plan.cpus = seen;
        }
        self.woke_unseen();
        self.cuts.sort_by_key(|cut| (cut.from, cut.to));
        for cut in self.cuts {
            // A suspend that both its events and a clock tell is one.
            match plan.cuts.last_mut() {
                Some(last) if cut.from < last.to => last.to = last.to.max(cut.to),
                _ => plan.cuts.push(cut),
            }
        }
        plan
    }

    fn cut(&mut self, gap: Gap, why: Away) {
        if gap.ns() > 0 {
            self.cuts.push(Cut { from: gap.from, to: gap.to, why });
        }
    }

    /// A suspend whose end was not recorded: it was over by the next event.
    fn woke_unseen(&mut self) {
        if let Some((from, Some(to))) = self.asleep.take() {
            self.cut(Gap { from, to }, Away::Suspended);
        }
    }

    /// Looks at an event's time and place.
    fn look(&mut self, event: &Event) {
        let at = event.time_ns.max(self.last);
        let gap = Gap { from: if self.first.is_some() { self.last } else { at }, to: at };
        if let Some(silent) = self.silent.take().filter(|_| event.time_ns >= self.last) {
            self.cut(silent, Away::Silent);
        }
        let is_step = matches!(event.kind, EventKind::SuspendResume { .. });
        match event.kind {
            EventKind::SuspendResume { suspended: Some(true) } => {
                self.woke_unseen();
                self.asleep = Some((at, None));
            }
            // Without its beginning it can only have begun after the event before it.
            EventKind::SuspendResume { suspended: Some(false) } => {
                let from = self.asleep.take().map_or(gap.from, |(since, _)| since);
                self.cut(Gap { from, to: at }, Away::Suspended);
            }
            // In a suspend to idle there may be events, up to its end.
            _ if self.asleep.is_some() => {
                if let Some((_, next)) = &mut self.asleep {
                    next.get_or_insert(at);
                }
            }
            // Which step it is cannot be read, or the innermost were not recorded.
            _ if is_step && self.step && gap.ns() > MOST_BETWEEN_STEPS_NS => self.cut(gap, Away::Suspended),
            _ if SILENCE_NS.contains(&gap.ns()) => self.silent = Some(gap),
            _ => {}
        }
        if gap.ns() > self.widest.ns() {
            self.widest = gap;
        }
        self.step = is_step;
        self.first = self.first.or(Some(at));
        self.last = at;
        self.saw(event.cpu, at);
        match event.kind {
            EventKind::CpuIdle { cpu, .. } => self.saw(cpu, at),
            EventKind::Switch(s) => [s.prev_tid, s.next_tid].into_iter().for_each(|tid| self.runs(tid)),
            // After the covered time a CPU's events may be missing for another reason.
            EventKind::Waking(t)
                if self.ran.get(t.tid as usize) != Some(&true)
                    && self.plan.covered.is_none_or(|(_, to)| at <= to) =>
            {
                let (cpu, times) = self.waited.entry(t.tid).or_default();
                (*cpu, *times) = (t.cpu, *times + 1);
            }
            _ => {}
        }
        self.switches += u64::from(matches!(event.kind, EventKind::Switch(_)));
    }

    fn saw(&mut self, cpu: u16, at: u64) {
        let n = usize::from(cpu);
        if self.cpus.len() <= n {
            self.cpus.resize(n + 1, false);
        }
        if std::mem::replace(&mut self.cpus[n], true) {
            return;
        }
        // Who is woken a second time has run before: on a CPU of which nothing was kept.
        if self.waited.values().any(|&(on, times)| on == cpu && times > 1) {
            self.late = self.late.max(Some(at));
        }
    }

    fn runs(&mut self, tid: u32) {
        let n = tid as usize;
        if self.ran.len() <= n && tid < MAX_TID {
            self.ran.resize((n + 1).next_multiple_of(4096), false);
        }
        if let Some(ran) = self.ran.get_mut(n)
            && !std::mem::replace(ran, true)
        {
            self.waited.remove(&tid);
        }
    }

    /// The monotonic clock stands still in a suspend; a trace's may go on.
    fn clocks(&mut self, at: u64, monotonic: u64) {
        if let Some((at_before, before)) = self.sync.replace((at, monotonic)) {
            let away = at.saturating_sub(at_before).saturating_sub(monotonic.saturating_sub(before));
            if monotonic >= before && away > MOST_DRIFT_NS {
                let Gap { from, to } = self.widest;
                self.silent = None;
                self.cut(Gap { from, to: to.min(from.saturating_add(away)) }, Away::Suspended);
            }
        }
        self.widest = Gap { from: at, to: at };
    }

    /// The event as the sink is to see it.
    fn planned(&self, event: &Event) -> Option<Event> {
        let mut event = *event;
        let number = |cpu: u16| {
            let at = self.plan.cpus.binary_search(&cpu);
            if self.plan.cpus.is_empty() { cpu } else { at.map_or(0, |n| n as u16) }
        };
        if let Some((from, to)) = self.plan.covered
            && !event.kind.is_side()
            && !(from..=to).contains(&event.time_ns)
        {
            // Who started whom is of use, whenever it was.
            let EventKind::Fork { parent, child, .. } = event.kind else { return None };
            event.kind = EventKind::Parent { parent, child, pid: 0 };
            event.time_ns = 0;
        }
        // At time 0 stands what is older than the recording.
        if event.time_ns > 0 {
            event.time_ns = self.plan.time(event.time_ns);
        }
        event.cpu = number(event.cpu);
        match &mut event.kind {
            EventKind::CpuIdle { cpu, .. }
            | EventKind::CpuFrequency { cpu, .. }
            | EventKind::Migrate { to: cpu, .. } => {
                *cpu = number(*cpu);
            }
            EventKind::Waking(t) | EventKind::Wakeup(t) | EventKind::WakeupNew(t) => t.cpu = number(t.cpu),
            _ => {}
        }
        Some(event)
    }
}

impl<S: Sink> Sink for Timeline<'_, S> {
    fn header(&mut self, read: &TraceRead) {
        if self.plan.cpus.is_empty() {
            return self.sink.header(read);
        }
        let mut read = read.clone();
        read.notes.cpu_khz.retain_mut(|(cpu, _)| match self.plan.cpus.binary_search(cpu) {
            Ok(n) => {
                *cpu = n as u16;
                true
            }
            Err(_) => false,
        });
        self.sink.header(&read);
    }

    #[inline]
    fn event(&mut self, event: &Event, comms: &Comms) {
        match event.kind {
            EventKind::ClockSync { monotonic_ns } => return self.clocks(event.time_ns, monotonic_ns),
            _ if event.kind.is_side() => {}
            EventKind::Lost(_) => {}
            _ => self.look(event),
        }
        if self.plain {
            return self.sink.event(event, comms);
        }
        if let Some(event) = self.planned(event) {
            self.sink.event(&event, comms);
        }
    }
}
