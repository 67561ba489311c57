#!/bin/sh
# Pack the digits example, verify it, replay it in a fresh environment, verify it again,
# and see the verifier say no to altered copies.
#
# usage: demo.sh BIN RESULTS
#   BIN      folder with python and reprobundle
#   RESULTS  folder for the bundle; made when missing
#
# Ends with 0 only when every step ended as it should and the last verdict is REPRODUCED.
set -eu

mkdir -p "$2"
PATH="$(cd "$1" && pwd):$PATH"
bundle="$(cd "$2" && pwd)/digits.rpb.zip"
export PATH
cd "$(dirname "$0")/digits"

# step STATUS COMMAND…: show and run a command that has to end with STATUS.
step() {
  expected=$1
  shift
  printf '\n$ %s\n' "$*"
  status=0
  "$@" || status=$?
  if [ "$status" -ne "$expected" ]; then
    echo "demo failed: '$*' ended with $status, expected $expected" >&2
    exit 1
  fi
}

rm -f "$bundle"
step 0 reprobundle pack --project . -o "$bundle" --seed 7 --policy policy.json \
  -- python train.py --device cpu
# A bundle that nobody has replayed is intact but not reproduced: 11, not 0.
step 11 reprobundle verify "$bundle"
echo "(status 11: intact, not yet replayed)"
step 0 reprobundle replay "$bundle" --env fresh --yes
step 0 reprobundle verify "$bundle"
step 0 reprobundle selftest "$bundle"
printf '\nREPRODUCED (status 0). The bundle is %s\n' "$bundle"
