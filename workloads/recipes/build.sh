# A real C library, compiled two files at a time: the zstd sources that a Rust crate brings along.
# needs: gcc make
sources=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -path '*zstd-sys-*/zstd/lib' -type d | head -n 1)
cp -r "$sources" lib
cat >Makefile <<'MAKE'
objects := $(patsubst %.c,%.o,$(wildcard lib/common/*.c lib/compress/*.c lib/decompress/*.c lib/dictBuilder/*.c))
libzstd.a: $(objects)
	ar rc $@ $^
%.o: %.c
	cc -O1 -c -o $@ $<
MAKE
record -- make -s -j2 libzstd.a
