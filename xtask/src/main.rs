//! Chores of the repository: charts bundle, generated documents, fixtures.
fn main() {}
