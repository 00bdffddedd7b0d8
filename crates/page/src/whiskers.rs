//! Intervals side by side: a dot for a value, a line for where it may lie.

use crate::number::{decimals, fixed, ticks};

/// Values with their intervals, a row each, on one scale.
#[derive(Clone, Debug, Default)]
pub struct Whiskers {
    /// Said above it.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// A value that the others are seen against, such as no change; it is always on the scale.
    pub zero: Option<f64>,
    /// The rows, in the order shown.
    pub rows: Vec<Whisker>,
    /// Said below it.
    pub note: String,
}

/// A row: a value and the ends of its interval.
#[derive(Clone, Debug, Default)]
pub struct Whisker {
    /// What it is of.
    pub name: String,
    /// The dot.
    pub value: f64,
    /// The line; `None` where the interval is not known.
    pub ends: Option<(f64, f64)>,
    /// A second value on the same line, hollow: as published, say.
    pub mark: Option<f64>,
}

/// As the template lays it out; places are in percent of the width.
pub(super) struct WhiskerView<'a> {
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) zero: Option<f64>,
    pub(super) rows: Vec<WhiskerRow<'a>>,
}

pub(super) struct WhiskerRow<'a> {
    pub(super) name: &'a str,
    pub(super) dot: f64,
    pub(super) line: Option<(f64, f64)>,
    pub(super) mark: Option<f64>,
    pub(super) text: String,
}

impl Whiskers {
    /// Rows whose value is no number are left out: there is nothing to draw.
    pub(super) fn view(&self) -> WhiskerView<'_> {
        let shown = || self.rows.iter().filter(|r| r.value.is_finite());
        let ends = |r: &Whisker| r.ends.filter(|(l, h)| l.is_finite() && h.is_finite());
        let mark = |r: &Whisker| r.mark.filter(|m| m.is_finite());
        let all = || {
            shown().flat_map(move |r| [Some(r.value), mark(r), ends(r).map(|e| e.0), ends(r).map(|e| e.1)])
        };
        let (low, high) = all()
            .flatten()
            .chain(self.zero)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let pad = if high > low { (high - low) * 0.04 } else { high.abs().max(1.0) * 0.1 };
        let (low, high) = if low <= high { (low - pad, high + pad) } else { (0.0, 1.0) };
        let place = |v: f64| ((v - low) / (high - low) * 100.0).clamp(0.0, 100.0);
        let digits = decimals(all().flatten()).saturating_sub(1).min(2);
        let sign = |v: f64| if self.zero == Some(0.0) && v > 0.0 { "+" } else { "" };
        let say = |v: f64| {
            let text = fixed(v, digits);
            let zero = !text.contains(|c: char| ('1'..='9').contains(&c));
            format!("{}{text}", if zero { "" } else { sign(v) })
        };
        let rows = shown().map(|r| {
            let Whisker { name, value, .. } = r;
            let text = match ends(r) {
                Some((l, h)) => format!("{} [{}, {}]\u{a0}{}", say(*value), say(l), say(h), self.unit),
                None => format!("{}\u{a0}{}", say(*value), self.unit),
            };
            let line = ends(r).map(|(l, h)| (place(l), place(h) - place(l)));
            WhiskerRow {
                name,
                dot: place(*value),
                line,
                mark: mark(r).map(place),
                text: text.trim_end().to_owned(),
            }
        });
        let rows = rows.collect();
        let tick = |(v, text): (f64, String)| (place(v), format!("{}{text}\u{a0}{}", sign(v), self.unit));
        WhiskerView {
            ticks: ticks(low, high, 6).into_iter().map(tick).collect(),
            zero: self.zero.map(place),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_a_scale_and_nonsense_is_left_out() {
        let row = |value, ends| Whisker { name: "x".to_owned(), value, ends, mark: None };
        let w = Whiskers {
            unit: "%".to_owned(),
            zero: Some(0.0),
            rows: vec![
                row(-4.0, Some((-5.8, -2.3))),
                row(3.0, Some((f64::NEG_INFINITY, f64::INFINITY))),
                row(f64::NAN, None),
            ],
            ..Whiskers::default()
        };
        let v = w.view();
        assert_eq!(v.rows.len(), 2);
        assert_eq!(v.rows[0].text, "−4.00 [−5.80, −2.30]\u{a0}%");
        assert!(v.rows[1].line.is_none() && v.rows[1].text == "+3.00\u{a0}%");
        assert!(v.zero > Some(v.rows[0].dot) && v.zero < Some(v.rows[1].dot));
        assert!(Whiskers::default().view().rows.is_empty());
    }
}
