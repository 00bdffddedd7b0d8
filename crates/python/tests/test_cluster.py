"""Sweeps on a Dask cluster of processes on this computer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import rows

import wattwise

distributed = pytest.importorskip("distributed")

POLICIES = ["schedutil:rate_limit=1ms..20ms:n20"]


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """As many workers as the test asks for."""
    workers = getattr(request, "param", 2)
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as started,
        distributed.Client(started) as client,
    ):
        yield client


@pytest.mark.parametrize("cluster", [1, 2, 4], indirect=True)
def test_the_same_bits_on_any_number_of_workers(cluster: Any, short: Path, tmp_path: Path) -> None:
    arguments = {"machines": ["i7-4510u", "thinkpad-r51"], "policies": POLICIES, "replicas": 20}
    here = wattwise.sweep([short, "burst"], out=tmp_path / "here.arrow", **arguments)  # type: ignore[arg-type]
    there = wattwise.sweep([short, "burst"], client=cluster, block_s=0.02, out=tmp_path / "there.parquet", **arguments)  # type: ignore[arg-type]
    assert len(there.files) > 4
    assert rows(there) == rows(here)


def test_the_same_bits_when_a_worker_dies_in_the_middle(cluster: Any, short: Path, tmp_path: Path) -> None:
    arguments = {"machines": "i7-4510u", "policies": POLICIES, "replicas": 600}
    here = wattwise.sweep(short, out=tmp_path / "here.arrow", **arguments)  # type: ignore[arg-type]
    out = tmp_path / "there.arrow"
    killed: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + 60
        while len(list(out.glob("block-*"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        (pid, *_) = cluster.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        killed.append(len(list(out.glob("block-*"))))

    killer = threading.Thread(target=kill)
    killer.start()
    there = wattwise.sweep(short, client=cluster, block_s=0.02, out=out, **arguments)  # type: ignore[arg-type]
    killer.join()
    assert killed and killed[0] < len(there.files), "it died after the sweep, which proves nothing"
    assert rows(there) == rows(here)


def test_a_cluster_goes_on_where_this_computer_stopped(cluster: Any, short: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.arrow"
    arguments = {"machines": "i7-4510u", "policies": POLICIES, "replicas": 50, "block_s": 0.01, "out": out}
    whole = wattwise.sweep(short, **arguments)  # type: ignore[arg-type]
    expected = rows(whole)
    for file in whole.files[1::2]:
        file.unlink()
    assert rows(wattwise.sweep(short, client=cluster, **arguments)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("cluster", [1], indirect=True)
def test_another_version_is_refused(cluster: Any, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wattwise._dask.VERSION", "9.9.9")
    with pytest.raises(wattwise.Error, match=f"has wattwise {wattwise.__version__}, and this is 9.9.9"):
        wattwise.sweep(short, "i7-4510u", POLICIES, client=cluster, out=tmp_path / "s.arrow")


@pytest.mark.parametrize("cluster", [1], indirect=True)
def test_a_case_that_does_not_end_is_marked(cluster: Any, short: Path, endless: Path, tmp_path: Path) -> None:
    done = wattwise.sweep(
        [endless, short], "i7-4510u", "performance", replicas=2, budget="events=100000", client=cluster, out=tmp_path / "s.arrow"
    )
    assert [r["error"] is None for r in rows(done)] == [False, False, True, True]


@pytest.mark.parametrize("cluster", [1], indirect=True)
def test_a_recording_is_sent_and_a_file_s_own_name_is_kept(cluster: Any, tmp_path: Path) -> None:
    work = wattwise.load("nuttcp")
    here = wattwise.sweep(work, "i7-4510u", "performance", replicas=1, out=tmp_path / "a.arrow")
    there = wattwise.sweep(work, "i7-4510u", "performance", replicas=1, client=cluster, out=tmp_path / "b.arrow")
    assert rows(here) == rows(there)
    bundled = Path(__file__).parents[3] / "workloads" / "nuttcp.perf.zst"
    if bundled.exists():
        here = wattwise.sweep(bundled, "i7-4510u", "performance", replicas=1, out=tmp_path / "c.arrow")
        there = wattwise.sweep(bundled, "i7-4510u", "performance", replicas=1, client=cluster, out=tmp_path / "d.arrow")
        assert rows(here) == rows(there)
        assert rows(here)[0]["workload"] not in (None, "")
