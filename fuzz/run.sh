#!/usr/bin/env bash
# Fuzzes targets one after the other, without cargo-fuzz: fuzz/run.sh -runs=10000000 goal claims; all targets if none is named.
# Options of libFuzzer come first. A new corpus grows in fuzz/corpus, what brings a target down lies in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")"

# What cargo-fuzz passes, but for the address sanitizer: all code is safe Rust, and runs several times as fast without it.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-trace-compares \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
RUSTFLAGS="$coverage --cfg fuzzing -Cdebug-assertions" \
  cargo +nightly build --quiet --release --target x86_64-unknown-linux-gnu

options=() targets=()
for word in "$@"; do
  if [[ $word == -* ]]; then options+=("$word"); else targets+=("$word"); fi
done
if [ ${#targets[@]} = 0 ]; then targets=($(basename -s .rs fuzz_targets/*.rs)); fi

# Most readers take a file by its name: in memory, writing it costs little.
if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
failed=()
for target in "${targets[@]}"; do
  echo "$target"
  mkdir -p "corpus/$target" "artifacts/$target"
  "target/x86_64-unknown-linux-gnu/release/$target" -max_len=2048 -timeout=60 -print_final_stats=1 "${options[@]}" \
    -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" || failed+=("$target")
done
if [ ${#failed[@]} != 0 ]; then
  echo "found in fuzz/artifacts, to be run again by fuzz/target/x86_64-unknown-linux-gnu/release/TARGET FILE: ${failed[*]}" >&2
  exit 1
fi
