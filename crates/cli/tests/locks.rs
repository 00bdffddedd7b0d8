//! `locks advise` on a program with a mutex that is fought for, and one that is not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;
static void *fights(void *unused) {
    for (int i = 0; i < 50; i++) {
        // All four meet at the mutex in each round: a lock may be taken again and again by who just left it.
        pthread_barrier_wait(&together);
        pthread_mutex_lock(&hot);
        usleep(200);
        pthread_mutex_unlock(&hot);
    }
    return unused;
}
int main(int argc, char **argv) {
    pthread_t t[4];
    pthread_mutex_t *heap = malloc(sizeof *heap);
    if (argc > 2) {
        int status;
        if (fork() == 0) {
            pthread_mutex_lock(&cold);
            exit(0);
        }
        wait(&status);
    }
    pthread_mutex_init(heap, NULL);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&cold);
        pthread_mutex_lock(heap);
        pthread_mutex_unlock(heap);
        pthread_mutex_unlock(&cold);
    }
    pthread_barrier_init(&together, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, fights, NULL);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

fn temporary() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn library() -> PathBuf {
    let folder = temporary().join("preload");
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--release", "-p", "wattwise-locks-preload", "--target-dir"])
        .arg(&folder);
    assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    folder.join("release/libwattwise_pthread.so")
}

/// Once for all tests: one that runs cannot be written.
fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build_program).clone()
}

fn build_program() -> PathBuf {
    let (source, out) = (temporary().join("fights.c"), temporary().join("fights"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-rdynamic", "-pthread", "-o"]).arg(&out).arg(&source);
    assert!(cc.status().unwrap().success());
    out
}

fn advise(library: &Path, options: &[&str], command: &[&str]) -> Output {
    let mut run = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    run.args(["locks", "advise", "--library"]).arg(library).args(options).arg("--").args(command);
    run.output().unwrap()
}

fn mutex<'a>(advice: &'a Value, name: &str) -> &'a Value {
    let all = advice["mutexes"].as_array().unwrap();
    all.iter().find(|m| m["mutex"].as_str().unwrap().starts_with(name)).unwrap_or_else(|| panic!("{advice}"))
}

#[test]
fn the_mutex_that_is_fought_for_is_named_and_gets_a_lock() {
    let (library, program) = (library(), program());
    let program = program.to_str().unwrap();
    for lock in ["adaptive", "mcs:park", "tas:spin-then-park"] {
        let out = advise(&library, &["--lock", lock, "--json"], &[program]);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        let advice: Value = serde_json::from_slice(&out.stdout).unwrap();
        let (hot, cold, heap) =
            (mutex(&advice, "hot in fights"), mutex(&advice, "cold in fights"), mutex(&advice, "0x"));
        assert_eq!((hot["locked"].as_u64(), cold["locked"].as_u64()), (Some(200), Some(1000)), "{advice}");
        assert_eq!((heap["locked"].as_u64(), heap["contended"].as_u64()), (Some(1000), Some(0)), "{advice}");
        assert!(hot["contended"].as_u64() > Some(5) && hot["most_waiting"].as_u64() >= Some(2), "{advice}");
        assert!(hot["held_s"].as_f64() >= Some(2e-4) && hot["waited_s"].as_f64() > Some(0.0), "{advice}");
        assert_eq!((cold["contended"].as_u64(), cold["lock"].as_str()), (Some(0), None), "{advice}");
        assert_eq!(advice["lock"], hot["lock"], "{advice}");
        assert!(hot["lock"].is_string() && hot["caller"].as_str().unwrap().contains("fights"), "{advice}");
    }
    let out = advise(&library, &[], &[program, "3"]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(3), "the command's own");
    assert!(said.contains("hot in fights") && said.contains("To try it:"), "{said}");
}

#[test]
fn a_forked_child_counts_for_itself() {
    let out = advise(&library(), &["--json"], &[program().to_str().unwrap(), "0", "fork"]);
    let advice: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(mutex(&advice, "cold in fights")["locked"].as_u64(), Some(1001), "{advice}");
}

#[test]
fn what_cannot_be_counted_is_said() {
    let library = library();
    let none = advise(Path::new("/nowhere/lib.so"), &[], &["true"]);
    assert_eq!(none.status.code(), Some(3), "{none:?}");
    assert_eq!(advise(&library, &[], &["/nowhere/program"]).status.code(), Some(127));
    let wrong = advise(&library, &["--lock", "mutexee"], &["true"]);
    assert_eq!(wrong.status.code(), Some(2));
    let killed = advise(&library, &[], &["sh", "-c", "kill -9 $$"]);
    let said = String::from_utf8(killed.stderr).unwrap();
    assert!(killed.status.code() == Some(1) && said.contains("left no counts"), "{said}");
}
