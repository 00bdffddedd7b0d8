//! `wattwise reproduce`.
use super::Outcome;
#[derive(clap::Args)]
pub(super) struct Args {}
pub(super) fn run(_: &Args) -> Outcome {
    Ok(0)
}
