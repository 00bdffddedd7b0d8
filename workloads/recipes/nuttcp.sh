# Study 003's test, on loopback.
# needs: nuttcp
nuttcp -S
sleep 0.3
record -- nuttcp -T 1 127.0.0.1
pkill -x nuttcp || true
