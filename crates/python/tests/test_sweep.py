"""Sweeps on this computer: what a row is, that nothing but the case decides it, and what goes wrong."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import rows

import wattwise

POLICIES = ["schedutil:rate_limit=1ms..20ms:n3", "performance"]
MACHINES = ["i7-4510u", "thinkpad-r51"]


def test_every_case_is_there_once_and_in_order(short: Path, tmp_path: Path) -> None:
    done = wattwise.sweep([short, "burst"], MACHINES, POLICIES, replicas=3, out=tmp_path / "s.arrow")
    table = rows(done)
    assert len(done) == len(table) == 2 * 2 * 3 * 4
    assert [r["case"] for r in table] == list(range(48))
    named = [(r["workload"], r["machine"], r["draw"], r["policy"]) for r in table]
    rates = [f"schedutil:rate_limit={rate}" for rate in (1000, 10500, 20000)]
    assert named == [
        (w, m, d, p) for w in ("short", "burst") for m in MACHINES for d in range(3) for p in [*rates, "performance"]
    ]
    assert all(r["error"] is None and r["energy_j"] > 0 for r in table)  # type: ignore[operator]


def test_a_row_is_what_compare_says(tmp_path: Path) -> None:
    """The first draws of a sweep are the replicas of a comparison: the same medians, by another way."""
    told = wattwise.compare("build", "xeon-4210", ["performance", "powersave"], replicas=9)
    table = rows(wattwise.sweep("build", "xeon-4210", ["performance", "powersave"], replicas=9, out=tmp_path / "s.arrow"))
    for result in told.to_dict()["results"]:
        own = [r for r in table if r["policy"] == result["policy"]]
        if not own:
            continue
        for column, interval in (("window_energy_j", "energy_j"), ("energy_ratio", "energy_ratio"), ("time", "time")):
            assert sorted(r[column] for r in own)[4] == result["uncertain"][interval]["median"]  # type: ignore[type-var]


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_the_same_bits_whatever_the_threads_and_blocks(short: Path, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    all_of_them = [
        rows(
            wattwise.sweep(
                short,
                MACHINES,
                POLICIES,
                replicas=20,
                threads=threads,
                block_s=block_s,
                out=tmp_path / f"{threads}-{block_s}.{suffix}",
            )
        )
        for threads, block_s in ((1, 1.0), (2, 1e-4), (4, 1e-3), (1, 1e-9))
    ]
    assert all(other == all_of_them[0] for other in all_of_them)
    assert len({r["energy_j"] for r in all_of_them[0]}) > 100


def test_tables_are_taken_as_they_are(short: Path, tmp_path: Path) -> None:
    done = wattwise.sweep(short, MACHINES, POLICIES, replicas=2, block_s=1e-9, out=tmp_path / "s.parquet")
    assert len(done.files) > 2
    expected = rows(done)
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    assert polars.DataFrame(done).to_dicts() == expected
    assert polars.read_parquet(done.path / "*.parquet").to_dicts() == expected
    assert pandas.read_parquet(done.path)["energy_j"].tolist() == [r["energy_j"] for r in expected]
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(done)["policy"].tolist() == [r["policy"] for r in expected]


def test_it_goes_on_where_it_stopped(short: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.arrow"
    arguments = {"machines": MACHINES, "policies": POLICIES, "replicas": 10, "block_s": 1e-9, "out": out}
    whole = wattwise.sweep(short, **arguments)  # type: ignore[arg-type]
    expected, files = rows(whole), whole.files
    assert len(files) >= 10
    kept = {file: file.stat().st_mtime_ns for file in files[:4]}
    for file in files[4:]:
        file.unlink()
    (out / ".block-00005.arrow.part").write_bytes(b"torn")
    again = wattwise.sweep(short, **arguments)  # type: ignore[arg-type]
    assert rows(again) == expected
    assert {file: file.stat().st_mtime_ns for file in kept} == kept


def test_another_sweep_s_folder_is_refused(short: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.arrow"
    wattwise.sweep(short, MACHINES, POLICIES, replicas=2, out=out)
    with pytest.raises(wattwise.Error, match="holds another sweep, which differs in replicas"):
        wattwise.sweep(short, MACHINES, POLICIES, replicas=3, out=out)
    short.write_text(short.read_text().replace("900", "901"))
    with pytest.raises(wattwise.Error, match="differs in workloads"):
        wattwise.sweep(short, MACHINES, POLICIES, replicas=2, out=out)
    with pytest.raises(wattwise.Error, match="is there already"):
        wattwise.sweep(short, MACHINES, POLICIES, replicas=2, out=out, resume=False)
    (out / ".plan.json").write_text(json.dumps({"sha256": 1}))
    with pytest.raises(wattwise.Error, match="expected a sweep's plan"):
        wattwise.sweep(short, MACHINES, POLICIES, replicas=2, out=out)


def test_a_sweep_goes_on_on_its_own_machine_alone(short: Path, tmp_path: Path) -> None:
    """A machine is its content: another one, or another one under the same name, is refused, and the folder is left as it was."""
    mine, out = tmp_path / "my machine.toml", tmp_path / "s.arrow"
    text = wattwise.machine("i7-4510u").text
    mine.write_text(text)
    whole = wattwise.sweep(short, mine, POLICIES, replicas=2, block_s=1e-9, out=out)
    expected = rows(whole)
    whole.files[-1].unlink()
    kept = {file.name: file.read_bytes() for file in out.iterdir()}
    with pytest.raises(wattwise.Error, match="holds another sweep, which differs in machines"):
        wattwise.sweep(short, "xeon-4210", POLICIES, replicas=2, block_s=1e-9, out=out)
    mine.write_text(wattwise.machine("thinkpad-r51").text)
    with pytest.raises(wattwise.Error, match="holds another sweep, which differs in machines"):
        wattwise.sweep(short, mine, POLICIES, replicas=2, block_s=1e-9, out=out)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == kept
    mine.write_text(text)
    assert rows(wattwise.sweep(short, mine, POLICIES, replicas=2, block_s=1e-9, out=out)) == expected


def test_a_case_that_does_not_end_is_marked_and_the_sweep_goes_on(short: Path, endless: Path, tmp_path: Path) -> None:
    table = rows(
        wattwise.sweep([endless, short], "i7-4510u", POLICIES, replicas=2, budget="events=100000", out=tmp_path / "s.arrow")
    )
    failed = [r for r in table if r["workload"] == "endless"]
    assert len(failed) == 8 and all("events" in str(r["error"]) and r["energy_j"] is None for r in failed)
    assert all(r["error"] is None for r in table if r["workload"] == "short")


def test_a_summary_has_means_and_failures(short: Path, endless: Path, tmp_path: Path) -> None:
    done = wattwise.sweep(
        [endless, short], "i7-4510u", "performance", replicas=4, budget="events=100000", out=tmp_path / "s.arrow"
    )
    summary = list(done.summary())
    own = [r for r in rows(done) if r["workload"] == "short"]
    assert [(s["workload"], s["cases"], s["failed"]) for s in summary] == [("endless", 4, 4), ("short", 4, 0)]
    assert math.isclose(summary[1]["energy_ratio"], sum(r["energy_ratio"] for r in own) / 4)  # type: ignore[misc]
    assert "cases in" in done._repr_html_() and "Sweep" in repr(done)


def test_a_summary_can_be_printed(short: Path, tmp_path: Path) -> None:
    done = wattwise.sweep(short, "i7-4510u", ["performance", "powersave"], replicas=2, out=tmp_path / "s.arrow")
    head, first, second = str(done.summary()).splitlines()
    assert head.split() == ["workload", "machine", "policy", "cases", "failed", "energy_ratio", "elapsed_ratio"]
    assert first.split()[:5] == ["short", "i7-4510u", "performance", "2", "0"] and second.split()[2] == "powersave"
    assert first.index("performance") == second.index("powersave") == head.index("policy")
    assert repr(wattwise.sweep(short, "i7-4510u", "performance", replicas=1, out=tmp_path / "t.arrow").summary()[:0]) == "[]"


def damaged(file: Path, how: str, other: Path) -> None:
    """What may happen to a block."""
    data = file.read_bytes()
    middle = len(data) // 3
    if how == "emptied":
        file.write_bytes(b"")
    elif how == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        file.write_bytes(data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :])
    elif how == "longer":
        file.write_bytes(data + b"\0")
    elif how == "copied":
        file.write_bytes(other.read_bytes())
    elif how == "linked":
        file.unlink()
        file.symlink_to(other)
    elif how == "piped":
        file.unlink()
        os.mkfifo(file)
    elif how == "unnoted":
        (file.parent / ".blocks.jsonl").unlink()
    elif how == "torn":
        notes = file.parent / ".blocks.jsonl"
        lines = [line for line in notes.read_text().splitlines() if json.loads(line)["block"] != 1]
        notes.write_text("\n".join(lines) + '\n{"plan": "')
    elif how == "foreign notes":
        notes = file.parent / ".blocks.jsonl"
        notes.write_text(notes.read_text().replace('"plan": "', '"plan": "0') + "[]\n7\n{}\n" + '{"block": []}\n')


HOW = ["emptied", "cut", "flipped", "longer", "copied", "linked", "piped", "unnoted", "torn", "foreign notes"]


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
@pytest.mark.parametrize("how", HOW)
def test_a_block_counts_by_its_content(short: Path, tmp_path: Path, suffix: str, how: str) -> None:
    """Damaged, or another's: noticed and made again, with a line."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    arguments = {"policies": POLICIES, "replicas": 20, "block_s": 1e-9, "out": tmp_path / f"s.{suffix}"}
    whole = wattwise.sweep(short, "i7-4510u", **arguments)  # type: ignore[arg-type]
    expected = rows(whole)
    first, second = whole.files[:2]
    kept = first.read_bytes()
    damaged(second, how, first)
    with pytest.warns(UserWarning, match="not what this sweep wrote there; made again") as told:
        again = wattwise.sweep(short, "i7-4510u", **arguments)  # type: ignore[arg-type]
    assert len(told) == 1 and second.name in str(told[0].message) or how in ("unnoted", "foreign notes")
    assert told[0].filename == __file__
    assert rows(again) == expected and first.read_bytes() == kept and not second.is_symlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(wattwise.sweep(short, "i7-4510u", **arguments)) == expected  # type: ignore[arg-type]


def test_strange_files_are_named_and_left_out(short: Path, tmp_path: Path) -> None:
    arguments = {"policies": POLICIES, "replicas": 4, "block_s": 1e-9, "out": tmp_path / "s.arrow"}
    whole = wattwise.sweep(short, "i7-4510u", **arguments)  # type: ignore[arg-type]
    expected, ours = rows(whole), whole.files
    for name in ("block-99999.arrow", "block-00000.parquet", "notes.txt"):
        (tmp_path / "s.arrow" / name).write_bytes(ours[0].read_bytes())
    (tmp_path / "s.arrow" / "block-1.arrow").mkdir()
    with pytest.warns(
        UserWarning, match="block-00000.parquet, block-1.arrow, block-99999.arrow, notes.txt: not of this sweep; left out"
    ):
        again = wattwise.sweep(short, "i7-4510u", **arguments)  # type: ignore[arg-type]
    assert again.files == ours and rows(again) == expected
    assert (tmp_path / "s.arrow" / "notes.txt").exists()


def test_a_folder_in_a_block_s_place_is_named(short: Path, tmp_path: Path) -> None:
    arguments = {"policies": POLICIES, "replicas": 4, "block_s": 1e-9, "out": tmp_path / "s.arrow"}
    second = wattwise.sweep(short, "i7-4510u", **arguments).files[1]  # type: ignore[arg-type]
    second.unlink()
    second.mkdir()
    with pytest.raises(wattwise.Error, match=f"{second.name} is a folder in the place of a block; remove it"):
        wattwise.sweep(short, "i7-4510u", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan | {"plan": []},
        lambda plan: plan | {"plan": None, "sha256": "0"},
        lambda plan: plan | {"blocks": plan["blocks"][1:]},
        lambda plan: plan | {"blocks": plan["blocks"][:-1]},
        lambda plan: plan | {"blocks": [[0, 1e999]]},
        lambda plan: [],
    ],
)
def test_a_plan_that_was_changed_is_refused(short: Path, tmp_path: Path, change: Callable[[Any], object]) -> None:
    out = tmp_path / "s.arrow"
    wattwise.sweep(short, "i7-4510u", POLICIES, replicas=4, block_s=1e-9, out=out)
    plan = out / ".plan.json"
    plan.write_text(json.dumps(change(json.loads(plan.read_text()))))
    with pytest.raises(wattwise.Error, match="name another folder"):
        wattwise.sweep(short, "i7-4510u", POLICIES, replicas=4, block_s=1e-9, out=out)


def test_a_plan_that_was_being_written_is_none(short: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.arrow"
    out.mkdir()
    (out / "..plan.json.part").write_text("{")
    assert len(wattwise.sweep(short, "i7-4510u", "performance", replicas=1, out=out)) == 1
    assert [file.name for file in out.iterdir() if file.name.endswith(".part")] == []


def test_a_block_that_goes_missing_later_is_named(short: Path, tmp_path: Path) -> None:
    done = wattwise.sweep(short, "i7-4510u", POLICIES, replicas=4, block_s=1e-9, out=tmp_path / "s.arrow")
    done.files[1].unlink()
    with pytest.raises(wattwise.Error, match="block-00001.arrow: is gone"):
        rows(done)


def test_a_kill_at_any_moment_damages_nothing(short: Path, tmp_path: Path) -> None:
    """Whatever was killed is gone on with, and nothing is taken for damaged."""
    program = f"""
import wattwise
wattwise.sweep({str(short)!r}, "i7-4510u", {POLICIES!r}, replicas=400, block_s=1e-9, out={str(tmp_path / "s.arrow")!r})
"""
    out = tmp_path / "s.arrow"
    for wanted in (1, 5, 20, 60):
        running = subprocess.Popen([sys.executable, "-c", program])
        while running.poll() is None and len(list(out.glob("block-*"))) < wanted:
            pass
        running.kill()
        running.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = wattwise.sweep(short, "i7-4510u", POLICIES, replicas=400, block_s=1e-9, out=out)
    assert [r["case"] for r in rows(done)] == list(range(1600)) and not list(out.glob(".*.part"))


def test_more_than_ten_thousand_blocks_are_never_cut(tmp_path: Path, short: Path) -> None:
    done = wattwise.sweep(short, "thinkpad-r51", "performance", replicas=20_000, block_s=1e-9, out=tmp_path / "s.arrow")
    assert len(done.files) <= 10_000 and len(done) == 20_000


def test_a_full_disk_is_one_line_and_what_is_done_is_kept(short: Path, tmp_path: Path) -> None:
    program = f"""
import resource, signal, wattwise
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
wattwise.sweep({str(short)!r}, "i7-4510u", ["schedutil:rate_limit=1ms..20ms:n200"], replicas=3, out={str(tmp_path / "s.arrow")!r})
"""
    assert signal.SIGXFSZ and resource.RLIMIT_FSIZE
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and "File too large; what is done is kept" in last, done.stderr
    assert not list((tmp_path / "s.arrow").glob("*.part")) and not list((tmp_path / "s.arrow").glob(".*.part"))


def test_two_at_a_time_in_one_folder_are_refused(short: Path, tmp_path: Path) -> None:
    import fcntl
    import os

    out = tmp_path / "s.arrow"
    out.mkdir()
    held = os.open(out, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(wattwise.Error, match="another sweep is writing it"):
        wattwise.sweep(short, "i7-4510u", "performance", out=out)
    os.close(held)
    assert len(wattwise.sweep(short, "i7-4510u", "performance", replicas=1, out=out)) == 1


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_what_is_done(endless: Path, tmp_path: Path) -> None:
    import os
    import threading
    import time

    def press() -> None:
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt, match=r"^stopped after \d+ of 2000 cases, which are kept"):
        wattwise.sweep(
            endless,
            "i7-4510u",
            ["performance", "powersave"],
            replicas=1000,
            budget="events=1000000",
            block_s=0.05,
            out=tmp_path / "s.arrow",
        )
    presser.join()
    assert (tmp_path / "s.arrow").is_dir()


def test_a_script_that_is_interrupted_ends_by_the_signal(endless: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    text = (
        "import signal, sys, wattwise\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('begun', flush=True)\n"
        "wattwise.sweep(sys.argv[1], 'i7-4510u', 'performance', replicas=1000, budget='events=1000000', block_s=0.05, out=sys.argv[2])\n"
    )
    out = tmp_path / "s.arrow"
    script = subprocess.Popen([sys.executable, "-c", text, str(endless), str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert script.stdout is not None
    assert script.stdout.readline() == b"begun\n"
    while not list(out.glob("block-*")):
        assert script.poll() is None
    script.send_signal(signal.SIGINT)
    _, said = script.communicate()
    assert script.returncode == -signal.SIGINT, said
    assert b"KeyboardInterrupt: stopped after" in said.splitlines()[-1], said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"workloads": []}, "no workload"),
        ({"policies": []}, "empty list"),
        ({"policies": ["shedutil"]}, "did you mean 'schedutil'?"),
        ({"machines": []}, "empty list"),
        ({"machines": ["xeon"]}, "did you mean 'xeon-4210'?"),
        ({"replicas": 0}, "replicas=0"),
        ({"threads": -1}, "threads=-1: expected a whole number, 1 to"),
        ({"threads": 0}, "threads=0: expected a whole number, 1 to"),
        ({"block_s": float("nan")}, "block_s=nan"),
        ({"block_s": float("inf")}, "block_s=inf"),
        ({"policies": [wattwise.SpeedPolicy]}, "only compare() takes a class"),
        ({"out": "sweep.csv"}, "ends in .parquet or .arrow"),
        ({"goal": "joy"}, "goal 'joy'"),
        ({"policies": ["schedutil+cmax=C99"]}, "cmax=C99"),
    ],
)
def test_bad_arguments_are_one_line(tmp_path: Path, short: Path, arguments: dict[str, object], told: str) -> None:
    usual = {"workloads": [short], "machines": ["i7-4510u"], "policies": ["performance"], "out": tmp_path / "s.arrow"}
    with pytest.raises(wattwise.Error) as caught:
        wattwise.sweep(**(usual | arguments))  # type: ignore[arg-type]
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_without_pyarrow_parquet_is_refused_and_arrow_is_not(short: Path, tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["pyarrow"] = None
import wattwise
assert len(wattwise.sweep({str(short)!r}, "i7-4510u", "performance", replicas=2, out={str(tmp_path / "a.arrow")!r})) == 2
try:
    wattwise.sweep({str(short)!r}, "i7-4510u", "performance", out={str(tmp_path / "a.parquet")!r})
except wattwise.Error as e:
    print(e)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "needs pyarrow" in done.stdout, done.stderr
