#!/usr/bin/env bash
# Installs espalier for the GitHub Action: downloads the archive of a release and compares its
# checksum before anything of it is unpacked, or builds the action's own commit with Go.
#
# From the environment:
#   ESPALIER_VERSION   the release, such as v0.1.0; empty: that of the action
#   ESPALIER_REF       what the workflow pins the action to: a tag or a commit
#   ESPALIER_CHECKSUM  SHA-256 of the archive; empty: what SHA256SUMS of the release says
#   ESPALIER_SOURCE    true: build it
#   ESPALIER_RELEASES  where releases are; for mirrors and tests
# and what runners set: GITHUB_ACTION_PATH, GITHUB_OUTPUT, GITHUB_PATH, RUNNER_TEMP, RUNNER_OS,
# RUNNER_ARCH. It must run with bash 3.2, which is that of macOS.
set -euo pipefail

# Runners read each line as a command: a value with a line end must not begin another one.
fail() {
  local text=$*
  text=${text//'%'/%25}
  text=${text//$'\r'/%0D}
  printf '::error title=espalier::%s\n' "${text//$'\n'/%0A}"
  exit 1
}

platform() {
  case "${RUNNER_OS:-$(uname -s)}" in
    Linux) system=linux ;;
    macOS | Darwin) system=darwin ;;
    Windows | MINGW* | MSYS* | CYGWIN*) system=windows ;;
    *) fail "there is no release for ${RUNNER_OS:-$(uname -s)}. Set the input source to \"true\" to build it." ;;
  esac
  case "${RUNNER_ARCH:-$(uname -m)}" in
    X64 | x86_64 | amd64) machine=amd64 ;;
    ARM64 | arm64 | aarch64) machine=arm64 ;;
    *) fail "there is no release for ${RUNNER_ARCH:-$(uname -m)}. Set the input source to \"true\" to build it." ;;
  esac
  program=espalier
  if [ "$system" = windows ]; then program=espalier.exe; fi
}

# The release is the input, or the action's tag, or, where a commit is pinned, the release that
# the modules of that commit name.
choose_version() {
  version=${ESPALIER_VERSION:-}
  if [ -z "$version" ]; then
    case "${ESPALIER_REF:-}" in
      v[0-9]*.[0-9]*.[0-9]*) version=$ESPALIER_REF ;;
      *) version=$(sed -n 's|^[[:space:]]*github.com/espalier-dev/espalier \(v[^ ]*\).*$|\1|p' "$GITHUB_ACTION_PATH/cmd/go.mod" | head -n 1) ;;
    esac
  fi
  version=v${version#v}
  # It becomes part of a URL and of paths.
  if ! [[ "$version" =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
    fail "the version must be a release such as v0.1.0, not $version"
  fi
}

# fetch URL FILE
fetch() {
  local only=()
  case "$1" in https://*) only=(--proto '=https' --tlsv1.2) ;; esac
  curl --silent --show-error --fail --location --retry 3 ${only[@]+"${only[@]}"} --output "$2" "$1"
}

checksum() {
  if command -v sha256sum > /dev/null; then
    sha256sum "$1"
  else
    shasum -a 256 "$1"
  fi | cut -d ' ' -f 1 | tr -d '\\' # a backslash begins the line of a name with backslashes
}

download() {
  choose_version
  local base="espalier_${version#v}_${system}_${machine}" archive expected actual
  archive=$base.tar.gz
  if [ "$system" = windows ]; then archive=$base.zip; fi
  local from="${ESPALIER_RELEASES:-https://github.com/espalier-dev/espalier/releases/download}/$version"
  local advice="Set the input version to a release that has it, or the input source to \"true\" to build the action's own commit."
  if ! fetch "$from/$archive" "$work/$archive"; then
    fail "the download of $from/$archive failed: is there a release $version? $advice"
  fi
  expected=${ESPALIER_CHECKSUM:-}
  if [ -z "$expected" ]; then
    if ! fetch "$from/SHA256SUMS" "$work/SHA256SUMS"; then
      fail "the download of $from/SHA256SUMS failed. $advice"
    fi
    expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$work/SHA256SUMS")
    if [ -z "$expected" ]; then fail "SHA256SUMS of $version has no line for $archive. $advice"; fi
  fi
  actual=$(checksum "$work/$archive")
  if [ "$expected" != "$actual" ]; then
    fail "the SHA-256 of $archive is $actual and not $expected: it is not installed"
  fi
  mkdir "$work/unpacked"
  if [ "$system" = windows ]; then
    unzip -q "$work/$archive" -d "$work/unpacked"
  else
    tar -xzf "$work/$archive" -C "$work/unpacked"
  fi
  mkdir -p "$into"
  mv "$work/unpacked/$base/$program" "$into/$program"
}

build() {
  command -v go > /dev/null || fail "Go is missing: it builds espalier"
  mkdir -p "$into"
  (cd "$GITHUB_ACTION_PATH" && GOWORK="$GITHUB_ACTION_PATH/go.work" GOBIN="$into" CGO_ENABLED=0 go install ./cmd/espalier)
}

temporary=${RUNNER_TEMP:-${TMPDIR:-/tmp}}
work=$(mktemp -d "$temporary/espalier.XXXXXX")
trap 'rm -rf "$work"' EXIT
into=$temporary/espalier-bin
rm -rf "$into" # of an earlier step, perhaps with another version
platform
case "${ESPALIER_SOURCE:-}" in
  true) build ;;
  "" | false) download ;;
  *) fail "the input source must be \"true\" or \"false\", not $ESPALIER_SOURCE" ;;
esac
printf '%s\n' "$into" >> "$GITHUB_PATH"
printf 'program=%s\n' "$into/$program" >> "$GITHUB_OUTPUT"
"$into/$program" --version
