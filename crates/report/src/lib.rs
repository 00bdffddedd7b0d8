//! Reports of what was compared, run and benchmarked: each as one HTML file.
//!
//! [`compare_html`] draws a [`Comparison`](wattwise_advice::result::Comparison) with the timelines behind it; the others
//! make [`Section`](wattwise_page::Section)s, which [`wattwise_page::page`] lays out.
//!
//! It uses `page`, the results of `advice` and `live`, and decides nothing.
#![forbid(unsafe_code)]

mod ab;
mod bench;
mod compare;
mod data;
pub mod locks;
mod mix;
mod prove;

pub use ab::{ab_html, ab_sections};
pub use bench::{run_sections, throughput_sections, transition_sections, wake_sections};
pub use compare::{compare_html, compare_sections, compared_side_by_side};
pub use mix::mix_sections;
pub use prove::{prove_html, prove_sections};

const COMPARE_JS: &str = include_str!("assets/compare.js");

#[cfg(test)]
mod tests {
    /// It goes between `<script>` tags as it stands.
    #[test]
    fn no_asset_ends_its_own_tag() {
        assert!(!super::COMPARE_JS.contains("</"));
    }
}
