//! Commands that need no machine but a model of one.

pub(crate) mod cases;
pub(crate) mod compare;
pub(crate) mod list;
pub(crate) mod machine;
pub(crate) mod machines;
pub(crate) mod own;
pub(crate) mod recording;
pub(crate) mod reproduce;
pub(crate) mod sinks;
pub(crate) mod stop;
pub(crate) mod trace;
pub(crate) mod tune;
