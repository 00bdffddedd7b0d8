//! `--json`: the result for programs.

use super::{All, ResultSink, SinkFlag, Takes};
use crate::exit::{Failure, print_json};

pub(super) static JSON: SinkFlag = SinkFlag {
    name: "json",
    takes: Takes::Nothing,
    help: "Print the result as JSON (schema wattwise-compare-3; of several comparisons wattwise-compare-set-1)",
    open: |_, _| Ok(Box::new(Json)),
};

struct Json;

impl ResultSink for Json {
    fn end(self: Box<Self>, all: Option<&All<'_>>) -> Result<(), Failure> {
        match all {
            Some(All::One(comparison)) => print_json(*comparison),
            Some(All::Set(set)) => print_json(*set),
            None => Ok(()),
        }
    }
}
