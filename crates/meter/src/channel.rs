//! A channel: one counter of one domain.

use crate::counter::CounterShape;
use crate::domain::Domain;
use std::io;

/// A counter of energy.
pub trait Channel: Send {
    /// Of what.
    fn domain(&self) -> Domain;
    /// By what: `perf`, `powercap`, `msr`, `hwmon`.
    fn mechanism(&self) -> &'static str;
    /// How to read its numbers.
    fn shape(&self) -> CounterShape;
    /// What it shows.
    fn read(&mut self) -> io::Result<u64>;
}

/// A domain or mechanism that gives nothing, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Unavailable {
    /// What was looked at.
    pub what: String,
    /// Why it gives nothing, with the remedy.
    pub why: String,
}

/// The most that any one part of a machine draws, W, where nothing tells: more than the largest package
/// sold (500 W) at its short-term limit.
pub(crate) const MOST_W: f64 = 1000.0;

pub(crate) type Channels = (Vec<Box<dyn Channel>>, Vec<Unavailable>);
