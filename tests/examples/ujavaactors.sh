#!/bin/bash
# ujavaactors.sh - the article's examples print and check its figures: one by one, then all at once (UJ-43).
examples=(command producer_consumer map_reduce virus_scan countdown)
directory=${TROUPE_BUILDDIR:?}/examples
failed=0
for example in "${examples[@]}"; do
    if output=$(timeout 60 "$directory/$example" 2>&1); then
        # UJ-28, UJ-31, UJ-33, UJ-30, UJ-34, UJ-35, UJ-36, UJ-38, UJ-39, UJ-41, TRP-01, UJ-42
        echo "PASS ${example}_finds_its_figures"
    else
        echo "FAIL ${example}_finds_its_figures"
        echo "$output" | tail -5
        failed=1
    fi
done
pids=()
for example in "${examples[@]}"; do
    timeout 60 "$directory/$example" >/dev/null 2>&1 &
    pids+=($!)
done
together=0
for pid in "${pids[@]}"; do
    wait "$pid" || together=1
done
if [ "$together" = 0 ]; then
    # UJ-43
    echo "PASS all_at_once"
else
    echo "FAIL all_at_once"
    failed=1
fi
exit $failed
