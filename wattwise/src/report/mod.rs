//! Reports for people: one HTML file without network.
//!
//! [`compare_html`] draws a [`Comparison`](crate::experiment::result::Comparison) with the timelines
//! behind it; [`page()`] lays out a study from [`Section`]s; [`Plot::svg`] gives one chart for the docs.
//!
//! Every file is whole: style, script and data are inside, and its content security policy allows
//! nothing from outside, so that a report can be mailed, archived and opened in twenty years. Words,
//! tables and bars are in the HTML itself and need no script; the script adds what has to be
//! drawn or touched. `assets/uplot.min.*` are generated (`cargo run -p xtask -- charts`), the other
//! assets are ours and go in as they stand.

mod compare;
mod data;
mod number;
mod page;
mod plot;

pub use compare::{PolicyDetail, compare_html};
pub use page::{Bar, Bars, Heatmap, Section, Table, page, page_of};
pub use plot::{Axis, Plot, Point, Scale, Series, Shape};

const REPORT_CSS: &str = include_str!("assets/report.css");
const REPORT_JS: &str = include_str!("assets/report.js");
const COMPARE_JS: &str = include_str!("assets/compare.js");
const UPLOT_CSS: &str = include_str!("assets/uplot.min.css");
const UPLOT_JS: &str = include_str!("assets/uplot.min.js");

#[cfg(test)]
mod tests {
    /// The assets go between `<script>` and `<style>` tags as they stand.
    #[test]
    fn no_asset_ends_its_own_tag() {
        for asset in
            [super::REPORT_CSS, super::REPORT_JS, super::COMPARE_JS, super::UPLOT_CSS, super::UPLOT_JS]
        {
            assert!(!asset.contains("</"), "{}", &asset[..80]);
        }
    }
}
