//! `machines show`: every figure of a model, how far it may be off, and who says so.

use super::{FigureLine, columns, facts, machine, standings_text};
use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::model::machine::file_of;
use serde::Serialize;
use wattwise_calibrate::truth;
use wattwise_figure::one_line;
use wattwise_model::machine::{MachineModel, builtin};

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.machine/1";

#[derive(clap::Args)]
pub(crate) struct ShowMachineArgs {
    /// A model's name, or its file
    name: String,
    /// Print the model's file instead: what a model of one's own may begin with
    #[arg(long, conflicts_with = "json")]
    file: bool,
    /// Of an emulated machine what 'calibrate --root' of it should find: the figures that its meters follow
    #[arg(long, conflicts_with = "file")]
    truth: bool,
    /// With --truth: the seed of that calibration
    #[arg(long, default_value_t = 1, requires = "truth")]
    seed: u64,
}

/// What is behind an emulated machine.
fn truth(args: &ShowMachineArgs) -> Result<MachineModel, Failure> {
    let name = args.name.strip_prefix("emulated:").ok_or_else(|| {
        Failure::input(format!(
            "--truth {}: expected emulated:NAME; of other machines nobody knows it",
            args.name
        ))
    })?;
    let machine = wattwise_emulator::named(name).map_err(Failure::input)?;
    let behind = truth::behind(&machine, truth::USUAL, args.seed).ok_or_else(|| {
        Failure::input(format!("--truth {}: its packages differ, and no truth is made up for it", args.name))
    })?;
    Ok(MachineModel { name: args.name.clone(), ..behind.machine })
}

/// A model in full.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ShownMachine {
    /// Its name.
    name: String,
    /// In a sentence.
    summary: String,
    /// Logical CPUs.
    cpus: usize,
    /// Watts with every core in its deepest state, platform included.
    rest_w: f64,
    /// Watts with every CPU busy, platform included.
    full_w: f64,
    /// Every line of the file that has a source, and the figures that rest on it.
    figures: Vec<FigureLine>,
}

/// The model's file.
fn text(name: &str) -> Result<String, Failure> {
    match (builtin::text(name), file_of(name)?) {
        (Some(text), _) => Ok(text.to_owned()),
        (None, Some(text)) => Ok(text),
        (None, None) => {
            wattwise_figure::budget::read_text(std::path::Path::new(name)).map_err(Failure::input)
        }
    }
}

pub(crate) fn run(args: &ShowMachineArgs, json: bool) -> Outcome {
    let m = if args.truth { truth(args)? } else { machine(&args.name, "show")? };
    if args.file {
        print(&text(&args.name)?)?;
        return Ok(0);
    }
    let mut figures: Vec<FigureLine> = m.inputs().iter().map(FigureLine::of).collect();
    if args.truth {
        figures.retain(|f| f.nominal.is_some());
        figures.iter_mut().for_each(FigureLine::is_known);
    }
    if json {
        let (rest_w, full_w) = m.rest_and_full_w();
        let shown = ShownMachine {
            name: m.name.clone(),
            summary: m.summary.clone(),
            cpus: m.cpus.len(),
            rest_w,
            full_w,
            figures,
        };
        print_json_as(SCHEMA, &shown)?;
        return Ok(0);
    }
    let head = ["figure", "value", "95 % range", "basis", "source"].map(str::to_owned).to_vec();
    let row =
        |f: &FigureLine| vec![f.what.clone(), f.value(), f.interval(), f.standing.clone(), f.source.clone()];
    let rows: Vec<Vec<String>> = [head].into_iter().chain(figures.iter().map(row)).collect();
    print(&format!(
        "{}: {}\n{}\nUncertain figures: {}\n\n{}",
        one_line(&m.name),
        one_line(&m.summary),
        one_line(&facts(&m)),
        standings_text(&m),
        columns(&rows)
    ))?;
    Ok(0)
}
