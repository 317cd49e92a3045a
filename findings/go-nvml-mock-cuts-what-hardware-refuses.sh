#!/usr/bin/env bash
set -e -u -o pipefail
#
# The mock servers of NVIDIA's go-nvml cut GPUs in ways that no hardware does: whoever tests a MIG scheduler against them
# proves nothing about placement.
#
# Version: github.com/NVIDIA/go-nvml v0.13.4-0, pkg/nvml/mock/dgxh100 (also dgxh200, dgxb200).
# Says:    NVIDIA's MIG User Guide, "Supported MIG Profiles": on an H100 3g.40gb has 4/8 of the memory and 7g.80gb all of it;
#          `nvidia-smi mig -lgipp` there: {0,4}:4 and {0}:8. nvmlDeviceCreateGpuInstance answers ERROR_INSUFFICIENT_RESOURCES
#          where there is no room.
# Does:    the possible placements of 3g.40gb are 3 of 8 memory slices long and that of 7g.80gb is 7; and an instance is made
#          over another, at a place that was not listed, and beyond the board's end, each with SUCCESS. The placements of its
#          A100 are right, and are not kept to either.
# So:      by these placements two 3g.40gb leave memory slice 3 to a 1g.10gb, where the board has nothing left; and a scheduler
#          that sells the same place twice passes its tests.
# Output, seen on 2026-11-28 with Go 1.26.8:
#   H100 3g.40gb {0:3 4:3} 7g.80gb {0:7}; A100 3g.20gb {0:4 4:4} 7g.40gb {0:8}
#   7g at 0: SUCCESS, 3g over it at 0: SUCCESS, 1g at 99: SUCCESS
#
# Needs Go, its module proxy, and a C compiler. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<'END'
module finding

go 1.26.0

require github.com/NVIDIA/go-nvml v0.13.4-0
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
)

func gpu(lib nvml.Interface) nvml.Device {
	d, ret := lib.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		panic(ret)
	}
	if ret, _ := d.SetMigMode(nvml.DEVICE_MIG_ENABLE); ret != nvml.SUCCESS {
		panic(ret)
	}
	return d
}

func profile(d nvml.Device, id int) nvml.GpuInstanceProfileInfo {
	info, ret := d.GetGpuInstanceProfileInfo(id)
	if ret != nvml.SUCCESS {
		panic(ret)
	}
	return info
}

func placements(d nvml.Device, id int) string {
	info := profile(d, id)
	list, ret := d.GetGpuInstancePossiblePlacements(&info)
	if ret != nvml.SUCCESS {
		panic(ret)
	}
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%d:%d", p.Start, p.Size))
	}
	return "{" + strings.Join(out, " ") + "}"
}

func made(d nvml.Device, id int, start, size uint32) string {
	info := profile(d, id)
	_, ret := d.CreateGpuInstanceWithPlacement(&info, &nvml.GpuInstancePlacement{Start: start, Size: size})
	return nvml.ErrorString(ret)
}

func main() {
	const three, seven, one = nvml.GPU_INSTANCE_PROFILE_3_SLICE, nvml.GPU_INSTANCE_PROFILE_7_SLICE, nvml.GPU_INSTANCE_PROFILE_1_SLICE
	h, a := gpu(dgxh100.New()), gpu(dgxa100.New())
	fmt.Printf("H100 3g.40gb %s 7g.80gb %s; A100 3g.20gb %s 7g.40gb %s\n", placements(h, three), placements(h, seven), placements(a, three), placements(a, seven))
	word := func(s string) string {
		if s == nvml.ErrorString(nvml.SUCCESS) {
			return "SUCCESS"
		}
		return s
	}
	fmt.Printf("7g at 0: %s, 3g over it at 0: %s, 1g at 99: %s\n", word(made(a, seven, 0, 8)), word(made(a, three, 0, 4)), word(made(a, one, 99, 1)))
}
END
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations"
go mod tidy >/dev/null 2>&1
seen=$(go run .)
printf '%s\n' "$seen"
want='H100 3g.40gb {0:3 4:3} 7g.80gb {0:7}; A100 3g.20gb {0:4 4:4} 7g.40gb {0:8}
7g at 0: SUCCESS, 3g over it at 0: SUCCESS, 1g at 99: SUCCESS'
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
