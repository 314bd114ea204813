#!/usr/bin/env bash
# Tests of the verbs transport on the software NIC of ci/softnic: the NIC itself, the conformance suite on each profile
# that the transport starts on, the contract and litmus between processes, and the proof that a device which keeps
# less order than is believed is found out.
#   ci/test-softnic [--soak]     --soak: many seeds
# CONFORMANCE, CONTRACT, OXSHMEM and SOFTNIC name programs and library that are built already; else it builds them.
# Prints each stage with its time; the exit status is 0 if all passed.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
seeds="1 2"
[ "${1:-}" != --soak ] || seeds=$(seq 3 8)
if [ -z "${SOFTNIC:-}" ]; then
  CONFORMANCE=$(ci/tests --paths transport/verbs conformance)
  CONTRACT=$(ci/tests --paths core/oxshmem contract)
  OXSHMEM=$target/debug/oxshmem SOFTNIC=$target/debug/libsoftnic.so
  ci/stage "the software NIC" 60 ci/tests ci/softnic -- -q
fi
export CONFORMANCE CONTRACT OXSHMEM
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$SOFTNIC" "$folder/libibverbs.so.1"
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# conforms PROFILE...: the conformance suite between two devices, by each seed.
conforms() {
  local profile seed
  for profile in "$@"; do
    for seed in $seeds; do
      OXSHMEM_SOFTNIC="2*$profile" OXSHMEM_SOFTNIC_SEED=$seed "$CONFORMANCE" --ignored --exact two_ports_conform \
        >"$folder/log" 2>&1 || {
        grep -aE 'FAILED|panicked' "$folder/log" | head -n 20
        echo "that was OXSHMEM_SOFTNIC=2*$profile OXSHMEM_SOFTNIC_SEED=$seed"
        return 1
      }
    done
  done
}
# contract PROFILE PES PARTS: cases of the contract whose names have one of PARTS in them, all PEs by verbs.
contract() {
  local profile=$1 pes=$2
  OXSHMEM_SOFTNIC="2*$profile" OXSHMEM_TRANSPORT=verbs timeout -k 5 120 "$OXSHMEM" run -n "$pes" -- \
    env CONTRACT_ONLY="$3" CONTRACT_PROGRAM=cases-hosts \
    "$CONTRACT" --ignored --exact programs::pe --nocapture --test-threads 1 >"$folder/log" 2>&1 </dev/null &&
    [ "$(grep -ac '^CONTRACT [0-9]* all [0-9]* cases$' "$folder/log")" = "$pes" ]
}
# contracts PROFILE PES PARTS: the same by each seed.
contracts() {
  local seed
  for seed in $seeds; do
    OXSHMEM_SOFTNIC_SEED=$seed contract "$@" || {
      grep -aE 'error|panicked|lost' "$folder/log" | head -n 20
      echo "that was OXSHMEM_SOFTNIC=2*$1 OXSHMEM_SOFTNIC_SEED=$seed"
      return 1
    }
  done
}
# A transport that believes in an order which the device does not keep breaks each of these rules by one of a few seeds.
bites() {
  local rule seed
  for rule in signals::m22_the_signal_comes_after_its_data order::m17_fence order::m20_m21_put_quiet; do
    for seed in $(seq 1 30); do
      OXSHMEM_VERBS_IN_ORDER=on OXSHMEM_SOFTNIC_SEED=$seed contract cx6-ar:skew=2000 2 "$rule" || break
      [ "$seed" -lt 30 ] || { echo "$rule holds on a device without order" && return 1; }
    done
    grep -qa panicked "$folder/log" || { tail -n 20 "$folder/log" && return 1; }
    echo "$rule: broken by seed $seed"
  done
}
litmus() { # PROFILE RUNS
  OXSHMEM_SOFTNIC="2*$1" OXSHMEM_TRANSPORT=verbs timeout -k 5 120 "$OXSHMEM" run -n 4 -- "$OXSHMEM" litmus --runs "$2" \
    </dev/null >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" && return 1; }
}

echo "== the proof that the NIC bites"
bites
parts=order::,signals::,atomics::,nbi::,collectives::
for profile in strict cx6 cx6-ar cx8 relaxed-only small; do
  echo "== $profile"
  conforms "$profile"
done
for profile in strict cx6-ar cx8 cx6; do
  echo "== the contract, $profile"
  contracts "$profile" 2 "$parts"
  contracts "$profile" 4 order::,signals::
done
echo "== litmus"
litmus cx6-ar 3
litmus strict 3
echo "== ci/test-softnic: $SECONDS s, ok"
