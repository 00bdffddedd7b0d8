//! The page of a proof: the sentence, energy by scope, service, pair by pair, what was left out, what went in.

use wattwise_figure::fixed;
use wattwise_live::prove::block::pairs;
use wattwise_live::prove::log::ProofRead;
use wattwise_live::prove::result::Proof;
use wattwise_live::prove::say;
use wattwise_page::{Axis, LineShape, Plot, Section, Series, Table, Whisker, Whiskers, page};

/// Points of a curve at most: a month of pairs is more than a screen has columns.
const MOST_POINTS: usize = 2000;

/// One HTML file.
pub fn prove_html(read: &ProofRead, p: &Proof) -> String {
    page("prove", &format!("{} against {}", p.sides[1].name, p.sides[0].name), &prove_sections(Some(read), p))
}

/// What goes on the page; without the log there are no pairs to draw.
pub fn prove_sections(read: Option<&ProofRead>, p: &Proof) -> Vec<Section> {
    let mut words = vec![p.words.clone(), format!("Saved: {}.", p.line)];
    words
        .extend(p.predicted.as_ref().map(|predicted| format!("Prediction: {}.", say::checked(predicted, p))));
    words.extend(p.notes.iter().map(|n| format!("Note: {n}.")));
    let mut sections = vec![Section::Text { title: "Proof".to_owned(), body: words.join("\n\n") }];
    sections.extend(changes(p));
    sections.push(side_by_side(p));
    sections.extend(read.and_then(running));
    if !p.weeks.is_empty() {
        sections.push(weeks(p));
    }
    sections.push(setup(read, p));
    sections
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// Every figure with its interval: a dot and a whisker each.
fn changes(p: &Proof) -> Option<Section> {
    let of = |name: &str, (ratio, low, high): (f64, f64, f64)| Whisker {
        name: name.to_owned(),
        value: percent(ratio),
        ends: Some((percent(low), percent(high))),
        mark: None,
    };
    let mut rows = Vec::new();
    rows.extend(p.headline.map(|f| of("the figure", (f.ratio, f.low, f.high))));
    let v = &p.outcome.unadjusted;
    rows.extend(v.is_told().then(|| of("as measured", (v.ratio, v.low, v.high))));
    rows.extend(p.outcome.at_any_time.map(|all| of("at any time", all.into())));
    rows.extend(p.predicted.as_ref().and_then(|q| Some(of("predicted", (q.ratio, q.low?, q.high?)))));
    let scopes = p.scopes.iter().filter(|s| s.verdict.is_told());
    rows.extend(scopes.map(|s| of(&s.what, (s.verdict.ratio, s.verdict.low, s.verdict.high))));
    rows.retain(|r| {
        r.value.is_finite() && r.ends.is_none_or(|(low, high)| low.is_finite() && high.is_finite())
    });
    (!rows.is_empty()).then(|| {
        Section::Whiskers(Whiskers {
            title: format!("Energy under {} against {}", p.sides[1].name, p.sides[0].name),
            unit: "%".to_owned(),
            zero: Some(0.0),
            rows,
            note: "Left of 0 is a saving. Scopes lie in each other (psys holds the package, the package its cores) and are never added. “At any time” may be looked at as often as one likes; the others once, at the end.".to_owned(),
        })
    })
}

fn side_by_side(p: &Proof) -> Section {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for s in &p.scopes {
        rows.push(vec![
            s.what.clone(),
            format!("{} W", fixed(s.a_w, 3)),
            format!("{} W", fixed(s.b_w, 3)),
            s.verdict.change().replace('-', "−"),
            String::new(),
        ]);
    }
    for g in &p.guards {
        let judged = if g.slower { "slower" } else { "not shown slower" };
        rows.push(vec![
            g.what.clone(),
            format!("{:.4} {}", g.a, g.unit),
            format!("{:.4} {}", g.b, g.unit),
            g.verdict.change().replace('-', "−"),
            judged.to_owned(),
        ]);
    }
    if let Some((a, b)) = p.busy {
        let cell = |x: f64| format!("{} s/s", fixed(x, 3));
        rows.push(vec!["CPU time".to_owned(), cell(a), cell(b), String::new(), "no guard".to_owned()]);
    }
    Section::Table(Table {
        title: "Side by side".to_owned(),
        head: ["", &p.sides[0].name, &p.sides[1].name, "Change", "Service"].map(str::to_owned).to_vec(),
        rows,
        note: format!(
            "Means over {} pairs. Service is slower where a mean is more than {} % above A’s and its interval above 0.",
            p.pairs,
            fixed(p.limit * 100.0, 0)
        ),
    })
}

/// How the mean went as the pairs came in.
fn running(read: &ProofRead) -> Option<Section> {
    let sorted = pairs(&read.blocks, read.header.block_s);
    let ln: Vec<f64> =
        sorted.counted.iter().filter_map(|p| Some((p.b.watts()? / p.a.watts()?).ln())).collect();
    if ln.len() < 2 {
        return None;
    }
    let step = ln.len().div_ceil(MOST_POINTS);
    let mut sum = 0.0;
    let mut points = Vec::new();
    for (at, d) in ln.iter().enumerate() {
        sum += d;
        if (at + 1) % step == 0 {
            points.push(((at + 1) as f64, percent((sum / (at as f64 + 1.0)).exp())).into());
        }
    }
    Some(Section::Steps(Plot {
        title: "The mean as pairs came in".to_owned(),
        x: Axis { name: "pair".to_owned(), ..Axis::default() },
        y: Axis { name: "change".to_owned(), unit: "%".to_owned(), ..Axis::default() },
        series: vec![Series { name: "mean so far".to_owned(), shape: LineShape::Line, points }],
        note: "As measured. A mean that still wanders is not known to less than it wanders.".to_owned(),
    }))
}

fn weeks(p: &Proof) -> Section {
    Section::Table(Table {
        title: "Week by week".to_owned(),
        head: ["Week", "Saved"].map(str::to_owned).to_vec(),
        rows: p.weeks.iter().map(|w| vec![w.week.to_string(), w.line.clone()]).collect(),
        note: "As measured, each week by itself.".to_owned(),
    })
}

fn setup(read: Option<&ProofRead>, p: &Proof) -> Section {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("Machine", p.machine.clone()),
        row("Energy", p.energy.clone()),
        row("A", p.sides[0].policy.clone()),
        row("B", p.sides[1].policy.clone()),
        row("Pairs", format!("{} of {} planned count", p.pairs, p.planned)),
        row("Interval", format!("{} %", fixed(p.confidence * 100.0, 1))),
    ];
    if let Some(adjusted) = &p.outcome.adjusted {
        rows.push(row("For the same work by", adjusted.by.join(", ")));
    }
    for left in &p.left_out {
        rows.push(row("Left out", format!("{}: {}", say::time(left.hours), left.reason)));
    }
    for h in &p.hours {
        rows.push(row("A narrower interval", say::hours(h)));
    }
    if let Some(read) = read {
        let h = &read.header;
        rows.push(row("Blocks", format!("{} s, the first {} s not counted", h.block_s, h.settle_s)));
        rows.push(row("Order", format!("seed {}", h.plan.seed)));
    }
    Section::Table(Table {
        title: "What went in".to_owned(),
        head: vec![String::new(), String::new()],
        rows,
        note: read.map_or_else(String::new, |r| format!("wattwise {}", r.header.version)),
    })
}
