//! `wattwise_hw::rules` against a stock kernel: every attribute of power that the guest has, times odd values, in several states
//! of the machine. What the kernel answered (its error, and what the attribute reads afterwards) must be what the rule says of
//! the machine as it was before.
//!
//! Attributes without a rule are counted apart; wattwise never writes to those. The guest writes back what an attribute read
//! before, so the machine before all writes is the machine before each: where that failed, the state is not judged.

use crate::files::read;
use crate::guest::Returned;
use crate::verdict::JudgeTold;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wattwise_hw::rules::{self, AttributeView};

/// Differences of one attribute that are told.
const TOLD: usize = 12;

/// A machine's attributes, as the guest read them; nothing of those that it could not read.
struct Dump(BTreeMap<String, Option<String>>);

impl AttributeView for Dump {
    fn text(&self, path: &str) -> Option<String> {
        Some(self.0.get(path)?.as_ref()?.trim().to_owned())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let folder = format!("{path}/");
        let below = self.0.range(folder.clone()..).take_while(|(p, _)| p.starts_with(&folder));
        let names: BTreeSet<&str> = below.filter_map(|(p, _)| p[folder.len()..].split('/').next()).collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

/// A value that was written.
#[derive(Debug, PartialEq)]
struct Tried {
    path: String,
    value: String,
    errno: i32,
    reads: String,
}

pub(crate) fn judge(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let states = returned.lines.iter().filter_map(|l| l.get("state")?.as_str());
    let mut told = JudgeTold::default();
    let mut all = Tally::default();
    for state in states {
        let file = |kind: &str| read(&returned.folder.join(format!("{state}.{kind}")));
        let before = dump(&file("before")?);
        let moved = changed(&before, &dump(&file("after")?));
        if let Some(path) = moved {
            return Err(format!("{state}: {path} was not put back: nothing is judged"));
        }
        let seen = all.judged;
        tried(&file("tried")?)?.iter().for_each(|t| all.judge(state, &before, t));
        told.figures.push(format!("{state}: {} answers", all.judged - seen));
        told.checks.push(format!("rules: {state}"));
    }
    let attributes = all.attributes.len();
    told.figures
        .push(format!("{attributes} attributes, {} answers of the kernel, all as the rules say", all.judged));
    if !all.without.is_empty() {
        let names: Vec<&str> = all.without.iter().map(String::as_str).collect();
        told.figures.push(format!("without a rule, never written to: {}", names.join(", ")));
    }
    match (all.different.len(), attributes) {
        (0, 0..10) => Err(format!("only {attributes} attributes with a rule were there")),
        (0, _) => Ok(told),
        (kinds, _) => {
            let lines =
                all.different.values().take(TOLD).map(|(times, first)| format!("{times} times: {first}"));
            let lines: Vec<String> = lines.collect();
            Err(format!(
                "{kinds} kinds of answer are not the rules', of {} answers:\n{}",
                all.judged,
                lines.join("\n")
            ))
        }
    }
}

#[derive(Default)]
struct Tally {
    judged: usize,
    attributes: BTreeSet<String>,
    without: BTreeSet<String>,
    /// By attribute and value: how often, and the first.
    different: BTreeMap<(&'static str, String), (usize, String)>,
}

impl Tally {
    fn judge(&mut self, state: &str, before: &Dump, t: &Tried) {
        // A processor's cooling device asks its driver, which refuses in 6.12 while that CPU is offline: no file tells whose it is.
        if state == "offline" && t.path.ends_with("/cur_state") {
            return;
        }
        let Some(attribute) = rules::attribute(&t.path) else {
            self.without.insert(t.path.rsplit('/').next().unwrap_or_default().to_owned());
            return;
        };
        self.judged += 1;
        self.attributes.insert(attribute.pattern.to_owned());
        let said = match rules::explain(before, &t.path, &t.value) {
            Ok(taken) => (0, Some(taken.shows)),
            Err(refusal) => (refusal.errno.raw_os_error(), None),
        };
        let answered = (t.errno, (t.errno == 0).then(|| t.reads.trim().to_owned()));
        if said != answered {
            let line = || {
                let (kernel, rules) = (words(&answered), words(&said));
                format!("{state}: {} = {:?}: the kernel {kernel}, the rules {rules}", t.path, t.value)
            };
            let key = (attribute.pattern, t.value.clone());
            self.different.entry(key).or_insert_with(|| (0, line())).0 += 1;
        }
    }
}

fn words(answer: &(i32, Option<String>)) -> String {
    match answer {
        (0, Some(reads)) => format!("takes it and reads {reads:?}"),
        (errno, _) => format!("refuses it (errno {errno})"),
    }
}

/// The text behind `\n`, `\t`, `\r` and `\\`.
fn plain(shown: &str) -> String {
    let mut out = String::new();
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    out
}

fn dump(text: &str) -> Dump {
    let line = |l: &str| match l.split_once('\t') {
        Some((path, value)) => (path.to_owned(), Some(plain(value))),
        None => (l.to_owned(), None),
    };
    Dump(text.lines().map(line).collect())
}

fn tried(text: &str) -> Result<Vec<Tried>, String> {
    let line = |l: &str| {
        let mut fields = l.split('\t');
        let mut next = || fields.next().ok_or_else(|| format!("no answer: {l:?}"));
        let (path, value, errno, reads) = (next()?, next()?, next()?, next()?);
        let errno = errno.parse().map_err(|_| format!("no error number: {l:?}"))?;
        Ok(Tried { path: path.to_owned(), value: plain(value), errno, reads: plain(reads) })
    };
    text.lines().map(line).collect()
}

/// The first attribute with a rule that reads something else than before. What a governor that was away for a moment has chosen
/// since is no setting.
fn changed(before: &Dump, after: &Dump) -> Option<String> {
    let ruled = |path: &&String| rules::attribute(path).is_some() && !path.ends_with("/scaling_setspeed");
    let all: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).filter(ruled).collect();
    all.into_iter().find(|p| before.0.get(*p) != after.0.get(*p)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "proc/sys/kernel/osrelease\t6.1.0\n\
        sys/devices/system/cpu/cpufreq/policy0/affected_cpus\t0\n\
        sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors\tperformance powersave \n\
        sys/devices/system/cpu/cpufreq/policy0/scaling_governor\tperformance\n";

    #[test]
    fn an_answer_that_no_rule_gives_is_told() {
        let before = dump(BEFORE);
        let path = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
        let mut all = Tally::default();
        let mut of = |answer: &str| {
            tried(&format!("{path}\t{answer}"))
                .expect("an answer")
                .iter()
                .for_each(|t| all.judge("s", &before, t));
            all.different.values().map(|(times, _)| times).sum::<usize>()
        };
        assert_eq!(of("powersave\\n\t0\tpowersave"), 0);
        assert_eq!(of("nonsense\t22\tperformance"), 0);
        assert_eq!(of("nonsense\t0\tnonsense"), 1);
        assert_eq!(of("powersave\t0\tperformance"), 2);
        assert_eq!(of("powersave\t16\tperformance"), 3);
        assert_eq!(all.judged, 5);
    }

    #[test]
    fn what_was_not_put_back_is_found() {
        let before = dump(BEFORE);
        assert_eq!(changed(&before, &dump(BEFORE)), None);
        let other = BEFORE.replace("governor\tperformance\n", "governor\tpowersave\n");
        assert!(changed(&before, &dump(&other)).is_some_and(|p| p.ends_with("scaling_governor")));
    }
}
