# ripgrep looks for three patterns in some thousand files with two threads; a person reads for half a second in between.
# needs: ripgrep
some_files 60 >list
mkdir files && tar -c -T list 2>/dev/null | tar -x -C files
record -- sh -c 'for word in "licen[cs]e" "fr[ao]m.*import" "[0-9]{4}-[0-9]{2}"; do rg -j2 -z -c "$word" files >/dev/null; sleep 0.5; done'
