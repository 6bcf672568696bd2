#!/usr/bin/env bash
# Builds inductoscope-VERSION.vsix: the bundled extension and a pure-Python copy of the language server.
#   PYTHON   interpreter whose pip fetches the Python packages (default python3)
set -euo pipefail
cd "$(dirname "$0")"
PYTHON="${PYTHON:-python3}"
LARGEST_KIB=5120
version="$(node -p 'require("./package.json").version')"
vsix="inductoscope-$version.vsix"

fetch() { "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target bundled/libs "$@"; }

[ -d node_modules ] || npm ci --no-audit --no-fund --loglevel=error

rm -rf bundled "$vsix"
fetch --only-binary :all: --platform any --implementation py --abi none --python-version 3.10 -r bundle/requirements.txt
fetch ..
cp bundle/main.py bundled/libs/__main__.py
rm -rf bundled/libs/bin
find bundled/libs -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
find bundled/libs -name direct_url.json -delete # names the folder it was built in
if compiled="$(find bundled/libs -name '*.so' -o -name '*.pyd' -o -name '*.dylib' | grep .)"; then
  echo "compiled files cannot travel in an extension for all platforms: $compiled" >&2
  exit 1
fi

cp ../LICENSE LICENSE
trap 'rm -f LICENSE' EXIT
npx --no-install vsce package --no-dependencies --allow-missing-repository --out "$vsix" >/dev/null

kib="$(du -k --apparent-size "$vsix" | cut -f1)"
if [ "$kib" -gt "$LARGEST_KIB" ]; then
  echo "$vsix is $kib KiB, more than the $LARGEST_KIB KiB that it may have" >&2
  exit 1
fi
echo "$vsix ($kib KiB)"
