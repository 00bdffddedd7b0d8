//! `--report`: one HTML file.

use super::{All, FinishedComparison, OutputsAsked, ResultSink, SinkFlag, Takes, opened};
use crate::args::output::OpenOutput;
use crate::exit::Failure;
use crate::show::screen::note;
use crate::show::summary;
use wattwise_advice::summary::ComparisonSet;
use wattwise_figure::counted;
use wattwise_page::Section;

pub(super) static REPORT: SinkFlag = SinkFlag {
    name: "report",
    takes: Takes::File,
    help: "Write a report: one HTML file that needs no network ('-': standard output)",
    open: |matches, asked| Ok(Box::new(Report { out: Some(opened(matches, "report")?), asked: *asked })),
};

struct Report {
    /// Until it is written.
    out: Option<OpenOutput>,
    asked: OutputsAsked,
}

impl Report {
    fn write(&mut self, page: &str) -> Result<(), Failure> {
        let Some(report) = self.out.take() else { return Ok(()) };
        let name = report.name.clone();
        report.write(page.as_bytes())?;
        note!("report written ({name})");
        Ok(())
    }
}

impl ResultSink for Report {
    fn one(&mut self, done: &FinishedComparison<'_>) -> Result<(), Failure> {
        match self.asked.several {
            true => Ok(()),
            false => self.write(&wattwise_report::compare_html(done.comparison, done.details, done.command)),
        }
    }

    fn end(mut self: Box<Self>, all: Option<&All<'_>>) -> Result<(), Failure> {
        match all {
            Some(All::Set(set)) => self.write(&report_of(set)),
            _ => Ok(()),
        }
    }
}

/// The page of several comparisons: what they come to, then each.
fn report_of(set: &ComparisonSet) -> String {
    let mut sections = match &set.mix {
        Some(mix) => wattwise_report::mix_sections(mix, &set.comparisons),
        None => vec![Section::Text { title: "In all".to_owned(), body: summary::answer(set) }],
    };
    sections.extend(set.comparisons.iter().flat_map(wattwise_report::compare_sections));
    let title = match &set.mix {
        Some(_) => format!("A mix of {}", counted(set.comparisons.len(), "workload")),
        None => summary::title(set),
    };
    wattwise_page::page("compare", &title, &sections)
}
