//! A running `wattwised` stands aside while something is measured.

use crate::exit::Failure;
use std::path::Path;
use wattwise_daemon::client::{Pause, SOCKET, pause};
use wattwise_hw::root::Root;

/// Has a daemon of this machine stand aside until what is returned is dropped: the machine is as it was before it.
///
/// # Errors
/// It runs and does not.
pub(crate) fn step_back(root: &dyn Root, what: &str) -> Result<Option<Pause>, Failure> {
    if !root.is_this_machine() {
        return Ok(None);
    }
    pause(Path::new(SOCKET), what).map_err(Failure::impossible)
}
