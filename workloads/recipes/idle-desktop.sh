# A desktop at rest for 20 s: an X server, a window manager, a clock with seconds, and a terminal in which top shows the tasks.
# needs: xvfb x11-apps x11-utils xterm openbox
cat >desktop.sh <<'DESKTOP'
Xvfb :79 -screen 0 1280x800x24 2>/dev/null &
export DISPLAY=:79
until xdpyinfo >/dev/null 2>&1; do sleep 0.2; done
openbox 2>/dev/null &
xclock -update 1 2>/dev/null &
xterm -e top -d 2 2>/dev/null &
sleep 20
kill $(jobs -p)
wait
DESKTOP
record --timers -- bash desktop.sh
