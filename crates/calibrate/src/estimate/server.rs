//! A server that nobody has measured: at full load and at rest it draws what published servers like it do.

use crate::gather::SeenMachine;
use wattwise_model::estimate::Watts;
use wattwise_model::estimate::processor::is_server;
use wattwise_model::estimate::server::{Estimator, LOADS, Server};

/// Memory where nothing tells: the median of the published results, in GB a core.
const MEMORY_GB_A_CORE: f64 = 2.0;
/// From an interval that holds 90 of 100 to one that holds 95, of a normal distribution.
const NINETY_TO_95: f64 = 1.959964 / 1.644854;

/// Watts at the wall.
pub(crate) struct Wall {
    pub(crate) full: Watts,
    pub(crate) rest: Watts,
    /// Published results that this was fitted to.
    pub(crate) results: usize,
}

/// What is known of a server by its description. None for what is no server, for a guest, and where the firmware tells no year.
pub(crate) fn wall(seen: &SeenMachine) -> Option<Wall> {
    let cpu = seen.processor.clone().filter(|name| is_server(name) && !seen.guest)?;
    let sum = |of: &dyn Fn(&crate::gather::SeenKind) -> usize| {
        (seen.packages * seen.kinds.iter().map(of).sum::<usize>()) as f64
    };
    let first = seen.kinds.first()?;
    let khz = first.base_khz.or(first.range_khz.map(|(_, top)| top)).or(first.now_khz)?;
    let cores = sum(&|k| k.cores);
    let server = Server {
        cpu,
        chips: seen.packages as f64,
        cores,
        threads: sum(&|k| k.cores * k.threads),
        mhz: khz as f64 * 1e-3,
        memory_gb: seen.memory_gb.unwrap_or(MEMORY_GB_A_CORE * cores),
        year: seen.year?,
        design_w: seen.limit_w,
    };
    let estimator = Estimator::bundled();
    let watts = estimator.watts(&server);
    Some(Wall { full: watts[0], rest: watts[LOADS.len() - 1], results: estimator.results })
}

/// A model's watts in four sums: what hangs on the cores and what on the rest, busy and at rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    pub(crate) cores_full: f64,
    pub(crate) cores_rest: f64,
    pub(crate) others_full: f64,
    pub(crate) others_rest: f64,
}

impl Wall {
    /// By what a model's cores and the rest of it are multiplied, to draw this. None where no two such numbers are positive.
    pub(crate) fn scale(&self, model: Sums) -> Option<(f64, f64)> {
        let det = model.cores_full * model.others_rest - model.cores_rest * model.others_full;
        let core = (self.full.median * model.others_rest - self.rest.median * model.others_full) / det;
        let rest = (model.cores_full * self.rest.median - model.cores_rest * self.full.median) / det;
        [core, rest].into_iter().all(|f| f.is_finite() && f > 0.0).then_some((core, rest))
    }

    /// How far cores and the rest may be off, in per cent: drawn apart they leave the whole as uncertain as it is.
    pub(crate) fn percent(&self, model: Sums, (core, rest): (f64, f64)) -> u32 {
        let off = (self.full.high / self.full.median - 1.0) * NINETY_TO_95;
        let (cores, others) = (model.cores_full * core, model.others_full * rest);
        let share = cores / (cores + others);
        (100.0 * off / share.hypot(1.0 - share)).ceil().clamp(1.0, 90.0) as u32
    }
}
