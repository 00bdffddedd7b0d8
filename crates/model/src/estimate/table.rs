//! Tables of measurements from strangers (CSV, RFC 4180): every cell is looked at, and what is wrong is said in one line
//! that names the file, the row (the header is row 1) and what was expected.

use std::ops::RangeInclusive;
use wattwise_figure::beginning;

/// Bytes that a table may have: a thousand times what the known ones have.
pub const MAX_BYTES: u64 = 64 << 20;
/// Letters of a cell that a message repeats.
pub const SHOWN: usize = 40;

/// A table that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}{problem}")]
pub struct TableError {
    file: String,
    place: String,
    problem: String,
}

impl TableError {
    /// What is wrong with the whole file.
    pub fn of_file(file: &str, problem: impl Into<String>) -> TableError {
        TableError { file: shown(file), place: String::new(), problem: problem.into() }
    }

    /// What is wrong with a row.
    pub fn of_row(file: &str, row: u64, problem: impl Into<String>) -> TableError {
        TableError { file: shown(file), place: format!("row {row}: "), problem: problem.into() }
    }
}

/// Text from a file for a message: nothing in it reaches a terminal unescaped.
fn shown(text: &str) -> String {
    text.escape_debug().collect()
}

/// A row of the columns that were asked for.
#[derive(Clone, Debug)]
pub struct TableRow {
    /// Counted from the header, which is row 1.
    pub number: u64,
    cells: Vec<String>,
}

/// A table's rows.
#[derive(Clone, Debug)]
pub struct MeasurementTable {
    file: String,
    columns: &'static [&'static str],
    /// In the order of the file.
    pub rows: Vec<TableRow>,
}

/// What a column's numbers may be.
pub struct Expected {
    /// Between these.
    pub range: RangeInclusive<f64>,
    /// In this unit.
    pub unit: &'static str,
}

impl MeasurementTable {
    /// Reads a table that has at least these columns, in any order.
    ///
    /// # Errors
    /// No text, no header, a column that is missing, a row with another number of cells, no rows.
    pub fn read(
        file: &str,
        bytes: &[u8],
        columns: &'static [&'static str],
    ) -> Result<MeasurementTable, TableError> {
        let whole = |problem: String| TableError::of_file(file, problem);
        let text = std::str::from_utf8(bytes)
            .map_err(|e| whole(format!("byte {} is no text: expected UTF-8", e.valid_up_to())))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|e| whole(sentence(&e)))?.clone();
        let at = |column: &&str| header.iter().position(|h| h == *column);
        let missing: Vec<&str> = columns.iter().filter(|c| at(c).is_none()).copied().collect();
        if !missing.is_empty() {
            return Err(TableError::of_row(
                file,
                1,
                format!("no column {}: expected {}", missing.join(", "), columns.join(",")),
            ));
        }
        let places: Vec<usize> = columns.iter().filter_map(at).collect();
        let mut rows = Vec::new();
        for (record, number) in reader.records().zip(2..) {
            let record = record.map_err(|e| TableError::of_row(file, number, sentence(&e)))?;
            let cells = places.iter().map(|&p| record.get(p).unwrap_or_default().to_owned()).collect();
            rows.push(TableRow { number, cells });
        }
        if rows.is_empty() {
            return Err(whole("no rows: expected some under the header".into()));
        }
        Ok(MeasurementTable { file: file.to_owned(), columns, rows })
    }

    /// An error in a row.
    pub fn wrong(&self, row: &TableRow, problem: impl Into<String>) -> TableError {
        TableError::of_row(&self.file, row.number, problem)
    }

    /// A cell's text.
    pub fn text<'r>(&self, row: &'r TableRow, column: &str) -> &'r str {
        let at = self.columns.iter().position(|c| *c == column);
        at.and_then(|at| row.cells.get(at)).map_or("", String::as_str)
    }

    /// A cell's number; nothing where it is empty, which stands for unknown.
    ///
    /// # Errors
    /// No number, or not one that was expected.
    pub fn number(
        &self,
        row: &TableRow,
        column: &str,
        expected: &Expected,
    ) -> Result<Option<f64>, TableError> {
        let text = self.text(row, column);
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(v) if expected.range.contains(&v) => Ok(Some(v)),
            _ => {
                let given = beginning(text, SHOWN);
                let (low, high) = (expected.range.start(), expected.range.end());
                let unit = expected.unit;
                Err(self.wrong(row, format!("{column} '{}': expected {low} to {high} {unit}", shown(&given))))
            }
        }
    }
}

/// What the reader of CSV says, on one line.
fn sentence(e: &csv::Error) -> String {
    match e.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells: expected {expected_len}, as in the header")
        }
        _ => shown(&e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATTS: Expected = Expected { range: 0.0..=100.0, unit: "W" };

    fn read(text: &[u8]) -> Result<MeasurementTable, String> {
        MeasurementTable::read("t.csv", text, &["b", "a"]).map_err(|e| e.to_string())
    }

    #[test]
    fn columns_come_in_any_order_and_empty_cells_are_unknown() {
        let t = read("\u{feff}a,x,b\n1, y ,\n2,z,3\n".as_bytes()).unwrap();
        let number = |i: usize, c| t.number(&t.rows[i], c, &WATTS).unwrap();
        assert_eq!((number(0, "a"), number(0, "b"), number(1, "b")), (Some(1.0), None, Some(3.0)));
        assert_eq!(t.rows[1].number, 3);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, told) in [
            (&b""[..], "row 1: no column b, a: expected b,a"),
            (b"a\n1\n", "row 1: no column b"),
            (b"a,b\n", "no rows"),
            (b"a,b\n1,2\n1\n", "row 3: 1 cells: expected 2"),
            (b"a,b\n\xff,2\n", "byte 4 is no text: expected UTF-8"),
        ] {
            let e = read(text).unwrap_err();
            assert!(e.starts_with("t.csv: ") && e.contains(told) && !e.contains('\n'), "{e}");
        }
        let long = read(format!("a,b\n1,{}\n", "9".repeat(300)).as_bytes()).unwrap();
        let e = long.number(&long.rows[0], "b", &WATTS).unwrap_err().to_string();
        assert_eq!(e, format!("t.csv: row 2: b '{}…': expected 0 to 100 W", "9".repeat(SHOWN)));
        for cell in ["x", "NaN", "inf", "-1", "101", "1e999", "\u{1b}[31m"] {
            let t = read(format!("a,b\n1,\"{cell}\"\n").as_bytes()).unwrap();
            let e = t.number(&t.rows[0], "b", &WATTS).unwrap_err().to_string();
            assert!(e.starts_with("t.csv: row 2: b '") && e.ends_with("expected 0 to 100 W"), "{e}");
            assert!(!e.chars().any(char::is_control), "{e}");
        }
    }
}
