#!/bin/bash
# Runs inside a booted Debian: installs, kills, upgrades and removes otpd. Prints one line for each fact: NAME=VALUE.
ready() { curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/v1/health/ready; }
until_ready() { for _ in $(seq 100); do [ "$(ready)" = 200 ] && return; sleep 0.1; done; }
unit() { systemctl show -P "$1" "${2:-otpd}"; }
quiet() { "$@" >>/root/commands.log 2>&1; }
exposure() { systemd-analyze security otpd --no-pager | grep -o 'exposure level for otpd.service: [0-9.]*' | grep -o '[0-9.]*$'; }

quiet dpkg -i /root/old.deb
echo "installed=$(systemctl is-enabled otpd) $(systemctl is-active otpd)"
echo "settings=$(stat -c '%a %U:%G' /etc/otpd/otpd.toml) $(stat -c '%a %U:%G' /etc/otpd)"

quiet systemctl enable --now otpd
until_ready
echo "started=$(ready) $(stat -c '%a %U' /var/lib/otpd)"

kill -9 "$(unit MainPID)"
sleep 0.5
until_ready
echo "killed=$(ready) restarts=$(unit NRestarts)"
quiet systemctl reload otpd
echo "reload=$?"

echo correct-horse-battery | quiet runuser -u otpd -- otpd admin create --email ada@example.com --name Ada --password-stdin --data-dir /var/lib/otpd
echo '# mine' >>/etc/otpd/otpd.toml
for _ in $(seq 400); do
  curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/v1/health/ready
  sleep 0.05
done >/root/during &
sleep 1
quiet dpkg -i /root/new.deb
echo "upgrade=$? $(dpkg-query -W -f '${Version}' otpd) $(tail -n 1 /etc/otpd/otpd.toml)"
wait
# How often calls began to be refused, and whether the last one was answered.
echo "gaps=$(sed 's/^200$/answered/; t; s/.*/refused/' /root/during | uniq | grep -c refused) $(tail -n 1 /root/during)"
echo "refused=$(grep -vc 200 /root/during) of $(wc -l </root/during)"
echo "exposure=$(exposure)"

quiet systemctl start otpd-backup
echo "backup=$(unit Result otpd-backup) $(find /var/lib/otpd/backups -name '*.db' | wc -l)"
quiet systemctl enable --now otpd-backup.timer
echo "timer=$(systemctl is-active otpd-backup.timer)"

# The drop-ins.
mkdir -p /etc/systemd/system/otpd.service.d
if [ -f /usr/share/otpd/port-443.conf ]; then
  cp /usr/share/otpd/port-443.conf /etc/systemd/system/otpd.service.d
  systemctl daemon-reload
  echo "exposure443=$(exposure)"
  rm /etc/systemd/system/otpd.service.d/port-443.conf
fi
quiet systemd-creds encrypt --with-key=host --name=otpd-master-key /var/lib/otpd/master.key /etc/otpd/master-key.cred
mv /var/lib/otpd/master.key /root/master.key
for service in otpd otpd-backup; do install -D /usr/share/otpd/credential.conf "/etc/systemd/system/$service.service.d/credential.conf"; done
systemctl daemon-reload
quiet systemctl restart otpd
until_ready
quiet systemctl start otpd-backup
echo "credential=$(ready) $(unit Result otpd-backup) $(find /var/lib/otpd -name 'master.key*' | wc -l)"
mv /root/master.key /var/lib/otpd/master.key
rm -r /etc/systemd/system/otpd.service.d /etc/systemd/system/otpd-backup.service.d /etc/otpd/master-key.cred

journalctl _SYSTEMD_UNIT=otpd.service --output cat >/root/journal
echo "log=$(grep -vc '^{"level":.*}$' /root/journal) of $(wc -l </root/journal)"

cp /etc/otpd/otpd.toml /root/otpd.toml
echo '[server' >>/etc/otpd/otpd.toml
systemctl daemon-reload
quiet systemctl restart otpd
sleep 2
echo "mistake=$(unit ActiveState) status=$(unit ExecMainStatus) restarts=$(unit NRestarts)"
cat /root/otpd.toml >/etc/otpd/otpd.toml
quiet systemctl restart otpd
until_ready

quiet dpkg -r otpd
echo "removed=$(systemctl is-active otpd) $(ls /usr/bin/otpd 2>&1 | grep -c 'No such') $(ls /etc/otpd)"
touch /etc/otpd/mine.env
dpkg -P otpd >/root/purge.log 2>&1
echo "purged=$(ls /etc/otpd) $(ls /var/lib/otpd | grep -c otpd.db$) $(grep -c 'has files of yours' /root/purge.log)"

quiet dpkg -i /root/new.deb
quiet systemctl start otpd
until_ready
echo "again=$(runuser -u otpd -- otpd admin list --data-dir /var/lib/otpd | grep -c ada@example.com)"
quiet dpkg -P otpd

# rpm finds no package of Debian, so its dependencies do not count here.
quiet rpm -i --nodeps /root/old.rpm
quiet systemctl start otpd
until_ready
quiet rpm -U --nodeps /root/new.rpm
until_ready
echo "rpm=$(ready) $(rpm -q otpd) active=$(systemctl is-active otpd)"
echo "verified=$(rpm -V --nodeps otpd | tr '\n' ';')"
quiet rpm -e --nodeps otpd
echo "erased=$(systemctl is-active otpd) $(ls /var/lib/otpd | grep -c otpd.db$)"
echo "end=yes"
systemctl poweroff
