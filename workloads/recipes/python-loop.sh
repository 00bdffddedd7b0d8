# Study 000's job: a loop of 100 000 iterations, started on a machine at rest, again and again.
# needs: python3
cat >loop.py <<'PYTHON'
total = 0
for i in range(100_000):
    total += i * i % 7
PYTHON
cat >loops.sh <<'LOOPS'
for pause in 0.4 0.9 0.3 1.3 0.6 1.1 0.5 0.8; do
    sleep $pause
    python3 loop.py
done
LOOPS
record --timers -- sh loops.sh
