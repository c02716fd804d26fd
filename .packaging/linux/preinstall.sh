#!/bin/sh
# Creates the user before its files are unpacked, as sysusers.conf does on systems that have it.
set -e
getent group otpd >/dev/null || groupadd --system otpd
getent passwd otpd >/dev/null ||
  useradd --system --gid otpd --comment 'otpd server' --home-dir /var/lib/otpd --no-create-home --shell /usr/sbin/nologin otpd
