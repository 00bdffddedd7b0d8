# Five of the 986 scripts of git's own tests, drawn by chance, one after the other as `make test` runs them. git is built from
# Debian's source of 2.39.5, whose folder GIT_SOURCE names (apt-get source git).
# needs: gcc make zlib1g-dev
cp -r "${GIT_SOURCE:?the folder of the source of git}" git
make -C git -j2 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_TCLTK=1 NO_OPENSSL=1 CFLAGS=-O2 all >/dev/null 2>&1
cat >tests.sh <<'TESTS'
cd git/t
for script in t1500-rev-parse t5547-push-quarantine t7501-commit-basic-functionality t7614-merge-signoff \
    t9113-git-svn-dcommit-new-file; do
    sh ./$script.sh >/dev/null
done
TESTS
record -- sh tests.sh
