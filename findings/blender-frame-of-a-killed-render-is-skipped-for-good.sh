#!/usr/bin/env bash
set -e -u -o pipefail
#
# With the settings by which Blender's manual has machines share a render, a frame whose render was killed is never rendered: each later run
# skips its placeholder, a file of no bytes, and ends with 0.
#
# Version: Blender 3.4.1 as Debian 12 ships it (3.4.1+dfsg-2+b1), Cycles on a CPU.
# Says:    "An easy way to get multiple machines to share the rendering workload is to: Set up a shared directory over a network file
#          system. Disable Overwrite, enable Placeholders in the Render Output panel. Start as many machines as you wish rendering to that
#          directory." (manual 3.4, Output Properties, Primitive Render Farm)
# Does:    a placeholder is an empty file with the frame's name. A run that is killed leaves it, by SIGTERM too. To a run without Overwrite
#          a file that is there is a frame that is done.
# So:      remove the files of no bytes while no other run is there, and run again; or render to another name, and rename.
# Output, seen on 2026-12-01:
#   SIGKILL in frame 1 of 3: bytes of f1 f2 f3: 0 none none
#   the same command: status 0, skipping existing frame "f0001.png": 0 some some
#   SIGTERM in frame 1 of 3: bytes of f1 f2 f3: 0 none none
#   the same command: status 0, skipping existing frame "f0001.png": 0 some some
#
# Needs Debian 12 on amd64 and its package lists, and two minutes. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
blender=
trap '[ -z "$blender" ] || kill -9 "$blender" 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p deb/partial unpacked
apt-get -qq -y --no-install-recommends --download-only -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::State::status=/dev/null \
	-o Dir::Cache::archives="$dir/deb" install blender=3.4.1+dfsg-2+b1 >/dev/null 2>&1
rm -f deb/libc6_*.deb
for deb in deb/*.deb; do dpkg -x "$deb" unpacked; done
lib=unpacked/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$dir/$lib:$dir/$lib/blas:$dir/$lib/lapack:$dir/$lib/pulseaudio:$dir/unpacked/lib/x86_64-linux-gnu"
export PYTHONHOME="$dir/unpacked/usr" HOME="$dir" BLENDER_SYSTEM_DATAFILES="$dir/unpacked/usr/share/blender/datafiles" \
	BLENDER_SYSTEM_SCRIPTS="$dir/unpacked/usr/share/blender/scripts"
cat > scene.py <<'END'
import bpy, os
s = bpy.context.scene
s.render.engine, s.cycles.device, s.cycles.use_denoising = "CYCLES", "CPU", False
s.render.resolution_x = s.render.resolution_y = 32
s.render.use_overwrite, s.render.use_placeholder = False, True
s.frame_start, s.frame_end = 1, 3
s.render.filepath = os.path.abspath("out/f")
s.cycles.use_adaptive_sampling, s.cycles.samples = False, int(os.environ["SAMPLES"])
END
await() { # waits for a command to succeed, for 90 s or a little more
	for _ in $(seq 450); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.2; done
	echo "it has changed, or this machine is too slow: never true: $*" >&2
	exit 1
}
has() { # prints of each frame whether it has bytes
	for f in 1 2 3; do
		if [ -s "out/f000$f.png" ]; then printf ' some'; elif [ -e "out/f000$f.png" ]; then printf ' 0'; else printf ' none'; fi
	done
}
seen=
for signal in KILL TERM; do
	rm -rf out
	SAMPLES=10000000 "$dir/unpacked/usr/bin/blender" -b --factory-startup --python-exit-code 3 --python scene.py -a >said 2>&1 &
	blender=$!
	await test -e out/f0001.png
	sleep 1
	kill "-$signal" "$blender"
	wait "$blender" 2>/dev/null || true
	blender=
	seen="${seen}SIG$signal in frame 1 of 3: bytes of f1 f2 f3:$(has)
"
	status=0
	SAMPLES=4 "$dir/unpacked/usr/bin/blender" -b --factory-startup --python-exit-code 3 --python scene.py -a >said 2>&1 || status=$?
	seen="${seen}the same command: status $status, $(sed -n "s|^\(skipping existing frame \"\).*/out/\(f0001.*\)|\1\2|p" said):$(has)
"
done
want='SIGKILL in frame 1 of 3: bytes of f1 f2 f3: 0 none none
the same command: status 0, skipping existing frame "f0001.png": 0 some some
SIGTERM in frame 1 of 3: bytes of f1 f2 f3: 0 none none
the same command: status 0, skipping existing frame "f0001.png": 0 some some
'
printf '%s' "$seen"
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s' "$want" >&2; exit 1; }
