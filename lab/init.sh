#!/bin/busybox sh
# The guest's first process: mounts, runs the scenario, sends /out home, powers off. Where the kernel's command line names a unit,
# systemd comes between: it is the first process then, and starts this once more as that unit.
export PATH=/bin
if [ $$ = 1 ]; then
    /bin/busybox --install -s /bin
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t devtmpfs devtmpfs /dev
    mount -t debugfs debugfs /sys/kernel/debug
    mount -t tracefs tracefs /sys/kernel/tracing
    mount -t tmpfs tmpfs /tmp
    ! grep -q systemd.unit= /proc/cmdline || exec /lib/systemd/systemd
fi
exec </dev/null >/dev/ttyS0 2>&1
stty -F /dev/ttyS1 raw 2>/dev/null
. /lab/lib.sh
sh -eu -c '. /lab/lib.sh; . /lab/environment; . /lab/scenario.sh'
code=$?
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then
    # What is younger than five seconds is no leak yet, and what one scan finds may be on its way.
    sleep 6
    echo scan >$leaks
    echo scan >$leaks
    cat $leaks
fi
if [ -n "$(ls -A /out)" ]; then
    load virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk
    tar -C /out -cf /dev/vda .
    sync
fi
say "{\"done\":$code}"
poweroff -f
