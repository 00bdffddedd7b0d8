//! How far each policy's energy is from the reference's: a dot for the median, a line for 90 of 100 replicas.

use super::groups::{GroupStanding, PolicyGroup, change, time_not_judged, with_intervals};
use wattwise_advice::result::{Comparison, Interval, PolicyResult};
use wattwise_advice::say;
use wattwise_page::number::ticks;

/// The chart.
pub(super) struct Whiskers<'a> {
    /// Round changes with their places, in percent of the width.
    pub(super) ticks: Vec<(f64, String)>,
    /// Where the reference's own energy lies.
    pub(super) zero: f64,
    pub(super) groups: Vec<WhiskerGroup<'a>>,
}

/// Rows that stand alike. The recommended policy and what ties with it are one group here.
pub(super) struct WhiskerGroup<'a> {
    pub(super) title: String,
    /// The recommended policy is among them.
    pub(super) best: bool,
    /// They are out of the race.
    pub(super) out: bool,
    pub(super) rows: Vec<Whisker<'a>>,
}

/// One policy. Places are in percent of the width.
pub(super) struct Whisker<'a> {
    pub(super) policy: &'a str,
    pub(super) best: bool,
    pub(super) reference: bool,
    /// After how many replicas it was left.
    pub(super) left_after: Option<u64>,
    pub(super) dot: Option<f64>,
    /// Left end and length.
    pub(super) line: Option<(f64, f64)>,
    /// It goes on beyond the right edge.
    pub(super) beyond: bool,
    /// It goes on beyond the left edge.
    pub(super) before: bool,
    pub(super) text: String,
    pub(super) tip: String,
}

/// Most of the width that policies out of the race may take, as a multiple of what the others need.
const REACH: f64 = 2.0;

/// `None` where there is nothing to hold a policy against.
pub(super) fn whiskers<'a>(c: &'a Comparison, groups: &[PolicyGroup<'a>]) -> Option<Whiskers<'a>> {
    if c.results.len() < 2 {
        return None;
    }
    let (low, high) = range(c);
    let place = |ratio: f64| ((ratio - low) / (high - low) * 100.0).clamp(0.0, 100.0);
    let row = |r: &&'a PolicyResult| whisker(c, r, &place, (low, high));
    let mut out: Vec<WhiskerGroup<'a>> = Vec::new();
    for group in groups {
        let out_of_the_race = matches!(
            group.standing,
            GroupStanding::Dropped | GroupStanding::NotJudged | GroupStanding::TooSlow
        );
        // What is out and has no share against the reference would be a line of nothing: the table has it.
        let drawn = |w: &Whisker<'_>| !out_of_the_race || w.dot.is_some() || w.beyond || w.before;
        let rows: Vec<Whisker<'a>> = group.policies.iter().map(row).filter(drawn).collect();
        let hidden = group.policies.len() - rows.len();
        let more = if hidden > 0 {
            format!(" ({hidden} not done within the window: see the table)")
        } else {
            String::new()
        };
        match out.last_mut() {
            Some(first) if group.standing == GroupStanding::Tied => {
                first.rows.extend(rows);
                "Recommended, and no clear difference from it".clone_into(&mut first.title);
            }
            _ => out.push(WhiskerGroup {
                title: group.title.clone() + &more,
                best: matches!(group.standing, GroupStanding::Recommended | GroupStanding::Tied),
                out: out_of_the_race,
                rows,
            }),
        }
    }
    let ticks = round(low, high).into_iter().map(|(x, text)| (place(x), text)).collect();
    Some(Whiskers { ticks, zero: place(1.0), groups: out })
}

/// Of a policy whose energy is over another time than the reference's.
const NO_RATIO: Interval = Interval { median: f64::NAN, low: f64::NAN, high: f64::NAN };

/// Least and greatest ratio shown: all of the admissible policies, the others as far as there is room.
fn range(c: &Comparison) -> (f64, f64) {
    let ends = |r: &PolicyResult| {
        let Some(u) = say::energy_ratio(c, r) else { return [1.0; 3] };
        if with_intervals(c) { [u.low, u.median, u.high] } else { [u.median; 3] }
    };
    let over = |admissible: bool| {
        let of = move |r: &&PolicyResult| (r.admissible && !time_not_judged(c, r)) == admissible;
        let all = c.results.iter().filter(of).flat_map(ends);
        all.filter(|x| x.is_finite()).fold((1.0, 1.0), |(l, h): (f64, f64), x| (l.min(x), h.max(x)))
    };
    let (low, high) = over(true);
    let (low_others, high_others) = over(false);
    let span = (high - low).max(0.02);
    let (low, high) =
        (low.min(low_others.max(low - span * REACH)), high.max(high_others.min(high + span * REACH)));
    let pad = (high - low).max(0.02) * 0.04;
    (low - pad, high + pad)
}

fn whisker<'a>(
    c: &Comparison,
    r: &'a PolicyResult,
    place: &dyn Fn(f64) -> f64,
    (edge, high): (f64, f64),
) -> Whisker<'a> {
    let ratio = say::energy_ratio(c, r);
    let Interval { median, low: least, high: most } = ratio.unwrap_or(NO_RATIO);
    let known = with_intervals(c) && least.is_finite() && most.is_finite();
    let text = ratio.map_or_else(|| say::OWN_TIME.to_owned(), |ratio| change(ratio, with_intervals(c)));
    let reference = r.policy == c.reference;
    let tip = match (reference, known) {
        (true, _) => format!("{}\nthe reference: all others are held against it", r.policy),
        (_, true) => format!(
            "{}\nenergy against {}: {}, median {}",
            r.policy,
            c.reference,
            text,
            ratio.map_or_else(String::new, |ratio| change(ratio, false))
        ),
        (_, false) => format!("{}\nenergy against {}: {text}", r.policy, c.reference),
    };
    Whisker {
        policy: &r.policy,
        best: GroupStanding::of(c, r) == GroupStanding::Recommended,
        reference,
        left_after: r.raced_out_after,
        dot: (median.is_finite() && (edge..=high).contains(&median)).then(|| place(median)),
        line: (known && !reference).then(|| (place(least), place(most) - place(least))),
        beyond: median > high || known && most > high,
        before: median < edge || known && least < edge,
        text: if reference { "reference".to_owned() } else { text },
        tip,
    }
}

/// Round changes between two ratios, with their text.
fn round(low: f64, high: f64) -> Vec<(f64, String)> {
    let sign = |change: f64| if change > 0.0 { "+" } else { "" };
    ticks((low - 1.0) * 100.0, (high - 1.0) * 100.0, 6)
        .into_iter()
        .map(|(change, text)| (1.0 + change / 100.0, format!("{}{text}\u{a0}%", sign(change))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_the_reference() {
        let texts = |low, high| round(low, high).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(texts(0.79, 1.22), ["−20\u{a0}%", "−10\u{a0}%", "0\u{a0}%", "+10\u{a0}%", "+20\u{a0}%"]);
        assert!((4..8).contains(&texts(0.999, 1.001).len()));
    }
}
