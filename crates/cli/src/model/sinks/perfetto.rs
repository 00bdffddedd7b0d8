//! `--perfetto`: what each CPU does under each policy, over time.

use super::{All, FinishedComparison, OutputsAsked, ResultSink, SinkFlag, Takes, opened};
use crate::args::output::written;
use crate::exit::Failure;
use crate::show::screen::note;
use wattwise_advice::watched::watch;
use wattwise_output::Output;
use wattwise_replay::export::Perfetto;
use wattwise_replay::spec::PolicySpec;

pub(super) static PERFETTO: SinkFlag = SinkFlag {
    name: "perfetto",
    takes: Takes::File,
    help: "Write a trace for ui.perfetto.dev: under each policy what each CPU runs, its C-states, its speed, and the power \
           ('-': standard output)",
    open: |matches, asked| {
        let to = opened(matches, "perfetto")?;
        Ok(Box::new(PerfettoTrace { name: to.name, trace: Perfetto::new(to.out), asked: *asked }))
    },
};

struct PerfettoTrace {
    name: String,
    trace: Perfetto<Output>,
    asked: OutputsAsked,
}

impl ResultSink for PerfettoTrace {
    fn one(&mut self, done: &FinishedComparison<'_>) -> Result<(), Failure> {
        let FinishedComparison { case, job, comparison, .. } = done;
        let named = |policy: &PolicySpec| case.policies.iter().any(|p| p.text == policy.text);
        let reference = Some(&case.reference).filter(|r| !named(r));
        for policy in reference.into_iter().chain(&case.policies) {
            let name = match self.asked.several {
                true => format!("{} ({} on {})", policy.text, comparison.workload.name, comparison.machine),
                false => policy.text.clone(),
            };
            let mut replay = self.trace.replay(&name, job.machine, job.workload);
            let end = watch(job, policy, comparison.window_s, &mut replay).map_err(Failure::work)?;
            replay.end_at(end.elapsed_ns, end.energy.total_j());
        }
        Ok(())
    }

    fn end(self: Box<Self>, _: Option<&All<'_>>) -> Result<(), Failure> {
        let name = self.name;
        let finished = self.trace.into_output().and_then(|(n, out)| out.finish().map(|()| n));
        let n = written(&name, finished)?;
        note!(
            "Perfetto trace written ({name}): {} replays, {} runs, {} stays in C-states, {} wake-ups, {} \
             changes of speed, {} values of power",
            n.replays,
            n.runs,
            n.stays,
            n.wakeups,
            n.speeds,
            n.powers
        );
        Ok(())
    }
}
