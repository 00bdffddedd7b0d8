//! `machines check`: what a model's file lacks, and what that costs the answer.

use super::{FigureLine, columns, facts, machine, standings, standings_text};
use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::model::cases::{CasesAsked, cases};
use crate::model::compare::{HeldAgainst, How, conduct, failed};
use crate::model::stop::Stop;
use crate::show::table::wrapped;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use wattwise_advice::compare::REPLICAS;
use wattwise_advice::measurable::measurable;
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Rule;
use wattwise_figure::{Budget, one_line};
use wattwise_model::machine::MachineModel;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::defaults::default_policies;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_trace::ImportOptions;

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.machine-check/2";
/// What a figure of a file says that is not in it.
const DEFAULT: &str = "not in the file; wattwise's default: ";

#[derive(clap::Args)]
pub(crate) struct CheckMachineArgs {
    /// Models' files, captures, trees, or bundled models' names
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The work by which the answer is judged, as `compare` takes it; repeat for several
    #[arg(long, short, default_values = ["build", "idle-browse", "burst"])]
    workload: Vec<String>,
    /// Machines drawn from the figures
    #[arg(long, default_value_t = REPLICAS, value_parser = clap::value_parser!(u64).range(8..=4096))]
    replicas: u64,
}

/// What models lack.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckedModels {
    /// One entry a file, in the order in which they were named.
    machines: Vec<Checked>,
}

/// What a model lacks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Checked {
    /// The file, or the bundled model's name.
    file: String,
    /// The model's name.
    name: String,
    /// Drawn figures by standing.
    standings: BTreeMap<&'static str, usize>,
    /// Figures that are not in the file.
    missing: Vec<Missing>,
    /// Figures that are in it and nobody knows.
    guesses: Vec<Guess>,
    /// What all of this leaves of the answer.
    answers: Vec<Judged>,
}

/// A figure that is not in the file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Missing {
    /// Its path.
    what: String,
    /// What is taken instead.
    instead: String,
}

/// A guess.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Guess {
    /// The figure.
    #[serde(flatten)]
    figure: FigureLine,
    /// How it can be measured.
    by: Option<&'static str>,
}

/// The answer for one piece of work.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Judged {
    /// The work.
    workload: String,
    /// What the machine does unless told otherwise.
    reference: String,
    /// The policy to use.
    recommended: String,
    /// Whether it is a winner, and not one of several that cannot be told apart.
    is_winner: bool,
    /// The answer in words.
    text: String,
    /// Policies whose energy against the reference is least certain, with the width of the 90 % interval as a share of the
    /// reference's energy: of all admissible ones the widest.
    widest: Option<Widest>,
    /// Figures that decide between the leader and its rival, the strongest first.
    deciding: Vec<Decides>,
}

/// An uncertain ratio.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Widest {
    /// The policy.
    policy: String,
    /// Low end of its energy over the reference's.
    low: f64,
    /// High end.
    high: f64,
}

/// A figure that decides.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Decides {
    /// Its path.
    what: String,
    /// Its share of the variance between the two.
    share: f64,
    /// How it can be measured.
    by: String,
}

fn judged(c: &Comparison) -> Judged {
    let width = |r: &wattwise_advice::result::PolicyResult| {
        r.uncertain.energy_ratio.high - r.uncertain.energy_ratio.low
    };
    let admissible = c.results.iter().filter(|r| r.admissible && r.policy != c.reference);
    let widest = admissible.max_by(|a, b| width(a).total_cmp(&width(b)));
    Judged {
        workload: c.workload.name.clone(),
        reference: c.reference.clone(),
        recommended: c.answer.recommended.clone(),
        is_winner: c.answer.winner.is_some(),
        text: c.answer.text.clone(),
        widest: widest.map(|r| Widest {
            policy: r.policy.clone(),
            low: r.uncertain.energy_ratio.low,
            high: r.uncertain.energy_ratio.high,
        }),
        deciding: c
            .deciding
            .iter()
            .flat_map(|d| &d.figures)
            .map(|f| Decides { what: f.what.clone(), share: f.share, by: f.by.clone() })
            .collect(),
    }
}

fn answers(args: &CheckMachineArgs, m: &MachineModel) -> Result<Vec<Judged>, Failure> {
    let read = |name: &String| library::workload(name, &ImportOptions::default()).map_err(Failure::input);
    let works = args.workload.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let asked = CasesAsked {
        machines: std::slice::from_ref(m),
        policies: &[],
        reference: None,
        usual: &|m| default_policies(m, System::find(&m.system)),
    };
    let stop = Stop::follow();
    let mut out = Vec::new();
    for case in cases(&works, &asked)? {
        let job = ReplayJob {
            machine: &case.machine,
            workload: case.workload,
            policies: &case.policies,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: Budget::default(),
        };
        let (comparison, _) = conduct(
            &job,
            (Rule::default(), How::AsAsked),
            args.replicas,
            &HeldAgainst::by(&case.reference),
            &stop,
        )
        .map_err(|e| failed(e, &stop))?;
        if comparison.stopped {
            let message = format!(
                "stopped after {} of {} workloads: nothing is judged",
                out.len(),
                args.workload.len()
            );
            return Err(Failure { code: stop.code(), message });
        }
        out.push(judged(&comparison));
    }
    Ok(out)
}

pub(crate) fn run(args: &CheckMachineArgs, json: bool) -> Outcome {
    // A file that is none is told before the first answer is worked out.
    let models = args.files.iter().map(|file| machine(file, "check")).collect::<Result<Vec<_>, _>>()?;
    let mut machines = Vec::new();
    for (at, (file, m)) in args.files.iter().zip(&models).enumerate() {
        let checked = checked(args, file, m)?;
        if !json {
            print(&format!("{}{}", if at == 0 { "" } else { "\n" }, text(m, &checked)))?;
        }
        machines.push(checked);
    }
    if json {
        print_json_as(SCHEMA, &CheckedModels { machines })?;
    }
    Ok(0)
}

fn checked(args: &CheckMachineArgs, file: &str, m: &MachineModel) -> Result<Checked, Failure> {
    let inputs = m.inputs();
    let missing = inputs.iter().filter_map(|i| {
        Some(Missing { what: i.what.to_owned(), instead: i.source.strip_prefix(DEFAULT)?.to_owned() })
    });
    let guesses = inputs
        .iter()
        .map(FigureLine::of)
        .filter(|f| f.standing == "guess" && f.nominal.is_some() && !f.source.starts_with(DEFAULT))
        .map(|figure| Guess { by: measurable(&figure.what), figure });
    Ok(Checked {
        file: file.to_owned(),
        name: m.name.clone(),
        standings: standings(m).into_iter().collect(),
        missing: missing.collect(),
        guesses: guesses.collect(),
        answers: answers(args, m)?,
    })
}

fn text(m: &MachineModel, checked: &Checked) -> String {
    let mut out = format!(
        "{}: {}: a valid file\n{}\nUncertain figures: {}\n",
        one_line(&checked.file),
        one_line(&checked.name),
        one_line(&facts(m)),
        standings_text(m)
    );
    if !checked.missing.is_empty() {
        let rows: Vec<Vec<String>> =
            checked.missing.iter().map(|f| vec![f.what.clone(), f.instead.clone()]).collect();
        _ = writeln!(out, "\nNot in the file, and what is taken instead\n{}", columns(&rows).trim_end());
    }
    if !checked.guesses.is_empty() {
        let row = |g: &Guess| {
            let by = g.by.map_or(String::new(), |b| format!("measure: {b}"));
            vec![g.figure.what.clone(), g.figure.value(), g.figure.interval(), by]
        };
        let rows: Vec<Vec<String>> = checked.guesses.iter().map(row).collect();
        _ = writeln!(out, "\nGuesses, and the interval of 19 of 20 draws\n{}", columns(&rows).trim_end());
    }
    _ = writeln!(out, "\nWhat it costs the answer");
    for a in &checked.answers {
        _ = writeln!(out, "  {}", wrapped(&one_line(&format!("{}: {}", a.workload, a.text)), "    "));
        if let Some(w) = &a.widest {
            let percent = |r: f64| format!("{} %", wattwise_figure::signed((r - 1.0) * 100.0, 1));
            let least = format!(
                "least certain: {}, energy {} to {} against {}",
                w.policy,
                percent(w.low),
                percent(w.high),
                a.reference
            );
            _ = writeln!(out, "    {}", wrapped(&one_line(&least), "      "));
        }
        for d in &a.deciding {
            let line = format!("{} decides by {:.0} %; measure: {}", d.what, d.share * 100.0, d.by);
            _ = writeln!(out, "    {}", wrapped(&one_line(&line), "      "));
        }
    }
    out
}
