//! The report of `ab`: the verdict, the pairs with their interval, the drift.

use wattwise_figure::shell;
use wattwise_figure::verdict::Verdict;
use wattwise_live::ab::log::AbRead;
use wattwise_live::ab::result::{Comparison, Judged, Judgement, MeanSd};
use wattwise_page::{Axis, LineShape, Plot, Point, Series};
use wattwise_page::{Section, Table, Whisker, Whiskers, page};

/// One HTML file.
pub fn ab_html(read: &AbRead, r: &Judgement) -> String {
    let names: Vec<&str> = r.arms.iter().map(|a| a.name.as_str()).collect();
    page("ab", &names.join(" against "), &ab_sections(read, r))
}

/// What goes on the page.
pub fn ab_sections(read: &AbRead, r: &Judgement) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut words: Vec<String> =
        r.comparisons.iter().filter_map(|c| c.verdicts.first()).map(|v| v.words.clone()).collect();
    words.extend(r.notes.iter().map(|n| format!("Note: {n}.")));
    sections.push(Section::Text { title: "Verdict".to_owned(), body: words.join("\n\n") });
    for c in &r.comparisons {
        sections.push(verdicts(r, c));
        sections.extend(changes(r, c));
        sections.extend(c.verdicts.first().filter(|v| v.verdict.is_told()).map(|v| pairs(r, c, v)));
    }
    if let Some(plot) = drift(r) {
        sections.push(plot);
    }
    sections.push(setup(read, r));
    sections
}

fn verdicts(r: &Judgement, c: &Comparison) -> Section {
    let percent = |ratio: f64| wattwise_figure::signed((ratio - 1.0) * 100.0, 2).replace('-', "−");
    let mean = |of: Option<MeanSd>, unit: &str| {
        of.map_or_else(|| "none".to_owned(), |m| format!("{} {unit}", m.text()).trim_end().to_owned())
    };
    let rows = c
        .verdicts
        .iter()
        .map(|v| {
            let second = match v.verdict.bootstrap.filter(|_| v.verdict.is_told()) {
                Some((low, high)) => format!("{} to {} %", percent(low), percent(high)),
                None => "not enough runs".to_owned(),
            };
            vec![
                v.what.clone(),
                mean(v.first, &v.unit),
                mean(v.other, &v.unit),
                v.verdict.change().replace('-', "−"),
                second,
                v.question.clone(),
            ]
        })
        .collect();
    let (first, other) = (&r.arms[0].name, &r.arms[c.arm].name);
    Section::Table(Table {
        title: format!("{first} and {other}, side by side"),
        head: ["", first, other, "Change", "Bootstrap", "Answers"].map(str::to_owned).to_vec(),
        rows,
        note: format!(
            "Means ± standard deviation. {} pairs in random order; the change’s interval is Student’s by Stein’s two stages. The bootstrap’s is a second opinion, too narrow with few pairs.",
            r.pairs
        ),
    })
}

/// Every change with its interval: a dot and a whisker each.
fn changes(r: &Judgement, c: &Comparison) -> Option<Section> {
    let rows: Vec<_> = c
        .verdicts
        .iter()
        .filter(|v| v.verdict.is_told())
        .map(|v| {
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let Verdict { ratio, low, high, .. } = v.verdict;
            Whisker {
                name: v.what.clone(),
                value: percent(ratio),
                ends: Some((percent(low), percent(high))),
                mark: None,
            }
        })
        .collect();
    let (first, other) = (&r.arms[0].name, &r.arms[c.arm].name);
    (!rows.is_empty()).then(|| {
        Section::Whiskers(Whiskers {
            title: format!("{other} against {first}"),
            unit: "%".to_owned(),
            zero: Some(0.0),
            rows,
            note: format!(
                "Left of 0 {other} needs less. The line is the {:.0} % interval.",
                c.verdicts[0].verdict.confidence * 100.0
            ),
        })
    })
}

/// B over A, pair by pair, with the interval across.
fn pairs(r: &Judgement, c: &Comparison, v: &Judged) -> Section {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let points =
        v.pairs.iter().enumerate().map(|(at, (a, b))| (at as f64 + 1.0, percent(b / a)).into()).collect();
    let across = |name: &str, y: f64| Series {
        name: name.to_owned(),
        shape: LineShape::Line,
        points: vec![(1.0, y).into(), (v.pairs.len() as f64, y).into()],
    };
    Section::Steps(Plot {
        title: format!("{}: {} over {}, pair by pair", v.what, r.arms[c.arm].name, r.arms[0].name),
        x: Axis { name: "pair".to_owned(), ..Axis::default() },
        y: Axis { name: "change".to_owned(), unit: "%".to_owned(), ..Axis::default() },
        series: vec![
            Series { name: "pairs".to_owned(), shape: LineShape::Points, points },
            across("mean", percent(v.verdict.ratio)),
            across("interval, low", percent(v.verdict.low)),
            across("interval, high", percent(v.verdict.high)),
        ],
        note: String::new(),
    })
}

/// Each arm's values in the order of the pairs: what both share is drift.
fn drift(r: &Judgement) -> Option<Section> {
    let first = r.comparisons.first()?.verdicts.first()?;
    let series = |name: &str, values: Vec<f64>| Series {
        name: name.to_owned(),
        shape: LineShape::Line,
        points: values.into_iter().enumerate().map(|(at, y)| Point::from((at as f64 + 1.0, y))).collect(),
    };
    let mut all = vec![series(&r.arms[0].name, first.pairs.iter().map(|p| p.0).collect())];
    for c in &r.comparisons {
        if let Some(v) = c.verdicts.first() {
            all.push(series(&r.arms[c.arm].name, v.pairs.iter().map(|p| p.1).collect()));
        }
    }
    let unit = first.unit.as_str();
    Some(Section::Steps(Plot {
        title: "Run by run".to_owned(),
        x: Axis { name: "pair".to_owned(), ..Axis::default() },
        y: Axis { name: first.what.clone(), unit: unit.to_owned(), ..Axis::default() },
        series: all,
        note: "A slope that the arms share is drift of the machine: pairs cancel it.".to_owned(),
    }))
}

fn setup(read: &AbRead, r: &Judgement) -> Section {
    let h = &read.header;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![row("Machine", r.machine.clone()), row("Energy", r.energy.clone())];
    for arm in &h.arms {
        let under = arm.policy.as_deref().unwrap_or("the machine as it is");
        rows.push(row(&arm.name, format!("{} under {under}", shell::line(&arm.command))));
    }
    rows.push(row("Window", r.window_s.map_or("the run’s own".to_owned(), |w| format!("{w:.3} s"))));
    rows.push(row("Idle power", r.floor_w.map_or("not measured".to_owned(), |w| format!("{w:.3} W"))));
    rows.push(row("Warm-up runs", r.warm_up.to_string()));
    rows.push(row("Pairs", format!("{} counted, {} dropped", r.pairs, r.dropped.len())));
    rows.push(row(
        "Aim",
        format!(
            "find {:.2} % with a chance of {:.0} %; interval {:.1} %",
            h.plan.aim.effect * 100.0,
            h.plan.aim.power * 100.0,
            h.plan.aim.confidence * 100.0
        ),
    ));
    if let Some(e) = r.smallest_effect {
        rows.push(row("Smallest difference found so", format!("{:.2} %", e * 100.0)));
    }
    rows.push(row("Order", format!("seed {}", h.plan.seed)));
    for (block, why) in &r.dropped {
        rows.push(row(&format!("Dropped pair {}", block + 1), why.clone()));
    }
    Section::Table(Table {
        title: "What went in".to_owned(),
        head: vec!["".to_owned(), "".to_owned()],
        rows,
        note: format!("wattwise {}", h.version),
    })
}
