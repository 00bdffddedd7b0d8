//! Where a recording comes from.

use std::path::PathBuf;
use std::sync::Arc;

/// Where a recording is.
#[derive(Clone, Debug)]
pub enum Source {
    /// In a file (or a pipe, which is then read to its end first).
    Path(PathBuf),
    /// In memory.
    Bytes {
        /// For reports and errors.
        name: String,
        /// The recording.
        data: Arc<[u8]>,
    },
    /// In the binary itself: the bundled recordings.
    Static {
        /// For reports and errors.
        name: String,
        /// The recording.
        data: &'static [u8],
    },
}
