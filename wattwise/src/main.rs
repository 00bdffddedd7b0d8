//! wattwise.
fn main() {}
