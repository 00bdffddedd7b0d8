//! Locks under load: threads x sections x locks x waiting policies, measured here or on a machine model.
//!
//! Study 004 asks what a waiting thread should do with its core; Lockbench's answer is a table of throughput and
//! joules over threads and lengths of sections. This is that table, with what either left out: CPU time, fairness,
//! how long threads waited, and an interval for every difference.
//!
//! The locks of one cell (threads, sections) run one after another, in a random order; the cells too, in each
//! repeat anew. What drifts with the machine is thus shared by the locks of a cell, and differences are judged
//! within cells: by the ratios of one repeat, with Student's interval over the repeats.
//!
//! This room holds what a benchmark is and how it is judged; who runs it, on this machine (`live`) or on a model
//! (`replay`), is above. It uses `figure` alone.
#![forbid(unsafe_code)]

pub mod advise;
pub mod judge;
mod matrix;
pub mod section;

pub use matrix::{LockMatrix, LockTurn};

use crate::section::Section;
use serde::{Deserialize, Serialize};
use wattwise_figure::Provenance;

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Threads.
    pub threads: usize,
    /// Critical section, us.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub cs_us: Section,
    /// Non-critical section, us.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub ncs_us: Section,
}

/// One measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Which repeat, from 0.
    pub repeat: usize,
    /// The lock with its waiting policy.
    pub lock: String,
    /// Where in the table.
    #[serde(flatten)]
    pub place: Place,
    /// Length of the window, s.
    pub window_s: f64,
    /// Throughput.
    pub acquisitions_per_s: f64,
    /// CPU time over time: how many CPUs the process kept busy, waiting included.
    pub cpus: f64,
    /// CPU time for one acquisition, s.
    pub cpu_s_per_acquisition: f64,
    /// Jain's index of the threads' acquisitions: 1 when all got as many, 1/threads when one got all.
    pub jain: f64,
    /// Half of the waits were shorter, us.
    pub wait_p50_us: f64,
    /// 99 % were shorter, us.
    pub wait_p99_us: f64,
    /// 99.9 % were shorter, us.
    pub wait_p999_us: f64,
    /// The longest, us.
    pub wait_max_us: f64,
    /// Energy over the window, J, where there is a figure.
    pub energy_j: Option<f64>,
    /// Acquisitions a joule.
    pub acquisitions_per_j: Option<f64>,
}

/// Everything that came out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bench {
    /// Name and version of this shape.
    pub schema: String,
    /// Where: this machine or a model.
    pub machine: String,
    /// How throughput, times and fairness came about.
    pub figures: Provenance,
    /// How energy came about.
    pub energy: Provenance,
    /// Of orders and lengths.
    pub seed: u64,
    /// Repeats of the whole.
    pub repeats: usize,
    /// Whether threads were bound to CPUs.
    pub pinned: bool,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
    /// Each measurement in the order in which it was made.
    pub records: Vec<Record>,
    /// Each lock in each place, over the repeats.
    pub cells: Vec<crate::judge::Cell>,
    /// What holds of one lock against the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<crate::judge::Verdict>,
}

/// Name and version of [`Bench`] as JSON.
pub const SCHEMA: &str = "wattwise-bench-locks-1";

/// Jain's index (Jain, Chiu, Hawe 1984); nothing acquired is fair.
pub fn jain(acquired: &[u64]) -> f64 {
    let sum: f64 = acquired.iter().map(|n| *n as f64).sum();
    let squares: f64 = acquired.iter().map(|n| (*n as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (acquired.len() as f64 * squares) }
}

impl Bench {
    /// One line a measurement.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "repeat,lock,threads,cs_us,ncs_us,window_s,acquisitions_per_s,cpus,cpu_s_per_acquisition,jain,\
             wait_p50_us,wait_p99_us,wait_p999_us,wait_max_us,energy_j,acquisitions_per_j\n",
        );
        let maybe = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.6e}"));
        for r in &self.records {
            out += &format!(
                "{},{},{},{},{},{:.6},{:.1},{:.4},{:.6e},{:.5},{:.3},{:.3},{:.3},{:.1},{},{}\n",
                r.repeat,
                wattwise_figure::csv_cell(&r.lock.to_string()),
                r.place.threads,
                r.place.cs_us,
                r.place.ncs_us,
                r.window_s,
                r.acquisitions_per_s,
                r.cpus,
                r.cpu_s_per_acquisition,
                r.jain,
                r.wait_p50_us,
                r.wait_p99_us,
                r.wait_p999_us,
                r.wait_max_us,
                maybe(r.energy_j),
                maybe(r.acquisitions_per_j),
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_1_for_equals_and_a_share_for_one() {
        assert_eq!(jain(&[5, 5, 5]), 1.0);
        assert_eq!(jain(&[9, 0, 0]), 1.0 / 3.0);
        assert_eq!(jain(&[0, 0]), 1.0);
    }
}
