//! The report of `compare`.
//!
//! What is in words, tables, bars or intervals is laid out here and works without script and in print; what
//! has to be drawn to the width of a screen or zoomed is left to `assets/compare.js`.
//!
//! The order is a reader's: the answer (`tiles`), how sure it is (`intervals`), every policy in groups
//! (`groups`, `table`), what decides and what went in (`inputs`), where the energy went (`bars`).

mod bars;
mod beside;
pub(crate) mod groups;
mod inputs;
mod intervals;
mod table;
mod tiles;

use askama::Template;

use crate::{COMPARE_JS, data};
use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::result::Comparison;
use wattwise_page::number::{fixed, percent, time};
use wattwise_page::{REPORT_CSS, REPORT_JS, UPLOT_CSS, UPLOT_JS};

pub use beside::{compare_sections, compared_side_by_side};

use bars::{Stacks, energy_bars, idle_states, time_bars};
use inputs::{ConfidenceCount, Decides, confidence, decides, provenance, shaky};
use intervals::{Whiskers, whiskers};
use table::{Main, Nominal, main_table, nominal_table};
use tiles::{Tile, headline, tiles};
use wattwise_advice::say;
use wattwise_advice::words::{self, in_words};

/// One self-contained HTML file.
///
/// `details` may lack policies, or be empty: their timelines and latencies are then left out.
/// `command` is what the reader types to get the same report again.
pub fn compare_html(comparison: &Comparison, details: &[PolicyDetail], command: &str) -> String {
    let c = comparison;
    let states = idle_states(c);
    let groups = groups::groups(c);
    let page = ComparePage {
        c,
        command,
        provenance: provenance(c),
        headline: headline(c),
        words: in_words(&c.answer.recommended, &c.reference),
        tiles: tiles(c),
        intervals: groups::with_intervals(c),
        whiskers: whiskers(c, &groups),
        table: main_table(c, &groups),
        nominal: nominal_table(c),
        decides: decides(c),
        energy: energy_bars(c, &states),
        time: time_bars(c, &states),
        judged: inputs::judged(c),
        limit: inputs::limit(c),
        replicas: inputs::replicas(c),
        of_replicas: inputs::replicas_of_rows(c),
        serious: say::serious(c).next().is_some(),
        gaps: say::small_gaps(c),
        varied: c.inputs.machine_figures.iter().filter(|f| f.range.is_some()).count(),
        background: percent(c.workload.background_share),
        duration: time(c.workload.duration_s),
        window: time(c.window_s),
        window_why: inputs::window(c),
        events: fixed(c.workload.events as f64, 0),
        confidence: confidence(&c.inputs.machine_figures),
        timeline: details.iter().any(|d| !d.timeline.power_w.is_empty()),
        wake: details.iter().any(|d| !d.wake_histogram.is_empty()),
        data: data::json(c, details),
        css: [UPLOT_CSS, REPORT_CSS],
        js: [UPLOT_JS, REPORT_JS, COMPARE_JS],
    };
    wattwise_page::finished(&page.render().expect("writing to a string cannot fail"))
}

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage<'a> {
    c: &'a Comparison,
    command: &'a str,
    provenance: String,
    headline: String,
    words: Option<String>,
    tiles: Vec<Tile>,
    /// Whether there are replicas, and so intervals.
    intervals: bool,
    whiskers: Option<Whiskers<'a>>,
    table: Main<'a>,
    nominal: Nominal<'a>,
    decides: Option<Decides<'a>>,
    energy: Stacks<'a>,
    time: Stacks<'a>,
    judged: String,
    limit: String,
    replicas: String,
    /// What a dot of the intervals is the median of.
    of_replicas: String,
    /// Whether a warning may change the answer.
    serious: bool,
    /// What the other warnings come to.
    gaps: Option<String>,
    /// Figures of the machine that the replicas vary.
    varied: usize,
    background: String,
    duration: String,
    window: String,
    window_why: &'static str,
    events: String,
    confidence: Vec<ConfidenceCount>,
    timeline: bool,
    wake: bool,
    data: String,
    css: [&'static str; 2],
    js: [&'static str; 3],
}
