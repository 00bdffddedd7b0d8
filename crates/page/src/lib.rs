//! One HTML file without network: [`page()`] lays out [`Section`]s; [`Plot::svg`] gives one chart for the docs.
//!
//! Every file is whole: style, script and data are inside, and its content security policy allows
//! nothing from outside, so that a report can be mailed, archived and opened in twenty years. Words,
//! tables and bars are in the HTML itself and need no script; the script adds what has to be
//! drawn or touched. `assets/uplot.min.*` are generated (`cargo xtask charts`), the other
//! assets are ours and go in as they stand.
//!
//! This room knows nothing of what is shown: it uses no other crate of wattwise.
#![forbid(unsafe_code)]

pub mod number;
#[allow(clippy::module_inception)]
mod page;
mod plot;
mod whiskers;

pub use page::{Bar, Bars, Heatmap, Section, Table, page};
pub use plot::{Axis, Plot, Point, Scale, Series, Shape};
pub use whiskers::{Whisker, Whiskers};

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
