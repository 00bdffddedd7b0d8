//! Comparisons as CSV (RFC 4180): a row for each policy of each comparison, units in the names.
//!
//! Names come from strangers' files, and a spreadsheet calculates a cell that begins with `=`. So texts are cells by
//! `csv_cell`, which puts `'` before such a beginning; numbers stay numbers, negative ones too.

use crate::exit::Failure;
use wattwise_advice::columns::{self, ColumnValue};
use wattwise_advice::result::Comparison;
use wattwise_figure::csv_cell;

/// A cell: figures that are not numbers are empty.
fn cell(value: ColumnValue) -> ColumnValue {
    match value {
        ColumnValue::Text(text) => ColumnValue::Text(csv_cell(&text)),
        ColumnValue::Number(x) if !x.is_finite() => ColumnValue::Missing,
        other => other,
    }
}

/// The rows of comparisons, under a header.
pub(crate) fn comparisons(all: &[Comparison]) -> Result<String, Failure> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let columns = columns::of_csv();
    writer.write_record(columns.iter().map(|(name, _)| name)).map_err(Failure::work)?;
    for c in all {
        for r in &c.results {
            let row: Vec<ColumnValue> =
                columns.iter().map(|(_, column)| cell((column.value)(c, r))).collect();
            writer.serialize(row).map_err(Failure::work)?;
        }
    }
    let bytes = writer.into_inner().map_err(|e| Failure::work(e.error()))?;
    String::from_utf8(bytes).map_err(Failure::work)
}
