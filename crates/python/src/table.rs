//! Results as Arrow tables, which pandas, polars, pyarrow and duckdb take as they are (`__arrow_c_stream__`).

use crate::errors::error;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray,
    UInt64Array,
};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::fs::File;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use wattwise_advice::columns::{self, ColumnValue};
use wattwise_advice::result::Comparison;

/// The name that the interface gives to a stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Where a table's rows are.
#[derive(Clone)]
enum Rows {
    Here(Vec<RecordBatch>),
    Files(Vec<PathBuf>),
}

/// A table: rows here, or in files that are read one after another.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Table {
    schema: SchemaRef,
    rows: Rows,
}

impl Table {
    pub(crate) fn of(batch: RecordBatch) -> Table {
        Table { schema: batch.schema(), rows: Rows::Here(vec![batch]) }
    }
}

/// Batches of one file after another.
struct Files {
    schema: SchemaRef,
    paths: std::vec::IntoIter<PathBuf>,
    open: Option<FileReader<File>>,
}

fn open(path: &PathBuf) -> Result<FileReader<File>, ArrowError> {
    let fail = |e: &dyn std::fmt::Display| {
        ArrowError::ExternalError(format!("{}: {e}; expected an Arrow file", path.display()).into())
    };
    let file = File::open(path).map_err(|e| fail(&e))?;
    FileReader::try_new(file, None).map_err(|e| fail(&e))
}

impl Iterator for Files {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.open.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            match open(&self.paths.next()?) {
                Ok(reader) => self.open = Some(reader),
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

impl RecordBatchReader for Files {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

#[pymethods]
impl Table {
    /// The rows as a stream of the Arrow C data interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer that casts nothing may leave the request aside: the interface says so.
        _ = requested_schema;
        let schema = self.schema.clone();
        let reader: Box<dyn RecordBatchReader + Send> = match self.rows.clone() {
            Rows::Here(batches) => Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)),
            Rows::Files(paths) => Box::new(Files { schema, paths: paths.into_iter(), open: None }),
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|f| f.name().clone()).collect()
    }
}

/// Arrow files of one shape as one table, in this order.
#[pyfunction]
pub(crate) fn read_ipc(paths: Vec<PathBuf>) -> PyResult<Table> {
    let first = paths.first().ok_or_else(|| error("a table of no files"))?;
    let schema = open(first).map_err(error)?.schema();
    Ok(Table { schema, rows: Rows::Files(paths) })
}

/// Rows of an Arrow file.
#[pyfunction]
pub(crate) fn ipc_rows(data: &[u8]) -> PyResult<usize> {
    let rows = || -> Result<usize, ArrowError> {
        FileReader::try_new(Cursor::new(data), None)?.map(|batch| Ok(batch?.num_rows())).sum()
    };
    rows().map_err(|e| error(format!("a block: {e}; expected an Arrow file")))
}

/// One row a policy. Names and units are those of the JSON.
pub(crate) fn of_comparison(c: &Comparison) -> PyResult<Table> {
    let columns = columns::of_python().into_iter().map(|(name, column)| {
        let values: Vec<ColumnValue> = c.results.iter().map(|r| (column.value)(c, r)).collect();
        (name, array(&values))
    });
    Ok(Table::of(RecordBatch::try_from_iter(columns).map_err(error)?))
}

/// Values of one kind; those that are missing are null.
fn array(values: &[ColumnValue]) -> ArrayRef {
    let kind = values.iter().find(|v| **v != ColumnValue::Missing);
    match kind {
        Some(ColumnValue::Text(_)) => {
            let texts =
                values.iter().map(|v| if let ColumnValue::Text(t) = v { Some(t.as_str()) } else { None });
            Arc::new(texts.collect::<StringArray>())
        }
        Some(ColumnValue::Flag(_)) => {
            let flags = values.iter().map(|v| if let ColumnValue::Flag(on) = v { Some(*on) } else { None });
            Arc::new(flags.collect::<BooleanArray>())
        }
        Some(ColumnValue::Count(_)) => {
            let counts = values.iter().map(|v| if let ColumnValue::Count(n) = v { Some(*n) } else { None });
            Arc::new(counts.collect::<UInt64Array>())
        }
        _ => {
            let numbers = values.iter().map(|v| if let ColumnValue::Number(x) = v { Some(*x) } else { None });
            Arc::new(numbers.collect::<Float64Array>())
        }
    }
}
