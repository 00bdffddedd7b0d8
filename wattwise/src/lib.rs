//! wattwise.
