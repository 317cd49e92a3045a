package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/strict"
)

const crds = "../../../deploy/helm/sluice/crds/"

// TestDefinitions: the custom resources that the chart brings are those of the fields.
func TestDefinitions(t *testing.T) {
	for _, r := range Resources() {
		file := crds + r.Plural + ".yaml"
		got, err := os.ReadFile(file)
		if *update {
			got, err = r.Definition, errors.Join(os.MkdirAll(crds, 0o755), os.WriteFile(file, r.Definition, 0o644))
		}
		if err != nil || !bytes.Equal(got, r.Definition) {
			t.Errorf("%s is not what the fields say (%v): make generate, and look at the difference", file, err)
		}
	}
	if have, _ := filepath.Glob(crds + "*.yaml"); len(have) != len(Resources()) {
		t.Errorf("%v, and there are %d resources", have, len(Resources()))
	}
}

// definition is the schema of a custom resource, as JSON has it.
func definition(t *testing.T, kind string) map[string]any {
	t.Helper()
	for _, r := range Resources() {
		if r.Kind != kind {
			continue
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `yaml:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(r.Definition, &crd); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		var s map[string]any
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

// TestDefinitionsAreStructural: what an API server asks of every schema. Each place has a type or says that it takes anything, in the two
// ways there are; and no word is used that it does not know.
func TestDefinitionsAreStructural(t *testing.T) {
	known := map[string]bool{}
	for _, word := range strings.Fields("type format description properties required items additionalProperties enum pattern minimum " +
		"maximum minItems maxItems minLength maxLength maxProperties " +
		"x-kubernetes-preserve-unknown-fields x-kubernetes-int-or-string x-kubernetes-validations x-kubernetes-list-type " +
		"x-kubernetes-list-map-keys") {
		known[word] = true
	}
	for _, r := range Resources() {
		var walk func(path string, s map[string]any)
		walk = func(path string, s map[string]any) {
			for word := range s {
				if !known[word] {
					t.Errorf("%s %s: %s", r.Kind, path, word)
				}
			}
			_, typed := s["type"]
			_, takesAny := s["x-kubernetes-preserve-unknown-fields"]
			_, takesEither := s["x-kubernetes-int-or-string"]
			if n := map[bool]int{true: 1}; n[typed]+n[takesAny]+n[takesEither] != 1 {
				t.Errorf("%s %s: a type %v, anything %v, a number or text %v", r.Kind, path, typed, takesAny, takesEither)
			}
			properties, _ := s["properties"].(map[string]any)
			for k, p := range properties {
				walk(path+"."+k, p.(map[string]any))
			}
			for _, k := range []string{"items", "additionalProperties"} {
				if p, ok := s[k].(map[string]any); ok {
					walk(path+"[]", p)
				}
			}
		}
		walk("", definition(t, r.Kind))
	}
}

// TestTheDefinitionTakesJobFiles: a job file is a custom resource once its image is named and its work directory lies in a store; a key
// that is not known, or of another kind, is refused there too.
func TestTheDefinitionTakesJobFiles(t *testing.T) {
	schema := definition(t, JobKind)
	files, _ := filepath.Glob("../../../examples/*/job.yaml")
	for _, file := range files {
		for i, doc := range documentsOf(t, file) {
			at := fmt.Sprintf("%s[%d]", file, i)
			if bad := validate(schema, doc, at); !strings.Contains(bad, "image is missing") {
				t.Errorf("%s without an image: %q", at, bad)
			}
			spec := doc.(map[string]any)["spec"].(map[string]any)
			spec["image"] = "registry.example.com/team/train:v3"
			if bad := validate(schema, doc, at); bad != "" {
				t.Error(bad)
			}
			spec["colour"] = "red"
			if validate(schema, doc, at) == "" {
				t.Errorf("%s: any key is taken", at)
			}
		}
	}
	if len(files) < 4 {
		t.Errorf("%d examples", len(files))
	}
	everyField(func(path string, f *strict.Field) {
		if path == "spec" || strings.HasSuffix(path, "env") || f.Form.Kind == strict.IsEither { // variables are text there
			return
		}
		doc := decode(t, whole(t, path, f.Example)).(map[string]any)
		spec := doc["spec"].(map[string]any)
		if _, named := spec["image"]; !named {
			spec["image"] = "a/b"
		}
		if bad := validate(schema, doc, path); bad != "" {
			t.Errorf("%s: %s is refused: %s", path, f.Example, bad)
		}
	})
}

func TestParseSlicePool(t *testing.T) {
	const head = "apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: a100}\n"
	moment := func(s string) quantity.Instant {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return quantity.At(at)
	}
	got, err := ParseSlicePool("f", []byte(head+`spec:
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
  deviceClasses: [{name: mig.nvidia.com, driver: gpu.nvidia.com, attributes: {profile: 1g.10gb}, memory: 10Gi, speed: 0.14}]
  extendedResources: [{name: nvidia.com/gpu, model: A100, profile: whole}]
  tolerates: [nvidia.com/gpu]
  calendar: [{name: serving, from: 2026-03-02T08:00:00Z, to: 2026-03-02T20:00:00Z, every: 24h}]
  giveBack: {notice: 10s, never: true}
`))
	want := SlicePool{
		Name: "a100", Nodes: map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
		Classes: []cluster.Class{{Name: "mig.nvidia.com", Driver: "gpu.nvidia.com", Attributes: map[string]string{"profile": "1g.10gb"},
			Memory: 10 << 30, Speed: 140}},
		Resources: []cluster.Resource{{Name: "nvidia.com/gpu", Model: "A100", Profile: "whole"}}, Tolerates: []string{"nvidia.com/gpu"},
		Calendar: []cluster.Closing{
			{Name: "serving", Start: moment("2026-03-02T08:00:00Z"), End: moment("2026-03-02T20:00:00Z"), Every: 24 * time.Hour},
		},
		Notice: 10 * time.Second, NeverGives: true,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseSlicePool("f", []byte(head+"spec: {extendedResources: [{name: nvidia.com/gpu}]}")); err != nil ||
		got.Notice != DefaultNotice || got.NeverGives || got.Ownerless != time.Minute || got.Resources[0].Speed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]time.Duration{"0s": 0, "0": 0, "10s": 10 * time.Second,
		"2m, giveBack: {notice: 5s}": 2 * time.Minute, "2m, giveBack: {never: true}": 0} {
		got, err := ParseSlicePool("f", []byte(head+"spec: {extendedResources: [{name: nvidia.com/gpu}], ownerless: "+text+"}"))
		if err != nil || got.Ownerless != want {
			t.Errorf("ownerless: %s: %v, %v", text, got.Ownerless, err)
		}
	}
	const entry = "spec: {extendedResources: [{name: a/b}], " +
		"calendar: [{name: x, from: 2026-03-02T08:00:00Z, to: 2026-03-%02dT10:00:00Z, %s}]}"
	at := func(more string) string { return fmt.Sprintf(entry, 2, more) }
	next := func(more string) string { return fmt.Sprintf(entry, 3, more) }
	for text, want := range map[string]string{
		"spec: {extendedResources: [{name: a/b}], ownerless: 9s}": "want 10s or more, or 0s for none",
		"spec: {extendedResources: [{name: a/b}], ownerless: 60}": "ownerless: ",
		"spec: {}": "names no devices", `spec: {deviceClasses: [{name: "", driver: d}]}`: "is empty",
		`spec: {deviceClasses: [{name: c, driver: ""}]}`:     "is empty",
		"spec: {extendedResources: [{name: gpu}]}":           "spec.extendedResources[0].name: is",
		"spec: {deviceClasses: [{name: a}]}":                 `"driver" is missing`,
		"spec: {extendedResources: [{name: a/b, speed: 2}]}": "speed: is",
		"spec: {extendedResources: [{name: a/b}], calendar: [{name: x, from: 2026-03-02T08:00:00Z, to: 2026-03-02T07:00:00Z}]}":            "is not after from",
		"spec: {extendedResources: [{name: a/b}], calendar: [{name: x, from: 2026-03-02T08:00:00Z, to: 2026-03-02T10:00:00Z, every: 1h}]}": "want it shorter",
		at("zone: Europe/Berln, every: 24h"): `zone: no time zone is called "Europe/Berln"`,
		at("zone: UTC"):                      "zone: is for what comes again",
		at("zone: UTC, every: 36h"):          "want a multiple of 24h",
		at("days: mon-fri"):                  "days: needs zone",
		at("zone: UTC, days: weekdays"):      `days: "weekdays" is no day of the week`,
		next("zone: UTC, days: mon-fri"):     "it lasts 26h",
		"spec: {extendedResources: [{name: a/b}], calendar: [{name: x, from: soon, to: later}], nodes: {}}": "spec.nodes: unknown key",
	} {
		if _, err := ParseSlicePool("f", []byte(head+text)); err == nil || errkind.Of(err) != errkind.Invalid ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestAPoolsCalendarFollowsTheClock: by a zone's clock it begins at the same time of day in summer and winter, and ends so.
func TestAPoolsCalendarFollowsTheClock(t *testing.T) {
	p, err := ParseSlicePool("f", []byte(`apiVersion: sluice.dev/v1alpha1
kind: SlicePool
metadata: {name: a100}
spec:
  extendedResources: [{name: nvidia.com/gpu}]
  calendar:
    - {name: serving, from: 2026-02-28T08:00:00+01:00, to: 2026-02-28T20:00:00+01:00, zone: Europe/Berlin, days: mon-fri}
    - {name: backup, from: 2026-02-28T22:00:00Z, to: 2026-03-01T06:00:00Z, zone: America/New_York, every: 48h}
`))
	if err != nil {
		t.Fatal(err)
	}
	in := func(c cluster.Closing, look string) string {
		at, err := time.Parse(time.RFC3339, look)
		if err != nil {
			t.Fatal(err)
		}
		start, end := c.Calendar.After(quantity.At(at))
		return start.Time().Format("Mon 01-02 15:04") + " " + end.Time().Format("Mon 01-02 15:04")
	}
	serving, backup := p.Calendar[0], p.Calendar[1]
	if serving.Start.Time().Format(time.RFC3339) != "2026-03-02T07:00:00Z" ||
		serving.Every != 24*time.Hour || backup.Every != 48*time.Hour {
		t.Errorf("serving begins at %v every %v, backup every %v", serving.Start.Time(), serving.Every, backup.Every)
	}
	for _, c := range []struct {
		of         cluster.Closing
		look, want string
	}{
		{serving, "2026-03-27T00:00:00Z", "Fri 03-27 07:00 Fri 03-27 19:00"},
		{serving, "2026-03-28T00:00:00Z", "Mon 03-30 06:00 Mon 03-30 18:00"},
		{backup, "2026-03-06T12:00:00Z", "Fri 03-06 22:00 Sat 03-07 06:00"},
		{backup, "2026-03-08T12:00:00Z", "Sun 03-08 21:00 Mon 03-09 05:00"},
	} {
		if got := in(c.of, c.look); got != c.want {
			t.Errorf("after %s: %s, want %s", c.look, got, c.want)
		}
	}
}

func TestParseQueue(t *testing.T) {
	const head = "apiVersion: sluice.dev/v1alpha1\nkind: Queue\nmetadata: {name: research}\n"
	got, err := ParseQueue("f", []byte(head+"spec: {weight: 3, cap: 4, maxJobs: 100, maxWindow: 15m, namespaces: [team-a, team-b]}"))
	want := Queue{protocol.Queue{Name: "research", Weight: 3, Cap: 4, MaxJobs: 100, MaxWindow: 15 * time.Minute},
		[]string{"team-a", "team-b"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = ParseQueue("f", []byte(head+"spec: {}")); err != nil ||
		!reflect.DeepEqual(got, Queue{Queue: protocol.Queue{Name: "research", Weight: 1}}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, wants := range map[string][]string{
		head + "spec: {weight: 0, cap: many, colour: red}": {`spec.weight: is "0"`,
			`spec.cap: is "many"`, "spec.colour: unknown key"},
		head + "spec: {namespaces: [Team A]}": {"spec.namespaces[0]: is"},
		"apiVersion: v1\nkind: Job\nmetadata: {name: 3.5}": {"apiVersion: is", "kind: is",
			`"spec" is missing`, "metadata.name"},
		head + "spec: {maxWindow: 1ms}": {"spec.maxWindow: is 1ms"},
		"apiVersion: sluice.dev/v1alpha1\nkind: Queue\nmetadata: {labels: {}}\nspec: {cap: 1}": {"metadata.labels: unknown key",
			`"name" is missing`},
	} {
		_, err := ParseQueue("f", []byte(text))
		for _, want := range wants {
			if err == nil || errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	}
}
