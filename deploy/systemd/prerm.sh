#!/bin/sh
# Before the package espalier-server is removed, not before it is upgraded.
set -e
[ -d "${DPKG_ROOT:-}/run/systemd/system" ] || exit 0
case "$1" in
remove | 0) systemctl --quiet disable --now espalier.service ;;
esac
