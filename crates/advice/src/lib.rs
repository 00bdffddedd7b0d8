//! The answer: the same work under several policies on a machine model, which is best, and how sure that is.
//!
//! | module | what it knows |
//! |---|---|
//! | `compare` | the order of all that follows |
//! | `runs` | from a job to what ran, in the nominal model and in replicas |
//! | `field` | all policies in many replicas |
//! | `replicas` | the circumstances of one replica: machine, work, moment |
//! | `judge` | from what ran to samples, and whether a policy keeps the limit of time |
//! | `time`, `groups` | what is judged as time, and of which tasks: makespan, response times, deadlines |
//! | `missed`, `limit` | whether deadlines and the makespan keep the limit; of response times the crate `responses` says it |
//! | `ties` | which policy leads, and which show no clear difference from it |
//! | `search` | which limits of speeds and C-states are tried beside the policies, and which are left early |
//! | `conclude` | from all runs to the result |
//! | `choice` | which of the policies that show no clear difference is recommended |
//! | `describe` | the figures of one policy |
//! | `rule`, `options` | what to minimise; how to compare |
//! | `deciding`, `sensitivity` | which uncertain figures decide |
//! | `measurable`, `figure_words` | how such a figure can be measured, and its name in words |
//! | `answer`, `say`, `words` | the answer, figures and policies in words |
//! | `columns` | the columns of a comparison, for CSV, pages, screens and Python |
//! | `result` | what is told, as JSON |
//! | `mix` | several works as one day |
//! | `summary` | several comparisons as one |
//! | `itself` | a policy against itself in other replicas |
//! | `paired` | one policy after another in the same replicas, for a search |
//! | `each` | one policy in one draw, by number, for a sweep |
//! | `metered` | one policy in one draw, by the parts that meters cover |
//! | `watched` | one run once more, for somebody who watches |
//!
//! It uses `responses`, `replay` and what that stands on.
#![forbid(unsafe_code)]

pub mod answer;
mod choice;
pub mod columns;
pub mod compare;
mod conclude;
mod deciding;
mod describe;
pub mod each;
mod error;
mod field;
pub mod figure_words;
mod groups;
pub mod itself;
mod judge;
mod limit;
pub mod measurable;
pub mod metered;
mod missed;
pub mod mix;
mod options;
pub mod paired;
mod replicas;
pub mod result;
pub mod rule;
mod runs;
pub mod say;
mod search;
pub mod sensitivity;
pub mod summary;
pub mod ties;
pub mod time;
pub mod watched;
pub mod words;
