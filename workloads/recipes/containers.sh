# Twelve containers, started one after the other with a pause; each looks around and ends.
# needs: runc busybox-static
mkdir -p bundle/rootfs/bin bundle/rootfs/proc bundle/rootfs/dev bundle/rootfs/sys
cp /bin/busybox bundle/rootfs/bin/busybox
for applet in sh ls cat wc; do ln -s busybox "bundle/rootfs/bin/$applet"; done
cd bundle
runc spec
sed -i 's/"terminal": true/"terminal": false/; s#^\([[:space:]]*\)"sh"#\1"sh", "-c", "ls -lR /bin /proc/self | wc -l"#' config.json
record -- sh -c 'for n in 1 2 3 4 5 6 7 8 9 10 11 12; do runc run "wattwise-$n" >/dev/null || exit 1; sleep 0.3; done'
