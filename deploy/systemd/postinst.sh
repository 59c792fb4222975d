#!/bin/sh
# After the installation of the package espalier-server: systemd reads the unit. An upgrade restarts a
# server that runs; a first installation starts nothing, since the server has no certificates yet.
# Debian says "configure" and the version before, RPM the number of versions that are installed.
set -e
[ -d "${DPKG_ROOT:-}/run/systemd/system" ] || exit 0
systemctl daemon-reload
case "$1:$2" in
configure: | 1:) ;;
*) systemctl try-restart espalier.service ;;
esac
