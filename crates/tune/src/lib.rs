//! A policy's settings, searched for the work and the machine at hand, and tested on recordings that the search never saw.
//!
//! | module | what it knows |
//! |---|---|
//! | `split` | which recordings are searched by, and which are kept for the test |
//! | `space` | which settings are free, and between which values |
//! | `search` | where to look next |
//! | `field` | the cases, and what a policy comes to in them |
//! | `conduct`, `spend` | the search, batch by batch; how much it may take |
//! | `gain` | a gain over recordings, with its interval |
//! | `tune` | all of it: search, confirmation, test, verdict |
//! | `verdict` | what follows, in words |
//! | `content` | what is in a recording or a machine, as a word |
//! | `log` | the file of a search, from which it can go on |
//! | `result` | what is told, as JSON |
//!
//! ```text
//! recordings --split by seed or name--> train                        test
//!                                        | search: races in 8 draws   |
//!                                        v                            |
//!                          front -> the best, 16 other draws          |
//!                                        | winner                     v
//!                                        +----------> once, in 64 others --> gain, verdict
//! ```
//!
//! It uses `advice` and what that stands on.
#![forbid(unsafe_code)]

pub mod conduct;
pub mod content;
pub mod field;
pub mod gain;
pub mod log;
pub mod result;
pub mod search;
pub mod space;
mod spend;
pub mod split;
pub mod tune;
mod verdict;
