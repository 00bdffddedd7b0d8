//! Files of `ab`: any bytes give one line, or a plan whose blocks are whole and whose verdict is drawn; seeds: a
//! file of two arms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattwise_live::ab::{log as file, result};

fuzz_target!(|bytes: &[u8]| {
    let read = match file::parse(bytes) {
        Ok(read) => read,
        Err(e) => return assert!(!e.contains('\n'), "{e}"),
    };
    assert!(read.whole as usize <= bytes.len());
    let arms = read.header.arms.len();
    for block in read.counted() {
        assert_eq!(block.len(), arms);
    }
    let judged = result::of(&read);
    assert!(judged.pairs + judged.dropped.len() == read.done().blocks.len());
    result::text(&judged);
    wattwise_report::ab_html(&read, &judged);
});
