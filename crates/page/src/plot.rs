//! A chart as SVG, without script: for studies' pages and for the docs.

use std::fmt::Write as _;

use crate::number::{fixed, si};

/// Curves over one pair of axes.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Said above it.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// At most eight keep colours of their own; more repeat them with dashes.
    pub series: Vec<Series>,
    /// Said below it: where the figures are from.
    pub note: String,
}

/// What an axis shows.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The quantity.
    pub name: String,
    /// Its unit without prefix; empty for counts and shares.
    pub unit: String,
    /// How values spread.
    pub scale: AxisScale,
    /// Least and greatest shown; `None` fits the data.
    pub range: Option<(f64, f64)>,
    /// Only whole numbers get a tick, as for threads.
    pub whole: bool,
}

/// How values spread over an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    /// Evenly.
    #[default]
    Linear,
    /// By powers of ten; values that are not positive are left out.
    Log,
}

/// One curve.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// How its points are joined.
    pub shape: LineShape,
    /// Rising in x.
    pub points: Vec<Point>,
}

/// How points are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineShape {
    /// A value holds until the next point: speeds, states, counts.
    #[default]
    Step,
    /// Straight lines.
    Line,
    /// Not at all: measured points.
    Points,
}

/// One value, with its error if it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Lower and upper end of the error bar.
    pub error: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Point { x, y, error: None }
    }
}

/// The series' colours in order, on light and on dark: apart for colour-blind readers.
pub(super) const COLOURS: [(&str, &str); 8] = [
    ("#0067a5", "#5fb2ea"),
    ("#cc5500", "#ff8f4d"),
    ("#00805e", "#36c79b"),
    ("#b0447f", "#ea86ba"),
    ("#3a9bd9", "#a8dcff"),
    ("#b58900", "#e6c04a"),
    ("#4d4d4d", "#c9d1d9"),
    ("#7d63a8", "#b8a1e3"),
];

/// A line of a chart's legend.
pub(super) struct LegendEntry<'a> {
    pub(super) name: &'a str,
    /// Number of its colour.
    pub(super) colour: usize,
    /// An attribute of SVG for a dashed line; empty for a solid one.
    pub(super) dash: &'static str,
}

const DASHES: [&str; 3] = ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""];

/// Size of a drawing in its own units; it scales with the page.
#[derive(Clone, Copy)]
struct Size {
    width: f64,
    height: f64,
    /// Ticks across and up.
    ticks: (usize, usize),
}

/// A chart alone.
const WHOLE: Size = Size { width: 760.0, height: 360.0, ticks: (8, 6) };
/// One of several beside each other: as large in its letters, smaller in its place.
const SMALL: Size = Size { width: 340.0, height: 230.0, ticks: (4, 4) };
const WIDTH: f64 = WHOLE.width;
const HEIGHT: f64 = WHOLE.height;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 50.0;

impl Plot {
    /// A file of its own, for the docs: title, chart and legend, in light and dark.
    pub fn svg(&self) -> String {
        let mut dark = String::new();
        let mut light = String::new();
        for (i, (on_light, on_dark)) in COLOURS.iter().enumerate() {
            let _ = write!(light, "--s{i}:{on_light};");
            let _ = write!(dark, "--s{i}:{on_dark};");
        }
        let legend = self.series.len() as f64 * 20.0;
        let height = 34.0 + HEIGHT + legend + if self.note.is_empty() { 8.0 } else { 28.0 };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n\
             <style>svg{{--ink:#15202b;--soft:#566270;--line:#dde3e9;--card:#fff;{light}}}\
             @media (prefers-color-scheme:dark){{svg{{--ink:#e4ebf1;--soft:#a0adba;--line:#2a3642;--card:#161e27;{dark}}}}}\
             text{{font:13px system-ui,sans-serif;fill:var(--soft)}}.title{{font-weight:600;font-size:15px;fill:var(--ink)}}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"var(--card)\"/>\n\
             <text class=\"title\" x=\"16\" y=\"25\">{title}</text>\n<g transform=\"translate(0 34)\">\n{chart}</g>\n",
            title = escape(&self.title),
            chart = self.drawing(WHOLE),
        );
        for (i, series) in self.series.iter().enumerate() {
            let y = 34.0 + HEIGHT + 8.0 + 20.0 * i as f64;
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" style=\"stroke:var(--s{})\" stroke-width=\"2.5\"{}/>\
                 <text x=\"{}\" y=\"{}\">{}</text>",
                LEFT + 26.0,
                i % 8,
                DASHES[i / 8 % 3],
                LEFT + 34.0,
                y + 4.0,
                escape(&series.name),
            );
        }
        if !self.note.is_empty() {
            let _ = writeln!(out, "<text x=\"16\" y=\"{}\">{}</text>", height - 10.0, escape(&self.note));
        }
        crate::finished(&(out + "</svg>\n"))
    }

    /// The chart within a page, which has the title, the legend and the colours.
    pub(super) fn inline_svg(&self) -> String {
        self.inline(WHOLE)
    }

    /// The same in a row of several.
    pub(super) fn small_svg(&self) -> String {
        self.inline(SMALL)
    }

    fn inline(&self, size: Size) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}; the same figures are in the table below\">\n{}</svg>",
            size.width,
            size.height,
            escape(&self.title),
            self.drawing(size)
        )
    }

    /// The legend, an entry a line.
    pub(super) fn legend(&self) -> Vec<LegendEntry<'_>> {
        let dash = |i: usize| DASHES[i / 8 % 3];
        let series = self.series.iter().enumerate();
        series.map(|(i, s)| LegendEntry { name: &s.name, colour: i % 8, dash: dash(i) }).collect()
    }

    fn drawing(&self, Size { width, height, ticks }: Size) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let ends = |p: &Point| {
            let (low, high) = p.error.unwrap_or((p.y, p.y));
            [low, p.y, high]
        };
        let x = Map::new(&self.x, points().map(|p| p.x), LEFT, width - RIGHT, false);
        let y = Map::new(&self.y, points().flat_map(ends), height - BOTTOM, TOP, true);
        let mut out = String::new();
        let (right, bottom) = (width - RIGHT, height - BOTTOM);

        for (value, text) in x.ticks(ticks.0) {
            let at = x.at(value);
            let _ = writeln!(
                out,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" style=\"stroke:var(--line)\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
                bottom + 18.0
            );
        }
        for (value, text) in y.ticks(ticks.1) {
            let at = y.at(value);
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" style=\"stroke:var(--line)\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 8.0,
                at + 4.0
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            height - 8.0,
            escape(&x.name(&self.x)),
            (TOP + bottom) / 2.0,
            escape(&y.name(&self.y)),
        );
        for (i, series) in self.series.iter().enumerate() {
            self.curve(&mut out, i, series, &x, &y);
        }
        out
    }

    /// One series: its line, its error bars, its marks.
    fn curve(&self, out: &mut String, i: usize, series: &Series, x: &Map, y: &Map) {
        let style = format!("style=\"stroke:var(--s{})\"{}", i % 8, DASHES[i / 8 % 3]);
        let shown: Vec<&Point> = series.points.iter().filter(|p| x.shows(p.x) && y.shows(p.y)).collect();
        let mut path = String::new();
        for (k, p) in shown.iter().enumerate() {
            let (px, py) = (x.at(p.x), y.at(p.y));
            let _ = match (k, series.shape) {
                (0, _) => write!(path, "M{px:.1} {py:.1}"),
                (_, LineShape::Step) => write!(path, "H{px:.1}V{py:.1}"),
                _ => write!(path, "L{px:.1} {py:.1}"),
            };
        }
        if series.shape != LineShape::Points && !path.is_empty() {
            let _ = writeln!(
                out,
                "<path d=\"{path}\" fill=\"none\" {style} stroke-width=\"2\" stroke-linejoin=\"round\"/>"
            );
        }
        for p in &shown {
            let (px, py) = (x.at(p.x), y.at(p.y));
            if let Some((low, high)) = p.error.filter(|(l, h)| y.shows(*l) && y.shows(*h)) {
                let (l, h) = (y.at(low), y.at(high));
                let _ = writeln!(
                    out,
                    "<path d=\"M{px:.1} {l:.1}V{h:.1}M{:.1} {l:.1}h8M{:.1} {h:.1}h8\" fill=\"none\" style=\"stroke:var(--s{})\" stroke-width=\"1.5\"/>",
                    px - 4.0,
                    px - 4.0,
                    i % 8
                );
            }
            // Marks on few points only: on many they hide the curve.
            if series.shape == LineShape::Points || p.error.is_some() || shown.len() <= 24 {
                let tip = format!(
                    "{}\n{} {}\n{} {}",
                    series.name,
                    self.x.name,
                    x.say(p.x, &self.x.unit),
                    self.y.name,
                    y.say(p.y, &self.y.unit)
                );
                let _ = writeln!(
                    out,
                    "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3.5\" style=\"fill:var(--s{})\" data-tip=\"{}\"/>",
                    i % 8,
                    escape(&tip)
                );
            }
        }
    }
}

/// From values to places on the drawing.
struct Map {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
    /// Only whole numbers get a tick.
    whole: bool,
    /// Ticks are in `10^(3 power)` of the unit.
    power: i32,
    prefixed: bool,
}

impl Map {
    fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64, room: bool) -> Self {
        let log = axis.scale == AxisScale::Log;
        let (mut low, mut high) = values
            .filter(|v| v.is_finite() && (!log || *v > 0.0))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if let Some(range) = axis.range.filter(|r| r.0 < r.1 && (!log || r.0 > 0.0)) {
            (low, high) = range;
        } else if log {
            low = 10f64.powf(low.log10().floor());
            high = 10f64.powf((high * 1.0001).log10().ceil()).max(low * 10.0);
        } else {
            // A foot at zero where that costs little: heights then compare.
            if room && low > 0.0 && low < high * 0.6 {
                low = 0.0;
            }
            let pad = if high > low { (high - low) * 0.05 } else { (high.abs() * 0.1).max(1e-9) };
            high += if room || high == low { pad } else { 0.0 };
            low -= if (room && low != 0.0) || high - pad == low { pad } else { 0.0 };
        }
        // Only units that take a prefix get one: "k%" is not a unit.
        let prefixed = axis.unit.chars().next().is_some_and(char::is_alphabetic);
        let size = low.abs().max(high.abs());
        let power =
            if prefixed && size > 0.0 { ((size.log10() / 3.0).floor() as i32).clamp(-3, 3) } else { 0 };
        Map { low, high, from, to, log, whole: axis.whole, power, prefixed }
    }

    fn shows(&self, value: f64) -> bool {
        let slack = (self.high - self.low) * 1e-9;
        value.is_finite() && value >= self.low - slack && value <= self.high + slack
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values with their text: 1, 2 or 5 times a power of ten apart, or decades.
    fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        if self.log {
            let decades = self.low.log10().ceil() as i32..=self.high.log10().floor() as i32;
            return decades.map(|d| 10f64.powi(d)).map(|v| (v, self.decade(v))).collect();
        }
        let raw = (self.high - self.low) / most as f64;
        let ten = 10f64.powf(raw.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|m| m * ten).into_iter().find(|s| *s >= raw * 0.999).unwrap_or(raw);
        let step = if self.whole { step.max(1.0) } else { step };
        let unit = 1000f64.powi(self.power);
        let decimals = (-((step / unit).log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).map(|v| (v, fixed(v / unit, decimals))).collect()
    }

    fn decade(&self, value: f64) -> String {
        let scaled = value / 1000f64.powi(self.power);
        match scaled {
            0.001..1e5 => fixed(scaled, (-scaled.log10()).ceil().max(0.0) as usize),
            _ => format!("10<tspan dy=\"-4\" font-size=\"75%\">{}</tspan>", scaled.log10().round()),
        }
    }

    fn name(&self, axis: &Axis) -> String {
        let prefix = ["n", "µ", "m", "", "k", "M", "G"][(self.power + 3) as usize];
        match axis.unit.is_empty() {
            true => axis.name.clone(),
            false => format!("{}, {prefix}{}", axis.name, axis.unit),
        }
    }

    fn say(&self, value: f64, unit: &str) -> String {
        match self.prefixed {
            true => si(value, unit),
            false => format!("{} {unit}", fixed(value, crate::number::decimals([value]).min(3)))
                .trim_end()
                .to_owned(),
        }
    }
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[(f64, f64)]) -> Plot {
        let points = points.iter().map(|p| Point::from(*p)).collect();
        Plot {
            title: "a < b & \"c\"".to_owned(),
            x: Axis { name: "time".to_owned(), unit: "s".to_owned(), ..Axis::default() },
            y: Axis { name: "speed".to_owned(), unit: "Hz".to_owned(), ..Axis::default() },
            series: vec![Series { name: "set".to_owned(), points, ..Series::default() }],
            note: String::new(),
        }
    }

    #[test]
    fn steps_hold_their_value_and_names_are_escaped() {
        let svg = plot(&[(0.0, 0.6e9), (1.0, 1.7e9), (4.0, 0.6e9)]).svg();
        assert!(svg.contains("speed, GHz"), "{svg}");
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;"));
        let path = svg.split("<path d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(path.matches('H').count(), 2, "{path}");
        assert_eq!(path.matches('V').count(), 2, "{path}");
    }

    #[test]
    fn odd_data_draws_without_nan() {
        for points in
            [&[][..], &[(0.0, 0.0)], &[(1.0, 5.0), (1.0, 5.0)], &[(f64::NAN, 1.0), (0.0, f64::INFINITY)]]
        {
            let mut p = plot(points);
            assert!(!p.svg().contains("NaN") && !p.svg().contains("inf"), "{points:?}");
            (p.x.scale, p.y.scale) = (AxisScale::Log, AxisScale::Log);
            assert!(!p.svg().contains("NaN") && !p.svg().contains("inf"), "{points:?} log");
        }
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis { range: Some((0.0, 7.3)), ..Axis::default() };
        let texts: Vec<String> =
            Map::new(&axis, [].into_iter(), 0.0, 1.0, false).ticks(8).into_iter().map(|t| t.1).collect();
        assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    }

    #[test]
    fn an_axis_of_counts_has_whole_numbers() {
        let axis = |whole| Axis { name: "threads".to_owned(), whole, ..Axis::default() };
        let texts = |whole| -> Vec<String> {
            let map = Map::new(&axis(whole), [2.0, 4.0].into_iter(), 0.0, 1.0, false);
            map.ticks(6).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(true), ["2", "3", "4"]);
        assert!(texts(false).contains(&"2.5".to_owned()));
    }
}
