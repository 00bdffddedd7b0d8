//! Commands that wattwise runs, from outside: what a shell would tell of their end, and what a terminal sends them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/lab.rs"]
mod lab;

use lab::{skip, text, wattwise};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Whether this machine lets us record.
fn can_record() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r").display().to_string();
    let out = wattwise(&["record", "-o", &file, "--", "true"]);
    if out.status.code() == Some(3) {
        skip(&text(&out.stderr));
    }
    out.status.success()
}

#[test]
fn exit_codes_are_a_shell_s_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (recording, log) = (at("recording"), at("log"));
    let mut by = vec![
        vec!["run"],
        vec!["set", "--root", "emulated:bc10", "--governor", "performance", "--for"],
        vec!["ab", "--same", "--of", "time", "--idle-floor", "0", "--warm-up", "1", "-o", &log],
    ];
    if can_record() {
        by.push(vec!["record", "-o", &recording]);
        by.push(vec!["compare", "--exact", "-m", "i7-4510u"]);
    }
    for start in by {
        let code = |command: &[&str]| {
            _ = std::fs::remove_file(&log);
            let mut args = start.clone();
            args.extend((start[0] != "set").then_some("--"));
            args.extend(command);
            let out = wattwise(&args);
            (out.status.code(), text(&out.stderr))
        };
        for (command, wanted) in [
            (&["/no/such/program"][..], 127),
            (&["no-such-program-anywhere"], 127),
            (&["/etc/passwd"], 126),
            (&["/etc"], 126),
        ] {
            let (got, said) = code(command);
            assert_eq!(got, Some(wanted), "{} {command:?}: {said}", start[0]);
        }
        // Of a command that ran and failed, an experiment says that it failed.
        if start[0] != "ab" {
            assert_eq!(code(&["sh", "-c", "exit 7"]).0, Some(7), "{}", start[0]);
            assert_eq!(code(&["sh", "-c", "kill -TERM $$"]).0, Some(143), "{}", start[0]);
        }
        let (got, said) = code(&["sh", "-c", "kill -INT $$"]);
        assert_eq!(got, Some(130), "{}: {said}", start[0]);
    }
}

#[test]
fn an_experiment_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log").display().to_string();
    let out = wattwise(&[
        "ab",
        "--of",
        "time",
        "--idle-floor",
        "0",
        "--pairs",
        "3",
        "--pilot",
        "3",
        "--warm-up",
        "1",
        "-o",
        &log,
        "sleep 54321 & true",
        "true",
    ]);
    let left = Command::new("pgrep").args(["-fx", "sleep 54321"]).output().unwrap();
    _ = Command::new("pkill").args(["-fx", "sleep 54321"]).status();
    assert_eq!(text(&left.stdout), "", "{}", text(&out.stderr));
}

#[test]
fn a_recording_is_for_its_owner() {
    if !can_record() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["plain", "packed.zst"] {
        let file = folder.path().join(name);
        let record = || wattwise(&["record", "-o", file.to_str().unwrap(), "--", "true"]).status.success();
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert!(record());
        assert_eq!(mode(), 0o600, "{name}");
        // Who has opened an older one to others meant it: an existing file keeps its mode.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(record());
        assert_eq!(mode(), 0o644, "{name}");
    }
}

/// wattwise within namespaces of its own; `None` where this machine makes none.
fn unshared(flags: &[&str], args: &[&str]) -> Option<std::process::Output> {
    let make =
        |command: &[&str]| Command::new("unshare").args(flags).args(command).stdin(Stdio::null()).output();
    if !make(&["true"]).is_ok_and(|out| out.status.success()) {
        skip(&format!("unshare {} is not possible here", flags.join(" ")));
        return None;
    }
    let program = env!("CARGO_BIN_EXE_wattwise");
    Some(make(&[&[program], args].concat()).unwrap())
}

/// In a container the command's number is another than the kernel's: the command is found, and so is its work.
#[test]
fn a_command_is_found_in_a_pid_namespace() {
    if !can_record() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Of whose processes /proc tells: of the namespace's own, and of the outer one's.
    for flags in [&["--pid", "--fork", "--mount-proc"][..], &["--pid", "--fork"]] {
        let file = folder.path().join("inside.perf").display().to_string();
        let work = "for i in 1 2 3; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); done";
        let Some(out) = unshared(flags, &["record", "-o", &file, "--", "bash", "-c", work]) else { return };
        assert!(out.status.success(), "{}", text(&out.stderr));
        let out = wattwise(&["import", "--json", "--only-foreground", &file]);
        assert!(out.status.success(), "{flags:?}: {}", text(&out.stderr));
        let imported: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(imported["foreground"], "the command bash", "{flags:?}");
        // bash and its three children, which ran for some milliseconds each.
        assert_eq!(imported["foreground_tasks"], 4, "{flags:?}: {imported}");
        let out = wattwise(&["import", &file]);
        assert!(!text(&out.stdout).contains("did not fit"), "{flags:?}: {}", text(&out.stdout));
    }
    let args = [
        "compare",
        "--exact",
        "-m",
        "i7-4510u",
        "-p",
        "performance",
        "--",
        "sh",
        "-c",
        "echo $((6*7)) >/dev/null",
    ];
    if let Some(out) = unshared(&["--pid", "--fork", "--mount-proc"], &args) {
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
}

/// Root of a user namespace is nobody to the kernel's events: it is not told to be root.
#[test]
fn a_user_namespace_needs_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inside.perf").display().to_string();
    let Some(out) = unshared(&["--user", "--map-root-user"], &["record", "-o", &file, "--", "true"]) else {
        return;
    };
    let said = text(&out.stderr);
    if out.status.success() {
        return skip("this host lets everybody record");
    }
    assert_eq!((out.status.code(), said.trim().lines().count()), (Some(3), 1), "{said}");
    assert!(said.contains("the host must grant it") && !said.contains("run as root"), "{said}");
}

/// A program on a terminal of its own: what is typed, each after what it waits for, and all that was shown.
fn on_a_terminal(command: &str, typed: &[(&str, &str)]) -> Option<String> {
    let spawned = Command::new("script")
        .args(["-qfec", command, "/dev/null"])
        .env("WATTWISE", env!("CARGO_BIN_EXE_wattwise"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut script) = spawned else {
        skip("script is missing (Debian: bsdutils)");
        return None;
    };
    let (mut input, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let (send, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut page = [0; 4096];
        while let Ok(n) = output.read(&mut page) {
            if n == 0 || send.send(page[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    let until = Instant::now() + Duration::from_secs(30);
    let mut shown = String::new();
    let mut from = 0;
    for (awaited, keys) in typed {
        while !shown[from..].contains(awaited) {
            match seen.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(page) => shown += &String::from_utf8_lossy(&page),
                Err(e) => {
                    _ = script.kill();
                    panic!("waiting for '{awaited}': {e}; shown was:\n{shown}");
                }
            }
        }
        from = shown.len();
        input.write_all(keys.as_bytes()).unwrap();
    }
    while let Ok(page) = seen.recv_timeout(until.saturating_duration_since(Instant::now())) {
        shown += &String::from_utf8_lossy(&page);
    }
    _ = script.kill();
    _ = script.wait();
    Some(shown)
}

#[test]
fn what_is_typed_reaches_the_command_alone_and_each_time() {
    let script = "n=0; trap 'n=$((n+1)); echo caught $n; [ $n = 2 ] && exit 9' INT; echo ready; while :; do sleep 0.05; done";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.sh");
    std::fs::write(&file, script).unwrap();
    let command = format!("\"$WATTWISE\" run -- sh {}; echo code $?", file.display());
    let typed = [("ready", "\x03"), ("caught 1", "\x03")];
    let Some(shown) = on_a_terminal(&command, &typed) else { return };
    assert!(shown.contains("caught 2") && shown.contains("code 9"), "{shown}");
    // The command reads what is typed, and we have the terminal back after it.
    let typed = [("ready", "words\n"), ("after", "more\n")];
    let command =
        "\"$WATTWISE\" run -- sh -c 'echo ready; read x; echo got $x'; echo after; read y; echo then $y";
    let Some(shown) = on_a_terminal(command, &typed) else { return };
    assert!(shown.contains("got words") && shown.contains("then more"), "{shown}");
}

#[test]
fn a_stopped_command_gives_the_shell_its_prompt_and_goes_on() {
    // A shell that starts nothing once it is ready: dash, between vfork and exec of a child that is stopped, does not stop.
    let typed = [
        (
            "$",
            "\"$WATTWISE\" run -- sh -c 'trap \"echo goes o''n\" CONT; echo rea''dy; while :; do read x; done'\n",
        ),
        ("ready", "\x1a"),
        ("Stopped", "echo shell is he''re\n"),
        ("shell is here", "fg\n"),
        // Not before it runs: until then the terminal is the shell's.
        ("goes on", "\x03"),
        ("$ ", "echo co''de $?; exit\n"),
    ];
    let Some(shown) = on_a_terminal("PS1='$ ' bash --norc -i", &typed) else { return };
    assert!(shown.contains("code 130"), "{shown}");
}

/// In a PID namespace whose first process was not given a group, as in containers, our own group has no number.
#[test]
fn a_command_runs_where_our_group_has_no_number() {
    let unshare = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", program, "run", "--", "sh", "-c", "exit 7"]).stdin(Stdio::null());
        command.output()
    };
    match unshare(env!("CARGO_BIN_EXE_wattwise")) {
        Ok(out) if text(&out.stderr).contains("unshare failed") => skip(&text(&out.stderr)),
        Ok(out) => assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr)),
        Err(e) => skip(&format!("unshare: {e}")),
    }
}
