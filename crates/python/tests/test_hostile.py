"""Names of a stranger's choice in everything that Python shows: representations on a terminal, HTML in a notebook."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

import wattwise

SOURCE = Path(__file__).parents[2] / "figure" / "tests" / "support" / "hostile.rs"
NAMES = int(os.environ.get("WATTWISE_NAMES", "1000"))
TASKS = 20


def parts() -> list[str]:
    """The parts of which the tests in Rust make their names."""
    text = SOURCE.read_text(encoding="utf-8").split("const PARTS")[1].split("];")[0]
    found = re.findall(r'^    "((?:[^"\\]|\\.)*)",$', text, re.MULTILINE)
    single = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

    def character(escape: re.Match[str]) -> str:
        code, other = escape.groups()
        return chr(int(code, 16)) if code else single.get(other, other)

    return [re.sub(r"\\(?:u\{([0-9a-f]+)\}|(.))", character, part) for part in found]


def names() -> list[str]:
    drawn = random.Random(33)
    known = parts()
    assert len(known) > 100
    made = ["".join(drawn.choices(known, k=drawn.randint(1, 5))) for _ in range(2 * NAMES)]
    usable = [name for name in known + made if name.strip()]
    return [f"a{name}\n~forged~ {n}" if n % 3 == 0 else name for n, name in enumerate(usable)]


def acts(text: str) -> list[str]:
    """What a terminal acts on; written out here, not asked of the package."""
    codes = [ord(c) for c in text]
    order = {0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x2070)}
    return [hex(c) for c in codes if (c < 0x20 and c not in (9, 10)) or 0x7F <= c <= 0x9F or c in order]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag] += 1
        assert not any(name.startswith("on") or name == "href" for name, _ in attrs), (tag, attrs)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def tags(html: str) -> Counter[str]:
    assert acts(html) == []
    parser = Tags()
    parser.feed(html)
    parser.close()
    return parser.found


def quoted(name: str) -> str:
    return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in name) + '"'


def work(file: Path, given: list[str]) -> wattwise.Workload:
    task = "\n[[task]]\nname = {}\nrounds = 2\nsteps = [{{ run_us = 2200 }}]\n"
    text = f"name = {quoted(given[0])}\nsummary = {quoted(given[1])}\n" + "".join(task.format(quoted(n)) for n in given[2:])
    file.write_text(text, encoding="utf-8")
    return wattwise.load(file)


def machine(file: Path, name: str) -> wattwise.Machine:
    text = wattwise.machine("i7-4510u").text
    file.write_text(re.sub(r"^name = .*$", lambda _: f"name = {quoted(name)}", text, count=1, flags=re.MULTILINE))
    return wattwise.machine(file)


def one_line(text: str) -> None:
    assert acts(text) == [] and "\n" not in text and "\r" not in text, text


def lines(text: str) -> None:
    assert acts(text) == [] and not any(line.startswith("~forged~") for line in text.splitlines()), text


def own(name: str) -> type[wattwise.SpeedPolicy]:
    class Own(wattwise.SpeedPolicy):
        def observe(self, now: wattwise.Observation) -> None:
            return None

    Own.name = name
    return Own


def test_no_name_acts_on_a_terminal_or_in_a_notebook(tmp_path: Path) -> None:
    stock = names()
    plain = wattwise.compare(
        work(tmp_path / "p.toml", [f"name {n}" for n in range(TASKS)]),
        machine(tmp_path / "pm.toml", "a machine"),
        ["performance", own("mine")],
        exact=True,
    )
    wanted = tags(plain._repr_html_())
    used = 0
    while used < NAMES:
        given = stock[used : used + TASKS]
        used += TASKS
        loaded = work(tmp_path / "w.toml", given)
        model = machine(tmp_path / "m.toml", given[0])
        one_line(repr(loaded))
        one_line(repr(model))
        try:
            told = wattwise.compare(loaded, model, ["performance", own(given[1])], exact=True)
        except wattwise.Error as e:
            # Not every text is taken for a policy's name.
            one_line(str(e))
            told = wattwise.compare(loaded, model, ["performance", own("mine")], exact=True)
        one_line(repr(told))
        one_line(str(told))
        assert tags(told._repr_html_()) == wanted


def test_no_name_acts_in_a_sweep(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    stock = [name for name in names() if len(name.encode()) < 60]
    for n in range(0, 60, 6):
        loaded = work(tmp_path / "w.toml", stock[n : n + 4])
        model = machine(tmp_path / "m.toml", stock[n + 4])
        folder = re.sub(r"[\0/]", "_", stock[n + 5])
        done = wattwise.sweep(loaded, model, ["performance", "powersave"], replicas=2, out=tmp_path / f"{n}{folder}.arrow")
        one_line(repr(done))
        assert tags(done._repr_html_()) == {"p": 1, "code": 1}
        summary = done.summary()
        assert len(summary) == 2
        lines(repr(summary))
        assert tags(summary._repr_html_())["td"] == 2 * len(summary[0])


def test_no_name_acts_in_a_list() -> None:
    for name in names()[:400]:
        lines(repr(wattwise._listing.Listing([{"name": name, "n": 1}])))
        lines(repr(wattwise._listing.Named([{"name": f"a{name}", "summary": f"b{name}"}])))
        assert tags(wattwise._listing.Listing([{"name": name}])._repr_html_())["td"] == 1
