//! The answer: the same work under several policies on a machine model, which is best, and how sure that is.
//!
//! | module | what it knows |
//! |---|---|
//! | `compare` | runs the policies, in the nominal model and in replicas |
//! | `replicas` | the circumstances of one replica: machine, work, moment |
//! | `time` | what is judged as time: makespan, response times, deadlines |
//! | `limit` | whether a policy keeps the limit of time, and how sure that is |
//! | `ties` | which policy leads, and which cannot be told apart from it |
//! | `rule` | what is to be small |
//! | `sensitivity`, `measurable` | which uncertain figures decide, and how they can be measured |
//! | `answer` | the answer in words |
//! | `result` | what is told, as JSON |
//! | `summary` | several comparisons as one |
//! | `paired` | one policy after another in the same replicas, for a search |
//! | `each` | one policy in one draw, by number, for a sweep |
//! | `watched` | one run once more, for somebody who watches |
//!
//! It uses `replay` and what that stands on.
#![forbid(unsafe_code)]

pub mod answer;
pub mod compare;
pub mod each;
mod limit;
pub mod measurable;
pub mod paired;
mod replicas;
pub mod result;
pub mod rule;
pub mod sensitivity;
pub mod summary;
pub mod ties;
pub mod time;
pub mod watched;
