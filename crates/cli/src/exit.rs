//! How a command ends: what it prints, and the exit code that says why it did not do its work.
//!
//! 0 done, 1 the work failed, 2 bad usage or input, 3 not possible on this machine. Where a command is run, its own; or a
//! shell's: 127 not found, 126 cannot be run, 128 + n ended by signal n. What was stopped by a signal (Ctrl-C: 130, SIGTERM:
//! 143) before it was done ends with 128 + n too, also where it printed what it had by then.

use wattwise_control::problem::Problem;

/// Why a command did not do its work, and the exit code that says so.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// One line: which file or flag, what was expected, what to do.
    pub(crate) message: String,
}

impl Failure {
    /// The work itself failed.
    pub(crate) fn work(e: impl std::fmt::Display) -> Failure {
        Failure { code: 1, message: e.to_string() }
    }
    /// Bad usage or bad input.
    pub(crate) fn input(e: impl std::fmt::Display) -> Failure {
        Failure { code: 2, message: e.to_string() }
    }
    /// The same, where a signal ended the work.
    pub(crate) fn by_signal(self, caught: Option<i32>) -> Failure {
        match caught {
            Some(signal) if self.code == 1 => Failure { code: 128 + signal as u8, ..self },
            _ => self,
        }
    }
    /// Not possible on this machine.
    pub(crate) fn impossible(e: impl std::fmt::Display) -> Failure {
        Failure { code: 3, message: e.to_string() }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        match problem {
            Problem::Input(_) => Failure::input(problem),
            Problem::Impossible(_) => Failure::impossible(problem),
            Problem::Failed(_) => Failure::work(problem),
        }
    }
}

/// What a command returns: its exit code.
pub(crate) type Outcome = Result<u8, Failure>;

pub(crate) use crate::show::screen::{print, print_json};

/// A result behind the name and number of its schema (`docs/schema`).
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Named<T> {
    schema: &'static str,
    #[serde(flatten)]
    result: T,
}

/// Prints a result as JSON that names its schema.
pub(crate) fn print_json_as(schema: &'static str, result: &impl serde::Serialize) -> Result<(), Failure> {
    print_json(&Named { schema, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_a_signal_ended_has_its_number() {
        let code = |failure: Failure, caught| failure.by_signal(caught).code;
        assert_eq!(code(Failure::work("it came"), Some(15)), 143);
        assert_eq!(code(Failure::work("it failed"), None), 1);
        assert_eq!(code(Failure::input("a slip"), Some(15)), 2);
    }
}
