package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/inventorytest"
	"sluice.dev/sluice/internal/edge/inventory/sim"
)

func TestConformance(t *testing.T) {
	for _, spec := range []string{
		"sim:a100-80gb=2,layout=3g.40gb+2g.20gb+2x1g.10gb", "h200-141gb=12", "sim:custom,mem=1Gi+512Mi+256Mi,speed=1000+500+250",
		"sim:a30-24gb,mem=1Gi;sim:custom,mem=64Mi;",
	} {
		t.Run(spec, func(t *testing.T) {
			inventorytest.Run(t, func(t *testing.T) inventory.Inventory {
				inv, err := sim.New(spec)
				if err != nil {
					t.Fatal(err)
				}
				return inv
			})
		})
	}
}

func TestSlicesOfASpec(t *testing.T) {
	for _, c := range []struct{ spec, describe, want string }{
		{"sim:a100-80gb=2,layout=3g.40gb+2g.20gb+2x1g.10gb", "2 simulated NVIDIA A100-SXM4-80GB (3g.40gb+2g.20gb+2x1g.10gb)",
			"gpu0/1g.10gb@2 9856Mi 142, gpu0/1g.10gb@3 9856Mi 142, gpu0/2g.20gb@0 19968Mi 285, gpu0/3g.40gb@4 40192Mi 428, " +
				"gpu1/1g.10gb@2 9856Mi 142, gpu1/1g.10gb@3 9856Mi 142, gpu1/2g.20gb@0 19968Mi 285, gpu1/3g.40gb@4 40192Mi 428"},
		{"A30-24", "1 simulated NVIDIA A30 (whole)", "gpu0 24576Mi 1000"},
		{"custom=2 , mem=1Gi+512Mi, speed=500 ; h100-80gb", "2 simulated custom (1Gi+512Mi), 1 simulated NVIDIA H100 80GB HBM3 (whole)",
			"gpu0/1Gi@0 1024Mi 500, gpu0/512Mi@1 512Mi 500, gpu1/1Gi@0 1024Mi 500, gpu1/512Mi@1 512Mi 500, gpu2 81559Mi 1000"},
		{"a100-80gb,layout=2x3g.40gb,mem=2Gi", "1 simulated NVIDIA A100-SXM4-80GB (2x3g.40gb, scaled to 2Gi)",
			"gpu0/3g.40gb@0 1004Mi 428, gpu0/3g.40gb@4 1004Mi 428"},
		{"custom,mem=256Mi", "1 simulated custom (256Mi)", "gpu0 256Mi 1000"},
	} {
		inv, err := sim.New(c.spec)
		if err != nil {
			t.Errorf("%q: %v", c.spec, err)
			continue
		}
		all, _ := inv.Slices(t.Context())
		var got []string
		for _, s := range all {
			got = append(got, fmt.Sprintf("%s %dMi %d", s.ID, s.Capacity[trp.Memory]>>20, s.Speed))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.spec, s, c.want)
		}
		if inv.Describe() != c.describe {
			t.Errorf("%q describes itself as %q, want %q", c.spec, inv.Describe(), c.describe)
		}
	}
}

func TestEveryProblemOfASpec(t *testing.T) {
	for _, c := range []struct {
		spec string
		want []string
	}{
		{"sim:", []string{`board "" is not known; want one of a30-24gb, a100-40gb`, "or custom"}},
		{";;", []string{"no GPUs given"}},
		{"v100=x,foo=1;a100-80gb=0,layout=3x3g.40gb,mem=12gi,mem=3", []string{`"v100=x,foo=1"`, `board "v100"`, `the count "x"`,
			`option "foo=1" is not known here; want layout= or mem=`,
			`the count "0"`, "room for 2", "did you mean 12Gi?", "option mem is given twice", "2x3g.40gb"}},
		{"custom", []string{"need mem="}},
		{"custom,mem=1Gi+2Gi+x,speed=1000+2000,layout=1g", []string{"2 speeds for 3 slices", `size "x"`, `speed "2000"`,
			`option "layout=1g" is not known here; want mem= or speed=`}},
		{"custom,mem=0", []string{"not from 1 byte to 1Pi"}},
		{"custom,mem=256+128", []string{`size "256": give a unit: 256Mi`, `size "128": give a unit`}},
		{"a100-80gb,layout=7x1g.10gb,mem=5B", []string{"mem=5B leaves no memory for 1g.10gb"}},
		{"a30-24=1000;custom=500,mem=1Gi", []string{"1500 slices in all; want at most 1024"}},
		{strings.Repeat(" ", sim.MaxText+1), []string{"the spec is 65537 bytes long"}},
	} {
		_, err := sim.New(c.spec)
		if err == nil || errkind.Of(err) != errkind.Invalid {
			t.Errorf("%.40q: %v, want an invalid spec", c.spec, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.40q does not say %q:\n%v", c.spec, want, err)
			}
		}
	}
}

func FuzzNew(f *testing.F) {
	for _, s := range []string{"sim:a100-80gb=2,layout=3g.40gb+2g.20gb+2x1g.10gb", "custom,mem=1Gi+512Mi,speed=1000+500", "a30-24;;",
		"custom=9,speed=", "=,=;,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		inv, err := sim.New(spec)
		if err != nil {
			return
		}
		all, _ := inv.Slices(t.Context())
		if len(all) == 0 || len(all) > sim.MaxSlices {
			t.Fatalf("%q: %d slices", spec, len(all))
		}
		for _, s := range all {
			if s.Capacity[trp.Memory] < 1 || s.Speed < 1 || s.Speed > 1000 {
				t.Fatalf("%q: %+v", spec, s)
			}
		}
	})
}
