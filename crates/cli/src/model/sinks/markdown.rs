//! `--markdown`: tables for issues and wikis.

use super::{All, ResultSink, SinkFlag, Takes};
use crate::exit::{Failure, print};
use crate::show::markdown;

pub(super) static MARKDOWN: SinkFlag = SinkFlag {
    name: "markdown",
    takes: Takes::Nothing,
    help: "Print the result as Markdown tables",
    open: |_, _| Ok(Box::new(Markdown)),
};

struct Markdown;

impl ResultSink for Markdown {
    fn end(self: Box<Self>, all: Option<&All<'_>>) -> Result<(), Failure> {
        match all {
            Some(All::One(comparison)) => print(&markdown::comparison(comparison)),
            Some(All::Set(set)) => print(&markdown::set(set)),
            None => Ok(()),
        }
    }
}
