//! Python bindings: convert values, release the GIL and map errors.

mod errors;
mod metrics;
mod run;
mod serve;
mod table;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _engine {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::errors::{EngineUnusable, InvalidPlan};
    #[pymodule_export]
    use crate::metrics::{read_metrics, write_metrics};
    #[pymodule_export]
    use crate::run::{Prepared, prepare, prepare_pair};
    #[pymodule_export]
    use crate::serve::serve;
    #[pymodule_export]
    use crate::table::{count_samples, join_samples, read_samples, write_samples};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
