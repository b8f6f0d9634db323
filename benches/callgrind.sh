#!/usr/bin/env bash
# Usage: callgrind.sh [--flow-control lossy|pfc|credits] [SCHEME]...
# Instructions per packet-hop of each scheme, everything included: set-up of the network is measured apart and subtracted.
set -euo pipefail
cd "$(dirname "$0")/.."
# The same features as in `make build`, or every dependency would be compiled again.
cargo build --release --quiet --workspace --bins
flow_control=lossy
if [ "${1:-}" = --flow-control ]; then
    flow_control=$2
    shift 2
fi
count() { # scheme size -> "hops instructions"
    local out
    out=$(mktemp)
    local hops
    hops=$(valgrind --tool=callgrind --callgrind-out-file="$out" ./target/release/packet-hop --once 1 --schemes "$1" --size "$2" --flow-control "$flow_control" 2>/dev/null | awk '{print $1}')
    echo "$hops $(awk '/^(summary|totals):/ {print $2; exit}' "$out")"
    rm -f "$out"
}
for scheme in "${@:-ecmp}"; do
    read -r base_hops base_instructions < <(count "$scheme" 4KiB)
    read -r hops instructions < <(count "$scheme" 1MiB)
    echo "$scheme, $flow_control: $(((instructions - base_instructions) / (hops - base_hops))) instructions per packet-hop," \
        "$((instructions / hops)) with set-up ($hops packet-hops)"
done
