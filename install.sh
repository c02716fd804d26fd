#!/bin/sh
# Installs otpd, a single file, for the user who runs this script. Never asks for more privileges than that user has.
set -eu

# Public key of the releases, and the release that this installer is of; `npm run release` puts them here.
release_key=''
release_version=''
# Folder of the releases that is used without OTPD_DOWNLOAD_URL.
release_url=''

usage() {
  cat <<'END'
Installs otpd as PREFIX/bin/otpd.

Usage: ./install.sh                   in a checkout: build otpd and install it
       OTPD_DOWNLOAD_URL=URL ./install.sh
                                      download the newest release and install it
       ./install.sh --from FILE       install a release file that you have
       ./install.sh --list            print the releases
       ./install.sh --rollback        go back to the version that the last install replaced
       ./install.sh --uninstall       remove the program, keep data and logins
       ./install.sh --purge           remove the program, data and logins

Options:
  --version X.Y.Z        release to install (default: the newest)
  --prefix DIR           where to install (default: $PREFIX, else ~/.local)
  --no-extras            without shell completions and manual page
  --require-signature    install nothing if the signature cannot be checked
  --allow-unsigned       install a release without a signature
  -y, --yes              with --purge: do not ask
  -h, --help             print this text

OTPD_DOWNLOAD_URL is a folder of releases. The checksum of a file is read from SHA256SUMS in its folder, whose signature is
SHA256SUMS.sig. Without a checksum nothing is installed. The file latest, signed as latest.sig, names the newest release; one
that is older than the installed otpd is not installed without --version.
END
}

fail() {
  printf 'Error: %s\n' "$1" >&2
  shift
  for hint in "$@"; do printf '  %s\n' "$hint" >&2; done
  exit 1
}

note() { printf '%s\n' "$1" >&2; }

has() { command -v "$1" >/dev/null 2>&1; }

# Succeeds if version $1 is $2 or newer.
is_at_least() {
  awk -v have="$1" -v need="$2" 'BEGIN {
    split(have, h, "."); split(need, n, ".")
    for (i = 1; i <= 3; i++) if (h[i] + 0 != n[i] + 0) exit (h[i] + 0 < n[i] + 0)
  }'
}

# Succeeds if release $1 is older than release $2. A pre-release, such as 0.3.0-rc.1, is older than its release.
is_older_release() { ! is_at_least "$1" "$2" || { [ "${1%%-*}" = "$2" ] && [ "$1" != "$2" ]; }; }

sha256() {
  if has sha256sum; then sha256sum <"$1" | cut -d ' ' -f 1
  elif has shasum; then shasum -a 256 <"$1" | cut -d ' ' -f 1
  elif has openssl; then openssl dgst -sha256 -r <"$1" | cut -d ' ' -f 1
  else fail 'No program to compute a SHA-256 checksum was found; nothing was installed.' 'Install coreutils (sha256sum), perl (shasum) or openssl.'
  fi
}

# Prints the checksum that SHA256SUMS $2 lists for the file named $1.
listed_sha256() {
  awk -v name="$1" '
    { listed = $2; sub(/^\*/, "", listed) }
    listed == name && length($1) == 64 { print tolower($1); exit }
  ' "$2"
}

# Exits unless file $1 has the checksum that SHA256SUMS $3 lists for the name $2.
check_sha256() {
  expected=
  [ ! -f "$3" ] || expected=$(listed_sha256 "$2" "$3")
  [ -n "$expected" ] || fail "There is no checksum for $2; nothing was installed." 'Put SHA256SUMS in the same folder.'
  actual=$(sha256 "$1")
  [ "$actual" = "$expected" ] || fail "$2 is not the one in SHA256SUMS; nothing was installed." "expected $expected" "actual   $actual"
}

# Exits unless file $1 is signed for purpose $2 with the key of the releases, or cannot be checked and need not be.
check_signature() {
  unchecked=
  if [ -z "$release_key" ] && [ -s "$1.sig" ]; then unchecked='this installer has no key'
  elif [ -z "$release_key" ]; then unchecked='this release is not signed'
  elif [ ! -s "$1.sig" ]; then
    [ "$unsigned" = allowed ] || not_signed "${1##*/}"
    unchecked='this release is not signed'
  elif ! has ssh-keygen; then unchecked='ssh-keygen is missing'
  else
    printf 'otpd %s\n' "$release_key" >"$work/signers"
    if said=$(ssh-keygen -Y verify -f "$work/signers" -I otpd -n "$2" -s "$1.sig" <"$1" 2>&1); then return 0; fi
    case $said in
      *nknown\ option* | *llegal\ option*) unchecked='ssh-keygen is older than 8.2' ;;
      *) not_signed "${1##*/}" ;;
    esac
  fi
  [ "$unsigned" != refused ] || fail "The signature was not checked: $unchecked. Nothing was installed."
  [ "$is_noted" = no ] || return 0
  is_noted=yes
  note "The signature was not checked: $unchecked."
  note '  The checksum shows that the file is complete, not who made it.'
}

not_signed() { fail "$1 is not signed by otpd's key; nothing was installed."; }

# Prints linux-x64, linux-arm64-musl, darwin-arm64 … Exits if no release runs on this machine.
find_target() {
  system=$(uname -s)
  machine=$(uname -m)
  case $machine in
    x86_64 | amd64)
      arch=x64
      # A shell under Rosetta names the processor that it is translated for.
      if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then arch=arm64; fi
      ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "There is no release for $machine processors." ;;
  esac
  case $system in
    Linux) check_linux ;;
    Darwin)
      [ "$arch" = arm64 ] || fail 'There is no release for Macs with Intel processors.' 'Build it in a checkout on this Mac: ./install.sh'
      target=darwin-arm64
      ;;
    *) fail "There is no release for $system." ;;
  esac
}

check_linux() {
  kernel=$(uname -r)
  is_at_least "$kernel" 5.1 || fail "otpd needs Linux 5.1 or later; this is $kernel."
  if [ "$arch" = x64 ] && [ -r /proc/cpuinfo ] && ! grep -qw sse4_2 /proc/cpuinfo; then
    fail 'otpd needs a processor with SSE4.2, which this one has not.'
  fi
  # Such as Raspberry Pi OS, whose kernel may have 64 bits all the same.
  [ "$(getconf LONG_BIT 2>/dev/null)" != 32 ] || fail 'otpd needs a system of 64 bits; the programs of this one have 32.'
  # A glibc system may have musl installed too.
  if libc=$(getconf GNU_LIBC_VERSION 2>/dev/null); then
    is_at_least "${libc#* }" 2.17 || fail "otpd needs glibc 2.17 or later; this is $libc."
    target=linux-$arch
    return
  fi
  for loader in /lib/ld-musl-*.so.1; do
    [ -e "$loader" ] || break
    # Without an argument it prints its version to stderr, and fails.
    musl=$("$loader" 2>&1 | sed -n 's/^Version //p') || true
    is_at_least "$musl" 1.2.4 || fail "otpd needs musl 1.2.4 or later; this is ${musl:-unknown}."
    [ -e /usr/lib/libstdc++.so.6 ] || [ -e /lib/libstdc++.so.6 ] || fail 'otpd needs libstdc++ here: apk add libstdc++'
    target=linux-$arch-musl
    return
  done
  fail 'otpd needs glibc or musl, and neither was found.'
}

# Downloads URL $1 to file $2 with GNU wget, and follows redirects by itself: wget would follow one to http.
wget_https() {
  location=$1
  for _ in 1 2 3 4 5 6; do
    if wget -S --timeout=60 --tries=3 --max-redirect=0 -O "$2" "$location" 2>"$work/headers"; then return 0; fi
    location=$(sed -n 's/^ *[Ll]ocation: *\([^ ]*\).*/\1/p' "$work/headers" | tail -n 1 | tr -d '\r')
    case $location in https://*) ;; *) return 1 ;; esac
  done
  return 1
}

# Exits unless releases can be downloaded.
check_download() {
  case $url in
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
    *) fail 'Releases are downloaded over https only.' "OTPD_DOWNLOAD_URL is $url" ;;
  esac
  # The wget of BusyBox follows redirects to http, and cannot be kept from it.
  if has curl; then fetch=curl
  elif has wget && wget --version 2>/dev/null | grep -q GNU; then fetch=wget
  else fail 'Neither curl nor GNU wget was found.' 'Install one, or download the file and SHA256SUMS yourself, then: ./install.sh --from FILE'
  fi
}

# Downloads URL $1 to file $2.
download() {
  if [ "$fetch" = curl ]; then
    # The program is large: on a terminal curl draws a bar.
    quiet=-sS
    case $2 in *.tar.gz) if [ -t 2 ]; then quiet=--progress-bar; fi ;; esac
    curl -fL "$quiet" --connect-timeout 30 --speed-limit 1 --speed-time 60 --proto-redir '=https' -o "$2" "$1"
  else wget_https "$1" "$2"
  fi
}

# Downloads file $1 of the folder $2 of releases to the work folder, and its signature if there is one.
download_signed() {
  download "$2/$1" "$work/$1" 2>"$work/errors" || return 1
  download "$2/$1.sig" "$work/$1.sig" 2>/dev/null || rm -f "$work/$1.sig"
}

# Reads the newest version of the folder of releases.
read_latest() {
  download_signed latest "$url" || fail "$url/latest could not be downloaded; nothing was installed." "$(tail -n 1 "$work/errors")"
  latest=$(head -n 1 "$work/latest")
  case $latest in
    '' | *[!0-9A-Za-z.+-]*) fail "$url/latest does not contain a version; nothing was installed." ;;
  esac
}

# Exits if a newer release than the newest one of the folder is known: a copy that is behind, or old on purpose, goes back to
# faults that were mended.
refuse_older() {
  newer=
  installed=$(installed_version)
  if is_older_release "$latest" "$installed"; then newer="$installed is installed"
  elif is_older_release "$latest" "$release_version"; then newer="this installer is of $release_version"
  else return 0
  fi
  fail "The newest release in $url is $latest, but $newer; nothing was installed." "To install it all the same: install.sh --version $latest"
}

list_releases() {
  check_download
  download "$url/versions" "$work/versions" 2>"$work/errors" || fail "$url/versions could not be downloaded." "$(tail -n 1 "$work/errors")"
  grep '^[0-9A-Za-z.+-]*$' "$work/versions"
}

install_release() {
  find_target
  check_download
  if [ -z "$wanted" ]; then
    read_latest
    refuse_older
    check_signature "$work/latest" otpd-latest
    wanted=$latest
  fi
  if ! download_signed SHA256SUMS "$url/$wanted"; then
    tail -n 1 "$work/errors" >"$work/reason"
    read_latest
    [ "$latest" = "$wanted" ] || fail "There is no release $wanted. Newest: $latest."
    fail "$url/$wanted/SHA256SUMS could not be downloaded; nothing was installed." "$(cat "$work/reason")"
  fi
  check_signature "$work/SHA256SUMS" otpd-release
  name=otpd-$wanted-$target.tar.gz
  [ -n "$(listed_sha256 "$name" "$work/SHA256SUMS")" ] || fail "Release $wanted has no file for $target; nothing was installed."
  printf 'Downloading %s\n' "$url/$wanted/$name"
  download "$url/$wanted/$name" "$work/$name" || fail "$url/$wanted/$name could not be downloaded; nothing was installed."
  check_sha256 "$work/$name" "$name" "$work/SHA256SUMS"
  install_file "$work/$name" "$name"
}

install_given_file() {
  [ -f "$from" ] || fail "There is no file $from."
  name=$(basename "$from")
  # Checks and installs copies, so that a file cannot be replaced in between.
  cp "$from" "$work/$name"
  for sums in SHA256SUMS SHA256SUMS.sig; do
    [ ! -f "$(dirname "$from")/$sums" ] || cp "$(dirname "$from")/$sums" "$work/$sums"
  done
  check_sha256 "$work/$name" "$name" "$work/SHA256SUMS"
  check_signature "$work/SHA256SUMS" otpd-release
  install_file "$work/$name" "$name"
}

build() {
  has npm || fail 'Building needs Node.js 20 or later, with npm.' 'Install it from https://nodejs.org, or install a release: ./install.sh --from FILE'
  (cd "$1" && npm run -s build) || fail 'The build failed; nothing was installed.'
}

# Prints the version of the otpd in file $1, or nothing if it does not run.
version_of() { "$1" version 2>/dev/null | sed -n '1s/^otpd \([^ ]*\).*/\1/p'; }

# Prints the installed version, or nothing.
installed_version() { [ ! -f "$bin/otpd" ] || version_of "$bin/otpd"; }

# Prints the version that the last install replaced, or nothing.
kept_version() {
  for kept in "$prefix"/lib/otpd/otpd-*; do
    [ ! -f "$kept" ] || printf '%s\n' "${kept##*/otpd-}"
  done | head -n 1
}

# Keeps the installed program, whose version is $1, to go back to; the one kept before goes.
keep_installed() {
  mkdir -p "$prefix/lib/otpd" || fail "$prefix/lib/otpd cannot be created; nothing was installed."
  if ! cp -p "$bin/otpd" "$prefix/lib/otpd/.new" || ! mv -f "$prefix/lib/otpd/.new" "$prefix/lib/otpd/otpd-$1"; then
    fail "The installed otpd could not be kept in $prefix/lib/otpd; nothing was installed."
  fi
  for kept in "$prefix"/lib/otpd/otpd-*; do
    [ "$kept" = "$prefix/lib/otpd/otpd-$1" ] || rm -f "$kept"
  done
}

# Installs file $1, which is an archive if its name $2 ends with .tar.gz.
install_file() {
  mkdir -p "$bin" 2>/dev/null || fail "$bin cannot be created." 'Choose another folder: PREFIX=DIR ./install.sh'
  [ ! -d "$bin/otpd" ] || fail "$bin/otpd is a folder; nothing was installed." 'Remove it, or choose another place: PREFIX=DIR ./install.sh'
  new=$(mktemp "$bin/.otpd.XXXXXX" 2>/dev/null) || fail "$bin is not writable." 'Choose another folder: PREFIX=DIR ./install.sh'
  case $2 in
    *.tar.gz)
      gzip -dc <"$1" 2>/dev/null | tar -xOf - "${2%.tar.gz}/otpd" >"$new" 2>"$work/errors" ||
        fail "$2 could not be unpacked to $bin; nothing was installed." "$(head -n 1 "$work/errors")" \
          'If the disk is full, make room and try again.'
      ;;
    *) cat "$1" >"$new" || fail "$bin/otpd could not be written; nothing was installed." ;;
  esac
  chmod 755 "$new"
  version=$(version_of "$new")
  [ -n "$version" ] || fail 'The file does not run on this machine; nothing was installed.'
  old=$(installed_version)
  if [ -n "$old" ] && [ "$old" != "$version" ]; then keep_installed "$old"; fi
  # A rename is atomic: a running server keeps its file, and no process sees an incomplete one.
  mv -f "$new" "$bin/otpd"
  new=
  write_extras
  printf 'otpd %s installed as %s\n' "$version" "$bin/otpd"
  if [ -n "$old" ] && [ "$old" != "$version" ]; then
    printf 'It replaces %s. To go back: install.sh --rollback\n' "$old"
  fi
  found=$(command -v otpd || true)
  if [ "$found" = "$bin/otpd" ]; then
    printf '\nNext: otpd serve\n'
  elif [ -n "$found" ]; then
    printf '\nAnother otpd comes first in your PATH: %s\nNext: %s serve\n' "$found" "$bin/otpd"
  else
    printf '\n%s is not in your PATH. Add it:\n\n  export PATH="%s:$PATH"\n\nNext: otpd serve\n' "$bin" "$bin"
  fi
  if [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ]; then
    package=$(find_package "$version")
    if [ -n "$package" ]; then printf 'To run it as a service, install %s of this release instead: it has a user and a unit.\n' "$package"
    else printf 'To run it as a service, see the systemd unit: otpd docs operating\n'
    fi
  fi
}

# Prints the package of version $1 for this machine, if the release has one.
find_package() {
  [ -f "$work/SHA256SUMS" ] || return 0
  if has dpkg; then set -- "otpd_$1-1_$(dpkg --print-architecture).deb"
  elif has rpm; then set -- "otpd-$1-1.$(uname -m).rpm"
  else return 0
  fi
  [ -z "$(listed_sha256 "$1" "$work/SHA256SUMS")" ] || printf '%s\n' "$1"
}

# Lists completions and the manual page: the command that prints one, and its file below PREFIX/share.
extras() {
  cat <<'END'
completion bash:bash-completion/completions/otpd
completion zsh:zsh/site-functions/_otpd
completion fish:fish/vendor_completions.d/otpd.fish
man:man/man1/otpd.1
END
}

# The program writes them itself, so that they always match it.
write_extras() {
  [ "$with_extras" = yes ] || return 0
  extras | while IFS=: read -r arguments path; do
    file=$prefix/share/$path
    # Unquoted: two words.
    if mkdir -p "${file%/*}" 2>/dev/null && "$bin/otpd" $arguments >"$file.new" 2>/dev/null; then mv -f "$file.new" "$file"
    else rm -f "$file.new" 2>/dev/null || true
    fi
  done
}

data_directory() {
  if [ -n "${OTPD_DATA_DIR:-}" ]; then printf '%s\n' "$OTPD_DATA_DIR"
  elif [ "$(id -u)" = 0 ]; then printf '/var/lib/otpd\n'
  else printf '%s/otpd\n' "${XDG_DATA_HOME:-${HOME:-}/.local/share}"
  fi
}

config_directory() { printf '%s\n' "${OTPD_CONFIG_DIR:-${XDG_CONFIG_HOME:-${HOME:-}/.config}/otpd}"; }

rollback() {
  version=$(kept_version)
  [ -n "$version" ] || fail "There is nothing to go back to in $prefix/lib/otpd."
  back=$prefix/lib/otpd/otpd-$version
  data=$(data_directory)
  if [ -f "$data/otpd.db" ]; then
    # An older version refuses a database that a newer one has migrated.
    "$back" migrate status --data-dir "$data" >/dev/null 2>"$work/errors" ||
      fail "otpd $version cannot use the database in $data; nothing was changed." "$(sed -n 1p "$work/errors")" \
        'First restore the backup that the upgrade made: otpd restore FILE'
  fi
  new=$(mktemp "$bin/.otpd.XXXXXX" 2>/dev/null) || fail "$bin is not writable."
  cat "$back" >"$new"
  chmod 755 "$new"
  current=$(installed_version)
  if [ -n "$current" ]; then keep_installed "$current"; fi
  mv -f "$new" "$bin/otpd"
  new=
  write_extras
  printf 'otpd %s is back as %s. Restart a server that runs.\n' "$version" "$bin/otpd"
}

uninstall() {
  if [ -e "$bin/otpd" ]; then
    rm -f "$bin/otpd" || fail "$bin/otpd cannot be removed."
    # With what killed upgrades have left.
    rm -f "$prefix"/lib/otpd/otpd-* "$prefix"/lib/otpd/.new "$prefix"/lib/otpd/.otpd-*.old "$bin"/.otpd-*.new
    rmdir "$prefix/lib/otpd" 2>/dev/null || true
    extras | while IFS=: read -r _ path; do rm -f "$prefix/share/$path"; done
    printf 'Removed %s\n' "$bin/otpd"
  else
    printf '%s does not exist; nothing to do.\n' "$bin/otpd"
  fi
}

# Prints the process of a server that runs on the data directory $1, or nothing.
running_server() {
  [ -r "$1/server.json" ] || return 0
  pid=$(sed -n 's/^{"pid":\([0-9][0-9]*\),.*/\1/p' "$1/server.json")
  if [ -z "$pid" ] || ! kill -0 "$pid" 2>/dev/null; then return 0; fi
  # After a crash another program may have its number.
  if [ -r "/proc/$pid/comm" ] && [ "$(cat "/proc/$pid/comm")" != otpd ]; then return 0; fi
  printf '%s\n' "$pid"
}

# Removes the files that otpd makes, and the directories if nothing else is in them.
purge() {
  data=$(data_directory)
  config=$(config_directory)
  server=$(running_server "$data")
  [ -z "$server" ] || fail "A server runs on $data (process $server); nothing was removed." 'Stop it, and repeat.'
  if [ "$is_sure" != yes ]; then
    printf 'This removes the database, its keys, certificates and backups in %s, and the logins in %s.\nBackups in other places stay, but nothing opens them without %s. Type yes: ' "$data" "$config" "$data/master.key" >&2
    answer=
    # Not from stdin, which may be this script.
    if ! { read -r answer </dev/tty; } 2>/dev/null || [ "$answer" != yes ]; then fail 'Nothing was removed.' 'Without a terminal: --purge --yes'; fi
  fi
  uninstall
  rm -f "$data"/otpd.db "$data"/otpd.db-* "$data"/otpd.db.new* "$data"/otpd.db.restoring* "$data"/master.key "$data"/master.key.new "$data"/master.key.before-*
  rm -f "$data"/otpd.lock* "$data"/setup-token "$data"/server.json* "$data"/last-backup.json*
  rm -f "$data"/tls/account.json* "$data"/tls/certificate.json* "$data"/tls/last-failure.json*
  purge_backups "$data/backups"
  rm -f "$config"/credentials.json*
  printf 'Removed data and logins: %s, %s\n' "$data" "$config"
  for directory in "$data/tls" "$data/backups" "$data" "$config"; do
    if [ -d "$directory" ]; then rmdir "$directory" 2>/dev/null || true; fi
  done
  list_kept
}

# Removes the backups in folder $1: those that otpd named, and others with the HMAC that otpd writes.
purge_backups() {
  for mac in "$1"/*.hmac; do rm -f "${mac%.hmac}" "$mac"; done
  rm -f "$1"/otpd-*.db* "$1"/before-migration* "$1"/before-restore-*
}

# Prints what is left in the directories, which otpd did not make.
list_kept() {
  kept=$(for directory in "$data" "$config"; do
    if [ -d "$directory" ]; then find "$directory" ! -type d; fi
  done)
  [ -z "$kept" ] || note "Kept, because otpd did not make it:
$(printf '%s\n' "$kept" | sort | sed 's/^/  /')"
}

main() {
  prefix=${PREFIX:-}
  from=
  wanted=
  action=install
  unsigned=noted
  is_noted=no
  with_extras=yes
  is_sure=no
  while [ $# -gt 0 ]; do
    case $1 in
      --from | --prefix | --version)
        [ $# -gt 1 ] || fail "$1 needs a value." 'See: ./install.sh --help'
        case $1 in
          --from) from=$2 ;;
          --prefix) prefix=$2 ;;
          --version) wanted=${2#v} ;;
        esac
        shift
        ;;
      --list | --rollback | --uninstall | --purge) action=${1#--} ;;
      --allow-unsigned) unsigned=allowed ;;
      --require-signature) unsigned=refused ;;
      --no-extras) with_extras=no ;;
      -y | --yes) is_sure=yes ;;
      -h | --help)
        usage
        exit 0
        ;;
      *) fail "There is no option $1." 'See: ./install.sh --help' ;;
    esac
    shift
  done
  case $wanted in *[!0-9A-Za-z.+-]*) fail "$wanted is not a version." 'Write it like 0.2.0.' ;; esac
  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail 'HOME is not set.' 'Choose a folder: PREFIX=DIR ./install.sh'
    prefix=$HOME/.local
  fi
  case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
  bin=$prefix/bin
  url=${OTPD_DOWNLOAD_URL:-$release_url}
  url=${url%/}

  new=
  work=$(mktemp -d)
  trap 'rm -rf "$work" ${new:+"$new"}' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM

  case $action in
    list)
      [ -n "$url" ] || fail 'There is no folder of releases to list.' 'Name one: OTPD_DOWNLOAD_URL=URL ./install.sh --list'
      list_releases
      ;;
    rollback) rollback ;;
    purge) purge ;;
    uninstall)
      uninstall
      printf 'Kept data and logins: %s, %s\n' "$(data_directory)" "$(config_directory)"
      ;;
    install)
      here=$(dirname "$0")
      if [ -n "$from" ]; then install_given_file
      elif [ -z "${OTPD_DOWNLOAD_URL:-}$wanted" ] && [ -f "$here/cli/build.ts" ]; then
        build "$here"
        install_file "$here/dist/otpd" otpd
      elif [ -n "$url" ]; then install_release
      else
        fail 'There is nothing to install from.' 'In a checkout: ./install.sh' 'A release: ./install.sh --from FILE, or OTPD_DOWNLOAD_URL=URL ./install.sh'
      fi
      ;;
  esac
}

# Called last, so that the whole script is read before anything runs: a truncated download does nothing.
main "$@"
