#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
# "purge" comes from dpkg. Settings may name keys without which the data cannot be read: only the package's own files go.
[ "${1:-}" = purge ] || exit 0
for folder in /etc/otpd /var/lib/otpd; do
  rmdir "$folder" 2>/dev/null || [ ! -d "$folder" ] || echo "otpd: $folder has files of yours, such as data or keys, and stays. Remove it yourself if you no longer need it." >&2
done
