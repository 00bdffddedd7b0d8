//! The text for people: on standard output, or beside it where that has something else.

use super::{All, FinishedComparison, OutputsAsked, ResultSink, SINKS, SinkFlag, Takes};
use crate::args::output::OutputPath;
use crate::exit::{Failure, print};
use crate::show::answer::{self, ShownParts};
use crate::show::screen::{Screen, tell};
use crate::show::table::PolicyOrder;
use crate::show::{mix, summary};
use clap::{Args, Command, FromArgMatches};
use std::path::Path;

pub(super) static TEXT: SinkFlag = SinkFlag {
    name: "",
    takes: Takes::Text,
    help: "",
    open: |matches, asked| {
        let mut files = SINKS.iter().filter(|sink| sink.takes == Takes::File);
        let has_output = files.any(|sink| {
            matches.get_one::<OutputPath>(sink.name).is_some_and(|path| path.path() == Path::new("-"))
        });
        let screen = if has_output { Screen::Err } else { Screen::Out };
        let shown = ShownParts::from_arg_matches(matches).map_err(Failure::input)?;
        Ok(Box::new(TextSink { screen, asked: *asked, shown }))
    },
};

/// Its flags.
pub(super) fn augment(command: Command) -> Command {
    ShownParts::augment_args(command)
}

struct TextSink {
    screen: Screen,
    asked: OutputsAsked,
    shown: ShownParts,
}

impl TextSink {
    fn print(&self, text: &str) -> Result<(), Failure> {
        match self.screen {
            Screen::Out => print(text),
            Screen::Err => {
                tell(text);
                Ok(())
            }
        }
    }
}

impl ResultSink for TextSink {
    fn one(&mut self, done: &FinishedComparison<'_>) -> Result<(), Failure> {
        if self.asked.mix && !self.shown.all {
            return Ok(());
        }
        let order = if self.asked.scan { PolicyOrder::Asked } else { PolicyOrder::Best };
        let text = answer::comparison(done.comparison, self.screen.look(), order, self.shown);
        let apart = self.asked.several && matches!(self.screen, Screen::Out);
        self.print(&if apart { text + "\n" } else { text })
    }

    fn end(self: Box<Self>, all: Option<&All<'_>>) -> Result<(), Failure> {
        let Some(All::Set(set)) = all else { return Ok(()) };
        self.print(&match &set.mix {
            Some(mix) => mix::text(mix, &set.comparisons, self.screen.look(), self.shown.all),
            None => summary::text(set, self.screen.look()),
        })
    }
}
