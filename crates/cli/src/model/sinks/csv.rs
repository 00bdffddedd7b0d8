//! `--csv`: a row for each policy of each comparison.

use super::{All, ResultSink, SinkFlag, Takes};
use crate::exit::{Failure, print};
use crate::show::csv;

pub(super) static CSV: SinkFlag = SinkFlag {
    name: "csv",
    takes: Takes::Nothing,
    help: "Print the result as CSV, a row for each policy of each comparison; text that a spreadsheet would read as a formula begins with '",
    open: |_, _| Ok(Box::new(Csv)),
};

struct Csv;

impl ResultSink for Csv {
    fn end(self: Box<Self>, all: Option<&All<'_>>) -> Result<(), Failure> {
        match all {
            Some(All::One(comparison)) => print(&csv::comparisons(std::slice::from_ref(*comparison))?),
            Some(All::Set(set)) => print(&csv::comparisons(&set.comparisons)?),
            None => Ok(()),
        }
    }
}
