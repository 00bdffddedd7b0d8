//! What can be wrong with ACPI's tables.

/// Where the kernel shows the tables.
pub const TABLES: &str = "sys/firmware/acpi/tables";

/// What is wrong with a table or with reading it. One line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcpiError {
    /// There are no tables: an Arm machine with a device tree, a container, a capture without them.
    #[error("{TABLES} of {0}: not there: this machine has no ACPI, or the capture left it out")]
    NoTables(String),
    /// A table cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said, and the remedy.
        why: String,
    },
    /// A table is not as ACPI says.
    #[error("ACPI table {table}: offset {offset:#x}: {what}")]
    Malformed {
        /// The table's file.
        table: String,
        /// Where, in bytes from the table's start.
        offset: usize,
        /// What was found there.
        what: String,
    },
}
