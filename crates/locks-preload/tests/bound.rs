//! Whoever binds to glibc, and not to the interposer, must lock by the same rules: `bound.c` in every way of loading, under
//! each lock. The table of docs/notes/locks.md is what this runs; WATTWISE_BLESS=1 writes it anew.
mod under;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use under::{build, library, side_by_side, under};

/// How the other side gets its functions, in words; which program and which way of `bound.c`.
const WAYS: [(&str, &str, &str); 12] = [
    ("linked with the program", "bound-linked", "linked"),
    ("`dlopen`", "bound", "plain"),
    ("`dlopen` with `RTLD_DEEPBIND`", "bound", "deepbind"),
    ("`dlmopen`, a namespace of its own", "bound", "dlmopen"),
    ("`dlmopen` within such a namespace", "bound", "nested"),
    ("`dlopen` with `RTLD_DEEPBIND` within such a namespace", "bound", "within"),
    ("`dlsym` with libc's handle", "bound", "dlsym"),
    ("`dlvsym` with libc's handle", "bound", "dlvsym"),
    ("`dlsym` with `RTLD_NEXT`", "bound", "next"),
    ("`dlsym` with libc's handle, in a library's constructor", "bound-linked", "early"),
    ("all linked statically (no preload)", "bound-static-linked", "linked"),
    ("`dlopen` by a program that is linked statically (no preload)", "bound-static", "plain"),
];

const LOCKS: [&str; 7] = [
    "", // glibc alone
    "adaptive:spin",
    "tas:spin-then-park",
    "ttas:spin-then-park",
    "ticket:spin-then-park",
    "mcs:spin-then-park",
    "clh:spin-then-park",
];

struct Programs {
    folder: PathBuf,
    library: PathBuf,
}

/// The programs and their library, in a folder for each test.
fn programs(test: &str) -> Programs {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = |name: &str| folder.join(name);
    let here = format!("-L{}", folder.display());
    let runpath = "-Wl,--enable-new-dtags,-rpath,$ORIGIN";
    build(&["bound-library.c"], &["-shared", "-fPIC"], &at("libbound.so"));
    build(&["bound.c"], &[], &at("bound"));
    build(&["bound.c"], &["-DLINKED", &here, "-lbound", runpath], &at("bound-linked"));
    // Warns that `dlopen` needs the same glibc at run time.
    build(&["bound.c"], &["-static", "-Wl,--no-warnings"], &at("bound-static"));
    build(&["bound.c", "bound-library.c"], &["-static", "-DLINKED"], &at("bound-static-linked"));
    build(&["loads.c"], &[runpath], &at("loads"));
    Programs { library: at("libbound.so"), folder }
}

#[test]
fn whoever_binds_to_glibc_is_excluded_and_woken() {
    let (programs, preload) = (programs("bound"), library());
    let cases: Vec<(usize, usize)> =
        (0..WAYS.len()).flat_map(|way| (0..LOCKS.len()).map(move |lock| (way, lock))).collect();
    let cells = Mutex::new(vec![vec![String::new(); LOCKS.len()]; WAYS.len()]);
    side_by_side(&cases, |&(way, lock)| {
        let program = programs.folder.join(WAYS[way].1);
        let mut command = match LOCKS[lock] {
            "" => Command::new(&program),
            name => under(&program, &preload, name),
        };
        let run = command.arg(WAYS[way].2).arg(&programs.library).output().expect("runs");
        let said =
            format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        let said = said.lines().next().unwrap_or_default();
        cells.lock().expect("nobody panics with it")[way][lock] = said.to_owned();
    });
    let cells = cells.into_inner().expect("all are done");
    let mut table = String::from("| the other side's functions | glibc alone |");
    LOCKS[1..].iter().for_each(|lock| table += &format!(" {} |", lock.split(':').next().expect("a name")));
    table += &format!("\n|---|{}\n", "---|".repeat(LOCKS.len()));
    for (row, (words, ..)) in cells.iter().zip(WAYS) {
        table += &format!("| {words} | {} |\n", row.join(" | "));
    }
    // As without the preload, everywhere.
    let wrong: Vec<&str> = table
        .lines()
        .skip(2)
        .filter(|row| row.matches("| excluded, woken ").count() != LOCKS.len())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    is_in_the_notes(&table);
}

fn is_in_the_notes(table: &str) {
    let notes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notes/locks.md");
    let text = std::fs::read_to_string(&notes).expect("the notes");
    let (before, rest) = text.split_once("<!-- bound -->\n").expect("a mark");
    let (there, after) = rest.split_once("<!-- end bound -->").expect("a mark");
    if std::env::var_os("WATTWISE_BLESS").is_some() {
        let new = format!("{before}<!-- bound -->\n{table}<!-- end bound -->{after}");
        std::fs::write(&notes, new).expect("can be written");
        return;
    }
    assert_eq!(there, table, "WATTWISE_BLESS=1 cargo test -p wattwise-locks-preload --test bound");
}

#[test]
fn dlmopen_says_what_it_says_without_the_interposer() {
    let (programs, preload) = (programs("dlmopen"), library());
    let program = programs.folder.join("loads");
    let said = |mut command: Command, arguments: &[&str]| {
        let run = command.args(arguments).arg(&programs.library).output().expect("runs");
        assert!(run.status.success(), "{arguments:?}: {run:?}");
        String::from_utf8(run.stdout).expect("text")
    };
    let alone = said(Command::new(&program), &[]);
    assert!(alone.contains("its own first: 4711") && alone.contains("missing.so"), "{alone}");
    assert_eq!(said(under(&program, &preload, "mcs"), &[]), alone);
    // glibc does not give back a namespace's thread-local memory: it makes some ten. One that is empty is used again here.
    let count =
        |said: String| said.rsplit(' ').next().and_then(|n| n.trim().parse::<u32>().ok()).expect("a count");
    let (alone, ours) = (
        count(said(Command::new(&program), &["--again"])),
        count(said(under(&program, &preload, "mcs"), &["--again"])),
    );
    assert!(ours >= alone && alone > 0, "{ours} of 40 namespaces, alone {alone}");
}

#[test]
fn every_function_of_the_interposer_is_found_by_every_look_up() {
    let (programs, preload) = (programs("same"), library());
    let listed =
        Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(&preload).output();
    let listed = String::from_utf8(listed.expect("nm").stdout).expect("text");
    let names: Vec<&str> = listed.lines().collect();
    assert!(names.contains(&"pthread_mutex_lock") && names.len() >= 20, "{names:?}");
    let program = programs.folder.join("loads");
    let run = under(&program, &preload, "mcs").arg("--same").args(&names).output().expect("runs");
    assert!(run.status.success(), "{run:?}");
}

/// Most of the program then locks by glibc's rules, and all of it must.
#[test]
fn nothing_changes_when_a_program_loads_it_later() {
    let (programs, preload) = (programs("later"), library());
    let run =
        Command::new(programs.folder.join("loads")).arg("--later").arg(&preload).output().expect("runs");
    assert!(run.status.success(), "{run:?}");
}

#[test]
fn where_glibc_s_table_cannot_be_changed_the_program_ends_with_one_line() {
    let (programs, preload) = (programs("denied"), library());
    let denies = programs.folder.join("libdenied.so");
    build(&["denied.c"], &["-shared", "-fPIC"], &denies);
    let mut command = under(&programs.folder.join("bound"), &preload, "mcs");
    command.env("LD_PRELOAD", format!("{} {}", denies.display(), preload.display()));
    let run = command.arg("deepbind").arg(&programs.library).output().expect("runs");
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(
        said.lines().count() == 1 && said.contains("RTLD_DEEPBIND") && said.contains("LD_PRELOAD"),
        "{said}"
    );
}
