//! `restore`: puts back what `set` changed, or what a killed wattwise left behind.

use super::{Failure, Outcome, hardware, print, print_json};
use crate::hw::journal::{self, Found};
use crate::hw::root::Root;
use crate::hw::transaction::{Restored, boot_id, put_back};
use serde::Serialize;
use std::fmt::Write;

#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    root: hardware::RootArgs,
    /// Show what would be put back, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Default)]
struct Report {
    schema: &'static str,
    journals: Vec<Entry>,
    held_by: Vec<u32>,
}

#[derive(Serialize)]
struct Entry {
    journal: String,
    command: String,
    #[serde(flatten)]
    result: Restored,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

pub(super) fn run(args: &Args) -> Outcome {
    let root = args.root.open()?;
    let folder = args.root.journal();
    let cannot = |e: std::io::Error| {
        Failure::input(format!("{}: {e}; expected a folder of journals", folder.display()))
    };
    let listing = journal::list(&folder).map_err(cannot)?;
    let mut report = Report { schema: "wattwise.restore/1", ..Report::default() };
    report.held_by = listing.held.iter().map(|(_, pid)| *pid).collect();
    for (path, why) in &listing.unreadable {
        eprintln!("wattwise: {}: {why}; left as it is", path.display());
    }
    let mut failed = !listing.unreadable.is_empty();
    // Newest first: what was changed twice goes back the way it came.
    for found in listing.left {
        let entry = one(&*root, found, args.dry_run).map_err(cannot)?;
        failed |= !entry.result.failed.is_empty();
        report.journals.push(entry);
    }
    if args.json {
        print_json(&report)?;
    } else {
        print(&text(&report, args.dry_run))?;
    }
    Ok(u8::from(failed))
}

fn one(root: &dyn Root, found: Found, dry_run: bool) -> std::io::Result<Entry> {
    let (journal, command) = (found.path.display().to_string(), found.command.clone());
    let boot = boot_id(root);
    let mut note = None;
    let result = match () {
        () if found.items.is_empty() => {
            note = Some("ended before its first change");
            Restored::default()
        }
        () if found.boot_id != boot => {
            note = Some("is from before the last start of the machine, which has undone it");
            Restored::default()
        }
        () if dry_run => {
            let mut would = Restored::default();
            for item in &found.items {
                match item.target.read(root) {
                    Ok(now) if now == item.original => would.unchanged += 1,
                    Ok(now) => {
                        would.restored.push((item.what.clone(), format!("{now} -> {}", item.original)))
                    }
                    Err(e) => would.failed.push((item.what.clone(), e.to_string())),
                }
            }
            would
        }
        () => put_back(root, &found.items),
    };
    if !dry_run && result.failed.is_empty() {
        found.remove()?;
    }
    Ok(Entry { journal, command, result, note })
}

fn text(report: &Report, dry_run: bool) -> String {
    let mut out = String::new();
    for entry in &report.journals {
        let command = if entry.command.is_empty() { "a set that never began" } else { &entry.command };
        match entry.note {
            Some(note) => _ = writeln!(out, "{command}: {note}"),
            None => {
                _ = writeln!(out, "{command}: {}{}", if dry_run { "would be: " } else { "" }, entry.result)
            }
        }
        for (what, value) in &entry.result.restored {
            _ = writeln!(out, "  {what}: {value}");
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
