#!/usr/bin/env bash
# Runs every fuzz target for a while, one after the other.
#
# usage: hack/fuzz.sh DURATION     such as 10s, or 10000x for a number of inputs
#
# Go would spend up to a minute, whatever DURATION says, on making each input
# that it finds of interest smaller: that is bounded by a number as well.
set -euo pipefail

duration=${1:?usage: hack/fuzz.sh DURATION}
found=$(grep -rl --include='*_test.go' '^func Fuzz' cmd pkg | xargs -r -n 1 dirname | sort -u)
for package in $found; do
	for target in $(grep -h '^func Fuzz' "$package"/*_test.go | sed -E 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/' | sort); do
		echo "fuzz: $package $target for $duration"
		if ! said=$(${GO:-go} test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 200x "./$package" 2>&1); then
			echo "$said"
			exit 1
		fi
		tail -n 1 <<<"$said"
	done
done
