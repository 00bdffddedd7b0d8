//! The file of an experiment: JSON lines, one for each thing that happened, in order.
//!
//! The first line is the whole plan; then come the idle floor, every run with all that was seen, the window
//! once it is fixed, and the end. A line is written when the thing has happened and never changed: whatever
//! ends the program leaves all that was measured, the same plan goes on from it (`--resume`), and `report`
//! draws it again. Only the last line can be torn.

use crate::ab::conduct::{Design, Done, End, Place, Trial};
use crate::lines::{self, Lines, NotBegun};
use crate::run::Measured;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use wattwise_figure::Provenance;
use wattwise_hw::identity::Identity;

/// Version of the lines.
pub const SCHEMA: &str = "wattwise.ab/1";

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Energy of the machine over equal windows.
    Energy,
    /// Time from start to end.
    Time,
    /// CPU time.
    Cpu,
    /// A number that the command prints.
    Metric,
}

impl std::fmt::Display for Of {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Of::Energy => "energy",
            Of::Time => "time",
            Of::Cpu => "CPU time",
            Of::Metric => "of its figure",
        })
    }
}

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmText {
    /// In tables.
    pub name: String,
    /// The policy or settings held, as given; none is the machine as it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy: Option<String>,
    /// What is run.
    pub command: Vec<String>,
}

/// The plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub version: String,
    /// How it is ordered and judged.
    pub plan: Design,
    /// The arms; the first is what the others are compared with.
    pub arms: Vec<ArmText>,
    /// What is compared.
    pub of: Of,
    /// The pattern that finds the command's figure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metric: Option<String>,
    /// The window asked for, s; else it follows from the warm-up.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_s: Option<f64>,
    /// Where energy comes from.
    pub energy: Provenance,
    /// Whose watts stand in where nothing meters.
    pub watts_of: String,
    /// Whether the battery's gauge is the meter.
    pub battery: bool,
    /// A run starts within so much of the first one's temperature, °C.
    pub temperature_c: f64,
    /// Most CPU time of others within a window, as a share of all CPU time.
    pub others: f64,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// The machine as `--root` takes it; none is the one that it ran on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub root: Option<String>,
    /// Which machine that is; none in files of older versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub identity: Option<Identity>,
    /// Seconds since 1970.
    pub started: u64,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which arm.
    pub arm: usize,
    /// Where in the order.
    #[serde(flatten)]
    pub place: Place,
    /// What is compared of it.
    #[serde(flatten)]
    pub trial: Trial,
    /// Energy until the command's end, J; the window's is in `measured`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub own_j: Option<f64>,
    /// The number that the command printed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metric: Option<f64>,
    /// All else.
    pub measured: Measured,
}

/// Everything that happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first.
    Header(Box<Header>),
    /// Idle power of the machine before the first run, W.
    Floor(f64),
    /// Every run that counts is charged over so many seconds.
    Window(f64),
    /// A run has ended.
    Run(Box<Run>),
    /// A later go begins here.
    Resumed,
    /// The experiment has ended; a later go may follow all the same.
    End {
        /// Why.
        why: End,
        /// Whether the warm-up had ended without a trend.
        warm: bool,
    },
}

/// A file as read.
#[derive(Debug, Clone, PartialEq)]
pub struct AbRead {
    /// The plan.
    pub header: Header,
    /// Idle power, W.
    pub floor_w: Option<f64>,
    /// The equal window, s.
    pub window_s: Option<f64>,
    /// Every run, in order.
    pub runs: Vec<Run>,
    /// Why it ended, if it has, and whether the machine was warm.
    pub end: Option<(End, bool)>,
    /// Bytes up to the end of the last whole line.
    pub whole: u64,
}

impl AbRead {
    /// What is done of the plan. A block that was not finished is not: its runs are made again.
    pub fn done(&self) -> Done {
        let warm_up = self.runs.iter().filter(|r| r.place.warm_up).count();
        let blocks = self.blocks().map(|block| block.into_iter().map(|r| r.trial.clone()).collect());
        Done { warm_up, blocks: blocks.collect() }
    }

    /// The runs that count, by block and arm.
    pub fn counted(&self) -> Vec<Vec<&Run>> {
        self.blocks().filter(|block| block.iter().all(|r| r.trial.dropped.is_none())).collect()
    }

    /// Each whole block's runs, by arm; a run that was made again counts.
    fn blocks(&self) -> impl Iterator<Item = Vec<&Run>> {
        let arms = self.header.arms.len();
        let runs = self.runs.iter().filter(|r| !r.place.warm_up);
        let last: HashMap<(usize, usize), &Run> = runs.map(|r| ((r.place.block, r.arm), r)).collect();
        (0..).map_while(move |block| (0..arms).map(|arm| last.get(&(block, arm)).copied()).collect())
    }
}

/// Reads a file.
pub fn read(path: &Path) -> Result<AbRead, String> {
    let at = path.display();
    let text = wattwise_figure::budget::read_result(path)
        .map_err(|e| format!("{at}: {e}; expected a file made by 'wattwise ab'"))?;
    parse(&text).map_err(|why| format!("{at}: {why}"))
}

/// What a later go uses as it is written.
const USED: &[&str] = &["command", "policy", "metric", "watts_of", "root"];

/// Reads the lines of a file.
pub fn parse(text: &[u8]) -> Result<AbRead, String> {
    let mut header: Option<Header> = None;
    let (mut floor_w, mut window_s, mut runs, mut end) = (None, None, Vec::new(), None);
    let whole = lines::parse(text, (SCHEMA, "wattwise ab"), USED, |number, line| {
        match (line, &header) {
            (Line::Header(h), None) => {
                if h.schema != SCHEMA {
                    return Err(format!("is of version '{}'; this is {SCHEMA}", h.schema));
                }
                h.plan.check(h.arms.len())?;
                header = Some(*h);
            }
            (Line::Header(_), Some(_)) => return Err(format!("line {number}: is a second header")),
            (_, None) => return Err("does not begin with a header".to_owned()),
            (Line::Floor(w), _) => floor_w = Some(w),
            (Line::Window(s), _) => window_s = Some(s),
            (Line::Run(run), Some(h)) if run.arm < h.arms.len() => runs.push(*run),
            (Line::Run(run), Some(_)) => {
                return Err(format!("line {number}: a run of arm {}, which the plan lacks", run.arm));
            }
            (Line::Resumed, _) => end = None,
            (Line::End { why, warm }, _) => end = Some((why, warm)),
        }
        Ok(())
    })?;
    let header = header.ok_or("holds no line; expected a file made by 'wattwise ab'")?;
    Ok(AbRead { header, floor_w, window_s, runs, end, whole })
}

/// A file being written.
pub struct AbLogWriter(Lines);

impl AbLogWriter {
    /// A new file; one that is there already is left alone.
    pub fn create(path: &Path, header: &Header) -> Result<AbLogWriter, NotBegun> {
        Lines::create(path, &Line::Header(Box::new(header.clone()))).map(AbLogWriter)
    }

    /// Goes on with a file, after its last whole line.
    pub fn resume(path: &Path, read: &AbRead) -> Result<AbLogWriter, String> {
        Lines::resume(path, read.whole, &Line::Resumed).map(AbLogWriter)
    }

    /// Adds a line, whole or not at all.
    pub fn line(&mut self, line: &Line) -> Result<(), String> {
        self.0.line(line)
    }

    /// All that was written, read again.
    pub fn read(&self) -> Result<AbRead, String> {
        self.0.read(parse)
    }
}
