#!/usr/bin/env bash
# machine.sh [GO-TEST-FLAG...]: runs test/kube/machine, Sluice's Pods on a real kubelet with containerd and runc beside a real control plane. It takes root. Where the machine
# does not allow it that is a failure, or with SLUICE_MACHINE=optional a line that says why.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
GO=${GO:-go}
export GO
optional=
[ "${SLUICE_MACHINE:-}" != optional ] || optional=1
if [ -n "$optional" ] && [ "$(id -u)" != 0 ]; then
	echo "kubelet: left out, as SLUICE_MACHINE=optional allows: it takes root, and this is user $(id -u)"
	exit 0
fi
"$here/assets.sh" machine || { [ -n "$optional" ] && echo "kubelet: left out, as SLUICE_MACHINE=optional allows: see above what could not be had" && exit 0; exit 1; }
SLUICE_KUBE_ASSETS=$("$here/assets.sh" where)
export SLUICE_KUBE_ASSETS
[ -n "$optional" ] || export SLUICE_KUBE=require
log=$(mktemp)
trap '[ "${status:-1}" = 0 ] && rm -f "$log"' EXIT

set +e
"$GO" test -tags "kubernetes machine s3" -count=1 -timeout 15m -v "$@" ./test/kube/machine 2>&1 |
	tee "$log" | grep --line-buffered -vE '^(=== |\s*--- PASS|PASS$|\s+\S+\.go:[0-9]+: time=.* level=INFO|[IWE][0-9]{4} [0-9:.]+ +[0-9]+ \S+\.go:)'
status=${PIPESTATUS[0]}
set -e

echo "kubelet: $(grep -cE '^--- PASS' "$log" || true) tests passed on a real machine"
skipped=$(grep -cE '^ *--- SKIP' "$log" || true)
if [ "$skipped" != 0 ]; then
	echo "kubelet: $skipped were skipped, with the reason above" >&2
	[ -n "$optional" ] || status=1
fi
[ "$status" = 0 ] || echo "kubelet: all that was said is in $log" >&2
exit "$status"
