package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReadSMI(t *testing.T) {
	const uuid = "GPU-aaaaaaaa-0000-0000-0000-00000000000"
	for file, want := range map[string][]card{
		"whole": {{name: "NVIDIA Example 80GB", uuid: uuid + "1", total: 81920, reserved: 512},
			{name: "NVIDIA Small", uuid: uuid + "2", total: 16384, reserved: -1}},
		"mig": {{name: "NVIDIA Example 80GB", uuid: uuid + "3", total: 81920, reserved: 512, mig: true, instances: 2}},
	} {
		driver, got, err := readSMI(read(t, "testdata/smi/"+file+".xml"))
		if err != nil || driver != "600.10" || !slices.Equal(got, want) {
			t.Errorf("%s: driver %q, %+v, %v; want %+v", file, driver, got, err, want)
		}
	}
}

func TestReadSMIRefuses(t *testing.T) {
	whole := string(read(t, "testdata/smi/whole.xml"))
	for what, text := range map[string]string{
		"no XML":           "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
		"cut off":          whole[:len(whole)/2],
		"something else":   "<other></other>",
		"a total in words": strings.Replace(whole, "81920 MiB", "unknown", 1),
		"no UUID":          strings.Replace(whole, "<uuid>GPU-aaaaaaaa-0000-0000-0000-000000000001</uuid>", "", 1),
	} {
		if _, cards, err := readSMI([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", what, cards)
		}
	}
}

func TestSameGPUs(t *testing.T) {
	cards := []card{{name: "A", uuid: "GPU-1", total: 1000, reserved: 10}, {name: "B", uuid: "GPU-2", total: 500, reserved: -1},
		{name: "C", uuid: "GPU-3", total: 800, mig: true, instances: 1}}
	good := func() []*pb.Slice {
		return []*pb.Slice{{Id: "vm/gpu0", Model: "A", Device: "GPU-1", MemoryBytes: 989 << 20},
			{Id: "vm/gpu1", Model: "B", Device: "GPU-2", MemoryBytes: 500 << 20},
			{Id: "vm/gpu2/1g@0", Model: "C", Device: "MIG-7", MemoryBytes: 90 << 20}}
	}
	if err := sameGPUs(cards, good()); err != nil {
		t.Errorf("what is the same: %v", err)
	}
	for what, change := range map[string]func([]*pb.Slice) []*pb.Slice{
		"another name":          func(s []*pb.Slice) []*pb.Slice { s[0].Model = "X"; return s },
		"the driver's part too": func(s []*pb.Slice) []*pb.Slice { s[0].MemoryBytes = 1000 << 20; return s },
		"less":                  func(s []*pb.Slice) []*pb.Slice { s[1].MemoryBytes = 490 << 20; return s },
		"another UUID":          func(s []*pb.Slice) []*pb.Slice { s[0].Device = "GPU-9"; return s },
		"one too few":           func(s []*pb.Slice) []*pb.Slice { return s[1:] },
		"no instance":           func(s []*pb.Slice) []*pb.Slice { return s[:2] },
		"one too many": func(s []*pb.Slice) []*pb.Slice {
			return append(s, &pb.Slice{Id: "vm/gpu9", Model: "A", Device: "GPU-9"})
		},
	} {
		if sameGPUs(cards, change(good())) == nil {
			t.Errorf("%s passes for the same", what)
		}
	}
}
