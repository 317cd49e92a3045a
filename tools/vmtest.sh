#!/usr/bin/env bash
# Runs test/vm: the supervisor and the executor on a kernel with cgroup v2, in an emulated machine. It needs
# qemu-system-x86_64 and a kernel image with its drivers built in, as the cloud kernels of Debian are. SLUICE_VM_KERNEL
# names an image; otherwise it is taken from the package, which is unpacked below .tmp and not installed. What is missing
# skips the tests with a reason.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "vmtest skipped: $*"; exit 0; }
[ "$(uname -m)" = x86_64 ] || skip "the guest is an x86-64 machine and this is $(uname -m)"
command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64 here (apt-get install --no-install-recommends qemu-system-x86)"

kernel=${SLUICE_VM_KERNEL:-}
if [ -z "$kernel" ]; then
	home=$PWD/.tmp/vm
	if ! compgen -G "$home/boot/vmlinuz-*" >/dev/null; then
		command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "no apt-get to get a kernel with; SLUICE_VM_KERNEL names one"
		rm -rf "$home" && mkdir -p "$home"
		package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image-/ {print $2; exit}')
		[ -n "$package" ] || skip "apt knows no linux-image-cloud-amd64 (apt-get update?); SLUICE_VM_KERNEL names another kernel"
		(cd "$home" && apt-get download -qq "$package") || skip "the package $package can't be had; SLUICE_VM_KERNEL names another kernel"
		dpkg-deb -x "$home"/*.deb "$home"
		rm -rf "$home"/*.deb "$home/lib" "$home/usr"
	fi
	kernel=$(compgen -G "$home/boot/vmlinuz-*" | head -n 1)
fi
# Without cgo the test program needs nothing but the kernel.
SLUICE_VM_KERNEL=$kernel CGO_ENABLED=0 ${GO:-go} test -count=1 -run TestInVM -v ./test/vm
