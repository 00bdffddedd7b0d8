#!/usr/bin/env python3
"""Long runs, watched: memory, descriptors and files must not grow.

    soak.py SECONDS WATTWISE LIBRARY      make soak, make verify

For as long as asked: `record` of a busy shell, `run`, and `ab` that is killed and resumed again and again; redis and nginx under
the interposer, with clients that come in bursts, so that threads park and wake as well as pass locks on. Each of their
processes is looked at once a second. The first third is for warming up. The most memory of the last third
may exceed that of the middle third by 2 % and a MiB, and the fewest descriptors, so those between two bursts of clients, by two.
wattwise's own files may not get more, and an `ab` resumed must have gone on. A program that is not installed fails
the soak.
"""
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SLACK_KIB, SLACK = 1024, 1.02
SLACK_DESCRIPTORS = 2


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def family(pid):
    """A process and all that it started."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                children = pathlib.Path(f"/proc/{parent}/task/{task}/children").read_text().split()
                found.extend(int(child) for child in children)
        except OSError:
            pass
    return found


def sample(pid):
    """Resident KiB without what is mapped from files, and descriptors."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    rss = sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return rss, len(os.listdir(f"/proc/{pid}/fd"))


class Soak:
    def __init__(self, seconds, wattwise, library, folder):
        self.begun, self.seconds = time.monotonic(), seconds
        self.wattwise, self.library, self.folder = wattwise, library, folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.temporary)}
        self.watched, self.samples = {}, collections.defaultdict(list)
        self.wrong, self.started = [], []
        self.over = threading.Event()

    def left(self):
        return self.seconds - (time.monotonic() - self.begun)

    def start(self, name, command, watch=True, **how):
        how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder, "env": self.environment, **how}
        process = subprocess.Popen(command, **how)
        self.started.append(process)
        if watch:
            self.watched[name] = process
        return process

    def under(self, lock):
        return {**self.environment, "LD_PRELOAD": str(self.library), "WATTWISE_LOCK": lock}

    def recorder(self):
        busy = "while :; do sleep 0.01; done"
        command = [self.wattwise, "record", "--duration", f"{self.seconds + 60}s", "-o", "soak.perf", "--", "sh", "-c", busy]
        self.start("record", command)

    def runner(self):
        self.start("run", [self.wattwise, "run", "-o", "run.json", "--", "sh", "-c", "while :; do sleep 0.05; done"])

    def compared(self):
        """Each time killed after some pairs; resumed, it goes on where it was. One that is complete gives way to the next."""
        file = self.folder / "ab.jsonl"
        blocks = rounds = complete = 0

        def runs():
            return sum(line.startswith(b'{"run"') for line in file.read_bytes().splitlines()) if file.exists() else 0

        while not self.over.is_set():
            arms = ["ab", "--same", "--of", "time", "--pairs", "20000", "--effect", "0.01%", "--budget", "100h", "--idle-floor", "0"]
            command = [self.wattwise, *arms, "--resume" if file.exists() else "-o", str(file), "--", "sleep", "0.01"]
            process = self.start("ab", command, watch=False, stderr=subprocess.PIPE)
            self.over.wait(6)
            # Whether it goes on is asked, not how soon: a busy host may let it wait.
            longest = time.monotonic() + 60
            while runs() <= blocks and process.poll() is None and time.monotonic() < longest and not self.over.wait(1):
                pass
            process.send_signal(signal.SIGINT if rounds % 2 else signal.SIGKILL)
            said = process.communicate()[1].decode(errors="replace")
            rounds += 1
            now = runs()
            # One that was killed after its last run has none to add: it ends by itself.
            if now <= blocks and process.returncode != 0 and not self.over.is_set():
                self.wrong.append(f"ab: round {rounds} added no run to {blocks}: {said.strip()[-200:]}")
                return
            blocks = now
            if process.returncode == 0:
                file.unlink()
                blocks, complete = 0, complete + 1
        print(f"soak: ab was ended and resumed {rounds} times, {complete} to its own end, {blocks} runs at last")

    def client(self, server, one, rest):
        """A client that asks, rests for some seconds and asks again to the end; every answer has to be right."""

        def ask():
            asked = failed = 0
            while not self.over.wait(rest):
                right = one(asked)
                asked += 1
                failed += not right and not self.over.is_set()
            print(f"soak: {server} was asked {asked} times")
            if failed or not asked:
                self.wrong.append(f"{server}: {failed} of {asked} answers were wrong")

        thread = threading.Thread(target=ask)
        thread.start()
        return thread

    def redis(self):
        port = free_port()
        command = ["redis-server", "--port", str(port), "--save", "", "--io-threads", "2", "--io-threads-do-reads", "yes", "--appendonly", "no"]
        self.start("redis", command, env=self.under("adaptive"))
        # A key space that is full after seconds; lazy freeing goes through redis's own threads.
        client = ["redis-benchmark", "-p", str(port), "-q", "-c", "20", "-r", "1000", "-n", "2000", "-t", "set,get,lpush,lpop,sadd"]
        flush = ["redis-cli", "-p", str(port), "flushall", "async"]

        def burst(_):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            return all(subprocess.run(command, **quiet).returncode == 0 for command in (client, flush))

        return self.client("redis (10000 requests each time)", burst, 3)

    def nginx(self):
        port, site = free_port(), self.folder / "site"
        site.mkdir()
        for n in range(50):
            (site / f"{n}").write_bytes(os.urandom(100_000))
        (self.folder / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {self.folder}/nginx.pid; error_log {self.folder}/nginx.log;
thread_pool pool threads=4;
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/proxy;
    fastcgi_temp_path {self.folder}/fastcgi; uwsgi_temp_path {self.folder}/uwsgi; scgi_temp_path {self.folder}/scgi;
    server {{ listen 127.0.0.1:{port}; root {site}; aio threads=pool; directio 4k; }}
}}
""")
        command = ["nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]
        self.start("nginx", command, env=self.under("mcs:spin-then-park"))

        def fetch(n):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as stream:
                    stream.sendall(f"GET /{n % 50} HTTP/1.0\r\n\r\n".encode())
                    got = 0
                    while part := stream.recv(1 << 16):
                        got += len(part)
                return got >= 100_000
            except OSError:
                return False

        time.sleep(1)
        return self.client("nginx", fetch, 0.01)

    def watch(self):
        while self.left() > 0:
            for name, process in self.watched.items():
                if process.poll() is not None:
                    self.wrong.append(f"{name}: ended by itself with {process.returncode}")
                    return
                try:
                    rss, descriptors = sample(process.pid)
                except OSError:
                    continue
                self.samples[name].append((time.monotonic() - self.begun, rss, descriptors))
            time.sleep(1)

    def judge(self):
        for name, rows in self.samples.items():
            third = self.seconds / 3
            parts = [[row for row in rows if a * third <= row[0] < b * third] for a, b in ((1, 2), (2, 99))]
            if not all(parts):
                self.wrong.append(f"{name}: was not there for all of it")
                continue
            # The fewest: a client's descriptors are there while it is served, and a look may fall into its burst or not.
            (rss, fds), (rss_then, fds_then) = ((max(r[1] for r in p), min(r[2] for r in p)) for p in parts)
            print(f"soak: {name}: at most {rss} KiB and at least {fds} descriptors in the middle, {rss_then} and {fds_then} at the end")
            if rss_then > rss * SLACK + SLACK_KIB:
                self.wrong.append(f"{name}: memory grew from {rss} to {rss_then} KiB")
            if fds_then > fds + SLACK_DESCRIPTORS:
                self.wrong.append(f"{name}: descriptors grew from {fds} to {fds_then}")

    def ours(self):
        """Files that wattwise may leave where it is not asked to; nobody else uses the temporary folder."""
        places = [pathlib.Path("/run/wattwise"), self.temporary]
        return sum(1 for at in places if at.is_dir() for f in at.iterdir() if at.name == "wattwise" or "wattwise" in f.name)

    def end(self):
        self.over.set()
        for process in self.started:
            for pid in reversed(family(process.pid)):
                try:
                    os.kill(pid, signal.SIGTERM)
                except OSError:
                    pass
        for process in self.started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def run(self):
        files = self.ours()
        self.recorder()
        self.runner()
        clients = [self.redis(), self.nginx()]
        comparing = threading.Thread(target=self.compared)
        comparing.start()
        try:
            self.watch()
        finally:
            self.over.set()
            comparing.join()
            for client in clients:
                client.join()
            self.end()
        self.judge()
        now = self.ours()
        if now > files:
            self.wrong.append(f"{now - files} files of wattwise's were left behind")
        try:
            json.loads((self.folder / "run.json").read_text())
        except (OSError, ValueError) as error:
            self.wrong.append(f"run: no result ({error})")
        if not (self.folder / "soak.perf").exists():
            self.wrong.append("record: no recording")


def main():
    seconds, wattwise, library = int(sys.argv[1]), *map(os.path.abspath, sys.argv[2:4])
    missing = [name for name in ("redis-server", "redis-benchmark", "nginx") if not shutil.which(name)]
    if missing:
        sys.exit(f"soak: not installed: {', '.join(missing)} (sh scripts/tools.sh verify)")
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        soak = Soak(seconds, wattwise, library, pathlib.Path(folder))
        soak.run()
    for line in soak.wrong:
        print(f"soak: {line}")
    sys.exit(1 if soak.wrong else 0)


main()
