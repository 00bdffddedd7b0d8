//! What several commands print.

pub(crate) mod answer;
pub(crate) mod believable;
pub(crate) mod benches;
pub(crate) mod csv;
pub(crate) mod markdown;
pub(crate) mod mix;
pub(crate) mod names;
pub(crate) mod notes;
pub(crate) mod older;
pub(crate) mod report;
pub(crate) mod result_file;
pub(crate) mod run;
pub(crate) mod screen;
#[cfg(test)]
mod strangers;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod trace;
pub(crate) mod tune;
