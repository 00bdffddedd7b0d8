//! Stand-in until the recorder lands.
use std::path::{Path, PathBuf};
pub struct RecordOptions {
    pub output: PathBuf,
    pub command: Vec<String>,
}
impl RecordOptions {
    pub fn new(o: &Path, command: Vec<String>) -> Self {
        RecordOptions { output: o.into(), command }
    }
}
pub struct RecordReport;
impl RecordReport {
    pub fn exit_code(&self) -> Option<i32> {
        None
    }
}
#[derive(Debug, thiserror::Error)]
#[error("recording has not landed")]
pub struct RecordError;
impl RecordError {
    pub fn is_impossible(&self) -> bool {
        true
    }
}
pub fn run(_: &RecordOptions) -> Result<RecordReport, RecordError> {
    Err(RecordError)
}
