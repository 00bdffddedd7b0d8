# GNU sort with two threads on four million lines.
# needs: coreutils
awk 'BEGIN { for (n = 0; n < 4000000; n++) print (n * 7919) % 4000037, "line", n }' >lines
record -- sort --parallel=2 -S 256M -o sorted lines
