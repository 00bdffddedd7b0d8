//! What several commands print.

pub(crate) mod report;
pub(crate) mod result_file;
pub(crate) mod table;
