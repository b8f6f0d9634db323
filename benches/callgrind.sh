#!/usr/bin/env bash
# Instructions per packet-hop of each scheme, everything included: set-up of the network is measured apart and subtracted.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet
count() { # scheme size -> "hops instructions"
    local out
    out=$(mktemp)
    local hops
    hops=$(valgrind --tool=callgrind --callgrind-out-file="$out" ./target/release/packet-hop --once 1 --schemes "$1" --size "$2" 2>/dev/null | awk '{print $1}')
    echo "$hops $(awk '/^(summary|totals):/ {print $2; exit}' "$out")"
    rm -f "$out"
}
for scheme in "${@:-ecmp}"; do
    read -r base_hops base_instructions < <(count "$scheme" 4KiB)
    read -r hops instructions < <(count "$scheme" 1MiB)
    echo "$scheme: $(((instructions - base_instructions) / (hops - base_hops))) instructions per packet-hop," \
        "$((instructions / hops)) with set-up ($hops packet-hops)"
done
