//! The printed figures as a table, and the scoreboard of several studies.

use crate::Study;
use crate::printed::{PrintedFigure, Score, Standing};
use wattwise_page::{Section, Table};

/// A number with four figures, without trailing noise.
pub(crate) fn short(v: f64) -> String {
    match v.abs() {
        0.0 => "0".to_owned(),
        a if a >= 1000.0 => format!("{v:.0}"),
        a if a >= 100.0 => format!("{v:.1}"),
        a if a >= 1.0 => format!("{v:.2}"),
        _ => format!("{v:.3}"),
    }
}

fn word(basis: Standing) -> &'static str {
    match basis {
        Standing::Input => "input",
        Standing::Fitted => "fitted",
        Standing::Predicted => "predicted",
        Standing::None => "none",
    }
}

fn yes(b: Option<bool>) -> String {
    b.map_or("", |b| if b { "yes" } else { "no" }).to_owned()
}

/// A row of the table of printed figures.
fn row(f: &PrintedFigure) -> Vec<String> {
    let ours = match (f.ours, f.ours_sd) {
        (Some(v), Some(sd)) => format!("{} +- {}", short(v), short(sd)),
        (Some(v), None) => short(v),
        (None, _) => String::new(),
    };
    vec![
        format!("{}: {}", f.location, f.quantity),
        f.unit.clone(),
        f.printed.clone(),
        ours,
        word(f.basis).to_owned() + if f.trivial { ", trivial" } else { "" },
        yes(f.within.or(f.sign)),
        f.cause.clone().unwrap_or_default(),
    ]
}

/// Every printed figure of a study.
pub(crate) fn printed(figures: &[PrintedFigure]) -> Section {
    Section::Table(Table {
        title: "Every printed figure".into(),
        head: ["figure", "unit", "printed", "ours", "basis", "agrees", "cause or note"]
            .map(String::from)
            .to_vec(),
        rows: figures.iter().map(row).collect(),
        note: "Agrees: off by at most 10 %, the published spread or what the printed rounding hides, of a residency 2 \
               points; of a change its size, of a claim without a size whether it holds. Trivial: levels of at most 2 or \
               at least 98 %, single runs, means of other rows, repeats."
            .into(),
    })
}

/// What each study comes to, and all together.
pub fn scoreboard(studies: &[Study]) -> Table {
    let row = |name: &str, s: Score| {
        vec![
            name.to_owned(),
            s.printed.to_string(),
            s.rows.to_string(),
            s.input.to_string(),
            s.fitted.to_string(),
            s.predicted.to_string(),
            format!("{} of {}", s.within, s.counted),
            format!("{} of {}", s.trivial_within, s.trivial),
            format!("{} of {}", s.signs_right, s.signs),
        ]
    };
    let mut rows: Vec<_> = studies.iter().map(|s| row(s.name, s.score)).collect();
    rows.push(row("all", studies.iter().fold(Score::default(), |all, s| all.plus(s.score))));
    Table {
        title: "Scoreboard".into(),
        head: ["study", "figures", "rows", "input", "fitted", "predicted", "within", "trivial", "sign, order"]
            .map(String::from)
            .to_vec(),
        rows,
        note: "Figures: all that the study prints. Rows: beside which ours stands. Within: of the predicted ones that count, \
               those off by at most 10 % or the published spread, residencies 2 points. Trivial ones (at most 2 or at least \
               98 %, single runs, means of other rows, repeats) are counted apart. Sign, order: predicted changes with the \
               published sign, claims that hold, pairs in the published order."
            .into(),
    }
}
