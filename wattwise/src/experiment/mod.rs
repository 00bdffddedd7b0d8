//! Experiments: the same work under several policies.

pub mod result;
