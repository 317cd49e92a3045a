#!/usr/bin/env bash
# test.sh [GO-TEST-FLAG...]: runs what is behind the build tag kubernetes on the real parts that assets.sh has built. It fails where a test fails, and where one is
# skipped: SLUICE_KUBE_SKIP names tests that may be, as a regular expression of their whole names.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
GO=${GO:-go}
SLUICE_KUBE_ASSETS=$("$here/assets.sh" where)
export SLUICE_KUBE_ASSETS SLUICE_KUBE=require
log=$(mktemp)
trap '[ "${status:-1}" = 0 ] && rm -f "$log"' EXIT

# One package at a time: each has a control plane of its own.
set +e
"$GO" test -tags "kubernetes ${TAGS:-}" -count=1 -p 1 -timeout 20m -v "$@" \
	./internal/edge/cluster/... ./internal/edge/executor/kubernetes/... ./internal/edge/inventory/kubernetes/... ./internal/face/operator/... ./internal/lab/live/kubernetes/... ./test/kube/... 2>&1 |
	tee "$log" | grep --line-buffered -vE '^(=== |\s*--- PASS|PASS$|\s+\S+_test\.go:[0-9]+: (rapid|\[rapid\])|\s+\S+\.go:[0-9]+: time=.* level=INFO|[IWE][0-9]{4} [0-9:.]+ +[0-9]+ \S+\.go:)'
status=${PIPESTATUS[0]}
set -e

passed=$(grep -cE '^--- PASS' "$log" || true)
skipped=$(sed -n 's/^ *--- SKIP: \([^ ]*\).*/\1/p' "$log" | { grep -vxE "${SLUICE_KUBE_SKIP:-}" || true; } | sort -u)
echo "kube: $passed tests passed on $SLUICE_KUBE_ASSETS"
if [ -n "$skipped" ]; then
	printf 'kube: skipped, though nobody said so (SLUICE_KUBE_SKIP names what may be):\n%s\n' "$skipped" >&2
	status=1
fi
if [ "$passed" = 0 ]; then echo "kube: no test ran" >&2; status=1; fi
[ "$status" = 0 ] || echo "kube: all that was said is in $log" >&2
exit "$status"
