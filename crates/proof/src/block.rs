//! A block: one policy in force for a minute, and what was seen meanwhile.

use serde::{Deserialize, Serialize};

/// Why a pair does not count. The list is the rule, fixed before the first block: nothing else drops one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The machine slept.
    Suspend,
    /// Mains came or went.
    Mains,
    /// Another program, such as a click on a profile, changed what the policy had set.
    Click,
    /// The meter showed nothing that counts over this block.
    Meter,
    /// The policy could not be put in force.
    Refused,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::Suspend => "suspend",
            Reason::Mains => "mains",
            Reason::Click => "another program's settings",
            Reason::Meter => "meter",
            Reason::Refused => "policy refused",
        })
    }
}

/// What the work was, as far as it is known: each is taken out of the outcome by its regression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Covariates {
    /// Instructions of all CPUs, as many a second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub instructions: Option<f64>,
    /// The screen's brightness, of 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub brightness: Option<f64>,
    /// Share of the time that the GPU was busy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gpu: Option<f64>,
}

/// How well the machine served meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Seconds that tasks waited for a CPU, in each second, all CPUs together (`/proc/schedstat`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run_delay: Option<f64>,
    /// Share of the time that some task waited for a CPU (`/proc/pressure/cpu`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pressure: Option<f64>,
    /// From the time that the probe was to wake to the end of its work, mean, s.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response_s: Option<f64>,
    /// CPU time of all CPUs in each second, s: no guard, since a slower clock needs more of it for the same work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub busy: Option<f64>,
}

/// One policy in force for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Of which pair, from 0.
    pub pair: usize,
    /// Under which policy: 0 is A, 1 is B.
    pub arm: usize,
    /// When it began, seconds since 1970.
    pub started: u64,
    /// Awake time that was measured over, s: without the settling at its start.
    pub seconds: f64,
    /// Time that the machine slept meanwhile, s.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub asleep_s: f64,
    /// Of the whole machine, as far as it is metered, J.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub joules: Option<f64>,
    /// By scope: package, dram, psys, core, battery; J. They nest: no sum means anything.
    pub scopes: Vec<(String, f64)>,
    /// What the work was.
    pub work: Covariates,
    /// How well it was served.
    pub service: Service,
    /// Why its pair does not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left_out: Option<Reason>,
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

impl Block {
    /// Mean power, W.
    pub fn watts(&self) -> Option<f64> {
        self.joules.map(|j| j / self.seconds).filter(|w| w.is_finite() && *w > 0.0)
    }

    /// Mean power of a scope, W.
    pub fn watts_of(&self, scope: &str) -> Option<f64> {
        let joules = self.scopes.iter().find(|(name, _)| name == scope)?.1;
        Some(joules / self.seconds).filter(|w| w.is_finite() && *w > 0.0)
    }
}

/// Both blocks of a pair: A, then B, whatever their order was.
#[derive(Debug, Clone, Copy)]
pub struct BlockPair<'b> {
    /// Under A.
    pub a: &'b Block,
    /// Under B.
    pub b: &'b Block,
}

/// What became of the pairs.
#[derive(Debug, Clone, Default)]
pub struct Pairs<'b> {
    /// Those that count, in order.
    pub counted: Vec<BlockPair<'b>>,
    /// Time left out, s, by its reason; time asleep is in it.
    pub left_out: Vec<(Reason, f64)>,
}

/// Sorts blocks into pairs. One without its other half is not there yet, and one that was made again counts as it was last.
pub fn pairs(blocks: &[Block], block_s: f64) -> Pairs<'_> {
    let most = blocks.iter().map(|b| b.pair + 1).max().unwrap_or(0).min(2 * blocks.len() + 2);
    let mut halves: Vec<[Option<&Block>; 2]> = vec![[None; 2]; most];
    for block in blocks {
        if let Some(half) = halves.get_mut(block.pair).and_then(|h| h.get_mut(block.arm)) {
            *half = Some(block);
        }
    }
    let mut out = Pairs::default();
    for half in halves {
        let [Some(a), Some(b)] = half else { continue };
        match a.left_out.or(b.left_out).or_else(|| unmetered(a, b)) {
            None => out.counted.push(BlockPair { a, b }),
            Some(why) => {
                let time_s = 2.0 * block_s + a.asleep_s + b.asleep_s;
                match out.left_out.iter_mut().find(|(reason, _)| *reason == why) {
                    Some((_, sum)) => *sum += time_s,
                    None => out.left_out.push((why, time_s)),
                }
            }
        }
    }
    out.left_out.sort_by(|x, y| y.1.total_cmp(&x.1));
    out
}

/// Joules by scope: `package-0` and `package-1` are one, and sensors of no known place are none.
pub fn by_scope(domains: &[(String, f64)]) -> Vec<(String, f64)> {
    let mut out: Vec<(String, f64)> = Vec::new();
    for (name, joules) in domains {
        let scope = name.split('-').next().unwrap_or(name);
        if scope == "sensor" {
            continue;
        }
        match out.iter_mut().find(|(known, _)| known == scope) {
            Some((_, sum)) => *sum += joules,
            None => out.push((scope.to_owned(), *joules)),
        }
    }
    out
}

fn unmetered(a: &Block, b: &Block) -> Option<Reason> {
    (a.watts().is_none() || b.watts().is_none()).then_some(Reason::Meter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(pair: usize, arm: usize, joules: f64) -> Block {
        Block {
            pair,
            arm,
            started: 0,
            seconds: 55.0,
            asleep_s: 0.0,
            joules: Some(joules),
            scopes: vec![("package".into(), joules)],
            work: Covariates::default(),
            service: Service::default(),
            left_out: None,
        }
    }

    #[test]
    fn half_a_pair_is_none_and_a_broken_one_is_left_out_whole() {
        let slept = Block { left_out: Some(Reason::Suspend), asleep_s: 3600.0, ..block(1, 0, 9.0) };
        let clicked = Block { left_out: Some(Reason::Click), ..block(2, 1, 9.0) };
        let unmetered = Block { joules: None, ..block(3, 0, 1.0) };
        let blocks = [
            block(0, 1, 2.0),
            block(0, 0, 1.0),
            slept,
            block(1, 1, 1.0),
            block(2, 0, 1.0),
            clicked,
            unmetered,
            block(3, 1, 1.0),
            block(4, 0, 1.0),
        ];
        let pairs = pairs(&blocks, 60.0);
        assert_eq!(pairs.counted.len(), 1);
        assert_eq!((pairs.counted[0].a.joules, pairs.counted[0].b.joules), (Some(1.0), Some(2.0)));
        assert_eq!(
            pairs.left_out,
            [(Reason::Suspend, 3720.0), (Reason::Click, 120.0), (Reason::Meter, 120.0)]
        );
    }

    /// A stranger's log may name any number of a pair.
    #[test]
    fn a_pair_of_a_damaged_log_takes_no_memory() {
        let blocks = [block(usize::MAX - 1, 0, 1.0), block(0, 7, 1.0)];
        assert!(pairs(&blocks, 60.0).counted.is_empty());
    }

    #[test]
    fn packages_are_one_scope_and_sensors_none() {
        let domains =
            [("package-0", 1.0), ("dram-0", 0.5), ("package-1", 2.0), ("psys", 9.0), ("sensor-0", 4.0)];
        let domains = domains.map(|(n, j)| (n.to_owned(), j));
        let expected = [("package", 3.0), ("dram", 0.5), ("psys", 9.0)].map(|(n, j)| (n.to_owned(), j));
        assert_eq!(by_scope(&domains), expected);
    }
}
