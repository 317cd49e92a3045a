package prometheus

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/history"
)

// TestGauges: what DCGM's exporter says of devices, whatever it calls a host, and alone or beside Pods.
func TestGauges(t *testing.T) {
	util := func(labels, values string) told { return told{"DCGM_FI_DEV_GPU_UTIL", labels, values} }
	for _, c := range []struct {
		name   string
		series []told
		want   []string
	}{
		{"beside Pods", []told{aNode(), sampled(requests, onNode, 2, 8, 1), util("gpu=0,Hostname=n,modelName=A100",
			"0 0 0 0 0 0 0 0 0 0 0"),
			util("gpu=1,hostname=n.example", "0 0 0 95 3 0 0 0 0 0 0")}, []string{"n/0 gpu idle 0-600 busy  held ",
			"n/1 gpu idle 0-120 300-600 busy 180-240 held 120-540"}},
		{"alone", []told{util("gpu=0,Hostname=n,modelName=A100", "0 0 0 7 0 0 0 0 0 0 0"),
			{"DCGM_FI_DEV_FB_USED", "gpu=0,Hostname=n", "2 2 2 2 2 2 900 900 2 2 2"}},
			[]string{"n/0 A100 idle 0-120 240-600 busy  held 120-240 300-480"}},
		{"not measured", []told{util("gpu=0,Hostname=n", "0 0 9223372036854775794 0 0 5 5 0")},
			[]string{"n/0 gpu idle 0-60 180-240 busy 300-360 held 240-420"}},
		{"a ratio", []told{{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu=0,Hostname=n", "0 0.0002 0.5 0.25 0 0"}},
			[]string{"n/0 gpu idle 0-60 240-300 busy 120-180 held 60-240"}},
		{"slices", []told{util("gpu=0,Hostname=n", "9223372036854775794 9223372036854775794"),
			{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu=0,Hostname=n,GPU_I_ID=9,GPU_I_PROFILE=1g.10gb", "0 0 0.5 0"},
			{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu=0,Hostname=n,GPU_I_ID=11,GPU_I_PROFILE=1g.10gb", "0 0 0 0"}},
			[]string{"n/0 1g.10gb idle 0-60 busy  held 60-180", "n/1 1g.10gb idle 0-180 busy  held "}},
		{"in a Pod that is called otherwise", []told{aNode(), sampled(requests, onNode, 2, 8, 1),
			util("gpu=1,Hostname=dcgm-exporter-x,node=n", "0 0 0 95 3 0 0 0 0 0 0")}, []string{"n/0 gpu held ",
			"n/1 gpu idle 0-120 300-600 busy 180-240 held 120-540"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := closed(t, answer(c.series...))
			show := func(s history.Spans) string {
				var out []string
				for _, x := range s {
					out = append(out, fmt.Sprintf("%d-%d", (x.From-begin*second)/second, (x.To-begin*second)/second))
				}
				return strings.Join(out, " ")
			}
			var got []string
			for i, d := range h.Devices {
				text := fmt.Sprintf("%s/%d %s", h.Nodes[d.Node].Name, i, h.Kinds[d.Kind].Name)
				if u := h.Used[i]; u != nil {
					text += fmt.Sprintf(" idle %s busy %s", show(u.Idle), show(u.Busy))
				}
				var held history.Spans
				for _, x := range h.Held[i] {
					held = held.With(x.From, x.To)
				}
				got = append(got, text+" held "+show(held))
			}
			expect(t, got, c.want...)
		})
	}
}
