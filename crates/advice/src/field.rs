//! All policies in many replicas.

use crate::error::{CompareError, unless_stopped};
use crate::judge::{self, Sample};
use crate::runs::Runs;
use crate::time::TimeKind;
use std::ops::Range;
use wattwise_model::machine::Drawn;

/// All policies in several replicas.
pub(crate) struct ReplicaField {
    /// By policy, the samples by replica.
    pub(crate) columns: Vec<Vec<Sample>>,
    /// By replica, what was drawn.
    pub(crate) draws: Vec<Vec<Drawn>>,
}

/// Samples of all policies in the replicas `numbers`, until somebody says stop.
pub(crate) fn field(
    runs: &Runs<'_, '_>,
    numbers: Range<u64>,
    kind: TimeKind,
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<ReplicaField, CompareError> {
    let one = |number| runs.replica(number).map(|r| (judge::samples(runs, &r, kind), r.replica.into_drawn()));
    let replicas: Vec<(Vec<Sample>, Vec<Drawn>)> =
        wattwise_threads::filter_map::<_, _, _, Result<_, _>>(numbers, |n| {
            (!stopped()).then(|| unless_stopped(one(n))).flatten()
        })?;
    let mut field = ReplicaField { columns: vec![Vec::new(); runs.policies.len()], draws: Vec::new() };
    for (samples, drawn) in replicas {
        field.columns.iter_mut().zip(samples).for_each(|(column, sample)| column.push(sample));
        field.draws.push(drawn);
    }
    Ok(field)
}
