//! From JSON to `report`: any bytes as any of the results give one line, or a page; seeds: results that wattwise wrote.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;
use wattwise_advice::result::Comparison;
use wattwise_advice::summary::ComparisonSet;
use wattwise_live::bench::{throughput::Throughput, transition::Matrix, wake::WakeUps};
use wattwise_page::Section;

fuzz_target!(|bytes: &[u8]| {
    if let Some(c) = read::<Comparison>(bytes) {
        wattwise_report::compare_html(&c, &[], "fuzz");
        show(wattwise_report::compare_sections(&c));
    }
    if let Some(set) = read::<ComparisonSet>(bytes) {
        set.comparisons.iter().for_each(|c| show(wattwise_report::compare_sections(c)));
    }
    if let Some(m) = read::<Matrix>(bytes) {
        show(wattwise_report::transition_sections(&m));
    }
    if let Some(t) = read::<Throughput>(bytes) {
        show(wattwise_report::throughput_sections(&t));
    }
    if let Some(w) = read::<WakeUps>(bytes) {
        show(wattwise_report::wake_sections(&w));
    }
});

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

fn show(sections: Vec<Section>) {
    wattwise_page::page("fuzz", "fuzz", &sections);
}
