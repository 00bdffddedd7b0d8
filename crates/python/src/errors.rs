//! One line as an exception.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

pyo3::create_exception!(
    wattwise,
    Error,
    PyValueError,
    "What cannot be done, in one line: which file or argument, what was expected, what to do.\n\nIt is the line that the program \
     `wattwise` prints, so arguments may be named as the program's flags."
);

/// An error as Python's, on one line whatever it quotes.
pub(crate) fn error(e: impl std::fmt::Display) -> PyErr {
    Error::new_err(wattwise_figure::one_line(&e.to_string()))
}
