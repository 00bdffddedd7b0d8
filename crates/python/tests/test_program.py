"""What the bundled program does: this machine, and recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import cli

import wattwise


def test_the_program_is_the_wheel_s_own_and_of_the_same_version() -> None:
    assert wattwise.__version__ in cli("--version").stdout
    assert Path(wattwise.program()).name == "wattwise"


def test_this_machine_and_emulated_ones_are_estimated() -> None:
    this = wattwise.machine("this")
    assert this.name == "this" and this.cpus >= 1
    assert wattwise.machine(this) is this


def test_every_name_that_is_printed_is_taken() -> None:
    for name in ("hybrid-laptop", "amd-laptop", "core-i5-2gen"):
        machine = wattwise.machine(f"emulated:{name}")
        printed = [row["policy"] for row in wattwise.compare("burst", machine, replicas=8).to_dict()["results"]]
        assert len(printed) > 5
        again = wattwise.compare("burst", machine, printed, replicas=8)
        assert [row["policy"] for row in again.to_dict()["results"]] == printed


def test_a_tree_of_a_machine_s_files_is_a_machine(tmp_path: Path) -> None:
    with pytest.raises(wattwise.Error, match="no CPU"):
        wattwise.machine(tmp_path)
    cpus = tmp_path / "sys/devices/system/cpu"
    for cpu in range(3):
        topology = cpus / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "core_id").write_text(f"{cpu}\n")
        (topology / "physical_package_id").write_text("0\n")
    for name in ("online", "possible", "present"):
        (cpus / name).write_text("0-2\n")
    assert wattwise.machine(tmp_path).cpus == 3


def test_a_machine_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(wattwise.machine("i7-4510u").text)
    assert wattwise.machine(file).cpus == wattwise.machine("i7-4510u").cpus
    file.write_text("nonsense = 1")
    with pytest.raises(wattwise.Error, match="mine.toml"):
        wattwise.machine(file)


def test_a_command_is_recorded_or_the_reason_is_told(tmp_path: Path) -> None:
    file = tmp_path / "sleep.perf"
    probe = cli("record", "-o", tmp_path / "probe.perf", "--", "true")
    if probe.returncode == 3:
        with pytest.raises(wattwise.Error) as caught:
            wattwise.record("sleep 0.1")
        assert str(caught.value) in probe.stderr
        pytest.skip(f"recording is not possible here: {caught.value}")
    work = wattwise.record("sleep 0.1", output=file)
    assert work.name == "sleep 0.1" and work.events > 0 and file.exists()
    told = wattwise.compare(work, "i7-4510u", ["performance", "powersave"], replicas=8)
    assert told.workload == "sleep 0.1"


def test_a_command_that_cannot_run_is_one_line() -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.record(["/nowhere/such-a-command"])
    assert "\n" not in str(caught.value)
    with pytest.raises(wattwise.Error, match="command: is empty"):
        wattwise.record([])
