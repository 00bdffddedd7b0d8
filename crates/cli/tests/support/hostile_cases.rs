//! What each command prints of what strangers wrote. A unit test of the command line holds this table against clap's tree
//! (`cli.rs`): a command that is not in it fails. `hostile_commands.rs` beside this folder runs the calls.

/// What of a stranger's a command prints.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prints {
    /// Names from files: calls in words, in a folder where each word that is one of these files has been written with names of a
    /// stranger's choice: `work.toml`, `other.toml`, `machine.toml`, `policy.toml`, `t.txt`, `t.perf`, `t.dat`, `tree`, `tree.tar`,
    /// `profiles.toml`, `specpower.csv`, `freqbench.csv`, `table`, `result.json`, `locks.sh`, `says.sh`. A call that begins with `refused: ` is never done; one with `either: ` is for
    /// some names, such as a policy file whose policy is one after all.
    Names(&'static [&'static str]),
    /// Nothing, and why.
    Nothing(&'static str),
}

use Prints::{Names, Nothing};

pub(crate) const CASES: &[(&str, Prints)] = &[
    (
        "compare",
        Names(&[
            "compare work.toml -m machine.toml -p performance -p powersave --exact",
            "compare work.toml -m machine.toml -p performance --exact --json",
            "compare work.toml other.toml -m machine.toml -p performance --exact --markdown",
            "compare work.toml -m machine.toml -p performance --exact --csv",
            "compare work.toml -m machine.toml -p performance --exact --report -",
            "compare work.toml -m machine.toml -p performance --exact --ftrace -",
            "compare other.toml -m recording-vm -p performance -p powersave --replicas 16",
            "compare other.toml -m recording-vm -p performance --replicas 16 --report -",
            "compare t.txt -m recording-vm -p performance --exact --recorded-khz 2.5GHz",
            "compare t.perf -m recording-vm -p performance --exact --recorded-khz 2.5GHz",
            "compare t.dat -m recording-vm -p performance --exact --recorded-khz 2.5GHz --json",
            "compare burst -m tree.tar -p performance --exact",
            "refused: compare burst -m recording-vm -p policy.toml --exact",
        ]),
    ),
    (
        "tune",
        Names(&[
            "tune work.toml other.toml -m machine.toml --space burst --budget trials=2 --replicas 40 -o best.toml --log log.jsonl",
            "tune work.toml other.toml -m machine.toml --space burst --budget trials=2 --replicas 40 -o best.toml --log log.jsonl --json",
        ]),
    ),
    (
        "record",
        Nothing("says how much was recorded and where; names stay in the file, whose readers are tried"),
    ),
    (
        "trace",
        Names(&[
            "trace t.txt",
            "trace t.perf",
            "trace t.dat",
            "trace t.txt --json",
            "trace t.perf --json",
            "trace t.dat --json",
        ]),
    ),
    (
        "import",
        Names(&[
            "import t.txt",
            "import t.perf",
            "import t.dat",
            "import t.txt --json",
            "import t.perf --json",
            "import t.dat --json",
        ]),
    ),
    ("policies show", Nothing("takes the name of a bundled policy, no file")),
    ("policies list", Nothing("its policies are its own")),
    ("machines list", Nothing("its models are its own")),
    (
        "machines show",
        Names(&[
            "machines show machine.toml",
            "machines show machine.toml --json",
            "machines show machine.toml --file",
        ]),
    ),
    (
        "machines compare",
        Names(&[
            "machines compare machine.toml i7-4510u",
            "machines compare i7-4510u machine.toml",
            "machines compare machine.toml i7-4510u --json",
        ]),
    ),
    (
        "machines check",
        Names(&[
            "machines check machine.toml -w work.toml --replicas 8",
            "machines check machine.toml machine.toml -w work.toml --replicas 8 --json",
        ]),
    ),
    (
        "machines score",
        Names(&[
            "machines score specpower specpower.csv",
            "machines score specpower specpower.csv --json",
            "machines score freqbench freqbench.csv",
            "machines score freqbench freqbench.csv --json",
            "machines score policies table --quick",
            "machines score policies table --quick --json",
        ]),
    ),
    ("workloads show", Nothing("takes the name of a bundled workload, no file")),
    ("workloads list", Nothing("its workloads are its own")),
    ("emulate", Nothing("mounts bundled machines alone; what is printed meanwhile is the command's own")),
    ("completions", Nothing("its words are the commands' own")),
    ("man", Nothing("its words are the commands' own")),
    ("bench sim", Nothing("its jobs are its own")),
    (
        "bench locks",
        Names(&[
            "bench locks -m machine.toml -l mcs:spin -t 2 --cs 0 --ncs 0 --ms 1 --repeats 1",
            "bench locks -m machine.toml -l mcs:spin -t 2 --cs 0 --ncs 0 --ms 1 --repeats 1 --json",
            "bench locks -m machine.toml -l mcs:spin -t 2 --cs 0 --ncs 0 --ms 1 --repeats 1 --csv -",
            "bench locks -m machine.toml -l mcs:spin -t 2 --cs 0 --ncs 0 --ms 1 --repeats 1 --report -",
            "bench locks --watts-of machine.toml -l std -t 1 --cs 0 --ncs 0 --ms 1 --repeats 1",
        ]),
    ),
    ("bench transition", Names(&["refused: bench transition --root tree --trials 2"])),
    (
        "bench throughput",
        Names(&[
            "bench throughput --root emulated:bc10 --watts-of machine.toml --metric rate:.([0-9.]+) -n 1 -- sh says.sh",
            "bench throughput --root emulated:bc10 --watts-of machine.toml --metric rate:.([0-9.]+) -n 1 --csv - -- sh says.sh",
            "bench throughput --root emulated:bc10 --watts-of machine.toml --metric rate:.([0-9.]+) -n 1 --report - -- sh says.sh",
        ]),
    ),
    ("bench wake", Nothing("measures this machine alone: the names of its C-states are its own kernel's")),
    (
        "run",
        Names(&[
            "run --watts-of machine.toml -- true",
            "run --watts-of machine.toml --json -o result.out -- true",
        ]),
    ),
    (
        "ab",
        Names(&[
            "ab -m machine.toml --workload work.toml performance powersave",
            "ab -m machine.toml --workload work.toml performance powersave --json",
            "ab -m machine.toml --workload work.toml performance powersave --report ab.html",
        ]),
    ),
    (
        "prove",
        Names(&[
            "refused: prove --root tree.tar current powersave",
            "refused: prove --from result.json --root emulated:amd-laptop",
            "either: prove --root emulated:amd-laptop --for 600ms --block 100ms -o /dev/null current policy.toml",
        ]),
    ),
    (
        "top",
        Names(&[
            "refused: top --once --every 100ms --root tree.tar",
            "top --once --every 100ms --root tree",
            "top --once --every 100ms --root tree --json",
        ]),
    ),
    (
        "locks advise",
        Names(&[
            "locks advise --library libc.so -- sh locks.sh",
            "locks advise --library libc.so --json -- sh locks.sh",
        ]),
    ),
    (
        "report",
        Names(&["report result.json", "report result.json --report -", "report result.json result.json"]),
    ),
    ("info", Names(&["info --root tree", "info --root tree --json"])),
    (
        "set",
        Names(&[
            "set --root tree --dry-run --cstate 2=off",
            "refused: set --root tree --dry-run --cstate none=off",
            "refused: set --root tree --dry-run --governor none",
            "set --root tree --dry-run --json --max 60%",
            "set --root tree --max 60%",
        ]),
    ),
    ("restore", Names(&["restore --root tree", "restore --root tree --dry-run --json"])),
    (
        "profile list",
        Names(&["profile list --config profiles.toml", "profile list --config profiles.toml --json"]),
    ),
    (
        "profile show",
        Names(&[
            "profile show hostile --config profiles.toml",
            "profile show hostile --config profiles.toml --json",
        ]),
    ),
    (
        "profile status",
        Nothing(
            "tells what the daemon of this machine says, whose files are root's; names there have letters and digits alone",
        ),
    ),
    ("profile set", Nothing("takes a name of letters and digits, and tells what the daemon says")),
    ("profile hold", Nothing("takes a name of letters and digits; the command's output is its own")),
    ("profile release", Nothing("takes a number, and tells what the daemon says")),
    ("profile add", Names(&["refused: profile add new --from result.json --root tree -o added.toml"])),
    (
        "coreidle status",
        Nothing("reads this machine alone; its journal is used only if nobody else can write it"),
    ),
    ("coreidle set", Nothing("takes CPUs, and changes this machine alone")),
    ("coreidle governor", Nothing("takes a policy of its own, and changes this machine alone")),
    ("coreidle off", Nothing("changes this machine alone")),
    ("coreidle cost", Nothing("measures this machine alone")),
    ("coreidle tune", Nothing("runs the user's own command on this machine; its log is the one of `ab`")),
    ("calibrate", Names(&["refused: calibrate --root tree --budget 1s -o new.toml"])),
    ("capture", Names(&["capture --root tree -o new.tar", "capture --root tree -o new.tar --json"])),
    ("cpufreq-info", Names(&["cpufreq-info --root tree", "cpufreq-info --root tree --policy"])),
    ("cpufreq-set", Names(&["refused: cpufreq-set --root tree -g none", "cpufreq-set --root tree -u 1GHz"])),
    ("reproduce", Nothing("its studies and their figures are its own")),
];
