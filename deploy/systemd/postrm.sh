#!/bin/sh
# After the package espalier-server is removed: systemd forgets the unit.
set -e
[ -d "${DPKG_ROOT:-}/run/systemd/system" ] || exit 0
systemctl daemon-reload
