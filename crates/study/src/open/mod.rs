//! What the studies left open, tried on the models of their machines.
//!
//! A question's answer is a number with an interval: the least and the greatest over draws of what the model does not know (start
//! phases, seeds, ranges of guessed figures). None of it was published, so none of it counts in a score.

pub(crate) mod coreidle;

use serde::Serialize;
use wattwise_page::{Section, Table};

/// A question that a study's author left open.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Open {
    /// The question, and where the study asks it.
    pub question: &'static str,
    /// What was run, and over what the interval goes; without an answer, why there is none.
    pub tried: String,
    /// The answer's unit.
    pub unit: &'static str,
    /// The answer.
    pub answer: Option<Answer>,
}

/// A number with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The mean over all draws.
    pub value: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Answer {
    /// Over some draws; `None` of none, or where one is no number.
    pub(crate) fn over(draws: &[f64]) -> Option<Answer> {
        let all = || draws.iter().copied();
        if draws.is_empty() || !all().all(f64::is_finite) {
            return None;
        }
        let value = all().sum::<f64>() / draws.len() as f64;
        Some(Answer { value, low: all().fold(value, f64::min), high: all().fold(value, f64::max) })
    }
}

impl Open {
    pub(crate) fn tried(question: &'static str, tried: &str, unit: &'static str, draws: &[f64]) -> Open {
        Open { question, tried: tried.to_owned(), unit, answer: Answer::over(draws) }
    }

    /// One that the model cannot answer.
    pub(crate) fn not(question: &'static str, why: &str) -> Open {
        Open { question, tried: why.to_owned(), unit: "", answer: None }
    }

    /// `3.1 s (2.9 to 3.4)`, or that there is no answer.
    pub fn told(&self) -> String {
        match self.answer {
            Some(a) => {
                // What rounds to nothing has no minus sign.
                let [value, low, high] = [a.value, a.low, a.high].map(|v| (v * 10.0).round() / 10.0 + 0.0);
                format!("{value:.1} {} ({low:.1} to {high:.1})", self.unit)
            }
            None => "not answered".to_owned(),
        }
    }
}

/// The questions as a section of a study's page.
pub(crate) fn section(open: &[Open]) -> Section {
    let row = |o: &Open| vec![o.question.to_owned(), o.told(), o.tried.clone()];
    Section::Table(Table {
        title: "What the author left open".into(),
        head: ["question", "answer of the model", "tried"].map(String::from).to_vec(),
        rows: open.iter().map(row).collect(),
        note: "In brackets the least and the greatest over the draws. Modelled; nothing of it was published or measured.".into(),
    })
}

/// Change from one number to another, in %.
pub(crate) fn change(from: f64, to: f64) -> f64 {
    (to / from - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_mean_between_its_ends_or_none() {
        assert_eq!(Answer::over(&[1.0, 2.0, 6.0]), Some(Answer { value: 3.0, low: 1.0, high: 6.0 }));
        assert_eq!(Answer::over(&[]), None);
        assert_eq!(Answer::over(&[1.0, f64::NAN]), None);
        assert_eq!(Open::tried("?", "run", "s", &[1.0, 2.0]).told(), "1.5 s (1.0 to 2.0)");
        assert_eq!(Open::tried("?", "run", "%", &[-0.01, 0.02]).told(), "0.0 % (0.0 to 0.0)");
        assert_eq!(Open::not("?", "no meter").told(), "not answered");
    }
}
