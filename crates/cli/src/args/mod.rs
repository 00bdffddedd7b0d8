//! What several commands take.

pub(crate) mod root;
pub(crate) mod select;
pub(crate) mod settings;
