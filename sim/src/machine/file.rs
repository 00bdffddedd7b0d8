//! The machine file format.
