//! The tables that come with the program: `hardware/` in the repository.

use super::HardwareError;
use super::table::{Files, Table};

/// A table's folder and its files by name.
type Bundled = (&'static str, &'static [(&'static str, &'static str)]);

/// A line a table: its folder, its files beside `table.toml`.
macro_rules! tables {
    ($($name:literal: $($file:literal)*;)*) => {
        static TABLES: &[Bundled] = &[$((
            $name,
            &[
                ("table.toml", include_str!(concat!("../../../../hardware/", $name, "/table.toml"))),
                $(($file, include_str!(concat!("../../../../hardware/", $name, "/", $file))),)*
            ],
        )),*];
    };
}

/// A line a machine that tables share.
macro_rules! machines {
    ($($name:literal)*) => {
        static MACHINES: &[(&str, &str)] = &[$((
            concat!("../machines/", $name, ".toml"),
            include_str!(concat!("../../../../hardware/machines/", $name, ".toml")),
        )),*];
    };
}

include!("bundled_list.rs");

struct Within(&'static [(&'static str, &'static str)]);

impl Files for Within {
    fn text(&self, name: &str) -> Result<String, String> {
        let found = self.0.iter().chain(MACHINES).find(|(n, _)| *n == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file beside the table".into())
    }
}

/// Names of all tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// All tables.
///
/// # Errors
/// What is wrong with one of them.
pub fn tables() -> Result<Vec<Table>, HardwareError> {
    TABLES.iter().map(|(name, files)| Table::read(name, &Within(files))).collect()
}

/// The machines that tables share: where they are from a table's folder, and their text.
pub fn machines() -> &'static [(&'static str, &'static str)] {
    MACHINES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_folder_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware");
        let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        let folders: BTreeSet<String> = entries
            .filter(|p| p.join("table.toml").exists())
            .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(folders, names().map(str::to_owned).collect());
    }

    #[test]
    fn every_table_and_every_machine_can_be_read() {
        let tables = tables().unwrap_or_else(|e| panic!("{e}"));
        assert!(tables.iter().all(|t| t.rows.iter().any(|r| r.is_reference)));
        for (name, text) in machines() {
            wattwise_replay::library::parsed(text, name).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
