//! One run of a comparison once more, with somebody who is told what happens in it.

use crate::error::CompareError;
use crate::replicas::Replica;
use wattwise_replay::job::{ReplayJob, limit_ns, machine_idle, simulate_watched};
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::Watcher;
use wattwise_sim::outcome::Outcome;

/// Runs a policy of a job in the nominal model, to the end of a window of `window_s` seconds from the release of the
/// foreground ([`Comparison::window_s`](crate::result::Comparison::window_s)) or of the foreground, whichever is later.
///
/// # Errors
/// As [`compare`](crate::compare::compare()): the machine's idle policy does not exist, or the work does not end.
pub fn watch(
    job: &ReplayJob<'_>,
    policy: &PolicySpec,
    window_s: f64,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, CompareError> {
    let idle = machine_idle(job.machine)?;
    let nominal = Replica::draw(job.machine, job.workload, 0)?;
    let with = nominal.circumstances();
    let mut sim = simulate_watched(job, &with, policy, &idle, true, Some(Box::new(watcher)));
    let failed = |source| CompareError::of_run(policy, with.workload, source);
    let own = sim.run_to_completion(limit_ns(job, with.workload)).map_err(failed)?;
    let window_ns = with.workload.release_ns + (window_s * 1e9).round() as u64;
    let outcome = sim.run_until(window_ns.max(own.elapsed_ns));
    sim.check_events().map_err(failed)?;
    Ok(outcome)
}
