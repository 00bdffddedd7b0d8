#!/usr/bin/env python3
"""A real Prometheus scrapes wattwised, and answers every query of the shipped dashboard and alerts: scripts/prometheus.py [BIN]

BIN is the folder with wattwise and wattwised (target/debug). The daemon runs on a machine of the emulator whose counters move: it is mounted,
which needs root or fusermount3. Prometheus and promtool are Debian's; 'scripts/tools.sh verify' installs them.
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SHIPPED = f"{HERE}/../packaging/prometheus"
# What a machine, or an hour, need not have: a psys domain, a figure of the proof.
MAY_BE_EMPTY = re.compile(r"psys|saving|absent_over_time")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, is_so, seconds=60):
    end = time.time() + seconds
    while True:
        try:
            found = is_so()
        except OSError:
            found = None
        if found:
            return found
        if time.time() > end:
            sys.exit(f"prometheus: {what}: not within {seconds} s")
        time.sleep(0.3)


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def queries():
    with open(f"{SHIPPED}/wattwise-grafana.json") as file:
        panels = json.load(file)["panels"]
    found = [target["expr"] for panel in panels for target in panel["targets"]]
    with open(f"{SHIPPED}/wattwise-alerts.yml") as file:
        alerts = re.findall(r"^\s+expr: (.+)$", file.read(), re.M)
    # An alert's left side is what it watches.
    return found + [re.sub(r"\s*[<>]=?\s*[0-9.]+$", "", alert) for alert in alerts]


def main():
    binaries = sys.argv[1] if len(sys.argv) > 1 else f"{HERE}/../target/debug"
    work = tempfile.mkdtemp(prefix="wattwise-prometheus-")
    machine, ours, theirs = f"{work}/machine", free_port(), free_port()
    os.mkdir(machine)
    started = []

    def start(*command):
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    try:
        start(f"{binaries}/wattwise", "--quiet", "emulate", "skylake-server-active", machine, "--load", "30%")
        until("the machine is mounted", lambda: os.path.exists(f"{machine}/proc/stat"))
        with open(f"{work}/profiles.toml", "w") as file:
            file.write(f'[daemon]\nlisten = "127.0.0.1:{ours}"\nlook = "1s"\nprove = "untouched"\n')
        places = [w for f in ("journal", "state", "socket") for w in (f"--{f}", f"{work}/{f}")]
        start(f"{binaries}/wattwised", "--root", machine, "--bus", "none", "--config", f"{work}/profiles.toml", *places)
        text = until("wattwised answers", lambda: get(f"http://127.0.0.1:{ours}/metrics"))
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        if checked.returncode or checked.stderr.strip():
            sys.exit(f"prometheus: promtool check metrics: {checked.stdout}{checked.stderr}")
        subprocess.run(["promtool", "check", "rules", f"{SHIPPED}/wattwise-alerts.yml"], check=True, stdout=subprocess.DEVNULL)
        with open(f"{work}/prometheus.yml", "w") as file:
            file.write(
                "global: { scrape_interval: 1s, evaluation_interval: 1s }\n"
                f"rule_files: ['{os.path.abspath(SHIPPED)}/wattwise-alerts.yml']\n"
                f"scrape_configs: [{{ job_name: wattwise, static_configs: [{{ targets: ['127.0.0.1:{ours}'] }}] }}]\n"
            )
        start(
            "prometheus",
            f"--config.file={work}/prometheus.yml",
            f"--storage.tsdb.path={work}/data",
            f"--web.listen-address=127.0.0.1:{theirs}",
        )
        base = f"http://127.0.0.1:{theirs}"

        def ask(query):
            answer = json.loads(get(f"{base}/api/v1/query?{urllib.parse.urlencode({'query': query})}"))
            return answer["data"]["result"] if answer["status"] == "success" else None

        until("ten scrapes", lambda: [r for r in ask("count_over_time(wattwise_values[1m])") or [] if float(r["value"][1]) >= 10])
        # A name with a mistake has no answer either where an answer may be missing.
        with open(f"{HERE}/../crates/daemon/src/metrics.rs") as file:
            known = set(re.findall(r"wattwise_\w+", text + file.read()))
        for query in queries():
            unknown = set(re.findall(r"wattwise_\w+", query)) - known
            if unknown:
                sys.exit(f"prometheus: '{query}': wattwised has no {', '.join(unknown)}")
            result = ask(query)
            if result is None or not (result or MAY_BE_EMPTY.search(query)):
                sys.exit(f"prometheus: '{query}' has no answer: {result}")
            print(f"{len(result):4} series  {query}")
        watts = float(ask("sum(rate(wattwise_package_joules_total[1m]))")[0]["value"][1])
        if not watts > 0:
            sys.exit(f"prometheus: packages draw {watts} W")
        alerts = json.loads(get(f"{base}/api/v1/rules"))["data"]["groups"][0]["rules"]
        bad = [rule["name"] for rule in alerts if rule["health"] != "ok"]
        if bad:
            sys.exit(f"prometheus: alerts that cannot be evaluated: {bad}")
        print(f"prometheus: {len(queries())} queries answered, {len(alerts)} alerts evaluated, {watts:.1f} W")
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
