# zstd with two threads on 60 MB.
# needs: zstd
some_files 60 >list
tar -c -T list -f files.tar 2>/dev/null
record -- zstd -q -T2 -9 files.tar -o files.tar.zst
