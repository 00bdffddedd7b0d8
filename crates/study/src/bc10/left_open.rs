//! Study 003 ends with the ondemand governor, of which it measures nothing.

use crate::bc10::{PerMegabit, see, see_stream};
use crate::open::{Open, change};
use crate::{StudyBench, StudyError};

/// Speeds in MHz whose throughput gives the two costs.
const PAIRS: [(u32, u32); 3] = [(125, 250), (125, 500), (250, 500)];

/// A stream that leaves the CPU time, in Mb/s.
const PACED_MBPS: f64 = 10.0;

/// `known`: the published throughput at a speed.
pub(crate) fn questions(bench: &StudyBench, known: &dyn Fn(u32) -> f64) -> Result<Vec<Open>, StudyError> {
    let (mut rate, mut energy, mut least, mut paced) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (a, b) in PAIRS {
        let point = |mhz: u32| (f64::from(mhz), known(mhz));
        let cost = PerMegabit::fit(point(a), point(b));
        let of = |policy: &str| see(bench, cost, policy);
        let (full, ondemand, slow) = (of("performance")?, of("ondemand")?, of("userspace:khz=500000")?);
        rate.push(change(full.mbps, ondemand.mbps));
        energy.push(change(full.watts / full.mbps, ondemand.watts / ondemand.mbps));
        let paced_w = |policy: &str| see_stream(bench, cost, policy, Some(PACED_MBPS)).map(|s| s.watts);
        paced.push(change(paced_w("performance")?, paced_w("ondemand")?));
        least.push(change(full.watts / full.mbps, slow.watts / slow.mbps));
    }
    let tried = "A stream that has all of the CPU, costs of a bit from each pair of 125, 250 and 500 MHz.";
    Ok(vec![
        Open::tried("ondemand: what throughput, against 600 MHz?", tried, "%", &rate),
        Open::tried("ondemand: what energy a bit, board and all, against 600 MHz?", tried, "%", &energy),
        Open::tried(
            "ondemand: what energy while a stream of 10 Mb/s comes in, board and all, against 600 MHz?",
            "The same costs; the CPU has time to spare.",
            "%",
            &paced,
        ),
        Open::tried("500 MHz, which the author recommends: what energy a bit?", tried, "%", &least),
    ])
}
