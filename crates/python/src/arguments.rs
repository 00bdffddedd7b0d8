//! Arguments of Python's: shares by the program's rule, numbers of any class.

use crate::errors::error;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use wattwise_figure::share as figure;
use wattwise_policy::Khz;

/// A part of a whole, as the program's flags take it.
#[pyfunction]
pub(crate) fn share(name: &str, text: &str) -> PyResult<f64> {
    figure::share(text).map_err(|e| error(format!("{name}: {e}")))
}

/// By how much more something may be, as the program's flags take it; infinite: any.
#[pyfunction]
pub(crate) fn increase(name: &str, text: &str) -> PyResult<f64> {
    figure::increase(text).map_err(|e| error(format!("{name}: {e}")))
}

/// A whole number of 0 or more, whatever its class: Python's, numpy's, or a float that is whole.
pub(crate) fn whole(name: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    let real = || given.extract::<f64>().ok().filter(|r| r.fract() == 0.0 && (0.0..1.8e19).contains(r));
    let number = match is_bool(given) {
        true => None,
        false => given.extract::<u64>().ok().or_else(|| real().map(|r| r as u64)),
    };
    number.ok_or_else(|| wrong(name, given, "a whole number, 0 or more"))
}

/// A speed in kHz, whatever its class, as a whole number.
pub(crate) fn khz(name: &str, given: &Bound<'_, PyAny>, rounded: fn(f64) -> f64) -> PyResult<Khz> {
    let number = if is_bool(given) { None } else { given.extract::<f64>().ok() };
    let speed = number.filter(|khz| (0.0..=f64::from(u32::MAX)).contains(khz));
    speed.map(|s| Khz(rounded(s) as u32)).ok_or_else(|| wrong(name, given, "a speed in kHz, 0 to 4294967295"))
}

fn wrong(name: &str, given: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let shown = given.str().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    error(format!("{name}={shown}: expected {expected}"))
}

/// Text on one line, as errors have it.
#[pyfunction]
pub(crate) fn one_line(text: &str) -> String {
    wattwise_figure::one_line(text)
}

/// Whether it is True or False, Python's or numpy's: numbers, and no quantity.
pub(crate) fn is_bool(given: &Bound<'_, PyAny>) -> bool {
    let numpy = || given.get_type().name().is_ok_and(|name| name == "bool" || name == "bool_");
    given.is_instance_of::<PyBool>() || numpy()
}
