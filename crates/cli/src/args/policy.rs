//! Policies as flags take them, the same for every command: a policy as `compare` prints it, the file of one, or `@FILE`, a
//! file of results or of a policy.
//!
//! | given | is |
//! |---|---|
//! | `hwp:epp=power+max=60%` | a policy ([`PolicySpec`]) |
//! | `tuned.toml`, `@tuned.toml` | the policy of a file |
//! | `@result.json` | the policy that a comparison or a search recommends |

use crate::exit::Failure;
use crate::show::result_file::ResultFile;
use crate::show::screen::note;
use std::path::Path;
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Goal;
use wattwise_figure::nearest;
use wattwise_live::prove::log::Predicted;
use wattwise_replay::spec::{PolicySpec, expand};

/// What follows from a file of results.
pub(crate) struct Results {
    /// As the file was named.
    given: String,
    /// The policy to use; none where the file holds no judgement.
    recommended: Option<String>,
    /// What it is held against.
    reference: Option<String>,
    /// Every policy that it has figures of.
    policies: Vec<String>,
    /// What was stopped before its end.
    stopped: Option<&'static str>,
    /// What it says of the recommended policy's energy over the reference's; none where it compares nothing on one work.
    pub(crate) predicted: Option<Predicted>,
}

/// The word for what is recommended.
const RECOMMENDED: &str = "recommended";

impl Results {
    /// Reads a file of results.
    ///
    /// # Errors
    /// Bad input: no result, one of an older shape (with the command that makes it again), or one without policies.
    pub(crate) fn read(flag: &str, path: &str) -> Result<Results, Failure> {
        Results::read_as(flag, path, path)
    }

    /// The same, of what was given for the path in messages.
    fn read_as(flag: &str, given: &str, path: &str) -> Result<Results, Failure> {
        let mark = given.strip_suffix(path).unwrap_or_default();
        let refused = |e: String| Failure::input(format!("{flag} {mark}{e}"));
        let file = ResultFile::read(Path::new(path)).map_err(refused)?;
        let mut found = Results {
            given: given.to_owned(),
            recommended: None,
            reference: None,
            policies: Vec::new(),
            stopped: None,
            predicted: None,
        };
        match file {
            ResultFile::Compare(c) => {
                found.predicted = predicted(&c);
                found.stopped = c.stopped.then_some("comparison");
                found.policies = c.results.into_iter().map(|r| r.policy).collect();
                found.recommended = Some(c.answer.recommended);
                found.reference = Some(c.reference);
            }
            ResultFile::CompareSet(set) => {
                found.stopped = set.stopped.then_some("comparison");
                let best = set.mix.map(|mix| mix.answer.recommended).or(set.summary.best);
                found.recommended = best;
                let of_each = set.comparisons.iter().flat_map(|c| c.results.iter().map(|r| r.policy.clone()));
                for policy in of_each {
                    if !found.policies.contains(&policy) {
                        found.policies.push(policy);
                    }
                }
                found.reference = set.comparisons.into_iter().next().map(|c| c.reference);
            }
            ResultFile::Tune(t) => {
                found.stopped = t.stopped.then_some("search");
                found.policies = vec![t.winner.policy.clone()];
                found.recommended = match t.verdict.worth_it {
                    Some(false) => None,
                    _ => Some(t.winner.policy),
                };
                found.reference = t.cases.into_iter().next().map(|c| c.reference);
            }
            ResultFile::Ab(read) => {
                found.policies = read.header.arms.into_iter().filter_map(|arm| arm.policy).collect();
            }
            ResultFile::Proof(read) => {
                found.policies = read.header.sides.into_iter().map(|side| side.policy).collect();
            }
            ResultFile::Run(r) => found.policies = r.policy.into_iter().collect(),
            _ => {}
        }
        match found.policies.is_empty() {
            true => Err(Failure::input(format!(
                "{flag} {given}: has no policies; expected a result of compare, tune, ab or run"
            ))),
            false => Ok(found),
        }
    }

    /// The policy of that name, `recommended` among them.
    pub(crate) fn policy(&self, flag: &str, name: &str) -> Result<String, Failure> {
        if name == RECOMMENDED {
            return self.best(flag);
        }
        let asked = PolicySpec::parse(name).map_or_else(|_| name.to_owned(), |p| p.text);
        let known = self.policies.iter().chain(&self.reference).chain(&self.recommended);
        if known.clone().any(|p| *p == asked) {
            return Ok(asked);
        }
        let near = nearest(&asked, known.map(String::as_str));
        Err(Failure::input(format!("{flag} {}: has no policy {name}; did you mean {near}?", self.given)))
    }

    /// The policy that is recommended, with a warning where the file says that not all was run that was to be.
    fn best(&self, flag: &str) -> Result<String, Failure> {
        let best = self.recommended.clone().ok_or_else(|| {
            Failure::input(format!(
                "{flag} {}: recommends no policy; expected one by name: {}",
                self.given,
                self.policies.join(", ")
            ))
        })?;
        if let Some(what) = self.stopped {
            note!("{}: its {what} was stopped early; {best} is the best of what had run by then", self.given);
        }
        Ok(best)
    }

    /// What is recommended, and what that was held against, the reference first.
    pub(crate) fn arms(&self, flag: &str) -> Result<[String; 2], Failure> {
        let recommended = self.policy(flag, RECOMMENDED)?;
        match &self.reference {
            Some(reference) if *reference == recommended => Err(Failure::input(format!(
                "{flag} {}: it says to keep {reference}, so there is nothing to compare with it; \
                 expected ARMs, such as 'wattwise ab {reference} OTHER -- COMMAND'",
                self.given
            ))),
            Some(reference) => Ok([reference.clone(), recommended]),
            None => Err(Failure::input(format!("{flag} {}: has no reference; expected ARMs", self.given))),
        }
    }
}

/// The energy of the recommended policy over the reference's, over the window, with the interval of its replicas.
fn predicted(c: &Comparison) -> Option<Predicted> {
    let row = |name: &str| c.results.iter().find(|r| r.policy == name);
    let (best, reference) = (row(&c.answer.recommended)?, row(&c.reference)?);
    let (best_j, reference_j) = match c.goal == Goal::OwnEnergy {
        true => (best.energy_j, reference.energy_j),
        false => (best.window_energy_j, reference.window_energy_j),
    };
    let interval = if c.goal == Goal::OwnEnergy {
        &best.uncertain.own_energy_ratio
    } else {
        &best.uncertain.energy_ratio
    };
    let ends = (c.replicas > 0).then_some((interval.low, interval.high));
    let ratio = best_j / reference_j;
    ratio.is_finite().then(|| Predicted {
        ratio,
        low: ends.map(|e| e.0),
        high: ends.map(|e| e.1),
        work: c.workload.name.clone(),
        machine: c.machine.clone(),
    })
}

/// A policy's text: what `@FILE` stands for, else what was given.
pub(crate) fn text(flag: &str, given: &str) -> Result<String, Failure> {
    match given.strip_prefix('@') {
        Some(file) if file.ends_with(".toml") => match Path::new(file).exists() {
            true => Ok(file.to_owned()),
            false => Err(Failure::input(format!(
                "{flag} {given}: no such file; expected the file of a policy or a result"
            ))),
        },
        Some(file) => Results::read_as(flag, given, file)?.policy(flag, RECOMMENDED),
        None => Ok(given.to_owned()),
    }
}

/// Every policy that a text stands for: more than one where it has scans.
pub(crate) fn expanded(given: &str) -> Result<Vec<PolicySpec>, Failure> {
    let text = text("--policy", given)?;
    match expand(&text) {
        Ok(all) => Ok(all),
        // What 'run' and 'ab' take beside policies has no meaning on a model.
        Err(_) if is_settings(&text) => Err(Failure::input(format!(
            "--policy {given}: is settings, which 'run', 'ab' and 'set' take; expected a policy, such as schedutil+max=60%"
        ))),
        Err(e) => Err(Failure::input(e)),
    }
}

/// Whether a text is flags of `set` in one word: `governor=powersave,max=60%`.
pub(crate) fn is_settings(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains([':', '+', ',']))
}
