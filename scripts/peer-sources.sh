# Sourced: source packages of Debian's, by name, through an apt of one's own in the build folder. The machine's own
# package lists are left alone. `fetch FOLDER PACKAGE` unpacks PACKAGE in FOLDER/PACKAGE, as upstream wrote it.
#
# `apt-get source` with a deb-src line made from the machine's own Debian mirror, in its own suite; the archive's signatures
# are checked as always.

peers_apt() { # peers_apt FOLDER COMMAND...
    apt=$1/apt
    shift
    if [ ! -e "$apt/ready" ]; then
        mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
        # The first plain Debian mirror, the keyring beside it, the suite of this machine.
        mirror=$(peers_words ' \t' '://.*/debian/*$')
        [ -n "$mirror" ] || { echo "peers: no Debian mirror in the machine's apt sources" >&2; return 3; }
        keyring=$(peers_words ' \t[]=' '^/.*debian.*\.gpg$')
        suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
        echo "deb-src ${keyring:+[signed-by=$keyring] }$mirror $suite main" >"$apt/sources.list"
        : >"$apt/status"
        peers_apt_get "$apt" update --quiet=2
        : >"$apt/ready"
    fi
    peers_apt_get "$apt" "$@"
}

# The first word of the machine's apt sources that matches, or nothing. One of the two places may be empty, and `grep -m1` stops
# those before it: neither is an error, also for a caller with pipefail.
peers_words() { # peers_words SEPARATORS PATTERN
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || :; } | grep -v '^ *#' | tr -s "$1" '\n' |
        sed -n "\\#$2#{p;q;}" || :
}

peers_apt_get() { # peers_apt_get APT COMMAND...
    own=$1
    shift
    apt-get -o Dir::Etc::sourcelist="$own/sources.list" -o Dir::Etc::sourceparts="$own/parts" \
        -o Dir::State::lists="$own/lists" -o Dir::State::status="$own/status" -o Dir::Cache="$own/cache" \
        -o Acquire::Languages=none -o APT::Sandbox::User= "$@"
}

fetch() { # fetch FOLDER PACKAGE [TAR OPTIONS]
    folder=$1 package=$2
    shift 2
    [ -e "$folder/$package/.unpacked" ] && return 0
    mkdir -p "$folder"
    echo "peers: fetching the source of $package" >&2
    (cd "$folder" && peers_apt "$folder" source --quiet=2 --download-only "$package" >/dev/null) || {
        echo "peers: the source of $package is not to be had" >&2
        return 3
    }
    rm -rf "${folder:?}/$package"
    mkdir "$folder/$package"
    tar -xf "$(ls -t "$folder/${package}"_*.orig.tar.* | grep -v '\.asc$' | head -n 1)" -C "$folder/$package" --strip-components=1 "$@"
    : >"$folder/$package/.unpacked"
}
