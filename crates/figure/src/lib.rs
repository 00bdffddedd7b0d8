//! Figures: what a number is in (`units`, `share`), how it spreads (`spread`, `histogram`), where it comes from
//! (`provenance`), what may be asked of a machine (`setting`), the normal distribution that draws use (`normal`), small linear
//! systems and lines through points (`linear`, `ridge`), what chance alone gives (`tail`), what two samples say of each other (`verdict`), and what may be said of
//! one while it grows (`sequence`).
//!
//! The ground floor: it uses no other crate of wattwise, and any may use it.
#![forbid(unsafe_code)]

pub mod budget;
pub mod histogram;
pub mod linear;
pub mod mistake;
pub mod normal;
pub mod provenance;
pub mod random;
pub mod ridge;
pub mod sequence;
pub mod setting;
pub mod share;
pub mod shell;
pub mod spread;
pub mod tail;
pub mod text;
pub mod units;
pub mod verdict;

pub use budget::{Budget, BudgetPart, OverBudget};
pub use histogram::Histogram;
pub use provenance::Provenance;
pub use random::Random;
pub use share::{increase, share};
pub use spread::{Spread, mean_sd, quantile};
pub use text::{
    beginning, counted, csv_cell, is_acted_on, nearest, on_screen, on_screen_json, one_line, suggest,
};
pub use units::{fixed, signed};
