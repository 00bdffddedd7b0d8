# rsync copies a tree of some thousand files, then finds that nothing changed.
# needs: rsync
some_files 40 >list
mkdir files && tar -c -T list 2>/dev/null | tar -x -C files
record -- sh -c 'rsync -a files/ copy && rsync -a files/ copy'
