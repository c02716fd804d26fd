#!/bin/sh
# Installs otpd, a single file, for the user who runs this script. Never asks for more privileges than that user has.
set -eu

# Public key of the releases; `npm run release` puts it here.
release_key=''

usage() {
  cat <<'END'
Installs otpd as PREFIX/bin/otpd.

Usage: ./install.sh                   in a checkout: build otpd and install it
       ./install.sh --from FILE       install a release file, after checking its SHA-256
       OTPD_DOWNLOAD_URL=URL ./install.sh
                                      download a release file and install it, after checking its SHA-256
       ./install.sh --uninstall       remove the program, keep data and logins

Options:
  --prefix DIR    where to install (default: $PREFIX, else ~/.local)
  -h, --help      print this text

The checksum is read from FILE.sha256 or SHA256SUMS in the folder of FILE. Without a checksum nothing is installed.
A URL that ends with a slash is a folder of releases, from which the file for this machine is downloaded.
END
}

fail() {
  printf 'Error: %s\n' "$1" >&2
  shift
  for hint in "$@"; do printf '  %s\n' "$hint" >&2; done
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

sha256() {
  if has sha256sum; then sha256sum <"$1" | cut -d ' ' -f 1
  elif has shasum; then shasum -a 256 <"$1" | cut -d ' ' -f 1
  elif has openssl; then openssl dgst -sha256 -r <"$1" | cut -d ' ' -f 1
  else fail 'No program to compute a SHA-256 checksum was found; nothing was installed.' 'Install coreutils (sha256sum), perl (shasum) or openssl.'
  fi
}

# Prints the checksum of file $1 from the checksum file $2: a bare checksum, or a line that ends with the name of $1.
listed_sha256() {
  awk -v name="$1" '
    NF == 1 && length($1) == 64 { print tolower($1); exit }
    { listed = $2; sub(/^\*/, "", listed); sub(/.*\//, "", listed) }
    listed == name && length($1) == 64 { print tolower($1); exit }
  ' "$2"
}

# Exits unless file $1 has the checksum that folder $3 lists for the name $2.
check_sha256() {
  for sums in "$3/$2.sha256" "$3/SHA256SUMS"; do
    [ -f "$sums" ] || continue
    expected=$(listed_sha256 "$2" "$sums")
    [ -n "$expected" ] || continue
    actual=$(sha256 "$1")
    [ "$actual" = "$expected" ] && return 0
    fail "The SHA-256 of $2 does not match ${sums##*/}; nothing was installed." "expected $expected" "actual   $actual"
  done
  fail "There is no checksum for $2; nothing was installed." "Put $2.sha256 or SHA256SUMS in the same folder."
}

# otpd-linux-x64, otpd-linux-arm64-musl, otpd-darwin-arm64 …
release_name() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "There is no release for $(uname -s)." ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "There is no release for $(uname -m)." ;;
  esac
  libc=
  if [ "$os" = linux ]; then
    # A glibc system may have musl installed too.
    if ! getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
      for loader in /lib/ld-musl-*.so.1; do [ ! -e "$loader" ] || libc=-musl; done
    fi
  fi
  printf 'otpd-%s-%s%s\n' "$os" "$arch" "$libc"
}

# Downloads URL $1 to file $2 with GNU wget, and follows redirects by itself: wget would follow one to http.
wget_https() {
  location=$1
  for _ in 1 2 3 4 5 6; do
    if wget -S --max-redirect=0 -O "$2" "$location" 2>"$work/headers"; then return 0; fi
    location=$(sed -n 's/^ *[Ll]ocation: *\([^ ]*\).*/\1/p' "$work/headers" | tail -n 1 | tr -d '\r')
    case $location in https://*) ;; *) return 1 ;; esac
  done
  return 1
}

download() {
  case $1 in
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
    *) fail 'Releases are downloaded over https only.' "OTPD_DOWNLOAD_URL is $1" ;;
  esac
  if has curl; then curl -fsSL --proto-redir '=https' -o "$2" "$1"
  elif has wget; then wget_https "$1" "$2"
  else fail 'Neither curl nor wget was found.' 'Download the file and its .sha256 yourself, then: ./install.sh --from FILE'
  fi
}

build() {
  has npm || fail 'Building needs Node.js 20 or later, with npm.' 'Install it from https://nodejs.org, or install a release: ./install.sh --from FILE'
  (cd "$1" && npm run -s build) || fail 'The build failed; nothing was installed.'
}

install_file() {
  mkdir -p "$bin" 2>/dev/null || fail "$bin cannot be created." 'Choose another folder: PREFIX=DIR ./install.sh'
  new=$(mktemp "$bin/.otpd.XXXXXX" 2>/dev/null) || fail "$bin is not writable." 'Choose another folder: PREFIX=DIR ./install.sh'
  case $2 in
    *.gz) gzip -dc <"$1" >"$new" ;;
    *) cat "$1" >"$new" ;;
  esac
  chmod 755 "$new"
  version=$("$new" version 2>/dev/null) || fail "The file does not run on this machine; nothing was installed."
  # A rename is atomic: a running server keeps its file, and no process sees an incomplete one.
  mv -f "$new" "$bin/otpd"
  new=
  printf '%s installed as %s\n' "$version" "$bin/otpd"
  found=$(command -v otpd || true)
  if [ "$found" = "$bin/otpd" ]; then
    printf '\nNext: otpd serve\n'
  elif [ -n "$found" ]; then
    printf '\nAnother otpd comes first in your PATH: %s\nNext: %s serve\n' "$found" "$bin/otpd"
  else
    printf '\n%s is not in your PATH. Add it:\n\n  export PATH="%s:$PATH"\n\nNext: otpd serve\n' "$bin" "$bin"
  fi
}

uninstall() {
  if [ ! -e "$bin/otpd" ]; then
    printf '%s does not exist; nothing to do.\n' "$bin/otpd"
    return
  fi
  rm -f "$bin/otpd" || fail "$bin/otpd cannot be removed."
  printf 'Removed %s\n' "$bin/otpd"
  data=${XDG_DATA_HOME:-${HOME:-}/.local/share}/otpd
  [ "$(id -u)" != 0 ] || data=/var/lib/otpd
  printf 'Kept data and logins: %s, %s\n' "${OTPD_DATA_DIR:-$data}" "${OTPD_CONFIG_DIR:-${XDG_CONFIG_HOME:-${HOME:-}/.config}/otpd}"
}

main() {
  prefix=${PREFIX:-${HOME:-}/.local}
  from=
  action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --from | --prefix)
        [ $# -gt 1 ] || fail "$1 needs a value." 'See: ./install.sh --help'
        if [ "$1" = --from ]; then from=$2; else prefix=$2; fi
        shift
        ;;
      --uninstall) action=uninstall ;;
      -h | --help)
        usage
        exit 0
        ;;
      *) fail "There is no option $1." 'See: ./install.sh --help' ;;
    esac
    shift
  done
  case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
  bin=$prefix/bin
  if [ "$action" = uninstall ]; then
    uninstall
    exit 0
  fi

  new=
  work=$(mktemp -d)
  trap 'rm -rf "$work" ${new:+"$new"}' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM

  if [ -n "$from" ]; then
    [ -f "$from" ] || fail "There is no file $from."
    # Checks and installs a copy, so that the file cannot be replaced in between.
    cp "$from" "$work/file"
    check_sha256 "$work/file" "$(basename "$from")" "$(dirname "$from")"
    install_file "$work/file" "$from"
  elif [ -n "${OTPD_DOWNLOAD_URL:-}" ]; then
    url=$OTPD_DOWNLOAD_URL
    case $url in */) url=$url$(release_name).gz ;; esac
    name=${url##*/}
    printf 'Downloading %s\n' "$url"
    download "$url" "$work/$name" || fail "$url could not be downloaded; nothing was installed."
    download "$url.sha256" "$work/$name.sha256" 2>/dev/null || rm -f "$work/$name.sha256"
    if [ ! -s "$work/$name.sha256" ]; then download "${url%/*}/SHA256SUMS" "$work/SHA256SUMS" 2>/dev/null || rm -f "$work/SHA256SUMS"; fi
    check_sha256 "$work/$name" "$name" "$work"
    install_file "$work/$name" "$name"
  else
    here=$(dirname "$0")
    if [ ! -f "$here/cli/build.ts" ]; then
      fail 'There is nothing to install from.' 'In a checkout: ./install.sh' 'A release: ./install.sh --from FILE, or OTPD_DOWNLOAD_URL=URL ./install.sh'
    fi
    build "$here"
    install_file "$here/dist/otpd" otpd
  fi
}

# Called last, so that the whole script is read before anything runs: a truncated download does nothing.
main "$@"
