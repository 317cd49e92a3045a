package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestOlderNamesOfKeys: a key by its older name means what the new one does, and the file says so once; both are a mistake.
func TestOlderNamesOfKeys(t *testing.T) {
	job := func(spec string) ([]Job, error) {
		return ParseJobs("f", []byte("{apiVersion: "+APIVersion+", kind: Job, metadata: {name: a}, spec: {command: [x], memory: 1Gi, "+spec+
			"}}"))
	}
	daemon := func(text string) (Daemon, error) { return ParseDaemon("f", []byte(text)) }
	for _, c := range []struct{ old, now, value, rest string }{
		{"theta", "memoryRisk", "0.02", "items: {total: 3, perItem: 1s}"},
		{"tauMin", "minRuntime", "7s", "items: {total: 3, perItem: 1s}"},
		{"onBadItem", "onItemFailure", "skip", "items: {total: 3, perItem: 1s}"},
		{"worth", "scoreWeights", "{progress: 1}", "items: {total: 3, perItem: 1s}"},
		{"patience", "maxWait", "5s", ""},
	} {
		text := func(names ...string) string {
			var keys []string
			for _, n := range names {
				keys = append(keys, n+": "+c.value)
			}
			if c.rest == "" {
				return "rigid: {" + strings.Join(keys, ", ") + "}"
			}
			return strings.Join(append(keys, c.rest), ", ")
		}
		old, err := job(text(c.old))
		if err != nil || len(old[0].Renamed) != 1 || !strings.Contains(old[0].Renamed[0], c.old+" is called "+c.now+" now") {
			t.Fatalf("%s: %v, %v", c.old, old, err)
		}
		now, err := job(text(c.now))
		if err != nil || len(now[0].Renamed) != 0 || !reflect.DeepEqual(now[0].Spec, old[0].Spec) {
			t.Errorf("%s: %+v, %v\nwant %+v", c.now, now[0].Spec, err, old[0].Spec)
		}
		if _, err := job(text(c.old, c.now)); err == nil || !strings.Contains(err.Error(), "by another name") {
			t.Errorf("%s and %s: %v", c.old, c.now, err)
		}
		if _, err := job(text(c.now, c.old)); err == nil || !strings.Contains(err.Error(), "by another name") {
			t.Errorf("%s and %s: %v", c.now, c.old, err)
		}
	}
	for _, c := range []struct{ section, old, now, value string }{
		{"market", "close", "bidTimeout", "300ms"}, {"market", "audience", "maxBidders", "50"}, {"market", "repack", "replan", "never"},
		{"flow", "patience", "maxWait", "5s"}, {"ends", "theta", "risk", "0.2"},
	} {
		old, err := daemon(c.section + ": {" + c.old + ": " + c.value + "}")
		if err != nil || len(old.Renamed) != 1 {
			t.Fatalf("%s.%s: %v, %v", c.section, c.old, old.Renamed, err)
		}
		now, err := daemon(c.section + ": {" + c.now + ": " + c.value + "}")
		if old.Renamed = nil; err != nil || !reflect.DeepEqual(now, old) {
			t.Errorf("%s.%s: %+v, %v\nwant %+v", c.section, c.now, now, err, old)
		}
		if _, err := daemon(c.section + ": {" + c.old + ": " + c.value + ", " + c.now + ": " + c.value + "}"); err == nil {
			t.Errorf("%s: %s and %s are both taken", c.section, c.old, c.now)
		}
	}
}
