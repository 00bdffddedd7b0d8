//! Stand-in.
use super::Machine;
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MachineError(String);
pub fn parse(_: &str, _: &str) -> Result<Machine, MachineError> {
    Err(MachineError("x".into()))
}
