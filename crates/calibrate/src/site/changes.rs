//! Changes of speed, tried.

use std::time::Duration;
use wattwise_control::delays::transition::{Stage, Trials, path_us, try_all};

/// Changes of speed that were tried.
#[derive(Clone, Debug)]
pub struct Changes {
    /// By pair of speeds.
    pub trials: Vec<Trials>,
    /// What a request took that changed nothing, in us.
    pub path_us: Vec<f64>,
    /// How exactly it was told when a change was in force, in us.
    pub within_us: f64,
}

/// Which changes of speed are to be tried.
pub struct Ask<'a> {
    /// The speeds.
    pub levels_khz: &'a [u64],
    /// Time that they may take.
    pub most: Duration,
    /// Asked between trials: why to stop.
    pub stop: &'a dyn Fn() -> Option<String>,
}

/// Of the rounds of all pairs of speeds.
const ROUNDS: usize = 20;
/// Requests that change nothing.
const PATHS: usize = 20;

/// Tries changes of speed until there are enough or the time is over.
pub(crate) fn try_changes(stage: &mut dyn Stage, within_us: f64, ask: &Ask<'_>) -> Result<Changes, String> {
    let begun = stage.now_ns();
    let over = |now_ns: u64| Duration::from_nanos(now_ns.saturating_sub(begun)) >= ask.most;
    let path_us = path_us(stage, ask.levels_khz[0], PATHS)?;
    let mut levels = ask.levels_khz.to_vec();
    let mut trials: Vec<Trials> = Vec::new();
    for round in 0..ROUNDS {
        if over(stage.now_ns()) {
            break;
        }
        for new in try_all(stage, &levels, 1, round as u64, ask.stop)? {
            match trials.iter_mut().find(|t| (t.from_khz, t.to_khz) == (new.from_khz, new.to_khz)) {
                Some(own) => {
                    own.us.extend(new.us);
                    own.missed += new.missed;
                }
                None => trials.push(new),
            }
        }
        // A speed that never comes takes a tenth of a second each time.
        let comes = |khz: &u64| trials.iter().any(|t| t.to_khz == *khz && t.us.len() > t.missed);
        levels.retain(comes);
    }
    Ok(Changes { trials, path_us, within_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes that take 100 us; one of the speeds never comes.
    struct Stuck {
        now: u64,
        asked: (u64, u64),
        shown: u64,
    }

    impl Stage for Stuck {
        fn now_ns(&mut self) -> u64 {
            self.now
        }
        fn request(&mut self, khz: u64) -> Result<(), String> {
            self.now += 1_000;
            self.asked = (khz, self.now + 100_000);
            Ok(())
        }
        fn in_force(&mut self, _: u64, to: u64) -> Result<bool, String> {
            self.now += 1_000;
            if self.now >= self.asked.1 && self.asked.0 != 3 {
                self.shown = self.asked.0;
            }
            Ok(self.shown == to)
        }
        fn rest(&mut self, ns: u64) {
            self.now += ns;
        }
    }

    #[test]
    fn a_speed_that_never_comes_is_tried_once() {
        let ask = Ask { levels_khz: &[3, 2, 1], most: Duration::from_secs(60), stop: &|| None };
        let mut stage = Stuck { now: 0, asked: (0, 0), shown: 0 };
        let changes = try_changes(&mut stage, 0.0, &ask).expect("tries");
        let tried = |from, to| {
            let of = changes.trials.iter().find(|t| (t.from_khz, t.to_khz) == (from, to));
            of.map(|t| (t.us.len(), t.missed))
        };
        assert_eq!((tried(2, 1), tried(2, 3), tried(3, 1)), (Some((ROUNDS, 0)), Some((0, 1)), Some((0, 1))));
        // The request itself, which takes 1 us, is timed apart.
        let us = &changes.trials.iter().find(|t| (t.from_khz, t.to_khz) == (2, 1)).expect("is tried").us;
        assert!(us.iter().all(|us| (us - 101.0).abs() < 2.0), "{us:?}");
        assert!(changes.path_us.iter().all(|us| (us - 1.0).abs() < 2.0), "{:?}", changes.path_us);
        // No more than it may take: a round is some 14 ms without the speed that never comes.
        let ask = Ask { most: Duration::from_millis(1), ..ask };
        let changes = try_changes(&mut stage, 0.0, &ask).expect("tries");
        assert!(changes.trials.is_empty(), "{changes:?}");
    }
}
