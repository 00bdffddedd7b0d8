//! The file of a proof: JSON lines, the plan first, then each block as it ends ([`crate::lines`]).

use crate::block::Block;
use crate::conduct::{Design, End};
use crate::lines::{self, Lines, NotBegun};
use serde::{Deserialize, Serialize};
use std::path::Path;
use wattwise_figure::Provenance;
use wattwise_hw::identity::Identity;

/// Version of the lines.
pub const SCHEMA: &str = "wattwise.prove/1";

/// One of the two policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// In tables.
    pub name: String,
    /// As every command takes it.
    pub policy: String,
}

/// What a comparison on a model had said before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// Energy of B over that of A.
    pub ratio: f64,
    /// Low end of its interval over the replicas, where it had one.
    pub low: Option<f64>,
    /// High end.
    pub high: Option<f64>,
    /// Of which work.
    pub work: String,
    /// On which machine's model.
    pub machine: String,
}

/// The plan: fixed before the first block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub version: String,
    /// Order and judge: two arms, so many pairs.
    pub plan: Design,
    /// A and B.
    pub sides: [Side; 2],
    /// Length of a block, s.
    pub block_s: f64,
    /// Of it, not counted at its start, s.
    pub settle_s: f64,
    /// How much slower B may be, as a share.
    pub limit: f64,
    /// Loops of the probe's work; 0 leaves the probe out.
    pub probe_loops: u64,
    /// Whether the battery's gauge is the meter.
    pub battery: bool,
    /// Where energy comes from.
    pub energy: Provenance,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// The machine as `--root` takes it; none is the one that it ran on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub root: Option<String>,
    /// Which machine that is.
    pub identity: Identity,
    /// Seconds since 1970.
    pub started: u64,
    /// What a model had said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predicted: Option<Predicted>,
}

impl Header {
    /// A plan from outside must be one that can be carried out.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        self.plan.check(2)?;
        let share = |x: f64| (0.0..=10.0).contains(&x);
        match () {
            () if !(self.block_s > 0.0 && self.block_s <= 86_400.0) => {
                Err(format!("a block of {} s; expected more than 0 and at most a day", self.block_s))
            }
            () if !(self.settle_s >= 0.0 && self.settle_s < self.block_s) => {
                Err(format!("{} s to settle in a block of {} s", self.settle_s, self.block_s))
            }
            () if !share(self.limit) => Err(format!("a limit of {}; expected a share", self.limit)),
            () => Ok(()),
        }
    }

    /// Pairs that were planned.
    pub fn pairs(&self) -> usize {
        self.plan.budget.blocks
    }
}

/// Everything that happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first.
    Proof(Box<Header>),
    /// A block has ended.
    Block(Box<Block>),
    /// A later go begins here.
    Resumed,
    /// It has ended; a later go may follow all the same.
    End(End),
}

/// A file as read.
#[derive(Debug, Clone, PartialEq)]
pub struct ProofRead {
    /// The plan.
    pub header: Header,
    /// Every block, in order.
    pub blocks: Vec<Block>,
    /// Why it ended, if it has.
    pub end: Option<End>,
    /// Bytes up to the end of the last whole line.
    pub whole: u64,
}

impl ProofRead {
    /// The first pair that is not there as a whole.
    pub fn next_pair(&self) -> usize {
        let mut halves = std::collections::BTreeMap::<usize, u8>::new();
        for block in self.blocks.iter().filter(|b| b.arm < 2) {
            *halves.entry(block.pair).or_default() |= 1 << block.arm;
        }
        (0..).find(|pair| halves.get(pair) != Some(&3)).unwrap_or(0)
    }
}

/// Reads a file.
///
/// # Errors
/// Its path, what is wrong, and what was expected.
pub fn read(path: &Path) -> Result<ProofRead, String> {
    let at = path.display();
    let text =
        std::fs::read(path).map_err(|e| format!("{at}: {e}; expected a file made by 'wattwise prove'"))?;
    parse(&text).map_err(|why| format!("{at}: {why}"))
}

/// What a later go uses as it is written.
const USED: &[&str] = &["policy", "root"];

/// Reads the lines of a file.
///
/// # Errors
/// The first line that is none of a proof.
pub fn parse(text: &[u8]) -> Result<ProofRead, String> {
    let mut header: Option<Header> = None;
    let (mut blocks, mut end) = (Vec::new(), None);
    let whole = lines::parse(text, (SCHEMA, "wattwise prove"), USED, |number, line| {
        match (line, &header) {
            (Line::Proof(h), None) => {
                if h.schema != SCHEMA {
                    return Err(format!("is of version '{}'; this is {SCHEMA}", h.schema));
                }
                h.check()?;
                header = Some(*h);
            }
            (Line::Proof(_), Some(_)) => return Err(format!("line {number}: is a second plan")),
            (_, None) => return Err("does not begin with a plan".to_owned()),
            (Line::Block(block), Some(h)) if block.arm < 2 && block.pair < h.pairs() => blocks.push(*block),
            (Line::Block(block), Some(_)) => {
                let Block { pair, arm, .. } = *block;
                return Err(format!("line {number}: a block {arm} of pair {pair}, which the plan lacks"));
            }
            (Line::Resumed, _) => end = None,
            (Line::End(why), _) => end = Some(why),
        }
        Ok(())
    })?;
    let header = header.ok_or("holds no line; expected a file made by 'wattwise prove'")?;
    Ok(ProofRead { header, blocks, end, whole })
}

/// A new file.
///
/// # Errors
/// It is there already, or cannot be written.
pub fn create(path: &Path, header: &Header) -> Result<Lines, NotBegun> {
    Lines::create(path, &Line::Proof(Box::new(header.clone())))
}

/// Goes on with a file, after its last whole line.
///
/// # Errors
/// It cannot be written.
pub fn resume(path: &Path, read: &ProofRead) -> Result<Lines, String> {
    Lines::resume(path, read.whole, &Line::Resumed)
}
