//! A published table and its description: `hardware/NAME/table.toml` and the rows beside it (`docs/hardware.md` tells how to add
//! one).
//!
//! What a row means is told by rules: `[row]` holds for all rows, each `[[rule]]` lays its keys over those of the rows that
//! it matches, later ones last. In their texts `{column}` stands for the row's cell, or for a word that a rule gives `with`.

use super::HardwareError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use wattwise_figure::mistake::{at_line, sentence};
use wattwise_figure::{beginning, suggest};
use wattwise_model::estimate::table::{MAX_BYTES, SHOWN};

/// The largest number that a cell of measurements may have, in any unit: more is a slip of the pen.
const MOST_MEASURED: f64 = 1e15;

/// A published table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its folder.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Its licence, or that none was seen.
    pub licence: String,
    /// Class of machine, such as `desktop`.
    pub class: String,
    /// The kernel, or that it is not named.
    pub kernel: String,
    /// What the meter covers.
    pub meter: String,
    /// What else a reader must know, a sentence each; known causes of misses among them.
    pub notes: Vec<String>,
    /// What was published of each row.
    pub quantities: Vec<Quantity>,
    /// In the order of the file.
    pub rows: Vec<Row>,
}

/// What a quantity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// Energy of the work.
    J,
    /// Mean power; also the energy of a fixed time.
    W,
    /// Time of the work.
    #[serde(rename = "s")]
    S,
    /// Work a second.
    #[serde(rename = "rate")]
    Rate,
}

/// What a meter covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The cores.
    Cores,
    /// Packages with their cores.
    #[default]
    Package,
    /// Memory.
    Dram,
    /// Packages and memory.
    #[serde(rename = "package+dram")]
    PackageDram,
    /// The board, or the whole machine at its plug.
    Wall,
}

impl Scope {
    /// Every one.
    pub const ALL: [Scope; 5] = [Scope::Cores, Scope::Package, Scope::Dram, Scope::PackageDram, Scope::Wall];
}

/// A published quantity.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// Its column.
    pub column: String,
    /// What it is.
    pub unit: Unit,
    /// What it covers; of no meaning for times and rates.
    pub of: Scope,
}

impl Quantity {
    /// `J package`, `s`.
    pub fn word(&self) -> String {
        let of = match self.of {
            Scope::Cores => "cores",
            Scope::Package => "package",
            Scope::Dram => "DRAM",
            Scope::PackageDram => "package and DRAM",
            Scope::Wall => "wall",
        };
        match self.unit {
            Unit::J => format!("J {of}"),
            Unit::W => format!("W {of}"),
            Unit::S => "s".into(),
            Unit::Rate => "rate".into(),
        }
    }
}

/// What decides between the settings of a row and of its reference.
pub const MECHANISMS: &[&str] =
    &["speed", "boost", "idle", "power limit", "uncore and DRAM", "SMT", "cores", "placement"];

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// In the file, of which the header is row 1.
    pub number: u64,
    /// Rows alike in this did the same work.
    pub work: String,
    /// Rows alike in this ran the same program on the same machine.
    pub program: String,
    /// Whether the others of its work are compared with it.
    pub is_reference: bool,
    /// Whether its published values calibrate its program.
    pub calibrates: bool,
    /// What was set; or why that cannot be said.
    pub setting: Result<Setting, String>,
    /// What decides.
    pub mechanism: String,
    /// Why its prediction is known to miss, where that is known.
    pub cause: Option<String>,
    /// A few words on what was set, from the row's cells.
    pub label: String,
    /// Value and relative spread by quantity.
    pub values: Vec<Option<Measured>>,
}

/// A published value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// In the column's own unit.
    pub value: f64,
    /// Its standard deviation as a share of it, where it was published.
    pub spread: Option<f64>,
}

/// What is run for a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
    /// The machine file's text, the row's own changes laid over.
    pub machine: Arc<str>,
    /// The work as it is given to `compare`: a generator, a bundled workload. Several stand for one figure that was published of all:
    /// the geometric mean of their times, the mean of their watts.
    pub works: Vec<String>,
    /// The policy as it is given to `compare`.
    pub policy: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    source: String,
    licence: String,
    class: String,
    kernel: String,
    meter: String,
    #[serde(default)]
    notes: Vec<String>,
    rows: String,
    quantity: Vec<QuantityTable>,
    work: WorkTable,
    row: RuleTable,
    #[serde(default)]
    rule: Vec<RuleTable>,
}

/// What a column may be multiplied by.
const SCALES: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuantityTable {
    column: String,
    unit: Unit,
    #[serde(default)]
    of: Scope,
    /// What a cell is multiplied by to be in the unit.
    #[serde(default = "one")]
    scale: f64,
    /// Column of the standard deviation, in the column's unit.
    sd: Option<String>,
    /// Column of the standard deviation in per cent.
    sd_percent: Option<String>,
    /// The relative spread of all rows.
    spread: Option<f64>,
    /// Of which rows the column holds this quantity.
    #[serde(default)]
    when: When,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkTable {
    #[serde(default)]
    same: Vec<String>,
    #[serde(default)]
    program: Vec<String>,
    reference: When,
    calibrates: Option<When>,
    /// Columns that tell what was set, for people.
    label: Vec<String>,
}

type When = BTreeMap<String, OneOrMore>;

#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "expected a text in quotes, or a list of them")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    #[serde(default)]
    when: When,
    /// A bundled machine, or a file beside the table.
    machine: Option<String>,
    /// What of the machine file is other.
    over: Option<toml::Table>,
    work: Option<OneOrMore>,
    policy: Option<String>,
    mechanism: Option<String>,
    /// Words of its own, for which texts may stand `{word}`.
    #[serde(default)]
    with: BTreeMap<String, String>,
    /// Why the row cannot be said.
    cannot: Option<String>,
    /// Why its prediction misses, where that is known: what is not modelled.
    cause: Option<String>,
}

/// Where a table's files come from: a folder, or what is built in.
pub trait Files {
    /// The text of a file beside the table; `../NAME` is beside its folder.
    ///
    /// # Errors
    /// Why there is none.
    fn text(&self, name: &str) -> Result<String, String>;
}

/// A folder of the file system.
pub struct Folder<'a>(pub &'a Path);

impl Files for Folder<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let path = self.0.join(name);
        let size = std::fs::metadata(&path).map_err(|e| e.to_string())?.len();
        if size > MAX_BYTES {
            return Err(format!("larger than expected: at most {} MiB", MAX_BYTES >> 20));
        }
        std::fs::read_to_string(&path).map_err(|e| e.to_string())
    }
}

/// A row's cells by column.
type Cells<'a> = BTreeMap<&'a str, &'a str>;

/// Whether a row's cells are these; a text that begins with `~` is a part of the cell.
fn matches(when: &When, cells: &Cells<'_>) -> bool {
    let fits = |cell: &str, wanted: &str| match wanted.strip_prefix('~') {
        Some(part) => cell.contains(part),
        None => cell == wanted,
    };
    when.iter().all(|(column, wanted)| {
        let cell = cells.get(column.as_str()).copied().unwrap_or_default();
        match wanted {
            OneOrMore::One(one) => fits(cell, one),
            OneOrMore::More(all) => all.iter().any(|one| fits(cell, one)),
        }
    })
}

/// A text with the row's cells and words in place of `{column}`.
fn filled(text: &str, cells: &Cells<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').ok_or_else(|| format!("'{text}': a {{ without its }}"))? + open;
        let column = &rest[open + 1..close];
        let cell = cells.get(column).ok_or_else(|| {
            format!("'{text}': no column '{column}'{}", suggest(column, cells.keys().copied()))
        })?;
        out.push_str(&rest[..open]);
        out.push_str(cell);
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Tables are merged, everything else replaces.
fn lay_over(under: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => lay_over(old, new),
            _ => _ = under.insert(key.clone(), value.clone()),
        }
    }
}

/// What the rules say of a row.
struct RuleText {
    setting: Result<Setting, String>,
    mechanism: String,
    cause: Option<String>,
}

impl File {
    /// The rules of a row, later ones last.
    fn rules(&self, cells: &Cells<'_>) -> Vec<&RuleTable> {
        std::iter::once(&self.row).chain(&self.rule).filter(|r| matches(&r.when, cells)).collect()
    }
}

/// The description's parts that a row is made by.
struct Rules<'a> {
    file: &'a File,
    files: &'a dyn Files,
    /// Texts of machines that were read already.
    machines: BTreeMap<String, toml::Table>,
    /// Texts that were made already, by machine and what was laid over.
    made: BTreeMap<(String, String), Arc<str>>,
}

impl Rules<'_> {
    /// The machine's table: a file beside this one, or the bundled machine of that name.
    fn machine(&mut self, name: &str) -> Result<toml::Table, String> {
        if let Some(known) = self.machines.get(name) {
            return Ok(known.clone());
        }
        let text = match name.strip_suffix(".toml") {
            Some(_) => self.files.text(name).map_err(|e| format!("{name}: {e}: expected a machine file"))?,
            None => format!("base = {}\n", toml::Value::String(name.to_owned())),
        };
        let table: toml::Table =
            text.parse().map_err(|e: toml::de::Error| format!("{name}: {}", sentence(e.message())))?;
        self.machines.insert(name.to_owned(), table.clone());
        Ok(table)
    }

    /// What a row is run with, its mechanism, and why its prediction misses.
    fn row(&mut self, cells: &Cells<'_>) -> Result<RuleText, String> {
        let rules = self.file.rules(cells);
        let mut cells = cells.clone();
        cells.extend(rules.iter().flat_map(|r| &r.with).map(|(word, text)| (word.as_str(), text.as_str())));
        let cells = &cells;
        let rules = || rules.iter();
        let cause = rules().filter_map(|r| r.cause.as_ref()).next_back();
        let cause = cause.map(|text| filled(text, cells)).transpose()?;
        let last = |key: fn(&RuleTable) -> Option<&String>, name: &str| -> Result<String, String> {
            let text = rules().filter_map(|r| key(r)).next_back();
            filled(text.ok_or_else(|| format!("no rule says its {name}"))?, cells)
        };
        let mechanism = last(|r| r.mechanism.as_ref(), "mechanism")?;
        if !MECHANISMS.contains(&mechanism.as_str()) {
            return Err(format!("mechanism '{mechanism}': expected {}", MECHANISMS.join(", ")));
        }
        if let Some(why) = rules().filter_map(|r| r.cannot.as_ref()).next_back() {
            return Ok(RuleText { setting: Err(filled(why, cells)?), mechanism, cause });
        }
        let name = last(|r| r.machine.as_ref(), "machine")?;
        let mut over = toml::Table::new();
        rules().filter_map(|r| r.over.as_ref()).for_each(|o| lay_over(&mut over, o));
        let over = filled(&over.to_string(), cells)?;
        let machine = match self.made.get(&(name.clone(), over.clone())) {
            Some(text) => text.clone(),
            None => {
                let mut table = self.machine(&name)?;
                let over_table =
                    over.parse().map_err(|e: toml::de::Error| format!("over: {}", sentence(e.message())))?;
                lay_over(&mut table, &over_table);
                let text: Arc<str> = table.to_string().into();
                self.made.insert((name, over), text.clone());
                text
            }
        };
        let works = match rules().filter_map(|r| r.work.as_ref()).next_back() {
            Some(OneOrMore::One(work)) => std::slice::from_ref(work),
            Some(OneOrMore::More(works)) if !works.is_empty() => works,
            _ => return Err("no rule says its work".into()),
        };
        let setting = Setting {
            machine,
            works: works.iter().map(|work| filled(work, cells)).collect::<Result<_, _>>()?,
            policy: last(|r| r.policy.as_ref(), "policy")?,
        };
        Ok(RuleText { setting: Ok(setting), mechanism, cause })
    }
}

impl QuantityTable {
    /// Refuses a scale that no unit has.
    fn checked_scale(&self) -> Result<(), String> {
        let (low, high) = (SCALES.start(), SCALES.end());
        let (column, scale) = (&self.column, self.scale);
        SCALES.contains(&scale).then_some(()).ok_or_else(|| {
            format!("quantity {column}: scale = {scale}: expected a number from {low:e} to {high:e}")
        })
    }

    /// The row's value; a sentence where the cell is no number.
    fn value(&self, cells: &Cells<'_>) -> Result<Option<Measured>, String> {
        if !matches(&self.when, cells) {
            return Ok(None);
        }
        let number = |column: &str| -> Result<Option<f64>, String> {
            let cell = cells.get(column).copied().unwrap_or_default();
            if cell.is_empty() {
                return Ok(None);
            }
            let value = cell.parse::<f64>().ok().filter(|v| (0.0..=MOST_MEASURED).contains(v));
            value.map(Some).ok_or_else(|| {
                let cell = beginning(cell, SHOWN);
                format!("{column} = '{cell}': expected a number from 0 to {MOST_MEASURED:e}")
            })
        };
        let Some(value) = number(&self.column)?.filter(|v| *v > 0.0) else { return Ok(None) };
        let spread = match (&self.sd, &self.sd_percent, self.spread) {
            (Some(column), _, _) => number(column)?.map(|sd| sd / value),
            (_, Some(column), _) => number(column)?.map(|percent| percent / 100.0),
            (.., spread) => spread,
        };
        Ok(Some(Measured { value: value * self.scale, spread }))
    }

    fn columns(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.column).chain(&self.sd).chain(&self.sd_percent).chain(self.when.keys())
    }
}

impl Table {
    /// Reads a table and its description; `name` is its folder's.
    ///
    /// # Errors
    /// One line that names the file, the place and what was expected.
    pub fn read(name: &str, files: &dyn Files) -> Result<Table, HardwareError> {
        let of = |file: &str, problem: String| HardwareError::new(&format!("{name}/{file}"), problem);
        let text = files.text("table.toml").map_err(|e| of("table.toml", e))?;
        let file: File = toml::from_str(&text)
            .map_err(|e| of("table.toml", at_line(&text, e.span().map(|s| s.start), e.message())))?;
        let csv = files.text(&file.rows).map_err(|e| of(&file.rows, e))?;
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(csv.as_bytes());
        let wrong_csv =
            |e: csv::Error| of(&file.rows, format!("{e}: expected rows of as many cells as the header"));
        let header = reader.headers().map_err(wrong_csv)?.clone();
        check_columns(&file, &header).map_err(|e| of("table.toml", e))?;
        let mut rules = Rules { file: &file, files, machines: BTreeMap::new(), made: BTreeMap::new() };
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(wrong_csv)?;
            let number = record.position().map_or(0, csv::Position::line);
            let cells: Cells<'_> = header.iter().zip(record.iter()).collect();
            let row = row(&file, &mut rules, &cells, number);
            rows.push(row.map_err(|e| of(&file.rows, format!("row {number}: {e}")))?);
        }
        if rows.is_empty() {
            return Err(of(&file.rows, "no rows: expected some under the header".into()));
        }
        file.quantity.iter().try_for_each(QuantityTable::checked_scale).map_err(|e| of("table.toml", e))?;
        let table = Table {
            name: name.to_owned(),
            quantities: file
                .quantity
                .iter()
                .map(|q| Quantity { column: q.column.clone(), unit: q.unit, of: q.of })
                .collect(),
            title: file.title,
            source: file.source,
            licence: file.licence,
            class: file.class,
            kernel: file.kernel,
            meter: file.meter,
            notes: file.notes,
            rows,
        };
        table.one_calibration().map_err(|e| of("table.toml", e))?;
        Ok(table)
    }

    /// At most one setting of each program calibrates.
    fn one_calibration(&self) -> Result<(), String> {
        let mut seen: BTreeMap<&str, &Row> = BTreeMap::new();
        for row in self.rows.iter().filter(|r| r.calibrates) {
            let first = seen.entry(&row.program).or_insert(row);
            if first.setting != row.setting {
                return Err(format!(
                    "work.calibrates: rows {} and {} are two settings of one program: expected at most one",
                    first.number, row.number
                ));
            }
        }
        Ok(())
    }
}

/// Every column that the description names is there, and no word of its own is one.
fn check_columns(file: &File, header: &csv::StringRecord) -> Result<(), String> {
    let work = &file.work;
    let named = file.quantity.iter().flat_map(QuantityTable::columns);
    let named = named.chain(&work.same).chain(&work.program).chain(work.reference.keys()).chain(&work.label);
    let named = named.chain(work.calibrates.iter().flat_map(|c| c.keys()));
    let mut named = named.chain(file.rule.iter().flat_map(|r| r.when.keys()));
    let is_column = |name: &str| header.iter().any(|h| h == name);
    if let Some(column) = named.find(|column| !is_column(column)) {
        return Err(format!("no column '{column}' in {}{}", file.rows, suggest(column, header.iter())));
    }
    let mut words = std::iter::once(&file.row).chain(&file.rule).flat_map(|r| r.with.keys());
    words.find(|word| is_column(word)).map_or(Ok(()), |word| {
        Err(format!("with.{word}: a column of {} has that name: expected another word", file.rows))
    })
}

fn row(file: &File, rules: &mut Rules<'_>, cells: &Cells<'_>, number: u64) -> Result<Row, String> {
    let key = |columns: &[String]| {
        let cells = columns.iter().map(|c| cells.get(c.as_str()).copied().unwrap_or_default());
        cells.collect::<Vec<_>>().join(", ")
    };
    let RuleText { setting, mechanism, cause } = rules.row(cells)?;
    Ok(Row {
        number,
        work: key(&file.work.same),
        program: key(&file.work.program),
        is_reference: setting.is_ok() && matches(&file.work.reference, cells),
        calibrates: setting.is_ok() && file.work.calibrates.as_ref().is_some_and(|when| matches(when, cells)),
        setting,
        mechanism,
        cause,
        label: key(&file.work.label),
        values: file.quantity.iter().map(|q| q.value(cells)).collect::<Result<_, _>>()?,
    })
}
