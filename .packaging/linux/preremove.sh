#!/bin/sh
# Called with "upgrade" by dpkg and with 1 by rpm if another version follows.
set -e
case ${1:-} in upgrade | 1) exit 0 ;; esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now otpd.service otpd-backup.timer
