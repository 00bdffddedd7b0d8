//! `locks advise`: which of a program's mutexes are contended, and which lock would serve them.

use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::show::table::{cell, seconds};
use clap::Subcommand;
use comfy_table::{ContentArrangement, Table, presets};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use wattwise_child::{RunningCommand, Signals, exit_code};
use wattwise_figure::shell;
use wattwise_lockbench::advise::{LockAdvice, MutexUse, SCHEMA, advise};
use wattwise_output::Scratch;

/// What takes the place of a program's pthread mutexes.
const LIBRARY: &str = "libwattwise_pthread.so";

#[derive(clap::Args)]
pub(crate) struct LocksArgs {
    #[command(subcommand)]
    what: LocksCommand,
}

#[derive(Subcommand)]
enum LocksCommand {
    /// Run a command with its mutexes counted, and say which are contended and which lock would serve them
    Advise(AdviseArgs),
}

#[derive(clap::Args)]
struct AdviseArgs {
    /// The lock under which it runs meanwhile
    #[arg(long, value_name = "LOCK:POLICY", default_value = "adaptive", value_parser = lock)]
    lock: String,
    /// The interposer [default: libwattwise_pthread.so in this program's folder, in ../lib/wattwise or ../lib]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// How many mutexes to show
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// Print as JSON (schema wattwise.locks-advice/1), all mutexes
    #[arg(long)]
    json: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn lock(name: &str) -> Result<String, String> {
    wattwise_locks::dynamic::LockKind::parse(name).map(|_| name.to_owned()).map_err(|e| e.to_string())
}

pub(crate) fn run(args: &LocksArgs) -> Outcome {
    match &args.what {
        LocksCommand::Advise(args) => run_advise(args),
    }
}

fn run_advise(args: &AdviseArgs) -> Outcome {
    let library = library(args.library.as_deref())?;
    let folder = Scratch::new().map_err(|e| Failure::work(format!("a temporary folder: {e}; set TMPDIR")))?;
    let (code, elapsed_s) = watched(args, &library, folder.path())?;
    let files = counted(folder.path())?;
    if files.is_empty() {
        return Err(Failure::work(format!(
            "{}: left no counts; expected a program that is linked dynamically with glibc, locks a mutex, and ends by itself",
            args.command[0]
        )));
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let advice = advise(&files, elapsed_s, cpus).map_err(|e| Failure::work(format!("the counts: {e}")))?;
    if args.json {
        print_json_as(SCHEMA, &advice)?;
    } else {
        print(&text(&advice, args, &library))?;
    }
    Ok(code)
}

fn library(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let absent = |at: &Path, e: std::io::Error| {
        Failure::impossible(format!(
            "{}: {e}; expected the interposer: cargo build --release -p wattwise-locks-preload, then --library FILE",
            at.display()
        ))
    };
    if let Some(file) = given {
        return file.canonicalize().map_err(|e| absent(file, e));
    }
    let program = std::env::current_exe().map_err(Failure::work)?;
    let beside = program.with_file_name(LIBRARY);
    // Beside the program as built; in a package's folder of its own, which no linker searches.
    let up = program.parent().and_then(Path::parent);
    let lib = up.into_iter().flat_map(|up| ["lib/wattwise", "lib"].map(|lib| up.join(lib).join(LIBRARY)));
    let found = std::iter::once(beside.clone()).chain(lib).find_map(|at| at.canonicalize().ok());
    found.ok_or_else(|| absent(&beside, std::io::ErrorKind::NotFound.into()))
}

/// Runs it. Its exit code, and how long it took.
fn watched(args: &AdviseArgs, library: &Path, folder: &Path) -> Result<(u8, f64), Failure> {
    let signals = Signals::catch().map_err(Failure::work)?;
    let mut command = Command::new(&args.command[0]);
    // What is preloaded already stays.
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    command.args(&args.command[1..]).env("LD_PRELOAD", preload);
    command.env("WATTWISE_LOCK", &args.lock).env("WATTWISE_LOCK_WATCH", folder.join("counts"));
    let begun = Instant::now();
    let running = RunningCommand::start(&mut command, true)
        .map_err(|e| Failure { code: e.code(), message: e.to_string() })?;
    running.until_it_ends(&signals).map_err(Failure::work)?;
    let elapsed_s = begun.elapsed().as_secs_f64();
    let (status, _) = running.reap().map_err(Failure::work)?;
    Ok((exit_code(status), elapsed_s))
}

/// What each of its processes has left.
fn counted(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).map_err(Failure::work)?.flatten().map(|file| file.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(Failure::work);
    paths.iter().map(read).collect()
}

fn text(advice: &LockAdvice, args: &AdviseArgs, library: &Path) -> String {
    let mut out = String::new();
    let waited = advice.mutexes.iter().filter(|m| m.contended > 0).count();
    _ = writeln!(
        out,
        "{} mutexes in {}, {waited} of them waited for, on {} CPUs\n",
        advice.mutexes.len(),
        seconds(advice.elapsed_s),
        advice.cpus
    );
    _ = writeln!(out, "{}\n", table(advice.mutexes.iter().take(args.top)));
    match advice.lock {
        None => {
            _ = writeln!(out, "No mutex is waited for enough to matter: any lock serves, glibc's own too.")
        }
        Some(lock) => {
            _ = writeln!(out, "To try it:    WATTWISE_LOCK={lock} LD_PRELOAD={} ...", shell::word(library));
            _ = writeln!(out, "To prove it:  wattwise ab, with and without");
        }
    }
    out
}

fn table<'a>(mutexes: impl Iterator<Item = &'a MutexUse>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "mutex",
        "locked",
        "waited for",
        "in all",
        "longest",
        "held",
        "threads",
        "lock",
        "why",
    ]);
    for m in mutexes {
        let share = 100.0 * m.contended as f64 / m.locked.max(1) as f64;
        table.add_row(
            [
                format!("{} (by {})", m.mutex, m.caller),
                m.locked.to_string(),
                format!("{share:.1} %"),
                seconds(m.waited_s),
                seconds(m.longest_wait_s),
                format!("{:.1} us", m.held_s * 1e6),
                m.most_waiting.saturating_add(1).to_string(),
                m.lock.unwrap_or("any").to_owned(),
                m.why.clone(),
            ]
            .map(cell),
        );
    }
    table
}
