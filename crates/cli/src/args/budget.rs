//! `--budget` of what computes: how long it may take, once its input is read, and how large a replay may become.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use wattwise_figure::Budget;
use wattwise_figure::units::duration_ns;

/// A time for all that is computed, and limits on each replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CommandBudget {
    pub(crate) time: Option<Duration>,
    pub(crate) replay: Budget,
}

impl FromStr for CommandBudget {
    type Err = String;

    /// `2min,events=1e10`: what is not named keeps its default.
    fn from_str(text: &str) -> Result<CommandBudget, String> {
        if text.split(',').any(|part| part.trim().is_empty()) {
            return Err(format!("'{text}': expected no empty part"));
        }
        let (named, times): (Vec<&str>, Vec<&str>) = text.split(',').partition(|part| part.contains('='));
        let time = match times[..] {
            [] => None,
            [time] => match duration_ns(time.trim(), "") {
                Ok(0) => return Err(format!("'{time}': expected more than none")),
                Ok(ns) => Some(Duration::from_nanos(ns)),
                Err(_) => {
                    return Err(format!(
                        "'{time}': expected a time such as 2min, or NAME=NUMBER of {}",
                        Budget::help()
                    ));
                }
            },
            [one, other, ..] => return Err(format!("'{one},{other}': expected one time")),
        };
        let replay = if named.is_empty() { Budget::default() } else { named.join(",").parse()? };
        Ok(CommandBudget { time, replay })
    }
}

impl fmt::Display for CommandBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time {
            Some(time) => write!(f, "{}s,{}", time.as_secs_f64(), self.replay),
            None => self.replay.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_figure::budget::BudgetPart;

    #[test]
    fn a_time_and_sizes_in_any_order() {
        for text in ["90s,events=1e9", "events=1e9, 1.5min"] {
            let budget: CommandBudget = text.parse().expect(text);
            assert_eq!(budget.time, Some(Duration::from_secs(90)), "{text}");
            assert_eq!(budget.replay.most(BudgetPart::Events), 1_000_000_000, "{text}");
            assert_eq!(budget.to_string().parse(), Ok(budget));
        }
        assert_eq!("tasks=9".parse::<CommandBudget>().map(|b| b.time), Ok(None));
        for (wrong, because) in [
            ("", "no empty part"),
            ("1s,", "no empty part"),
            ("soon", "expected a time"),
            ("30", "expected a time"),
            ("0s", "more than none"),
            ("1s,2s", "one time"),
            ("1s,years=3", "expected NAME=NUMBER"),
        ] {
            assert!(wrong.parse::<CommandBudget>().is_err_and(|e| e.contains(because)), "{wrong}");
        }
    }
}
