//! One HTML file without network: [`page()`] lays out [`Section`]s; [`Plot::svg`] gives one chart for the docs.
//!
//! Every file is whole: style, script and data are inside, and its content security policy allows
//! nothing from outside, so that a report can be mailed, archived and opened in twenty years. Words,
//! tables and bars are in the HTML itself and need no script; the script adds what has to be
//! drawn or touched. `assets/uplot.min.*` are generated (`cargo xtask charts`), the other
//! assets are ours and go in as they stand.
//!
//! Names on a page come from strangers. [`finished`] is the last step of every page: the templates and [`Plot::svg`] have
//! escaped what HTML would act on, it shows what a terminal or the order of writing would act on.
//!
//! This room knows nothing of what is shown.
#![forbid(unsafe_code)]

pub mod number;
#[allow(clippy::module_inception)]
mod page;
mod plot;
mod whiskers;

pub use page::{Bar, Bars, Heatmap, Section, Table, page};
pub use plot::{Axis, AxisScale, LineShape, Plot, Point, Series};
pub use whiskers::{Whisker, Whiskers};

/// A page as it may be kept and printed, whoever wrote what it shows: what a terminal acts on, and what changes the order of
/// letters, is shown as `\u{202e}`.
pub fn finished(html: &str) -> String {
    wattwise_figure::on_screen(html).into_owned()
}

/// A value as JSON between script tags: exact, and nothing in it ends the script or is acted on where the page is printed.
///
/// # Errors
/// What cannot be JSON, such as a map whose keys are no texts.
pub fn script_json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    let json = wattwise_figure::on_screen_json(&serde_json::to_string(value)?);
    Ok(json.replace('<', "\\u003c"))
}

/// Style of every page.
pub const REPORT_CSS: &str = include_str!("assets/report.css");
/// Script of every page.
pub const REPORT_JS: &str = include_str!("assets/report.js");
/// Style of the charts that a script draws.
pub const UPLOT_CSS: &str = include_str!("assets/uplot.min.css");
/// The chart library.
pub const UPLOT_JS: &str = include_str!("assets/uplot.min.js");

#[cfg(test)]
mod tests {
    /// The assets go between `<script>` and `<style>` tags as they stand.
    #[test]
    fn no_asset_ends_its_own_tag() {
        for asset in [super::REPORT_CSS, super::REPORT_JS, super::UPLOT_CSS, super::UPLOT_JS] {
            assert!(!asset.contains("</"), "{}", &asset[..80]);
        }
    }
}
