package mig

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

const mib = quantity.Amount(1) << 20

// Boards lists every board known here, in order of name.
//
// Which profiles a board has, how many of each, and which products are alike is by NVIDIA's MIG User Guide (r580 and later),
// "Supported MIG Profiles" and "Supported GPUs"; for GB200, GH200 144G and H200 NVL by nvidia-mig-parted v0.14,
// deployments/systemd/config-default.yaml. Placements and ids are those of `nvidia-smi mig -lgipp`, the same on every board
// of eight memory slices. Each board's comment says where its usable memory and multiprocessors are from: outputs of
// `nvidia-smi mig -lgip` mostly, which give GiB to an eighth. They vary with the driver: of several the least counts, since
// less is promised with it. A zero was not found, and stands for what the name says: its gigabytes, and its share of the
// compute slices.
func Boards() []Geometry {
	boards := []Geometry{
		thirty(),
		// go-nvml v0.13.4, mock/gpus/a100.go: profiles of A100_SXM4_40GB and A100_PCIE_40GB.
		eighths("a100-40gb", 40960, [4]int{40, 20, 10, 5}, [4]int{40192, 19968, 9856, 4864}, [6]int{98, 56, 42, 28, 14, 14},
			"NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"),
		// go-nvml v0.13.4, mock/gpus/a100.go: profiles of A100_SXM4_80GB and A100_PCIE_80GB.
		eighths("a100-80gb", 81920, [4]int{80, 40, 20, 10}, [4]int{80384, 40192, 19968, 9856}, [6]int{98, 56, 42, 28, 14, 14},
			"NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"),
		// -lgip of a B200 in NVIDIA/gpu-operator pull request 1351 (1g and 2g alone); 183359 MiB by nvidia-smi, 148
		// multiprocessors by CUDA.
		eighths("b200-180gb", 183359, [4]int{180, 90, 45, 23}, [4]int{0, 0, 45312, 20992}, [6]int{148, 0, 0, 36, 30, 18},
			"NVIDIA B200"),
		// -lgip of a GB200 in NVIDIA/mig-parted issue 227 (1g and 2g alone); 189471 MiB by nvidia-smi, 152 multiprocessors by
		// CUDA.
		eighths("gb200-186gb", 189471, [4]int{186, 93, 47, 23}, [4]int{0, 0, 46592, 22528}, [6]int{152, 0, 0, 38, 32, 18},
			"NVIDIA GB200"),
		// -lgip of a GH200 144G HBM3e in NVIDIA/mig-parted pull request 139 (1g and 2g alone); 153008209920 bytes and 132
		// multiprocessors by CUDA. Those of 3g and 4g are of the same chip on the board of 96 GB.
		eighths("gh200-144gb", 145920, [4]int{144, 72, 36, 18}, [4]int{0, 0, 36096, 17920}, [6]int{132, 64, 60, 32, 26, 16},
			"NVIDIA GH200 144G HBM3e"),
		// -lgip of a GH200 480GB in kf-cuanschutz/NVIDIA_Grace_Hopper_benchmarking_logs_; 97871 MiB by nvidia-smi.
		eighths("gh200-96gb", 97871, [4]int{96, 48, 24, 12}, [4]int{95232, 47616, 23552, 11264}, [6]int{132, 64, 60, 32, 26, 16},
			"NVIDIA GH200 480GB", "NVIDIA GH200 120GB"),
		// -lgip of an H100 80GB HBM3, published often (jbarrow.ai, field notes on MIG, 2026).
		eighths("h100-80gb", 81559, [4]int{80, 40, 20, 10}, [4]int{81152, 40448, 20096, 9984}, [6]int{132, 64, 60, 32, 26, 16},
			"NVIDIA H100 80GB HBM3"),
		// -lgip of an H100 NVL: NVIDIA/gpu-operator pull request 900 has a little more than an older driver's, which is here;
		// 95830 MiB by nvidia-smi.
		eighths("h100-94gb", 95830, [4]int{94, 47, 24, 12}, [4]int{94848, 47232, 22016, 10880}, [6]int{132, 64, 60, 32, 26, 16},
			"NVIDIA H100 NVL"),
		// -lgip of an H100 PCIe with driver 570.169: the memory of the SXM board, fewer multiprocessors.
		eighths("h100-pcie-80gb", 81559, [4]int{80, 40, 20, 10}, [4]int{81152, 40448, 20096, 9984}, [6]int{114, 62, 46, 30, 14, 14},
			"NVIDIA H100 PCIe"),
		// nvidia-smi of an H20 with seven 1g.12gb and driver 535.247 (12032 MiB, 8 multiprocessors); 97871 MiB whole, 78
		// multiprocessors by CUDA.
		eighths("h20-96gb", 97871, [4]int{96, 48, 24, 12}, [4]int{0, 0, 0, 12032}, [6]int{78, 0, 0, 0, 0, 8},
			"NVIDIA H20"),
		// -lgip of an H200 in NVIDIA/mig-parted issue 120.
		eighths("h200-141gb", 143771, [4]int{141, 71, 35, 18}, [4]int{143104, 71168, 33024, 16384}, [6]int{132, 64, 60, 32, 26, 16},
			"NVIDIA H200", "NVIDIA H200 NVL"),
		twelfths(),
	}
	for i := range boards {
		g := &boards[i]
		for j := range g.Profiles {
			p, whole := &g.Profiles[j], &g.Profiles[0]
			if p.Speed = int64(p.Compute) * 1000 / int64(whole.Compute); p.SMs > 0 {
				p.Speed = int64(p.SMs) * 1000 / int64(whole.SMs)
			}
			if p.Memory == 0 {
				n, _ := parseName(p.Name)
				p.Memory = named(n.gigabytes)
			}
		}
	}
	return boards
}

// thirty is the A30, of four slices of each kind: nvidia-smi of A30s with instances gives 5952 and 11968 MiB, -lgip 23.44 GiB
// for the whole. go-nvml's mock has 2 to 3% less.
func thirty() Geometry {
	return Geometry{Name: "a30-24gb", Model: "NVIDIA A30", ComputeSlices: 4, MemorySlices: 4, Memory: 24576 * mib, Profiles: []Profile{
		profile("4g.24gb", 0, 4, 4, 1, 56, 24000, 0),
		profile("2g.12gb", 5, 2, 2, 2, 28, 11968, 0, 2),
		profile("2g.12gb+me", 6, 2, 2, 1, 28, 11968, 0, 2),
		profile("1g.6gb", 14, 1, 1, 4, 14, 5952, 0, 1, 2, 3),
		profile("1g.6gb+me", 21, 1, 1, 1, 14, 5952, 0, 1, 2, 3),
	}}
}

// twelfths is the RTX PRO 6000 Blackwell, of four compute slices and twelve places in memory: -lgip of a Server Edition in
// bigstack-oss/cubecos issue 312 for the memory (newer drivers give up to 2% more), and in GoogleCloudPlatform/
// container-engine-accelerators pull request 564 for ids and multiprocessors; 97887 MiB by nvidia-smi. Its four media engines
// go to some profiles and not to others.
func twelfths() Geometry {
	quarters, halves := []int{0, 3, 6, 9}, []int{0, 6}
	of := func(media int, p Profile) Profile { p.Media = media; return p }
	return Geometry{
		Name: "rtx-pro-6000-96gb", Model: "NVIDIA RTX PRO 6000 Blackwell Server Edition",
		Also: []string{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
			"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"},
		ComputeSlices: 4, MemorySlices: 12, Media: 4, Memory: 97887 * mib, Profiles: []Profile{
			of(4, profile("4g.96gb", 0, 4, 12, 1, 188, 95616, 0)),
			of(4, profile("4g.96gb+gfx", 32, 4, 12, 1, 188, 95616, 0)),
			of(2, profile("2g.48gb", 5, 2, 6, 2, 94, 47616, halves...)),
			of(2, profile("2g.48gb+gfx", 35, 2, 6, 2, 94, 47616, halves...)),
			of(4, profile("2g.48gb+me.all", 64, 2, 6, 1, 94, 47616, halves...)),
			of(0, profile("2g.48gb-me", 66, 2, 6, 2, 94, 47616, halves...)),
			of(1, profile("1g.24gb", 14, 1, 3, 4, 46, 23680, quarters...)),
			of(1, profile("1g.24gb+gfx", 47, 1, 3, 4, 46, 23680, quarters...)),
			of(1, profile("1g.24gb+me", 21, 1, 3, 1, 46, 23680, quarters...)),
			of(4, profile("1g.24gb+me.all", 65, 1, 3, 1, 46, 23680, quarters...)),
			of(0, profile("1g.24gb-me", 67, 1, 3, 4, 46, 23680, quarters...)),
		},
	}
}

// eighths makes a board of eight memory and seven compute slices; all of them have the same ids and placements. gb and
// usable (MiB) are those of a whole board, a half, a quarter and an eighth; sms are the multiprocessors of 7g, 4g, 3g, 2g, 1g
// with double memory, and 1g.
func eighths(called string, whole quantity.Amount, gb, usable [4]int, sms [6]int, model string, also ...string) Geometry {
	of := func(compute, quarter int, suffix string) string {
		return fmt.Sprintf("%dg.%dgb%s", compute, gb[quarter], suffix)
	}
	ones := []int{0, 1, 2, 3, 4, 5, 6}
	return Geometry{Name: called, Model: model, Also: also, ComputeSlices: 7, MemorySlices: 8, Memory: whole * mib, Profiles: []Profile{
		profile(of(7, 0, ""), 0, 7, 8, 1, sms[0], usable[0], 0),
		// 3g takes as many memory slices as 4g: two of them strand a compute slice.
		profile(of(4, 1, ""), 5, 4, 4, 1, sms[1], usable[1], 0),
		profile(of(3, 1, ""), 9, 3, 4, 2, sms[2], usable[1], 0, 4),
		profile(of(2, 2, ""), 14, 2, 2, 3, sms[3], usable[2], 0, 2, 4),
		profile(of(1, 2, ""), 15, 1, 2, 4, sms[4], usable[2], 0, 2, 4, 6),
		profile(of(1, 3, ""), 19, 1, 1, 7, sms[5], usable[3], ones...),
		profile(of(1, 3, "+me"), 20, 1, 1, 1, sms[5], usable[3], ones...),
	}}
}

// profile makes a Profile of usable MiB that may begin at starts; Speed is filled in by Boards.
func profile(name string, id, compute, size, most, sms, usable int, starts ...int) Profile {
	return Profile{Name: name, ID: id, Compute: compute, Size: size, Max: most, SMs: sms,
		Memory: quantity.Amount(usable) * mib, Starts: starts}
}

// Board returns the board a person names, by its name or a product's: "a100-80gb", "A100-80" and "NVIDIA A100-SXM4-80GB" are
// the same. An error is of kind NotFound and lists the names there are.
func Board(name string) (Geometry, error) {
	boards := Boards()
	if at := slices.IndexFunc(boards, func(g Geometry) bool { return g.is(name) }); at >= 0 {
		return boards[at], nil
	}
	names := make([]string, len(boards))
	for i, g := range boards {
		names[i] = g.Name
	}
	return Geometry{}, errkind.Errorf(errkind.NotFound, "board %q is not known; want one of %s", name, strings.Join(names, ", "))
}

// is says whether that is the board's name, or of one of its models.
func (g *Geometry) is(product string) bool {
	want := plain(product)
	if want == plain(g.Name) || want == plain(g.Model) {
		return true
	}
	for _, m := range g.Also {
		if want == plain(m) {
			return true
		}
	}
	return false
}
