# shellcheck shell=bash disable=SC2034,SC2317 # the scripts that source it use what is here
# What the tests of the OpenAPI document share. Sourced by lint/run, clients/run and
# schemathesis/run.

# The folder of what was downloaded before. It may be removed at any time.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oncelog-ci

# A folder for this run, removed at its end.
tmp=$(mktemp -d)
server=
trap 'stop_server; rm -rf -- "$tmp"' EXIT

# build_server builds the program, and puts its path into $oncelog. It must be called from
# the root of the module. With ONCELOG_BINARY set, that program is taken as it is.
build_server() {
  oncelog=${ONCELOG_BINARY:-}
  if [[ -z $oncelog ]]; then
    oncelog=$tmp/oncelog
    go build -o "$oncelog" ./cmd/oncelog
  fi
}

# start_server [FLAG...] starts it on a free port with the store in $tmp/data, and puts its
# URL into $url.
start_server() {
  local i
  "$oncelog" serve --data "$tmp/data" --listen 127.0.0.1:0 --listen-file "$tmp/url" "$@" >"$tmp/server.log" 2>&1 &
  server=$!
  for ((i = 0; i < 300; i++)); do
    if [[ -s $tmp/url ]]; then
      url=$(<"$tmp/url")
      return
    fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  echo "the server does not start:"
  cat "$tmp/server.log"
  return 1
}

stop_server() {
  [[ -n $server ]] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}

# cached NAME FILE COMMAND... prints the path of a folder that COMMAND FOLDER has filled.
# It is filled once for each content of FILE.
cached() {
  local name=$1 file=$2 dir
  shift 2
  dir=$cache/$name-$(sha256sum "$file" | cut -c 1-16)
  if [[ ! -e $dir/.complete ]]; then
    rm -rf -- "$dir"
    mkdir -p "$dir"
    "$@" "$dir" >&2
    touch "$dir/.complete"
  fi
  printf '%s\n' "$dir"
}

# python_packages REQUIREMENTS prints the path of a virtual environment with them.
python_packages() {
  cached python "$1" install_python "$1"
}

install_python() {
  python3 -m venv "$2"
  "$2/bin/pip" install -q --disable-pip-version-check --no-deps -r "$1"
}

# npm_packages FOLDER prints the path of a folder with the node_modules of its lock file.
npm_packages() {
  cached npm "$1/package-lock.json" install_npm "$1"
}

install_npm() {
  cp "$1/package.json" "$1/package-lock.json" "$2/"
  npm ci --prefix "$2" --ignore-scripts --no-audit --no-fund --loglevel=error
}
