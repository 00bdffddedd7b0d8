//! How much a core does in a clock cycle, and how much a thread does beside the others of its core: small kinds of work, timed.
//!
//! What a core's design is worth depends on the work. So there are three kinds, and what they differ by is the interval.

use crate::site::{Pace, Site};
use crate::window::spoiled::Spoiled;
use crate::window::{Observer, Part, Window};
use std::time::Duration;

/// What was found of a kind of core, by kind of work.
#[derive(Clone, Debug, PartialEq)]
pub struct KindPace {
    /// Work a clock cycle, of what the first kind does.
    pub ipc: Pace,
    /// What a thread does with all threads of its core at work, of what it does alone; none without SMT.
    pub beside: Option<Pace>,
}

/// Each kind of work, at a time. Others only slow it down: the best of some tries counts.
const EACH: Duration = Duration::from_millis(100);
const TRIES: usize = 3;

/// The pace of each kind of core, held at its highest speed without boost, which one core alone reaches; none where the site does
/// no real work. Afterwards the machine is as it was before.
///
/// # Errors
/// As of a window.
pub(crate) fn paces(observer: &Observer<'_>, site: &dyn Site) -> Result<Option<Vec<KindPace>>, Spoiled> {
    let kinds = &observer.machine.kinds;
    if let [only] = &observer.layout.packages[0][..]
        && only[0].len() == 1
    {
        // One kind of core, without SMT: nothing to compare.
        return Ok(None);
    }
    let (mut out, mut first) = (Vec::new(), None);
    for (k, kind) in kinds.iter().enumerate() {
        let rest = |k: usize| Part {
            cores: 0,
            all_threads: false,
            share: 0.0,
            level: kinds[k].levels.iter().position(|l| l.khz <= kinds[k].base_khz).unwrap_or(0),
            deepest: kinds[k].idle.len() - 1,
        };
        let window = Window { parts: (0..kinds.len()).map(rest).collect() };
        let level = &kind.levels[window.parts[k].level];
        let core = &observer.layout.packages[0][k][0];
        let mut held = observer.settings(site.root(), &window)?;
        let done = one_kind(site, core, f64::from(level.khz));
        if let Some((what, why)) = held.as_mut().and_then(|h| h.undo().failed.into_iter().next()) {
            return Err(Spoiled::End(format!("{what} was not put back: {why}")));
        }
        let Some((cycle, beside)) = done? else { return Ok(None) };
        let first = *first.get_or_insert(cycle);
        let ipc = std::array::from_fn(|work| cycle[work] / first[work]);
        out.push(KindPace { ipc, beside });
    }
    Ok(Some(out))
}

/// Work a clock cycle of a core with one thread at work, and what each thread does beside all the others. Limits of power and heat
/// may hold the clock below what is asked for, and more so with all threads: everything is counted by the cycle.
fn one_kind(site: &dyn Site, core: &[u32], khz: f64) -> Result<Option<(Pace, Option<Pace>)>, Spoiled> {
    let (mut alone, mut beside) = ([0.0_f64; 3], [0.0_f64; 3]);
    for _ in 0..TRIES {
        let Some(one) = site.pace(&core[..1], EACH).map_err(Spoiled::End)? else { return Ok(None) };
        alone.iter_mut().zip(one[0].cycle(khz)).for_each(|(best, work)| *best = best.max(work));
        if core.len() > 1 {
            let Some(all) = site.pace(core, EACH).map_err(Spoiled::End)? else { return Ok(None) };
            let all: Vec<Pace> = all.iter().map(|p| p.cycle(khz)).collect();
            for (at, best) in beside.iter_mut().enumerate() {
                *best = best.max(all.iter().map(|p| p[at]).sum::<f64>() / all.len() as f64);
            }
        }
    }
    let beside = (core.len() > 1).then(|| std::array::from_fn(|at| (beside[at] / alone[at]).min(1.0)));
    Ok(Some((alone, beside)))
}

/// The middle of the kinds of work, by factors, and the lowest and the highest.
pub(crate) fn over_work(pace: Pace) -> (f64, [f64; 2]) {
    let middle = (pace.iter().map(|p| p.ln()).sum::<f64>() / pace.len() as f64).exp();
    let ends = pace.iter().fold([f64::INFINITY, 0.0], |[low, high], p| [p.min(low), p.max(high)]);
    (middle, ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_taken_together_by_factors() {
        let (middle, ends) = over_work([0.5, 1.0, 2.0]);
        assert!((middle - 1.0).abs() < 1e-12 && ends == [0.5, 2.0]);
    }
}
