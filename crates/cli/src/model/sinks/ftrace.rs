//! `--ftrace`: what a Linux kernel would have recorded.

use super::{All, FinishedComparison, ResultSink, SinkFlag, Takes, opened};
use crate::args::output::{OpenOutput, written};
use crate::exit::Failure;
use crate::show::screen::note;
use wattwise_advice::watched::watch;
use wattwise_replay::export::Ftrace;

pub(super) static FTRACE: SinkFlag = SinkFlag {
    name: "ftrace",
    takes: Takes::File,
    help: "Write what a Linux kernel would have recorded under the one policy that is named, as ftrace text ('-': standard \
           output)",
    open: |matches, asked| {
        if asked.several || asked.policies != 1 {
            return Err(Failure::input("--ftrace: expected one workload, one machine and one --policy"));
        }
        Ok(Box::new(FtraceText { target: Some(opened(matches, "ftrace")?) }))
    },
};

struct FtraceText {
    target: Option<OpenOutput>,
}

impl ResultSink for FtraceText {
    fn one(&mut self, done: &FinishedComparison<'_>) -> Result<(), Failure> {
        let Some(target) = self.target.take() else { return Ok(()) };
        let job = done.job;
        let mut trace = Ftrace::new(target.out, job.machine, job.workload);
        watch(job, &job.policies[0], done.comparison.window_s, &mut trace).map_err(Failure::work)?;
        let finished = trace.into_output().and_then(|(events, out)| out.finish().map(|()| events));
        let events = written(&target.name, finished)?;
        note!("ftrace text written ({}): {events} events", target.name);
        Ok(())
    }

    fn end(self: Box<Self>, _: Option<&All<'_>>) -> Result<(), Failure> {
        Ok(())
    }
}
