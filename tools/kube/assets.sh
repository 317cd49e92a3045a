#!/usr/bin/env bash
# assets.sh [build|where|list|machine|machine-where]: the real parts of Kubernetes that test/kube runs, built from the Go module proxy at the
# versions that the go.mod and go.sum files beside this script pin.
#   build          makes what is missing (the default); a killed build leaves no half program, and a second one waits for the first
#   where          says the folder: $SLUICE_KUBE_ASSETS, else one below the user's cache that the pins name
#   list           says what belongs there, one a line
#   machine        is build for what a real machine runs besides: kubelet, containerd, CNI plugins; and runc, which is Debian's and not installed
#   machine-where  says their folder, within the other one
# SLUICE_KUBE_PARTS names the programs to build, as in "etcd kube-apiserver kubectl"; without it all. Kueue is a third of the time, and 0.5 of the 7 GB.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
GO=${GO:-go}
export GOWORK=off CGO_ENABLED=0

# A number to raise where the flags below change what is built: it is part of the folder's name, as the pins are.
recipe=1
machine_recipe=1
# runc is taken from Debian, where it has libseccomp: the module proxy's takes a C compiler and that library's headers.
runc_version=1.1.5+ds1-1+deb12u1
# What a first build needs on the disk: modules, build cache and programs, in MiB.
needs_mib=7500

die() { printf 'kube-assets: %s\n' "$*" >&2; exit 1; }

# NAME MODULE-FOLDER PACKAGE, in the order of use: who waits for a control plane has it first.
programs() {
	cat <<-END
	etcd                    cluster go.etcd.io/etcd/server/v3
	kube-apiserver          cluster k8s.io/kubernetes/cmd/kube-apiserver
	kubectl                 cluster k8s.io/kubernetes/cmd/kubectl
	kube-scheduler          cluster k8s.io/kubernetes/cmd/kube-scheduler
	kube-controller-manager cluster k8s.io/kubernetes/cmd/kube-controller-manager
	kwok                    kwok    sigs.k8s.io/kwok/cmd/kwok
	kueue                   kueue   sigs.k8s.io/kueue/cmd/kueue
	END
}

machine_programs() {
	cat <<-END
	kubelet                 kubelet    k8s.io/kubernetes/cmd/kubelet
	containerd              containerd github.com/containerd/containerd/v2/cmd/containerd
	containerd-shim-runc-v2 containerd github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
	ctr                     containerd github.com/containerd/containerd/v2/cmd/ctr
	bridge                  containerd github.com/containernetworking/plugins/plugins/main/bridge
	host-local              containerd github.com/containernetworking/plugins/plugins/ipam/host-local
	loopback                containerd github.com/containernetworking/plugins/plugins/main/loopback
	END
}

# A folder of its own within the other: so that its pins can change without all else being built anew.
machine_where() {
	local pins
	pins=$(cd "$here" && { echo "$machine_recipe $runc_version $(uname -sm)"; cat {kubelet,containerd}/go.{mod,sum}; } | sha256sum | cut -c1-12)
	printf '%s/machine-%s\n' "$(where)" "$pins"
}

where() {
	if [ -n "${SLUICE_KUBE_ASSETS:-}" ]; then printf '%s\n' "$SLUICE_KUBE_ASSETS"; return; fi
	local pins
	pins=$(cd "$here" && { echo "$recipe $(uname -sm)"; cat {cluster,kwok,kueue}/go.{mod,sum}; } | sha256sum | cut -c1-12)
	printf '%s/sluice-kube/%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}" "$pins"
}

pinned() { sed -n "s#^\(require\)\{0,1\}[[:space:]]*$2 \(v[^ ]*\).*#\2#p" "$here/$1/go.mod" | head -n 1; }

# Without these the API server says that it is v0.0.0-master, and clients that look at versions believe it.
ldflags() {
	local v mm maj rest p=k8s.io/component-base/version
	case $1 in
	cluster | kubelet)
		v=$(pinned "$1" k8s.io/kubernetes); mm=${v#v}; maj=${mm%%.*}; rest=${mm#*.}
		echo "-s -w -X $p.gitVersion=$v -X $p.gitMajor=$maj -X $p.gitMinor=${rest%%.*} -X $p.gitTreeState=clean -X $p.gitCommit=module-proxy" ;;
	containerd) echo "-s -w -X github.com/containerd/containerd/v2/version.Version=$(pinned containerd github.com/containerd/containerd/v2)" ;;
	*) echo "-s -w" ;;
	esac
}

# runc as Debian built it, below $1; apt proves where it comes from. Another one that the machine has is not taken: what is tested would then be unknown.
debian_runc() {
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "runc is Debian's package, and there is no apt-get or dpkg-deb here"
	mkdir -p "$1/deb"
	(cd "$1/deb" && { apt-get download -qq "runc=$runc_version" || { echo "kube-assets: runc $runc_version is not there any more; Debian's newest is taken" && apt-get download -qq runc; }; }) || die "Debian's runc can't be had (apt-get update?)"
	dpkg-deb -x "$1"/deb/runc_*.deb "$1/deb"
	"$1/deb/usr/sbin/runc" --version >/dev/null || die "runc does not run here: it needs libseccomp2 (apt-get install libseccomp2)"
	mv "$1/deb/usr/sbin/runc" "$1/runc"
	rm -rf "$1/deb"
}

# Kueue's CustomResourceDefinitions and webhooks are files of its module.
kueue_files() {
	local to=$1 from
	from=$(cd "$here/kueue" && "$GO" list -mod=readonly -m -f '{{.Dir}}' sigs.k8s.io/kueue)
	[ -d "$from/config/components/crd/bases" ] || die "module sigs.k8s.io/kueue has no config/components/crd/bases below '$from'"
	mkdir -p "$to"
	cp "$from"/config/components/crd/bases/*.yaml "$to/"
	cp "$from"/config/components/webhook/manifests.yaml "$to/webhooks.yaml"
	chmod -R u+w "$to"
}

room() { # fail where a first build would not fit
	local d=$1 free
	while [ ! -d "$d" ]; do d=$(dirname "$d"); done
	free=$(df -Pm "$d" | awk 'NR == 2 {print $4}')
	[ "$free" -ge "$needs_mib" ] || die "$free MiB are free below $d; the first build needs about $needs_mib (modules, build cache, programs). Free some, or set SLUICE_KUBE_ASSETS, GOCACHE and GOMODCACHE to a larger disk"
}

build() { # build FOLDER TABLE "PROGRAM...": those of a table that are missing there
	local dir=$1 name module package began missing=() n=0 wanted
	wanted=$(echo $3)
	command -v "$GO" >/dev/null || die "no Go: '$GO' is not a command"
	(cd "$here/cluster" && "$GO" version >/dev/null) || die "Kubernetes $(pinned cluster k8s.io/kubernetes) needs $(sed -n 's/^go /Go /p' "$here/cluster/go.mod") or newer (above is what go says)"
	mkdir -p "$dir" || die "cannot make $dir; set SLUICE_KUBE_ASSETS to a folder that can be written"
	exec 9>"$dir/.lock"
	flock -n 9 || { echo "kube-assets: another build works in $dir; waiting for it"; flock 9; }
	rm -rf "$dir"/.build.* # what a killed build left
	while read -r name module package; do
		case " $wanted " in *" $name "*) ;; *) continue ;; esac
		[ -x "$dir/$name" ] || missing+=("$name $module $package")
	done < <("$2")
	if [ ${#missing[@]} = 0 ]; then echo "kube-assets: all there: $dir"; return; fi
	room "$dir"; room "$("$GO" env GOCACHE)"; room "$("$GO" env GOMODCACHE)"
	echo "kube-assets: building ${#missing[@]} programs into $dir (all of a plane's, the first time: about 12 minutes on two quiet cores, with a network)"
	local tmp="$dir/.build.$$"
	trap "rm -rf '$tmp'" EXIT
	mkdir -p "$tmp"
	for line in "${missing[@]}"; do
		read -r name module package <<<"$line"
		n=$((n + 1)); began=$SECONDS
		printf 'kube-assets: %d of %d: %s\n' "$n" "${#missing[@]}" "$name"
		(cd "$here/$module" && nice -n 10 "$GO" build -mod=readonly -buildvcs=false -trimpath -tags grpcnotrace,no_btrfs -ldflags "$(ldflags "$module")" -o "$tmp/$name" "$package") ||
			die "$name could not be built; go says why above. Where it could not download: a Go module proxy must be reachable (GOPROXY is '$("$GO" env GOPROXY)'). What was built stays; run it again to go on"
		if [ "$name" = kueue ]; then
			kueue_files "$tmp/kueue-files"
			rm -rf "$dir/kueue-files" && mv "$tmp/kueue-files" "$dir/kueue-files"
		fi
		mv "$tmp/$name" "$dir/$name" # the same file system: there whole, or not there
		printf 'kube-assets: %d of %d: %s is there (%d s, %d MiB)\n' "$n" "${#missing[@]}" "$name" $((SECONDS - began)) $(($(stat -c %s "$dir/$name") >> 20))
	done
	echo "kube-assets: done: $dir"
}

case ${1:-build} in
build) build "$(where)" programs "${SLUICE_KUBE_PARTS:-$(programs | awk '{print $1}')}" ;;
machine)
	dir=$(machine_where)
	build "$dir" machine_programs "$(machine_programs | awk '{print $1}')"
	[ -x "$dir/runc" ] || debian_runc "$dir"
	;;
machine-where) machine_where ;;
where) where ;;
list) programs | awk '{print $1}' ;;
*) die "'$1' is none of build, where, list, machine, machine-where" ;;
esac
