#!/usr/bin/env bash
# Makes the archives of a release, their checksums, and a Debian package, in the folder `dist` or the one that is named.
# Builds for each target whose toolchain is installed; for aarch64, `aarch64-linux-musl-gcc` or `aarch64-linux-gnu-gcc` links.
#
#   packaging/release.sh [DIR]
#
# FLOWSTONE_PROGRAM=FILE packs a program that is already built, for this machine's target.
set -euo pipefail
cd "$(dirname "$0")/.."

dist="${1:-dist}"
mkdir -p "$dist"
dist="$(cd "$dist" && pwd)"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
target_dir="${CARGO_TARGET_DIR:-target}"

# Packs a program as flowstone-VERSION-TARGET.tar.gz. The same files give the same archive.
pack() {
  local program="$1" target="$2" name="flowstone-$version-$2" work
  work="$(mktemp -d)"
  mkdir -p "$work/$name/bin" "$work/$name/share/man/man1" "$work/$name/share/flowstone"
  install -m 755 "$program" "$work/$name/bin/flowstone"
  cp LICENSE README.md CHANGELOG.md "$work/$name/"
  cp -R flows packaging/flowstone.service "$work/$name/share/flowstone/"
  if runs "$program"; then extras "$program" "$work/$name/share"; fi
  tar --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" \
    | gzip -n > "$dist/$name.tar.gz"
  rm -rf "$work"
  echo "packed $name.tar.gz"
}

runs() { "$1" --version > /dev/null 2>&1; }

# Adds what a program prints about itself: manual pages and completions.
extras() {
  local program="$1" share="$2"
  "$program" docs man --to "$share/man/man1" > /dev/null 2>&1
  mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
  "$program" completions bash > "$share/bash-completion/completions/flowstone"
  "$program" completions zsh > "$share/zsh/site-functions/_flowstone"
  "$program" completions fish > "$share/fish/vendor_completions.d/flowstone.fish"
}

if [ -n "${FLOWSTONE_PROGRAM:-}" ]; then
  pack "$FLOWSTONE_PROGRAM" "$(rustc -vV | sed -n 's/^host: //p')"
else
  for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
    if ! ls "$(rustc --print sysroot)/lib/rustlib/$target" > /dev/null 2>&1; then
      echo "left out, because its standard library is not installed: $target (rustup target add $target)"
      continue
    fi
    cargo build --profile dist --locked --target "$target"
    pack "$target_dir/$target/dist/flowstone" "$target"
  done
  if cargo deb --version > /dev/null 2>&1; then
    cargo build --profile dist --locked
    extras "$target_dir/dist/flowstone" "$target_dir/dist/share"
    cargo deb --no-build --profile dist --output "$dist/"
  else
    echo "left out, because cargo-deb is not installed: the Debian package (cargo install cargo-deb)"
  fi
fi
cp packaging/install.sh "$dist/"
(cd "$dist" && sha256sum -- *.tar.gz *.deb 2> /dev/null > SHA256SUMS || sha256sum -- *.tar.gz > SHA256SUMS)
echo "wrote $dist/SHA256SUMS"
