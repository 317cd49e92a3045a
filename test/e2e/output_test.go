package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// outputView is what the tests read of a committed range.
type outputView struct {
	Subjob, Path string
	From, To     int64
	Files        []string
}

func (d *daemon) outputs(name string) (list []outputView) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.must("output", name, "-o", "json")), &list); err != nil {
		d.t.Fatal(err)
	}
	return list
}

// TestEveryCommittedRangeIsListed: chains, items and gangs whose subjobs write nothing, or only some of them, are listed with all of
// [0, total), each range once, and without a folder where there is none; with a store, after a kill and out of the archive too.
func TestEveryCommittedRangeIsListed(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "store"} {
		t.Run("store "+where, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, "sim:custom,mem=64Mi+64Mi", "--keep-hot", "1ms")
			if where != "" {
				d.flags = append(d.flags, "--config", d.write("daemon.yml", "store: local:"+filepath.Join(d.dir, "elsewhere")+"\n"))
			}
			d.start()
			one := `say $((SLUICE_FROM+1)); [ $((SLUICE_FROM+1)) -ge $SLUICE_TO ] || exit 85`
			write := `echo $SLUICE_FROM > "$SLUICE_OUTPUT_DIR/units"`
			d.submit(spec("chain", "steps: {total: 5, every: 1, perStep: 1s}",
				say+`[ $((SLUICE_FROM%2)) = 0 ] || `+write+`; : > "$SLUICE_CHECKPOINT_DIR/c"; `+one, "grace: 200ms", "startup: 10s"))
			d.submit(spec("items", "items: {total: 4, grid: 1, perItem: 1s}",
				say+`[ $SLUICE_FROM != 2 ] || `+write+`; `+one, "grace: 200ms", "startup: 10s"))
			d.submit(spec("gang", "rigid: {walltime: 1m, slices: 2}", ":", "grace: 200ms"))
			d.submit(spec("skips", "items: {total: 3, grid: 1, perItem: 1s}",
				say+`[ $SLUICE_FROM != 1 ] || exit 3; `+one, "onItemFailure: skip", "maxFailures: 1", "grace: 200ms", "startup: 10s"))
			for _, name := range []string{"chain", "items", "gang", "skips"} {
				d.done(name)
			}
			check := func(when string) {
				t.Helper()
				for name, want := range map[string]string{
					"chain": "0-1 1-2+ 2-3 3-4+ 4-5", "items": "0-1 1-2 2-3+ 3-4", "gang": "0-1", "skips": "0-1 2-3",
				} {
					var got []string
					for _, o := range d.outputs(name) {
						text := fmt.Sprintf("%d-%d", o.From, o.To)
						if len(o.Files) > 0 {
							text += "+"
						}
						if (len(o.Files) > 0) != (o.Path != "") || o.Subjob == "" {
							t.Errorf("%s, %s: %+v", when, name, o)
						}
						cat, _, code := d.sluice("output", name, "--cat", "--subjob", o.Subjob)
						if code != 0 || (cat != "") != (len(o.Files) > 0) {
							t.Errorf("%s, %s: the output of subjob %s is %q, exit %d", when, name, o.Subjob, cat, code)
						}
						got = append(got, text)
					}
					if text := strings.Join(got, " "); text != want {
						t.Errorf("%s, %s: it lists %s, want %s", when, name, text, want)
					}
				}
				if names := strings.Fields(d.must("output", "chain", "-o", "name")); len(names) != 2 {
					t.Errorf("%s: the folders are %v, want two", when, names)
				}
				says(t, d.must("output", "gang"), "[0,1)", "-")
				d.fails(1, []string{"no committed subjob 99-9"}, "output", "gang", "--cat", "--subjob", "99-9")
			}
			check("archived or on its way")
			d.archived(4)
			d.kill()
			d.start()
			check("after a kill")
		})
	}
}
