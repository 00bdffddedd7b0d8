//! wattwise as a Python module: the model wing, behind names that a notebook knows.
//!
//! | module | what it knows |
//! |---|---|
//! | `arguments` | shares by the program's rule, numbers of any class |
//! | `errors` | one line as an exception |
//! | `inputs` | machines and workloads |
//! | `lists` | what there is: machines, workloads, policies and their parameters |
//! | `background` | the engine on its own thread, while Python stays able to interrupt it |
//! | `governed` | policies written in Python, inside the engine |
//! | `compare`, `tune` | the two questions |
//! | `plan` | a sweep: which case an index is, and what a block of cases comes to |
//! | `table` | results as Arrow tables |
//!
//! What people see (classes, docstrings, charts, Dask) is Python, in `python/wattwise/`; here is what only the engine can do.
//! Nothing here holds Python's lock while the engine runs, but a policy that is written in Python.

mod arguments;
mod background;
mod compare;
mod errors;
mod governed;
mod inputs;
mod lists;
mod plan;
mod table;
mod tune;

/// The module.
#[pyo3::pymodule]
mod _wattwise {
    #[pymodule_export]
    use crate::arguments::{increase, one_line, share};
    #[pymodule_export]
    use crate::compare::{Compared, compare};
    #[pymodule_export]
    use crate::errors::Error;
    #[pymodule_export]
    use crate::governed::values::{Cadence, CpuSample, Domain, DomainSample, Intent, Observation, Platform};
    #[pymodule_export]
    use crate::inputs::{Machine, Workload, default_machine};
    #[pymodule_export]
    use crate::lists::{expand, machine_list, policy_list, workload_list};
    #[pymodule_export]
    use crate::plan::{Plan, Running};
    #[pymodule_export]
    use crate::table::{Table, ipc_rows, read_ipc};
    #[pymodule_export]
    use crate::tune::tune;

    /// Replicas where nobody says how many.
    #[pymodule_export]
    const REPLICAS: u64 = wattwise_advice::compare::REPLICAS;

    /// The fewest replicas of a test of `tune`.
    #[pymodule_export]
    const LEAST_TEST_REPLICAS: u64 = wattwise_tune::gain::LEAST_REPLICAS;

    /// Version of the engine.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
