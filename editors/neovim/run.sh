#!/bin/sh
# Runs session.lua in Neovim without a screen, and compares what it prints with session.txt; with -update it
# writes session.txt. The first argument is the program espalier.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/crds"
cat > "$folder/crds/webs.yaml" <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: webs.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Web, plural: webs}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [image]
            properties:
              image: {type: string, description: The image to run.}
              replicas: {type: integer, minimum: 1}
              policy: {type: string, enum: [Always, Never]}
YAML
cat > "$folder/web.yaml" <<'YAML'
apiVersion: example.com/v1
kind: Web
metadata:
  name: shop
spec:
  image: shop:1
  replcas: 3
  policy: Alwys
YAML
ESPALIER="$program" ESPALIER_SESSION="$folder" nvim --headless --clean -n -u NONE -i NONE -c "luafile $here/session.lua" > "$folder/out.txt" 2> "$folder/err.txt" ||
  { cat "$folder/out.txt" "$folder/err.txt"; exit 1; }
if [ "${2:-}" = -update ]; then
  cp "$folder/out.txt" "$here/session.txt"
else
  diff "$here/session.txt" "$folder/out.txt"
fi
cat "$folder/out.txt"
