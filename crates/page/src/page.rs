//! A page of figures: words, tables, curves, matrices and bars, one under the other.

use askama::Template;

use crate::number::{decimals, fixed, si};
use crate::plot::{LegendEntry, Plot};
use crate::whiskers::{self, Whiskers};
use crate::{REPORT_CSS, REPORT_JS};

/// One part of a page.
#[derive(Clone, Debug)]
pub enum Section {
    /// Words.
    Text {
        /// Above them; may be empty.
        title: String,
        /// Paragraphs, parted by an empty line; plain text.
        body: String,
    },
    /// A command to copy.
    Command {
        /// What it is for.
        label: String,
        /// As a shell takes it.
        command: String,
        /// What undoes it; may be empty.
        undo: String,
    },
    /// A table.
    Table(Table),
    /// Curves, with error bars where points have errors.
    Steps(Plot),
    /// Small charts of the same curves beside each other, with one legend.
    Multiples {
        /// Said above them.
        title: String,
        /// The charts, each with the series of the first.
        plots: Vec<Plot>,
        /// Said below them.
        note: String,
    },
    /// A matrix in shades.
    Heatmap(Heatmap),
    /// Groups of bars: published against predicted.
    Bars(Bars),
    /// Values with their intervals.
    Whiskers(Whiskers),
}

/// A table; columns whose every cell begins like a number are set as numbers and sort as such.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Table {
    /// Said above it.
    pub title: String,
    /// The columns' names.
    pub head: Vec<String>,
    /// Cells, each row as long as the head; the first cell names the row.
    pub rows: Vec<Vec<String>>,
    /// Said below it.
    pub note: String,
}

/// A matrix in shades, such as delays from one speed to another.
#[derive(Clone, Debug, Default)]
pub struct Heatmap {
    /// Said above it.
    pub title: String,
    /// What the rows are.
    pub row_name: String,
    /// What the columns are.
    pub column_name: String,
    /// A name a row.
    pub rows: Vec<String>,
    /// A name a column.
    pub columns: Vec<String>,
    /// `values[row][column]`; NaN where there is none.
    pub values: Vec<Vec<f64>>,
    /// Unit of the values.
    pub unit: String,
    /// Said below it.
    pub note: String,
}

/// Groups of bars.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Said above it.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// What the bars of a group are, in order: `published`, `predicted`.
    pub series: Vec<String>,
    /// A group's name, and of each bar its value and the ends of its error bar; `None` leaves a bar out.
    pub groups: Vec<(String, Vec<Option<Bar>>)>,
    /// Said below it.
    pub note: String,
}

/// A bar's value, and the ends of its error bar.
pub type Bar = (f64, Option<(f64, f64)>);

/// One self-contained HTML file under `title`; `kind` is the command that made it.
pub fn page(kind: &str, title: &str, sections: &[Section]) -> String {
    let page = StudyPage {
        kind,
        title,
        version: env!("CARGO_PKG_VERSION"),
        sections: sections.iter().map(view).collect(),
        css: [REPORT_CSS],
        js: [REPORT_JS],
    };
    crate::finished(&page.render().expect("writing to a string cannot fail"))
}

#[derive(Template)]
#[template(path = "study.html")]
struct StudyPage<'a> {
    kind: &'a str,
    title: &'a str,
    version: &'static str,
    sections: Vec<SectionView<'a>>,
    css: [&'static str; 1],
    js: [&'static str; 1],
}

/// A section as the template lays it out.
#[derive(Default)]
struct SectionView<'a> {
    title: &'a str,
    paragraphs: Vec<&'a str>,
    command: Option<CommandView<'a>>,
    note: &'a str,
    legend: Vec<LegendEntry<'a>>,
    figure: String,
    /// Small charts, each with its title.
    small: Vec<(&'a str, String)>,
    bars: Vec<Group<'a>>,
    heat: Option<Heat<'a>>,
    whiskers: Option<whiskers::WhiskerView<'a>>,
    /// The figures themselves, or the chart's for who cannot see it.
    table: Option<Grid>,
}

struct CommandView<'a> {
    label: &'a str,
    command: &'a str,
    undo: &'a str,
}

struct Grid {
    head: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

struct Group<'a> {
    name: &'a str,
    bars: Vec<GroupBar>,
}

struct GroupBar {
    series: usize,
    share: f64,
    error: Option<(f64, f64)>,
    text: String,
    tip: String,
}

struct Heat<'a> {
    map: &'a Heatmap,
    rows: Vec<(&'a str, Vec<HeatCell>)>,
    low: String,
    high: String,
}

struct HeatCell {
    text: String,
    share: f64,
    dark: bool,
    none: bool,
    tip: String,
}

fn view(section: &Section) -> SectionView<'_> {
    match section {
        Section::Text { title, body } => SectionView {
            title,
            paragraphs: body.split("\n\n").map(str::trim).filter(|p| !p.is_empty()).collect(),
            ..SectionView::default()
        },
        Section::Command { label, command, undo } => {
            SectionView { command: Some(CommandView { label, command, undo }), ..SectionView::default() }
        }
        Section::Table(t) => SectionView {
            title: &t.title,
            note: &t.note,
            table: Some(grid(&t.head, t.rows.clone())),
            ..SectionView::default()
        },
        Section::Steps(p) => SectionView {
            title: &p.title,
            note: &p.note,
            legend: p.legend(),
            figure: p.inline_svg(),
            table: Some(points(p)),
            ..SectionView::default()
        },
        Section::Multiples { title, plots, note } => SectionView {
            title,
            note,
            legend: plots.first().map(Plot::legend).unwrap_or_default(),
            small: plots.iter().map(|p| (p.title.as_str(), p.small_svg())).collect(),
            table: Some(side_by_side(plots)),
            ..SectionView::default()
        },
        Section::Heatmap(m) => {
            SectionView { title: &m.title, note: &m.note, heat: Some(heat(m)), ..SectionView::default() }
        }
        Section::Bars(b) => SectionView {
            title: &b.title,
            note: &b.note,
            legend: b
                .series
                .iter()
                .enumerate()
                .map(|(i, s)| LegendEntry { name: s, colour: i % 8, dash: "" })
                .collect(),
            bars: groups(b),
            ..SectionView::default()
        },
        Section::Whiskers(w) => {
            SectionView { title: &w.title, note: &w.note, whiskers: Some(w.view()), ..SectionView::default() }
        }
    }
}

fn grid(head: &[String], rows: Vec<Vec<String>>) -> Grid {
    let number = |cell: &String| {
        cell.is_empty()
            || cell.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '−' | '+' | '–' | '.'))
    };
    let numeric = |i: usize| i > 0 && rows.iter().all(|r| r.get(i).is_none_or(number));
    let head = head.iter().enumerate().map(|(i, h)| (h.clone(), numeric(i))).collect();
    Grid { head, rows }
}

/// The chart's points as a table; long curves are thinned to what somebody would read.
fn points(p: &Plot) -> Grid {
    const MOST: usize = 200;
    let with_unit = |name: &str, unit: &str| match unit.is_empty() {
        true => name.to_owned(),
        false => format!("{name}, {unit}"),
    };
    let head = [
        "Series".to_owned(),
        with_unit(&p.x.name, &p.x.unit),
        with_unit(&p.y.name, &p.y.unit),
        "Error bar".to_owned(),
    ];
    let digits = |values: Vec<f64>| decimals(values);
    let dx = digits(p.series.iter().flat_map(|s| &s.points).map(|q| q.x).collect());
    let dy = digits(p.series.iter().flat_map(|s| &s.points).map(|q| q.y).collect());
    let mut rows = Vec::new();
    for s in &p.series {
        for q in s.points.iter().step_by(s.points.len().div_ceil(MOST).max(1)) {
            let error =
                q.error.map_or(String::new(), |(l, h)| format!("{} to {}", fixed(l, dy), fixed(h, dy)));
            rows.push(vec![s.name.clone(), fixed(q.x, dx), fixed(q.y, dy), error]);
        }
    }
    grid(&head, rows)
}

/// Small charts as one table: a row for each point of a series, a column for each chart.
fn side_by_side(plots: &[Plot]) -> Grid {
    let Some(first) = plots.first() else { return grid(&[], Vec::new()) };
    let with_unit = |axis: &crate::Axis| match axis.unit.is_empty() {
        true => axis.name.clone(),
        false => format!("{}, {}", axis.name, axis.unit),
    };
    let mut head = vec!["Series".to_owned(), with_unit(&first.x)];
    head.extend(plots.iter().map(|p| with_unit(&p.y)));
    let all = |p: &Plot| p.series.iter().flat_map(|s| &s.points).map(|q| q.y).collect::<Vec<_>>();
    let digits: Vec<usize> = plots.iter().map(|p| decimals(all(p))).collect();
    let across = decimals(first.series.iter().flat_map(|s| &s.points).map(|q| q.x).collect::<Vec<_>>());
    let mut rows = Vec::new();
    for (at, series) in first.series.iter().enumerate() {
        for (n, point) in series.points.iter().enumerate() {
            let value = |(p, digits): (&Plot, &usize)| {
                let point = p.series.get(at).and_then(|s| s.points.get(n));
                point.map_or(String::new(), |q| fixed(q.y, *digits))
            };
            let mut row = vec![series.name.clone(), fixed(point.x, across)];
            row.extend(plots.iter().zip(&digits).map(value));
            rows.push(row);
        }
    }
    grid(&head, rows)
}

fn heat(m: &Heatmap) -> Heat<'_> {
    let all = || m.values.iter().flatten().copied().filter(|v| v.is_finite());
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let whole = all().all(|v| v.fract() == 0.0);
    let digits = if whole { 0 } else { decimals(all()).min(3) };
    let rows = m
        .rows
        .iter()
        .zip(&m.values)
        .map(|(name, values)| {
            let cells = values
                .iter()
                .zip(&m.columns)
                .map(|(&v, column)| {
                    let share = if high > low && v.is_finite() { (v - low) / (high - low) } else { 0.0 };
                    HeatCell {
                        text: fixed(v, digits),
                        share: (share * 100.0).round(),
                        dark: share > 0.55,
                        none: !v.is_finite(),
                        tip: format!(
                            "{} {name}, {} {column}: {} {}",
                            m.row_name,
                            m.column_name,
                            fixed(v, digits),
                            m.unit
                        ),
                    }
                })
                .collect();
            (name.as_str(), cells)
        })
        .collect();
    let say = |v: f64| format!("{} {}", fixed(v, digits), m.unit);
    Heat { map: m, rows, low: say(low), high: say(high) }
}

fn groups(b: &Bars) -> Vec<Group<'_>> {
    let ends = |bar: &Bar| bar.1.map_or(bar.0, |(_, high)| high.max(bar.0));
    let longest = b.groups.iter().flat_map(|g| g.1.iter().flatten()).map(ends).fold(0.0, f64::max);
    let share = |v: f64| if longest > 0.0 { (v / longest * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let digits = decimals(b.groups.iter().flat_map(|g| g.1.iter().flatten()).map(|bar| bar.0));
    // Units like % or "of nominal" take no prefix.
    let say = |v: f64| match b.unit.as_str() {
        "s" | "J" | "W" | "Hz" | "Wh" => si(v, &b.unit),
        unit => format!("{}\u{a0}{unit}", fixed(v, digits)),
    };
    b.groups
        .iter()
        .map(|(name, bars)| Group {
            name,
            bars: bars
                .iter()
                .enumerate()
                .filter_map(|(i, bar)| Some((i, (*bar)?)))
                .map(|(i, (value, error))| GroupBar {
                    series: i % 8,
                    share: share(value),
                    error: error.map(|(l, h)| (share(l), share(h) - share(l))),
                    text: say(value),
                    tip: match error {
                        Some((l, h)) => format!(
                            "{name}, {}: {} ({} to {})",
                            b.series.get(i).map_or("", String::as_str),
                            say(value),
                            say(l),
                            say(h)
                        ),
                        None => {
                            format!("{name}, {}: {}", b.series.get(i).map_or("", String::as_str), say(value))
                        }
                    },
                })
                .collect(),
        })
        .collect()
}
