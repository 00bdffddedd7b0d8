# A first backup with restic, which cuts, compresses and encrypts, and a second one of the same files.
# needs: restic
some_files 30 >list
mkdir files && tar -c -T list 2>/dev/null | tar -x -C files
export RESTIC_PASSWORD=backup RESTIC_REPOSITORY="$work/repository" RESTIC_CACHE_DIR="$work/cache"
restic init -q
record -- sh -c 'restic backup -q files && restic backup -q files'
