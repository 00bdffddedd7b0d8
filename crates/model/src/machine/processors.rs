//! Which bundled machine has a processor.

use super::{MachineModel, builtin, file, is_part_of_name};

/// The machine of a processor, by its name; the first in order of names if there are several.
pub fn of_processor(cpu_name: &str) -> Option<MachineModel> {
    let models = builtin::names().filter_map(|name| file::parse(builtin::text(name)?, name).ok());
    models.into_iter().find(|m| m.cpu_names.iter().any(|part| is_part_of_name(part, cpu_name)))
}
