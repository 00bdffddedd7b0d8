//! Guards: a saving is none that is bought with slowness.

use crate::block::{Block, BlockPair};
use crate::judge::judged;
use serde::{Deserialize, Serialize};
use wattwise_figure::verdict::Verdict;

/// Fewer pairs judge no service: the same number of looks as `compare` asks for.
pub const LEAST: usize = 16;

/// Something that is watched: its name, its unit, how a block has it, and below which value nobody notices it.
struct Guard {
    name: &'static str,
    unit: &'static str,
    of: fn(&Block) -> Option<f64>,
    floor: f64,
}

/// What tasks wait is noticed from a millisecond in each second; a response is never below its own work.
const GUARDS: [Guard; 3] = [
    Guard { name: "run delay", unit: "s/s", of: |b| b.service.run_delay, floor: 1e-3 },
    Guard { name: "pressure", unit: "share", of: |b| b.service.pressure, floor: 1e-3 },
    Guard { name: "response", unit: "s", of: |b| b.service.response_s, floor: 1e-4 },
];

/// One guard, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Guarded {
    /// What was watched.
    pub what: String,
    /// Of the means.
    pub unit: String,
    /// Mean under A.
    pub a: f64,
    /// Mean under B.
    pub b: f64,
    /// B over A of what is noticed; its interval is shared between the guards.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Whether B is slower: the means' ratio is above 1 + limit and the interval above 1.
    pub slower: bool,
}

/// Judges the service under B against that under A; what was not seen in every pair is no row.
pub fn guarded(pairs: &[BlockPair<'_>], confidence: f64, limit: f64) -> Vec<Guarded> {
    if pairs.len() < LEAST {
        return Vec::new();
    }
    let seen: Vec<(&Guard, Vec<(f64, f64)>)> = GUARDS
        .iter()
        .filter_map(|g| Some((g, pairs.iter().map(|p| both(g, p)).collect::<Option<Vec<_>>>()?)))
        .collect();
    let each = 1.0 - (1.0 - confidence) / seen.len().max(1) as f64;
    seen.iter()
        .map(|(guard, values)| {
            let n = values.len() as f64;
            let noticed: Vec<(f64, f64)> =
                values.iter().map(|(a, b)| (a + guard.floor, b + guard.floor)).collect();
            let (a, b) = values.iter().fold((0.0, 0.0), |(a, b), v| (a + v.0 / n, b + v.1 / n));
            let verdict = judged(&noticed, each);
            let slower = (b + guard.floor) / (a + guard.floor) > 1.0 + limit && verdict.low > 1.0;
            Guarded { what: guard.name.to_owned(), unit: guard.unit.to_owned(), a, b, verdict, slower }
        })
        .collect()
}

fn both(guard: &Guard, pair: &BlockPair<'_>) -> Option<(f64, f64)> {
    let value = |block| (guard.of)(block).filter(|x| x.is_finite() && *x >= 0.0);
    Some((value(pair.a)?, value(pair.b)?))
}
