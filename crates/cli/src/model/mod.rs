//! Commands that need no machine but a model of one.

pub(crate) mod compare;
pub(crate) mod list;
pub(crate) mod reproduce;
pub(crate) mod trace;
