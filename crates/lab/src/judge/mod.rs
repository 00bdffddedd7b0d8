//! Who judges what a guest returned, a file a judge.

pub(crate) mod agreement;
pub(crate) mod burst;
pub(crate) mod calibrate;
pub(crate) mod coreidle;
pub(crate) mod daemon;
pub(crate) mod fidelity;
pub(crate) mod placement;
pub(crate) mod powerctl;
pub(crate) mod rules;
pub(crate) mod thomson;
