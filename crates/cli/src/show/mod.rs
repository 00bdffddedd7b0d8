//! What several commands print.

pub(crate) mod csv;
#[cfg(test)]
mod hostile;
pub(crate) mod markdown;
pub(crate) mod report;
pub(crate) mod result_file;
pub(crate) mod screen;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod tune;
