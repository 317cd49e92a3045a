package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const chart = "../../deploy/helm/sluice"

var update = flag.Bool("update", false, "write the golden files")

// all is every value set to what it is not by default, or near it.
func all() []string {
	return []string{
		"name=east", "image.tag=v9", "imagePullSecrets[0].name=registry", "store.url=s3://bucket?endpoint=https://minio:9000",
		"store.secret=keys", "watchNamespace=team-a", "jobNamespaces={team-a,team-b}",
		"subjobs.requests.ephemeral-storage=1Gi", "subjobs.limits.cpu=2", "policy=fair", "horizon=2h", "retain=24h", "logLevel=debug",
		"extraArgs={--context=x}", "env[0].name=AWS_REGION", "env[0].value=eu-1",
		"persistence.keep=true", "persistence.storageClass=fast", "persistence.size=1Gi", "resources.limits.memory=2Gi",
		"nodeSelector.disk=ssd", "tolerations[0].key=infra", "affinity.nodeAffinity.x=y",
		"podAnnotations.a=b", "podLabels.c=d", "serviceAccount.name=robot", "serviceAccount.annotations.e=f", "priorityClass.value=-5",
		"networkPolicy.egress[0].ports[0].port=443",
		"serviceMonitor.enabled=true", "serviceMonitor.labels.release=prometheus", "dashboards.enabled=true",
	}
}

func TestLint(t *testing.T) {
	for _, set := range [][]string{{"store.url=s3://x"}, all()} {
		if err := run(append([]string{"lint", chart}, set...), nil); err != nil {
			t.Error(err)
		}
	}
}

// TestTemplates: what is installed by default, and with everything set.
func TestTemplates(t *testing.T) {
	for name, set := range map[string][]string{"default": {"store.url=s3://x"}, "all": all(), "least": {
		"store.url=s3://x", "persistence.existingClaim=mine", "serviceAccount.create=false", "serviceAccount.name=mine",
		"priorityClass.create=false", "userRole.create=false", "networkPolicy.enabled=false", "podDisruptionBudget.enabled=false",
	}} {
		var b bytes.Buffer
		if err := run(append([]string{"template", "sluice", "sluice-system", chart}, set...), &b); err != nil {
			t.Error(err)
			continue
		}
		file := "testdata/" + name + ".golden.yaml"
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s is not what the chart makes (%v): run the test with -update and look at the difference", file, err)
		}
		for i, doc := range strings.Split(b.String(), "\n---\n") {
			var o struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil || o.Kind == "" || o.APIVersion == "" {
				t.Errorf("%s: document %d is no object (%v):\n%s", name, i, err, doc)
			}
		}
	}
}

// TestWhatIsRefused: values that are missing, unknown, or none.
func TestWhatIsRefused(t *testing.T) {
	for set, want := range map[string]string{
		"policy=shortest": "store.url is missing", "store.url=path:/mnt": "store", "colour=red": "colour", "policy=best": "policy",
		"name=Has_No_Good_Name": "name", "priorityClass.value=5": "priorityClass",
		"persistence.keep=perhaps": "keep", "image.colour=red": "colour",
	} {
		args := []string{"template", "sluice", "sluice", chart, set}
		if !strings.HasPrefix(set, "store") && set != "policy=shortest" {
			args = append(args, "store.url=s3://x")
		}
		if err := run(args, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}

// TestEveryValueIsDescribed: each has a comment above it, or its group has, and is in the schema; and the schema has no other.
func TestEveryValueIsDescribed(t *testing.T) {
	text, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	data, err := os.ReadFile(chart + "/values.schema.json")
	if err == nil {
		err = json.Unmarshal(data, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range values {
		s, known := schema.Properties[key]
		if !known {
			t.Errorf("%s is not in the schema", key)
		}
		if group, ok := v.(map[string]any); ok && s.Properties != nil {
			for k := range group {
				if _, known := s.Properties[k]; !known {
					t.Errorf("%s.%s is not in the schema", key, k)
				}
			}
			if len(group) != len(s.Properties) {
				t.Errorf("%s has %d values, and %d in the schema", key, len(group), len(s.Properties))
			}
		}
	}
	if len(schema.Properties) != len(values)+1 { // global is Helm's own
		t.Errorf("%d values, and %d in the schema", len(values), len(schema.Properties))
	}
	if n := strings.Count(string(text), "# "); n < 25 {
		t.Errorf("%d comments", n)
	}
}
