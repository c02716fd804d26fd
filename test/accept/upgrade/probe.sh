#!/bin/bash
# Runs inside a booted Debian: upgrades otpd as an operator does, while calls come from outside. Prints one line for each
# fact: NAME=VALUE. The host shares the network, and waits for the files /root/ready and /root/upgraded.
. /root/settings
ready() { curl -s -o /dev/null -w '%{http_code}' "$URL/v1/health/ready"; }
until_ready() { for _ in $(seq 300); do [ "$(ready)" = 200 ] && return; sleep 0.1; done; }
until_there() { for _ in $(seq 1200); do [ -e "$1" ] && return; sleep 0.1; done; }
quiet() { "$@" >>/root/commands.log 2>&1; }
pid() { systemctl show -P MainPID otpd; }
version() { otpd version | cut -d ' ' -f 2; }
# upgrade NAME: upgrades from the folder of that name. Prints exit code, version, whether the server is another process, its
# readiness, and the code of the error.
upgrade() {
  local before code
  before=$(pid)
  echo "== $1" >>/root/commands.log
  otpd upgrade --from "/root/releases/$1" --json >/root/result 2>&1
  code=$?
  cat /root/result >>/root/commands.log
  echo "$1=$code $(version) $([ "$(pid)" = "$before" ] && echo same || echo restarted) $(ready) $(grep -o '"code":"[A-Z_]*"' /root/result | cut -d '"' -f 4)"
}

# A small disk for the program: it has no room for a second one.
quiet mount -t tmpfs -o size=220M,mode=0755 tmpfs /usr/local
quiet install -D -m 0755 /root/otpd /usr/local/bin/otpd
quiet useradd --system --shell /usr/sbin/nologin otpd
quiet install -D -m 0644 /root/otpd.toml /etc/otpd/otpd.toml
quiet install -m 0644 /root/otpd.service /etc/systemd/system/otpd.service
quiet systemctl enable --now otpd
until_ready
echo correct horse battery | quiet runuser -u otpd -- otpd admin create --email ada@example.com --name Ada --password-stdin --data-dir /var/lib/otpd
echo "started=$(ready) $(version)"
touch /root/ready
until_there /root/loaded

upgrade full
echo "left=$(ls -A /usr/local/bin | tr '\n' ' ')$(ls -A /usr/local/lib/otpd 2>/dev/null)"
quiet mount -o remount,size=1G /usr/local
upgrade cut
upgrade forged
upgrade unsigned
upgrade refusing
upgrade good
echo "kept=$(ls /usr/local/lib/otpd) $(find /var/lib/otpd/backups -name '*.db' | wc -l) $(stat -c %U /var/lib/otpd/backups)"
upgrade good >/root/second
echo "again=$(cut -d '=' -f 2 /root/second)"
quiet otpd doctor
echo "failures=$(journalctl _SYSTEMD_UNIT=otpd.service --output cat | grep -c '"level":"error"')"
touch /root/upgraded
until_there /root/checked
echo "end=yes"
systemctl poweroff
