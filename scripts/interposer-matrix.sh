#!/bin/bash
# Real programs under libwattwise_pthread.so, with every lock and waiting policy that makes sense: the result must
# be glibc's, within a time limit. Writes the table between the marks in docs/notes/locks.md.
#
#     [ONLY=PROGRAM] scripts/interposer-matrix.sh [LOCK:POLICY...]
#
# A program that is not installed is skipped, and said so; with CI=true that counts as a failure.
set -u
cd "$(dirname "$0")/.."
root=$PWD
limit=${LIMIT:-90} # seconds a run; under glibc the longest takes 6
if [ $# -gt 0 ]; then kinds=("$@"); else
    kinds=(adaptive:spin adaptive:user-wait adaptive:yield)
    for wait in spin-then-park park yield; do
        for lock in mcs ticket clh ttas tas; do kinds+=("$lock:$wait"); done
    done
fi
cargo build --quiet --release -p wattwise-locks-preload || exit 1
library=${CARGO_TARGET_DIR:-$root/target}/release/libwattwise_pthread.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# What is worked on: the same bytes every time.
head -c 30000000 /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00 -iv 00 2>/dev/null | od -An -tx1 | head -c 12000000 >input
cat >sqlite.py <<'P'
import sqlite3, threading, hashlib, queue
db = sqlite3.connect("file:m?mode=memory&cache=shared", uri=True, check_same_thread=False)
db.execute("create table t(k integer primary key, v text)")
lock, jobs = threading.Lock(), queue.Queue()
def work():
    mine = sqlite3.connect("file:m?mode=memory&cache=shared", uri=True, timeout=60)
    while (k := jobs.get()) is not None:
        with lock:
            mine.execute("insert into t values(?, ?)", (k, hashlib.sha256(str(k).encode()).hexdigest()))
            mine.commit()
threads = [threading.Thread(target=work) for _ in range(16)]
for t in threads: t.start()
for k in range(1500): jobs.put(k)
for _ in threads: jobs.put(None)
for t in threads: t.join()
h = hashlib.sha256()
for row in db.execute("select * from t order by k"): h.update(repr(row).encode())
print(db.execute("select count(*) from t").fetchone()[0], h.hexdigest())
P
cat >workers.js <<'P'
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const crypto = require("crypto"), zlib = require("zlib");
if (isMainThread) {
    const sums = [];
    let left = 6;
    for (let i = 0; i < 6; i++) {
        const w = new Worker(__filename, { workerData: i });
        w.on("message", (m) => { sums[i] = m; });
        w.on("exit", () => { if (--left === 0) console.log(sums.join(" ")); });
    }
} else {
    let left = 24, all = [];
    for (let i = 0; i < 24; i++)
        crypto.pbkdf2("p" + i, "s" + workerData, 2000, 32, "sha256", (e, key) =>
            zlib.deflate(Buffer.alloc(200000, key), (e, z) => {
                all[i] = crypto.createHash("md5").update(z).digest("hex");
                if (--left === 0) parentPort.postMessage(crypto.createHash("md5").update(all.join()).digest("hex"));
            }));
}
P
cat >Sums.java <<'P'
import java.util.*; import java.util.concurrent.*;
public class Sums {
    static long total;
    static synchronized void add(long v) { total += v; }
    public static void main(String[] a) throws Exception {
        var pool = Executors.newFixedThreadPool(24);
        var map = new ConcurrentHashMap<Integer, Integer>();
        var lock = new java.util.concurrent.locks.ReentrantLock();
        for (int i = 0; i < 4000; i++) {
            final int n = i;
            pool.submit(() -> {
                byte[] b = new byte[20000]; Arrays.fill(b, (byte) n);
                map.merge(n % 97, Arrays.hashCode(b), Integer::sum);
                lock.lock(); try { add(n); } finally { lock.unlock(); }
            });
        }
        pool.shutdown(); pool.awaitTermination(80, TimeUnit.SECONDS);
        System.out.println(total + " " + new TreeMap<>(map).hashCode());
    }
}
P
cat >memcache.py <<'P'
import socket, sys, threading, hashlib
port, ok = int(sys.argv[1]), []
def client(i):
    s = socket.create_connection(("127.0.0.1", port)); f = s.makefile("rwb")
    good = 0
    for k in range(150):
        v = hashlib.md5(b"%d %d" % (i, k)).hexdigest().encode()
        f.write(b"set k%d-%d 0 0 32\r\n%s\r\n" % (i, k, v)); f.flush(); f.readline()
        f.write(b"get k%d-%d\r\n" % (i, k)); f.flush()
        f.readline(); good += f.readline().strip() == v; f.readline()
        f.write(b"incr n 1\r\n"); f.flush(); f.readline()
    ok.append(good)
s = socket.create_connection(("127.0.0.1", port)); s.sendall(b"set n 0 0 1\r\n0\r\n"); s.recv(100)
threads = [threading.Thread(target=client, args=(i,)) for i in range(12)]
for t in threads: t.start()
for t in threads: t.join()
s.sendall(b"get n\r\n"); print(sum(ok), s.recv(100).split()[4].decode())
P
echo '<p id=x></p><script>let n=0;for(let i=0;i<1e6;i++)n+=i;x.textContent="sum "+n</script>' >page.html

# Each prints what must be the same. $under puts the interposer under the program itself, not under its clients.
port=$((20000 + RANDOM % 20000))
redis() {
    port=$((port + 1))
    $under redis-server --port $port --io-threads 2 --save "" --appendonly no --daemonize no >redis.log 2>&1 &
    server=$!
    for _ in $(seq 100); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.1; done
    redis-benchmark -p $port -n 4000 -c 20 -q -t set,get,incr,lpush >/dev/null 2>&1
    redis-cli -p $port get counter:__rand_int__
    redis-cli -p $port llen mylist
    redis-cli -p $port shutdown nosave >/dev/null 2>&1
    wait $server
    echo "exit $?"
}
memcache() {
    port=$((port + 1))
    $under memcached -u nobody -l 127.0.0.1 -p $port -t 6 >memcached.log 2>&1 &
    server=$!
    for _ in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && break; sleep 0.1; done
    python3 memcache.py $port
    kill $server
    wait $server
    echo "exit $?"
}
rocksdb() {
    rm -rf db
    $under "$db_bench" --benchmarks=fillseq,readrandom,readwhilewriting --db=db --num=20000 --reads=5000 --threads=6 \
        --seed=1 --disable_wal=1 >db.log 2>&1
    echo "exit $?"
    grep -o '([0-9]* of [0-9]* found)' db.log | head -1
}
sqlite() { $under python3 sqlite.py; }
nodejs() { $under node workers.js; }
java_() { if [ -e Sums.class ]; then $under java -XX:+UseParallelGC Sums; else $under java Sums.java; fi; }
pigz_() { $under pigz -p 8 -c input >p.gz && $under pigz -d -p 8 -c p.gz | sha256sum && sha256sum <p.gz; }
xz_() { $under xz -0 -T 4 --block-size=1MiB -c input >x.xz && $under xz -d -T 4 -c x.xz | sha256sum && sha256sum <x.xz; }
zstd_() { $under zstd -q -T4 -3 -f input -o z.zst && $under zstd -q -d -c z.zst | sha256sum && sha256sum <z.zst; }
# One after the other: the end of one stops the other too. Enough operations that the first thread of `mutex`, which takes
# real-time priority, does not do them all before its creator has seen that there is one (exit 3, glibc too).
stress() {
    $under stress-ng --quiet --pthread 2 --pthread-max 64 --pthread-ops 200 --timeout 60; echo "exit $?"
    $under stress-ng --quiet --mutex 1 --mutex-ops 100000 --timeout 60; echo "exit $?"
}
browser() { $under chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --dump-dom "file://$work/page.html" 2>/dev/null | grep -o 'sum [0-9]*'; }
command -v javac >/dev/null && javac Sums.java 2>/dev/null
db_bench=$(command -v db_bench || command -v rocksdb_db_bench || ls /usr/lib/rocksdb/db_bench 2>/dev/null | head -1)

programs=()
missing=""
have() { # have FUNCTION COMMAND
    [ -z "${ONLY:-}" ] || [ "$ONLY" = "$1" ] || return
    if [ -n "${2:-}" ] && command -v "$2" >/dev/null 2>&1; then programs+=("$1"); else missing="$missing $1"; fi
}
have redis redis-server; have memcache memcached; have rocksdb "${db_bench:-}"; have sqlite python3; have nodejs node
have java_ java; have pigz_ pigz; have xz_ xz; have zstd_ zstd; have stress stress-ng; have browser chromium

# One run, in a subshell with a limit; its result on standard output.
export limit library work port db_bench
one() { # one PROGRAM [KIND]
    if [ $# -eq 2 ]; then under="env LD_PRELOAD=$library WATTWISE_LOCK=$2"; else under=""; fi
    set -m
    ( $1 ) >"$1.out" 2>"$1.err" &
    local pid=$! end=$((SECONDS + limit))
    while kill -0 $pid 2>/dev/null; do
        if [ $SECONDS -ge $end ]; then kill -9 -- -$pid; echo hang; return; fi
        sleep 0.05
    done
    wait $pid
    set +m
    cat "$1.out"
}
declare -A wanted
failed=0
runs=0
{
    printf '| lock:policy |'; for p in "${programs[@]}"; do printf ' %s |' "${p%_}"; done; echo
    printf '|---|'; for p in "${programs[@]}"; do printf -- '---|'; done; echo
    for p in "${programs[@]}"; do
        wanted[$p]=$(one "$p")
        [ -n "${wanted[$p]}" ] || { echo "interposer-matrix: $p gives nothing under glibc" >&2; failed=$((failed + 1)); }
    done
    for kind in "${kinds[@]}"; do
        row="| $kind |"
        for p in "${programs[@]}"; do
            got=$(one "$p" "$kind")
            runs=$((runs + 1))
            if [ "$got" = "${wanted[$p]}" ]; then row+=' pass |'; else
                failed=$((failed + 1))
                if [ "$got" = hang ]; then row+=' hang |'; else row+=' differs |'; fi
                echo "interposer-matrix: $p under $kind: expected '${wanted[$p]}', got '$got'" >&2
            fi
        done
        echo "$row"
        echo "$row" >&2
    done
} >"$work/table"
cat "$work/table"
if [ ${#kinds[@]} -ge 18 ] && [ -z "${ONLY:-}" ]; then
    awk -v table="$work/table" '
        /<!-- interposer-matrix -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
        /<!-- end interposer-matrix -->/ { skip = 0 }
        !skip' "$root/docs/notes/locks.md" >"$work/locks.md" && cp "$work/locks.md" "$root/docs/notes/locks.md"
fi
echo "interposer-matrix: ${#programs[@]} programs, ${#kinds[@]} kinds, $runs runs, $failed failed"
if [ -n "$missing" ]; then
    echo "interposer-matrix: not installed, skipped:$missing"
    [ "${CI:-}" != true ] || failed=$((failed + 1))
fi
[ "$failed" -eq 0 ]
