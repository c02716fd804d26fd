#!/bin/sh
# Installs otpd, one file, for the user who runs this. Never asks for more rights than that user has.
set -eu

usage() {
  cat <<'END'
Installs otpd as PREFIX/bin/otpd.

Usage: ./install.sh                   in a checkout: build it and install it
       ./install.sh --from FILE       install a release file, after checking its SHA-256
       OTPD_DOWNLOAD_URL=URL ./install.sh
                                      download a release file and install it, after checking its SHA-256
       ./install.sh --uninstall       remove the program; data and logins stay

Options:
  --prefix DIR    where to install (PREFIX; ~/.local)
  -h, --help      this text

The checksum is read from FILE.sha256, or from SHA256SUMS beside FILE. Without one nothing is installed.
A URL that ends with a slash is a folder of releases: the file for this machine is taken from it.
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
  else fail 'No program here can compute a SHA-256, so nothing was installed.' 'Install coreutils (sha256sum), perl (shasum) or openssl.'
  fi
}

# The checksum of file $1 as the checksum file $2 has it: a bare one, or a line that ends with its name.
listed_sha256() {
  awk -v name="$1" '
    NF == 1 && length($1) == 64 { print tolower($1); exit }
    { listed = $2; sub(/^\*/, "", listed); sub(/.*\//, "", listed) }
    listed == name && length($1) == 64 { print tolower($1); exit }
  ' "$2"
}

# Ends the script unless file $1, whose name is $2, has the checksum that stands beside it in folder $3.
check_sha256() {
  for sums in "$3/$2.sha256" "$3/SHA256SUMS"; do
    [ -f "$sums" ] || continue
    expected=$(listed_sha256 "$2" "$sums")
    [ -n "$expected" ] || continue
    actual=$(sha256 "$1")
    [ "$actual" = "$expected" ] && return 0
    fail "The SHA-256 of $2 is not the one in ${sums##*/}; nothing was installed." "expected $expected" "found    $actual"
  done
  fail "There is no checksum for $2, so nothing was installed." "Put $2.sha256 or SHA256SUMS beside it."
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
    for loader in /lib/ld-musl-*.so.1; do [ ! -e "$loader" ] || libc=-musl; done
  fi
  printf 'otpd-%s-%s%s\n' "$os" "$arch" "$libc"
}

download() {
  case $1 in
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
    *) fail 'A release is downloaded by https only.' "OTPD_DOWNLOAD_URL is $1" ;;
  esac
  if has curl; then curl -fsSL --proto-redir '=https' -o "$2" "$1"
  elif has wget; then wget -q -O "$2" "$1"
  else fail 'Neither curl nor wget is here to download with.' 'Download the file and its .sha256 yourself, then: ./install.sh --from FILE'
  fi
}

build() {
  has npm || fail 'Building needs Node.js 20 or later, with npm.' 'Install it from https://nodejs.org, or install a release: ./install.sh --from FILE'
  (cd "$1" && npm run -s build) || fail 'The build failed; nothing was installed.'
}

install_file() {
  mkdir -p "$bin" 2>/dev/null || fail "$bin cannot be made." 'Choose another place: PREFIX=DIR ./install.sh'
  new=$(mktemp "$bin/.otpd.XXXXXX" 2>/dev/null) || fail "$bin cannot be written." 'Choose another place: PREFIX=DIR ./install.sh'
  case $2 in
    *.gz) gzip -dc <"$1" >"$new" ;;
    *) cat "$1" >"$new" ;;
  esac
  chmod 755 "$new"
  version=$("$new" version 2>/dev/null) || fail "The file does not run on this machine; nothing was installed."
  # A rename, so that a running server keeps its file and nobody meets half of the new one.
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
    printf 'There is no %s; nothing to do.\n' "$bin/otpd"
    return
  fi
  rm -f "$bin/otpd" || fail "$bin/otpd cannot be removed."
  printf 'Removed %s\n' "$bin/otpd"
  data=${XDG_DATA_HOME:-${HOME:-}/.local/share}/otpd
  [ "$(id -u)" != 0 ] || data=/var/lib/otpd
  printf 'Data and logins stay where they are: %s, %s\n' "${OTPD_DATA_DIR:-$data}" "${OTPD_CONFIG_DIR:-${XDG_CONFIG_HOME:-${HOME:-}/.config}/otpd}"
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
    # A copy is checked and installed, so that nobody can exchange the file between the two.
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

# The whole script is read before anything runs: a download that was cut off does nothing.
main "$@"
