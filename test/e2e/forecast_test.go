package e2e

import (
	"encoding/json"
	"math"
	"net/http"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/picture"
	"sluice.dev/sluice/internal/lab/forecast"
)

// TestMeasuredOfADaemon: what `sluice forecast --check` takes from a daemon is what was done there: the units of a job are kept, what
// failed is thrown away, and what a host has reserved is not free.
func TestMeasuredOfADaemon(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.submit(spec("keeps", "items: {total: 10, perItem: 3s}", each("sleep 0.2"))) // planned so that one piece does it on any machine
	d.done("keeps")
	d.submit(spec("fails", "items: {total: 10, perItem: 200ms}", "sleep 0.3; exit 3", "maxFailures: 1"))
	d.over("fails")
	slice := d.slices()[0].ID
	d.must("reserve", slice, "--kind", "maintenance")
	d.until("the reservation is in the record", func() bool { return d.remembered(t, slice).reserved > 0 })
	r := d.remembered(t, slice)
	m := r.Actual
	if m.Kept*3600 < .2*9 || m.Overhead <= 0 || m.Lost*3600 < .3 || m.Subjobs < 2 || m.Unsplit > 0 {
		t.Errorf("seconds kept %v, overhead %v, lost %v, of %d subjobs, %d unsplit", m.Kept*3600, m.Overhead*3600, m.Lost*3600, m.Subjobs,
			m.Unsplit)
	}
	if long := m.Days * 24; math.Abs(m.Free+r.reserved-long) > 1e-6 || m.Kept+m.Overhead+m.Lost > m.Free {
		t.Errorf("hours free %v, reserved %v of %v", m.Free, r.reserved, long)
	}
	before := d.write("before.json", `{"gaps":{"days":1,"gpuHours":24},"outcomes":[{"name":"units","mechanisms":[{"mechanism":"sja"}]}]}`)
	d.fails(2, []string{"the daemon remembers 0s of its 1 slices", "ask again later"}, "forecast", "--check", before)
}

// record is a daemon's, with how many hours of a slice others have reserved.
type record struct {
	*forecast.Actual
	reserved float64
}

func (d *daemon) remembered(t *testing.T, slice string) (r record) {
	t.Helper()
	code, text := d.call("History", "{}")
	var m pb.HistoryResponse
	if err := protojson.Unmarshal([]byte(text), &m); code != http.StatusOK || err != nil {
		t.Fatal(code, err, text)
	}
	h, err := picture.FromWire(&m)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Slices {
		for _, x := range s.Spans {
			if string(s.Slice.ID) == slice && x.Kind == protocol.ForMaintenance && x.Start < h.To {
				r.reserved += min(x.End, h.To).Sub(x.Start).Hours()
			}
		}
	}
	if r.Actual, err = forecast.ActualOf(&h, 0); err != nil {
		out, _ := json.Marshal(h)
		t.Fatal(err, string(out))
	}
	return r
}
