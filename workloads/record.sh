#!/bin/sh
# Makes the bundled recordings anew: workloads/record.sh [NAME...]. Needs root (or CAP_PERFMON and a
# readable tracefs), a quiet machine, and Debian's packages gcc, python3, rt-tests, dbench, nuttcp and
# chromium. Each recording is what the whole machine did while its command ran; the command's process
# tree is the work, so each command must end with status 0. Look at the foreground and at the share of
# other programs afterwards: wattwise trace FILE.
set -eu
cd "$(dirname "$0")"
wattwise=${WATTWISE:-../target/release/wattwise}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quiet() {
    for _ in $(seq 60); do
        pgrep -x 'rustc|cc1|cargo' >/dev/null || return 0
        sleep 5
    done
    echo "record: the machine is not quiet" >&2
    exit 1
}

# record NAME OPTIONS -- COMMAND: packs last, so that packing is not in the recording.
record() {
    name=$1
    shift
    quiet
    echo "record: $name"
    "$wattwise" record -o "$work/$name.perf" "$@"
    "$wattwise" trace "$work/$name.perf" | grep -E '^(foreground|clock|warning)' || true
    zstd -q -19 -f "$work/$name.perf" -o "$name.perf.zst"
}

wanted() { [ -z "$names" ] || case " $names " in *" $1 "*) true ;; *) false ;; esac; }
names="$*"

# A real C library, compiled two files at a time: the zstd sources that a Rust crate brings along.
if wanted build; then
    sources=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -path '*zstd-sys-*/zstd/lib' -type d | head -n 1)
    cp -r "$sources" "$work/lib"
    cat >"$work/Makefile" <<'MAKE'
objects := $(patsubst %.c,%.o,$(wildcard lib/common/*.c lib/compress/*.c lib/decompress/*.c lib/dictBuilder/*.c))
libzstd.a: $(objects)
	ar rc $@ $^
%.o: %.c
	cc -O1 -c -o $@ $<
MAKE
    record build -- make -s -j2 -C "$work" libzstd.a
fi

# Study 000's job: a loop of 100 000 iterations, started on a machine at rest, again and again.
if wanted python-loop; then
    cat >"$work/loop.py" <<'PYTHON'
total = 0
for i in range(100_000):
    total += i * i % 7
PYTHON
    cat >"$work/loops.sh" <<'LOOPS'
for pause in 0.4 0.9 0.3 1.3 0.6 1.1 0.5 0.8; do
    sleep $pause
    python3 "$1"
done
LOOPS
    record python-loop --timers -- sh "$work/loops.sh" "$work/loop.py"
fi

# Study 002's two tests (today's cyclictest spells -y other as --policy=other).
if wanted cyclictest; then
    record cyclictest --timers -- cyclictest -q --policy=other -t 30 -i 200 -D 2
fi
if wanted tbench; then
    tbench_srv >/dev/null 2>&1 &
    server=$!
    sleep 0.5
    record tbench -- timeout 3 tbench -t 1 1
    kill $server 2>/dev/null || true
fi

# Study 003's test, on loopback.
if wanted nuttcp; then
    nuttcp -S
    sleep 0.3
    record nuttcp -- nuttcp -T 1 127.0.0.1
    pkill -x nuttcp || true
fi

# A browser with something to do now and then on a machine that otherwise idles.
if wanted idle-browse; then
    cat >"$work/page.html" <<'HTML'
<!doctype html><meta charset=utf-8><title>page</title><body><script>
// Every few seconds a page's worth of work: layout, some script, a scroll; in between a blinking cursor and a clock.
let n = 0
const fill = () => {
  document.body.innerHTML = ''
  for (let i = 0; i < 1500; i++) {
    const p = document.createElement('p')
    p.textContent = 'line ' + i + ' of page ' + n + ' ' + Math.sin(i * n).toString(36).repeat(4)
    document.body.append(p)
  }
  n++
  window.scrollTo({ top: 4000, behavior: 'smooth' })
}
setInterval(fill, 4200)
setInterval(() => { document.title = new Date().toISOString() }, 1000)
setInterval(() => { document.body.style.caretColor = n % 2 ? 'red' : 'black' }, 530)
fill()
</script>
HTML
    # To run until the time is over (status 124) is what it shall do.
    record idle-browse -- sh -c 'timeout 20 "$@" 2>/dev/null; [ $? -eq 124 ]' browse \
        chromium --headless --no-sandbox --disable-gpu --disable-quic \
        --no-first-run --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$work/profile" --remote-debugging-port=0 "file://$work/page.html"
fi
ls -l ./*.perf.zst
