#!/bin/sh
# Installs Flowstone from a release: checks the archive's SHA-256, and copies the program, its pages and its completions.
#
#   sh install.sh --from https://downloads.example.com/flowstone/0.1.0
#   sh install.sh --from ./dist --prefix /usr/local
set -eu

usage() {
  cat << 'TEXT'
usage: install.sh --from URL|DIR [--prefix DIR] [--target TARGET]

  --from URL|DIR   where the release is: its archives and SHA256SUMS [or FLOWSTONE_RELEASE]
  --prefix DIR     where to install [default: $HOME/.local]
  --target TARGET  the archive to take, such as x86_64-unknown-linux-musl [default: of this machine]
TEXT
}

fail() {
  printf 'error: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then printf '  hint: %s\n' "$2" >&2; fi
  exit 1
}

from="${FLOWSTONE_RELEASE:-}"
prefix="${HOME:-}/.local"
target=""
while [ $# -gt 0 ]; do
  case "$1" in
    --from | --prefix | --target)
      if [ $# -lt 2 ]; then fail "$1 has no value"; fi
      case "$1" in
        --from) from="$2" ;;
        --prefix) prefix="$2" ;;
        --target) target="$2" ;;
      esac
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done
if [ -z "$from" ]; then
  usage >&2
  exit 2
fi

if [ -z "$target" ]; then
  system="$(uname -s)"
  if [ "$system" != Linux ]; then
    fail "there are archives for Linux only, and this is $system" "build from source: cargo install --path ."
  fi
  case "$(uname -m)" in
    x86_64 | amd64) target=x86_64-unknown-linux-musl ;;
    aarch64 | arm64) target=aarch64-unknown-linux-musl ;;
    *) fail "there is no archive for $(uname -m)" "build from source: cargo install --path ." ;;
  esac
fi

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# Copies a file of the release into the scratch folder.
fetch() {
  case "$from" in
    https://* | http://127.0.0.1:* | http://localhost:*)
      if command -v curl > /dev/null; then
        curl --fail --silent --show-error --location --output "$folder/$1" "$from/$1"
      elif command -v wget > /dev/null; then
        wget --quiet --output-document "$folder/$1" "$from/$1"
      else
        fail "neither curl nor wget is installed"
      fi
      ;;
    http://*) fail "$from is not encrypted" "use https" ;;
    *) cp "$from/$1" "$folder/$1" ;;
  esac || fail "$from/$1 cannot be had"
}

fetch SHA256SUMS
archive="$(sed -n "s/^[0-9a-f]\{64\} [ *]\(flowstone-[0-9A-Za-z.+-]*-$target\.tar\.gz\)\$/\1/p" "$folder/SHA256SUMS")"
case "$archive" in
  "") fail "the release has no archive for $target" "SHA256SUMS lists what it has" ;;
  *"
"*) fail "the release has several archives for $target" ;;
esac
fetch "$archive"
expected="$(grep " [ *]$archive\$" "$folder/SHA256SUMS" | cut -d ' ' -f 1)"
if command -v sha256sum > /dev/null; then
  found="$(sha256sum "$folder/$archive" | cut -d ' ' -f 1)"
elif command -v shasum > /dev/null; then
  found="$(shasum -a 256 "$folder/$archive" | cut -d ' ' -f 1)"
else
  fail "neither sha256sum nor shasum is installed, and nothing is installed unchecked"
fi
if [ "$expected" != "$found" ]; then
  fail "$archive has the SHA-256 $found, and SHA256SUMS says $expected" "download it again; if that does not help, do not use it"
fi

mkdir "$folder/out"
tar -xzf "$folder/$archive" -C "$folder/out" --strip-components=1
# The program runs here, before it replaces one that does.
"$folder/out/bin/flowstone" --version > "$folder/version" || fail "the program in $archive does not run on this machine"
mkdir -p "$prefix/bin" "$prefix/share"
cp "$folder/out/bin/flowstone" "$prefix/bin/flowstone.new"
chmod 755 "$prefix/bin/flowstone.new"
mv "$prefix/bin/flowstone.new" "$prefix/bin/flowstone"
if [ -d "$folder/out/share" ]; then cp -R "$folder/out/share/." "$prefix/share/"; fi

printf 'installed %s in %s\n' "$(cat "$folder/version")" "$prefix/bin/flowstone"
case ":${PATH:-}:" in
  *":$prefix/bin:"*) ;;
  *) printf 'add %s to your PATH\n' "$prefix/bin" ;;
esac
