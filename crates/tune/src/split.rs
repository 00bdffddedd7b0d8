//! Which recordings are searched by, and which are kept for the test. A recording is on one side: what the search saw tests nothing,
//! and a copy of it under another name is no other recording.

use wattwise_figure::Random;
use wattwise_model::workload::Workload;

/// Why recordings cannot be divided: one line that names the argument as the program's flags do.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// By its name.
    #[error(
        "{flag} {name}: named twice; expected recordings that are either searched by or kept for the test"
    )]
    Twice {
        /// Where it is named for the second time.
        flag: &'static str,
        /// Its name.
        name: String,
    },
    /// By what is in it.
    #[error(
        "{flag} {name}: has the same work in it as {other}; expected recordings that are either searched by or kept for the test"
    )]
    Same {
        /// Where the second is named.
        flag: &'static str,
        /// Its name.
        name: String,
        /// The first's name.
        other: String,
    },
    /// Nothing is left for the search.
    #[error("WORKLOAD: every recording is kept for the test; expected one to search by")]
    AllTest,
}

/// By recording, whether it is of the test set: the last `tests` of them, or half of them, drawn by the seed, where that is 0.
/// Each is given with the name by which it was asked for.
///
/// # Errors
/// Two are the same, by name or by what is in them, or none is left to search by.
pub fn sides(recordings: &[(&str, &Workload)], tests: usize, seed: u64) -> Result<Vec<bool>, SplitError> {
    let first_test = recordings.len().saturating_sub(tests);
    for (i, (name, work)) in recordings.iter().enumerate() {
        let flag = if i < first_test { "WORKLOAD" } else { "--test" };
        let name = (*name).to_owned();
        if recordings[..i].iter().any(|(other, _)| *other == name) {
            return Err(SplitError::Twice { flag, name });
        }
        if let Some((other, _)) = recordings[..i].iter().find(|(_, w)| w.is_same_work(work)) {
            return Err(SplitError::Same { flag, name, other: (*other).to_owned() });
        }
    }
    let test = match tests {
        0 => split(recordings.len(), seed),
        _ => (0..recordings.len()).map(|i| i >= first_test).collect(),
    };
    if test.iter().all(|t| *t) { Err(SplitError::AllTest) } else { Ok(test) }
}

/// Half of the recordings, drawn by the seed: the test set. One recording has none.
pub fn split(recordings: usize, seed: u64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..recordings).collect();
    Random::new(seed ^ 0x0073_706c_6974).shuffle(&mut order);
    let mut test = vec![false; recordings];
    order[..recordings / 2].iter().for_each(|&r| test[r] = true);
    test
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_replay::library;
    use wattwise_trace::ImportOptions;

    #[test]
    fn half_of_the_recordings_are_the_test_set() {
        for n in 0..9 {
            let of = split(n, 5);
            assert_eq!((of.len(), of.iter().filter(|t| **t).count()), (n, n / 2));
        }
        assert!((0..20).any(|seed| split(6, seed) != split(6, 0)));
    }

    #[test]
    fn a_recording_is_on_one_side_by_name_and_by_content() {
        let load = |name: &str| library::workload(name, &ImportOptions::default()).expect("bundled");
        let (burst, periodic, tbench, redis) =
            (load("burst"), load("periodic"), load("tbench"), load("redis"));
        let four = [("burst", &burst), ("periodic", &periodic), ("tbench", &tbench), ("redis", &redis)];
        assert_eq!(sides(&four, 1, 0).expect("four"), [false, false, false, true]);
        let told = |all: &[(&str, &Workload)], tests| sides(all, tests, 0).expect_err("twice").to_string();
        assert!(told(&[four[0], four[2], four[0]], 1).starts_with("--test burst: named twice"));
        assert!(told(&[four[0], four[0]], 0).starts_with("WORKLOAD burst: named twice"));
        // A copy, under another name and read in another way.
        let options = ImportOptions {
            foreground: vec!["tbench".into()],
            only_foreground: true,
            memory_share: Some(0.2),
            ..ImportOptions::default()
        };
        let copy =
            Workload { name: "copy".into(), ..library::workload("tbench", &options).expect("bundled") };
        let same = told(&[four[1], four[2], ("copy", &copy)], 1);
        assert!(same.starts_with("--test copy: has the same work in it as tbench; expected"), "{same}");
        let copy = Workload { name: "copy".into(), ..load("periodic") };
        assert!(told(&[four[1], ("copy", &copy)], 0).starts_with("WORKLOAD copy: has the same work"));
        assert!(told(&[four[0]], 1).contains("every recording is kept for the test"));
    }
}
