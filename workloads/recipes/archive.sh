# tar into gzip: two programs, one pipe.
# needs: gzip
some_files 40 >list
xargs -d '\n' cat <list >/dev/null
record -- sh -c 'tar -c -T list 2>/dev/null | gzip >files.tar.gz'
