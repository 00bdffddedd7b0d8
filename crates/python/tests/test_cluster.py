"""Sweeps on a Dask cluster of processes on this computer."""

from __future__ import annotations

import contextlib
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


def local_cluster(**options: Any) -> Any:
    """Dask gives its loop's thread 10 s to start, which a busy machine now and then exceeds."""
    for _ in range(2):
        with contextlib.suppress(AssertionError):
            return distributed.LocalCluster(dashboard_address=None, **options)
    return distributed.LocalCluster(dashboard_address=None, **options)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """As many workers as the test asks for."""
    workers = getattr(request, "param", 2)
    with (
        local_cluster(n_workers=workers, threads_per_worker=1) as started,
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


def test_any_client_whichever_is_the_default(short: Path, tmp_path: Path) -> None:
    """`as_completed` takes the newest client of the process where none is named."""
    arguments = {"machines": "i7-4510u", "policies": POLICIES, "replicas": 4}
    here = rows(wattwise.sweep(short, out=tmp_path / "here.arrow", **arguments))  # type: ignore[arg-type]
    with (
        local_cluster(n_workers=1, threads_per_worker=1) as first,
        local_cluster(n_workers=1, threads_per_worker=1) as second,
    ):
        with distributed.Client(first, set_as_default=False) as quiet:
            assert rows(wattwise.sweep(short, client=quiet, out=tmp_path / "a.arrow", **arguments)) == here  # type: ignore[arg-type]
        with distributed.Client(first) as older, distributed.Client(second) as newer:
            for number, client in enumerate((older, newer, older)):
                out = tmp_path / f"b{number}.arrow"
                assert rows(wattwise.sweep(short, client=client, out=out, **arguments)) == here  # type: ignore[arg-type]
            newer.close()
            assert rows(wattwise.sweep(short, client=older, out=tmp_path / "c.arrow", **arguments)) == here  # type: ignore[arg-type]
            with pytest.raises(wattwise.Error, match="client: is closed; expected an open dask.distributed.Client"):
                wattwise.sweep(short, client=newer, out=tmp_path / "d.arrow", **arguments)  # type: ignore[arg-type]
        # A cluster and an address are connected to for as long as it takes, and stay as they are.
        for number, given in enumerate((first, first.scheduler_address, first)):
            out = tmp_path / f"e{number}.arrow"
            assert rows(wattwise.sweep(short, client=given, out=out, **arguments)) == here  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="No client"):
            distributed.default_client()


@pytest.mark.parametrize(
    "given",
    [
        3,
        True,
        object(),
        b"tcp://localhost:8786",
        distributed.LocalCluster,
        distributed.Client,
        {},
        [],
        "nonsense://x",
        "",
        "tcp://x:y",
    ],
)
def test_what_is_no_cluster_is_one_line(short: Path, tmp_path: Path, given: object) -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.sweep(short, "i7-4510u", POLICIES, replicas=1, client=given, out=tmp_path / "s.arrow")
    assert str(caught.value).startswith("client=") and "\n" not in str(caught.value), str(caught.value)
    assert "expected an open dask.distributed.Client, a cluster of Dask, or a scheduler's address" in str(caught.value)
    assert not (tmp_path / "s.arrow").exists()


def test_an_address_where_nobody_is_is_one_line(short: Path, tmp_path: Path) -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "500ms"}),
        pytest.raises(wattwise.Error, match="client='tcp://127.0.0.1:9'") as caught,
    ):
        wattwise.sweep(short, "i7-4510u", POLICIES, replicas=1, client="tcp://127.0.0.1:9", out=tmp_path / "s.arrow")
    assert "\n" not in str(caught.value)


def test_a_closed_cluster_is_one_line(short: Path, tmp_path: Path) -> None:
    cluster = local_cluster(n_workers=1, threads_per_worker=1)
    cluster.close()
    with pytest.raises(wattwise.Error, match="client") as caught:
        wattwise.sweep(short, "i7-4510u", POLICIES, replicas=1, client=cluster, out=tmp_path / "s.arrow")
    assert "\n" not in str(caught.value)


def test_an_asynchronous_client_is_one_line(short: Path, tmp_path: Path) -> None:
    import asyncio

    async def ask() -> str:
        async with (
            distributed.LocalCluster(
                n_workers=1, processes=False, asynchronous=True, dashboard_address=None, threads_per_worker=1
            ) as cluster,
            distributed.Client(cluster, asynchronous=True) as client,
        ):
            with pytest.raises(wattwise.Error) as caught:
                wattwise.sweep(short, "i7-4510u", POLICIES, replicas=1, client=client, out=tmp_path / "s.arrow")
            return str(caught.value)

    assert "client: is asynchronous; expected" in asyncio.run(ask())


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_what_is_closed_in_the_middle_is_one_line_and_goes_on(short: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "s.arrow"
    arguments = {"machines": "i7-4510u", "policies": POLICIES, "replicas": 600, "block_s": 0.02, "out": out}
    with local_cluster(n_workers=1, threads_per_worker=1) as cluster:
        client = distributed.Client(cluster)

        def close() -> None:
            deadline = time.monotonic() + 60
            while len(list(out.glob("block-*"))) < 3 and time.monotonic() < deadline:
                time.sleep(0.005)
            (client if what == "client" else cluster).close()

        closer = threading.Thread(target=close)
        closer.start()
        with pytest.raises(wattwise.Error, match="what is done is kept: run it again") as caught:
            wattwise.sweep(short, client=client, **arguments)  # type: ignore[arg-type]
        closer.join()
        client.close()
        assert str(caught.value).startswith("client") and "\n" not in str(caught.value), str(caught.value)
    done = len(list(out.glob("block-*")))
    whole = wattwise.sweep(short, **arguments)  # type: ignore[arg-type]
    assert 0 < done < len(whole.files)
    assert [r["case"] for r in rows(whole)] == list(range(len(whole)))


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("cluster", [1], indirect=True)
def test_ctrl_c_ends_a_sweep_on_a_cluster(cluster: Any, endless: Path, tmp_path: Path) -> None:
    def press() -> None:
        time.sleep(3.0)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        wattwise.sweep(
            endless, "i7-4510u", "performance", replicas=1000, budget="events=2e6", client=cluster, out=tmp_path / "s.arrow"
        )
    presser.join()
