//! A proof in words: the line of the week, the sentence, the tables for a terminal.

use crate::conduct::End;
use crate::guards::Guarded;
use crate::judge::RatioInterval;
use crate::log::{Predicted, ProofRead};
use crate::result::{By, LeftOut, Proof, Proved};
use std::fmt::Write as _;
use wattwise_figure::{Provenance, fixed};

/// `3.1 % (2.0 to 4.2), 41 h measured, 6 h left out: suspend`. What is saved is positive.
pub fn line(figure: Option<RatioInterval>, measured_h: f64, left_out: &[LeftOut]) -> String {
    let mut line = match figure {
        Some(RatioInterval { ratio, low, high }) => {
            let saved = |ratio: f64| wattwise_figure::signed((1.0 - ratio) * 100.0, 1).replace('+', "");
            format!("{} % ({} to {})", saved(ratio), saved(high), saved(low))
        }
        None => "no figure yet".to_owned(),
    };
    _ = write!(line, ", {} measured", time(measured_h));
    let all: f64 = left_out.iter().map(|l| l.hours).sum();
    if all > 0.0 {
        let why: Vec<String> = left_out.iter().map(|l| l.reason.to_string()).collect();
        _ = write!(line, ", {} left out: {}", time(all), why.join(", "));
    }
    line
}

/// Hours as people say them.
pub fn time(hours: f64) -> String {
    match hours * 3600.0 {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        _ if hours < 10.0 => format!("{hours:.1} h"),
        _ => format!("{hours:.0} h"),
    }
}

/// Why it ended.
pub fn ended(end: &End) -> String {
    match end {
        End::Reached => "the plan was carried out".to_owned(),
        End::Budget(why) | End::Stopped(why) => why.clone(),
    }
}

/// The sentence.
pub fn words(p: &Proof) -> String {
    let [a, b] = [&p.sides[0].name, &p.sides[1].name];
    let Some(f) = p.headline else {
        let more = match p.pairs {
            0 => "no pair counts yet".to_owned(),
            n => format!("{n} pairs count, and fewer than 30 say nothing before the plan's end"),
        };
        return format!("{b} and {a} cannot be compared: {more}");
    };
    let percent = |x: f64| format!("{:.1}", x.abs() * 100.0);
    let how = match f.by {
        By::SameWork => ", for the same work",
        By::AsMeasured => "",
        By::AtAnyTime => ", by an interval that holds at any time",
    };
    let sure = format!("({} pairs, {} % interval{how})", p.pairs, trimmed(p.confidence * 100.0));
    let less = format!(
        "{b} needs {} % [{}, {}] less energy than {a} {sure}",
        percent(1.0 - f.ratio),
        percent(1.0 - f.high),
        percent(1.0 - f.low)
    );
    match p.proved {
        Proved::Saves if p.guards.is_empty() => format!("{less}; whether it is as fast was not seen"),
        Proved::Saves => format!("{less}, and is not shown slower"),
        Proved::SavesBySlowness => {
            let slow: Vec<String> = p.guards.iter().filter(|g| g.slower).map(guard).collect();
            format!("{less}, bought with slowness: {}", slow.join("; "))
        }
        Proved::Costs => format!(
            "{b} needs {} % [{}, {}] more energy than {a} {sure}",
            percent(f.ratio - 1.0),
            percent(f.low - 1.0),
            percent(f.high - 1.0)
        ),
        Proved::NoDifference | Proved::NotMeasured => {
            let most = (1.0 - f.low).max(f.high - 1.0);
            format!(
                "no difference in energy between {a} and {b} can be told: it is {} % at most {sure}",
                percent(most)
            )
        }
    }
}

fn trimmed(x: f64) -> String {
    let text = fixed(x, 2);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `response x1.31 [1.22, 1.40]`.
fn guard(g: &Guarded) -> String {
    let v = &g.verdict;
    format!("{} x{:.2} [{:.2}, {:.2}]", g.what, v.ratio, v.low, v.high)
}

/// What a model had said, beside what was measured.
pub fn checked(predicted: &Predicted, p: &Proof) -> String {
    let change = |x: f64| wattwise_figure::signed((x - 1.0) * 100.0, 1);
    let interval = match (predicted.low, predicted.high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", change(low), change(high)),
        _ => String::new(),
    };
    let said = format!(
        "predicted {} %{interval} for {} on {}",
        change(predicted.ratio),
        predicted.work,
        predicted.machine
    );
    let Some(f) = p.headline else { return format!("{said}; nothing is measured yet") };
    let (low, high) = (predicted.low.unwrap_or(predicted.ratio), predicted.high.unwrap_or(predicted.ratio));
    let fits = match () {
        () if low <= f.high && f.low <= high => "the two agree",
        () if (predicted.ratio < 1.0) == (f.ratio < 1.0) => "the same direction, another size",
        () => "the prediction was wrong",
    };
    format!("{said}, measured {} % [{}, {}]: {fits}", change(f.ratio), change(f.low), change(f.high))
}

/// What there is to know before one believes it.
pub fn notes(read: &ProofRead, p: &Proof) -> Vec<String> {
    let mut notes = Vec::new();
    match &read.end {
        Some(End::Reached) => {}
        Some(End::Stopped(why) | End::Budget(why)) => notes.push(format!(
            "it was stopped ({why}) after {} of {} pairs: --resume goes on with the same plan",
            p.pairs, p.planned
        )),
        None => notes.push(
            "the log is incomplete: the proof goes on elsewhere, or was interrupted (--resume goes on with the same plan)".to_owned(),
        ),
    }
    if p.pairs >= crate::guards::LEAST && p.guards.is_empty() {
        notes.push(
            "nothing shows here how fast the machine serves: a saving may be bought with slowness".to_owned(),
        );
    }
    if let Some((a, b)) = p.busy.filter(|(a, b)| *a > 0.0 && (b / a - 1.0).abs() > 0.05) {
        notes.push(format!(
            "CPU time went from {a:.2} to {b:.2} s a second ({} %): the clock, or the work, was another",
            wattwise_figure::signed((b / a - 1.0) * 100.0, 0)
        ));
    }
    if let Some(adjusted) = &p.outcome.adjusted {
        let apart = p.outcome.unadjusted.ratio / adjusted.verdict.ratio - 1.0;
        if apart.abs() > 0.01 {
            notes.push(format!(
                "as measured the change is {} %: the work was not the same under both, by chance or by the policy",
                wattwise_figure::signed((p.outcome.unadjusted.ratio - 1.0) * 100.0, 1)
            ));
        }
    }
    if !matches!(read.header.energy, Provenance::Measured { .. }) {
        notes.push("energy is modelled, not measured: this is no proof".to_owned());
    }
    notes
}

/// For people: the sentence first, then what lies behind it.
pub fn text(p: &Proof) -> String {
    let mut out = format!("{}\n\n  saved: {}\n", p.words, p.line);
    if let Some(predicted) = &p.predicted {
        _ = writeln!(out, "  {}", checked(predicted, p));
    }
    out += "\n";
    let [a, b] = [0, 1].map(|at| shortened(&p.sides[at].name));
    let mut rows = vec![[String::new(), a, b, "change".to_owned()]];
    for s in &p.scopes {
        rows.push([
            s.what.clone(),
            format!("{} W", fixed(s.a_w, 2)),
            format!("{} W", fixed(s.b_w, 2)),
            s.verdict.change(),
        ]);
    }
    for g in &p.guards {
        let unit = |x: f64| match g.unit.as_str() {
            "share" => format!("{} %", fixed(x * 100.0, 2)),
            "s/s" => format!("{} ms/s", fixed(x * 1e3, 2)),
            _ => format!("{} ms", fixed(x * 1e3, 2)),
        };
        let mark = if g.slower { "  slower" } else { "" };
        rows.push([g.what.clone(), unit(g.a), unit(g.b), g.verdict.change() + mark]);
    }
    if let Some((a, b)) = p.busy {
        rows.push([
            "CPU time".to_owned(),
            format!("{} s/s", fixed(a, 3)),
            format!("{} s/s", fixed(b, 3)),
            String::new(),
        ]);
    }
    let width = |at: usize| rows.iter().map(|r| r[at].chars().count()).max().unwrap_or(0);
    let [w, x, y] = [0, 1, 2].map(width);
    for [name, a, b, change] in &rows {
        _ = writeln!(out, "{}", format!("  {name:<w$}  {a:>x$}  {b:>y$}  {change}").trim_end());
    }
    _ = writeln!(out, "\n  energy: {}", p.energy);
    for week in &p.weeks {
        _ = writeln!(out, "  week {}: {}", week.week, week.line);
    }
    for h in &p.hours {
        _ = writeln!(out, "  {}", hours(h));
    }
    for note in &p.notes {
        _ = writeln!(out, "  note: {note}");
    }
    out
}

/// `± 1 % takes some 42 h (37 to 48) here`.
pub fn hours(h: &crate::hours::Hours) -> String {
    format!(
        "± {} % takes some {} ({} to {}) here",
        trimmed(h.precision * 100.0),
        time(h.hours),
        time(h.low),
        time(h.high)
    )
}

/// A heading of at most 24 characters.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(24) {
        None => name.to_owned(),
        Some(_) => name.chars().take(23).collect::<String>() + "…",
    }
}
