//! `restore`: puts back what `set` changed, or what a killed wattwise left behind.

use crate::args::{guard, root as hardware};
use crate::exit::{Failure, Outcome, print, print_json};
use crate::show::screen::say;
use rustix::process::Pid;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use wattwise_control::cores::hold::Released;
use wattwise_control::problem::Problem;
use wattwise_control::set::journal;
use wattwise_control::set::journal::OpenJournal;
use wattwise_control::set::original::Item;
use wattwise_control::set::original::put_back_all;
use wattwise_control::set::original::{Layer, Restored, boot_id};
use wattwise_figure::one_line;
use wattwise_hw::probe::why;
use wattwise_hw::root::Root;

#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    root: hardware::RootArgs,
    /// Show what would be put back, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Wait until this process has ended; then put back what killed commands left, and nothing that `set` was to leave in force.
    /// Commands that hold settings start it by themselves
    #[arg(long, value_name = "PID", hide = true, conflicts_with_all = ["dry_run", "json"], value_parser = clap::value_parser!(i32).range(1..))]
    after: Option<i32>,
    /// Print as JSON (schema wattwise.restore/1)
    #[arg(long)]
    json: bool,
}

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.restore/1";

/// What was put back, or would be.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RestoreOutput {
    schema: &'static str,
    /// One entry a journal found.
    journals: Vec<Entry>,
    /// Processes that hold settings and put them back themselves.
    held_by: Vec<u32>,
}

impl RestoreOutput {
    fn new() -> RestoreOutput {
        RestoreOutput { schema: SCHEMA, ..RestoreOutput::default() }
    }
}

/// What came of one journal.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Entry {
    /// The journal's file.
    journal: String,
    /// The command that wrote it.
    command: String,
    #[serde(flatten)]
    result: Restored,
    /// What there is to know beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

pub(crate) fn run(args: &RestoreArgs) -> Outcome {
    if let Some(pid) = args.after.and_then(Pid::from_raw) {
        let _ignored = guard::wait_for(pid).map_err(Failure::work)?;
        let all = args.root.put_back_all(&*args.root.open()?)?.map_err(|e| unreadable(&args.root, &e))?;
        return Ok(u8::from(!all));
    }
    let root = args.root.open()?;
    if args.root.is_passing() {
        // An emulated machine is as new: nothing of it was changed, and there is no folder to look in.
        return finish(args, &RestoreOutput::new(), false);
    }
    let folder = args.root.journal()?;
    let cannot = |e: std::io::Error| unreadable(&args.root, &e);
    let listing =
        if args.dry_run { journal::look(&folder) } else { journal::list(&folder) }.map_err(cannot)?;
    // After the folder was found to be one of ours to read.
    if !args.dry_run {
        let released = wattwise_control::cores::hold::clean(&*root, &folder, true)?;
        if let (Released::State(state), false) = (released, args.json) {
            print(&format!("work may run on every CPU again; it was kept on CPU {}\n", state.kept))?;
        }
    }
    let mut report = RestoreOutput::new();
    report.held_by = listing.journals.iter().filter(|f| f.held).map(|f| f.pid).collect();
    for (path, why) in &listing.unreadable {
        say!("{}: {why}; left as it is", path.display());
    }
    let mut failed = !listing.unreadable.is_empty();
    let boot = boot_id(&*root);
    // What needs no putting back stays out of the way of what does.
    let none: &[Item] = &[];
    let note = |found: &OpenJournal| match () {
        () if found.items.is_empty() => Some("ended before its first change"),
        () if found.boot_id != boot => {
            Some("is from before the last start of the machine, which has undone it")
        }
        () => None,
    };
    let mut end = BTreeMap::new();
    let results: Vec<Restored> = match args.dry_run {
        true => listing
            .left()
            .map(|f| would_be(&*root, if note(f).is_some() { none } else { &f.items }, &mut end))
            .collect(),
        false => put_back_all(
            &*root,
            listing.journals.iter().map(|f| if note(f).is_some() { Layer::Left(none) } else { f.layer() }),
        ),
    };
    for (found, result) in listing.journals.into_iter().filter(|f| !f.held).zip(results) {
        failed |= !result.failed.is_empty();
        let (journal, command, note) =
            (found.path.display().to_string(), found.command.clone(), note(&found));
        if !args.dry_run {
            found.finish(&result).map_err(cannot)?;
        }
        report.journals.push(Entry { journal, command, result, note });
    }
    finish(args, &report, failed)
}

/// The folder of journals is none, or is not ours to read.
fn unreadable(root: &hardware::RootArgs, e: &std::io::Error) -> Failure {
    let folder = root.journal().unwrap_or_default();
    // What the kernel denies; a link or a stranger's folder is denied by us, whoever asks.
    if e.raw_os_error().is_some() && e.kind() == std::io::ErrorKind::PermissionDenied {
        return Problem::of_place(&folder, e).into();
    }
    Failure::input(format!("{}: {e}; expected a folder of journals", folder.display()))
}

fn finish(args: &RestoreArgs, report: &RestoreOutput, failed: bool) -> Outcome {
    match args.json {
        true => print_json(report)?,
        false => print(&text(report, args.dry_run))?,
    }
    Ok(u8::from(failed))
}

/// What putting back would do. `end` has what those before it would have put back: one set on another is undone from the last.
fn would_be(root: &dyn Root, items: &[Item], end: &mut BTreeMap<String, String>) -> Restored {
    let mut would = Restored::default();
    for item in items {
        let target = item.target.to_string();
        let now = end.get(&target).cloned().map_or_else(|| item.target.read(root), Ok);
        match now {
            Ok(now) if now == item.original => would.unchanged += 1,
            Ok(now) => {
                would.restored.push((item.what.clone(), format!("{now} -> {}", item.original)));
                end.insert(target, item.original.clone());
            }
            Err(e) => would.failed.push((item.what.clone(), why(&e, &item.target.path(), root))),
        }
    }
    would
}

fn text(report: &RestoreOutput, dry_run: bool) -> String {
    let mut out = String::new();
    // What a journal has was once a command line or a file's name: each is a line whatever is in it.
    let mut line = |text: String| _ = writeln!(out, "{}", one_line(&text));
    for entry in &report.journals {
        let command = if entry.command.is_empty() { "a set that never began" } else { &entry.command };
        match entry.note {
            Some(note) => line(format!("{command}: {note}")),
            None => line(format!("{command}: {}{}", if dry_run { "would be: " } else { "" }, entry.result)),
        }
        for (what, value) in &entry.result.restored {
            line(format!("  {what}: {value}"));
        }
    }
    for pid in &report.held_by {
        _ = writeln!(out, "process {pid} holds settings now and puts them back itself when it ends");
    }
    if out.is_empty() {
        out = "nothing to put back\n".to_owned();
    }
    out
}
