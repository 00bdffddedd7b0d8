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
use wattwise_advice::result::{Comparison, PolicyResult};

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

/// A column of numbers with a name.
pub(crate) fn column(name: &'static str, values: impl Iterator<Item = f64>) -> (&'static str, ArrayRef) {
    (name, Arc::new(Float64Array::from_iter_values(values)))
}

/// One row a policy. Names and units are those of the JSON.
pub(crate) fn of_comparison(c: &Comparison) -> PyResult<Table> {
    let numbers = |name, of: fn(&PolicyResult) -> f64| column(name, c.results.iter().map(of));
    let flags = |name: &'static str, of: fn(&PolicyResult) -> bool| -> (&'static str, ArrayRef) {
        (name, Arc::new(c.results.iter().map(|r| Some(of(r))).collect::<BooleanArray>()))
    };
    let policy = StringArray::from_iter_values(c.results.iter().map(|r| &r.policy));
    let transitions = UInt64Array::from_iter_values(c.results.iter().map(|r| r.transitions));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("policy", Arc::new(policy)),
        numbers("elapsed_s", |r| r.elapsed_s),
        numbers("energy_j", |r| r.energy_j),
        numbers("window_energy_j", |r| r.window_energy_j),
        numbers("above_idle_j", |r| r.above_idle_j),
        numbers("mean_w", |r| r.mean_w),
        numbers("edp_js", |r| r.edp_js),
        numbers("slowdown", |r| r.slowdown),
        numbers("missed", |r| r.missed),
        numbers("wake_p50_us", |r| r.wake_latency_us.p50),
        numbers("wake_p99_us", |r| r.wake_latency_us.p99),
        numbers("wake_max_us", |r| r.wake_latency_us.max),
        numbers("energy_ratio", |r| r.uncertain.energy_ratio.median),
        numbers("energy_ratio_low", |r| r.uncertain.energy_ratio.low),
        numbers("energy_ratio_high", |r| r.uncertain.energy_ratio.high),
        numbers("time_ratio", |r| r.uncertain.time_ratio.median),
        numbers("time_ratio_low", |r| r.uncertain.time_ratio.low),
        numbers("time_ratio_high", |r| r.uncertain.time_ratio.high),
        numbers("within_share", |r| r.within_share),
        numbers("best_share", |r| r.best_share),
        flags("admissible", |r| r.admissible),
        flags("tied", |r| r.tied),
        flags("over_own_time", |r| r.over_own_time),
        ("transitions", Arc::new(transitions)),
    ];
    Ok(Table::of(RecordBatch::try_from_iter(columns).map_err(error)?))
}
