package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/trp"
)

func TestPilotPods(t *testing.T) {
	d, err := ParseDaemon("f", []byte(`providers:
  - name: spare
    kind: kubernetes
    namespace: team-a
    image: registry.example.com/team/train:v1
    sluiceImage: registry.example.com/sluice:v1
    resources: {nvidia.com/mig-1g.10gb: 2, cpu: 1, memory: 4Gi}
    priorityClass: sluice-pilots
    nodeSelector: {pool: gpu}
    tolerates: [nvidia.com/gpu]
    grace: 45s
    user: 1000
    kubeconfig: /home/ada/.kube/config
    context: prod
    gpus: nvml
    atMost: 8
    lengths: [10m, 30m]
`))
	if err != nil {
		t.Fatal(err)
	}
	p := d.Providers[0]
	want := PilotPods{Namespace: "team-a", Image: "registry.example.com/team/train:v1", SluiceImage: "registry.example.com/sluice:v1",
		Resources:     map[string]string{"nvidia.com/mig-1g.10gb": "2", "cpu": "1", "memory": "4Gi"},
		PriorityClass: "sluice-pilots", NodeSelector: map[string]string{"pool": "gpu"}, Tolerates: []string{"nvidia.com/gpu"},
		Grace: 45 * time.Second, User: 1000, Kubeconfig: "/home/ada/.kube/config", Context: "prod"}
	if !reflect.DeepEqual(p.Pods, want) || p.Kind != KindKubernetes || p.GPUs != "nvml" || p.Pool.Most != 8 {
		t.Errorf("read %+v, want %+v", p, want)
	}
	if s := p.Pool.Slices; len(s) != 2 || s[0].Profile != "1g.10gb" || s[0].Capacity[trp.Memory] < 9<<30 {
		t.Errorf("slices %+v", s)
	}
}

func TestWrongPilotPods(t *testing.T) {
	const rest = "name: a, kind: kubernetes, atMost: 1, lengths: [10m], namespace: n, image: i, sluiceImage: s"
	const whole = rest + ", slices: [{memory: 1Gi}]"
	for text, want := range map[string]string{
		rest:                                 "don't follow from resources",
		rest + ", resources: {memory: 4Gi}":  "don't follow from resources",
		whole + ", partition: p":             "is for kind slurm alone",
		whole + ", memory: 4Gi":              "is for kind slurm alone",
		whole + ", imagee: i":                "image",
		whole + ", grace: 5s":                "20s",
		whole + ", grace: 20500ms":           "whole seconds",
		whole + ", user: 0":                  "user",
		whole + ", resources: {cpu: lots}":   "an amount such as",
		whole + ", resources: [cpu]":         "a mapping",
		whole + ", nodeSelector: {a: [b]}":   "the value of a label",
		whole + ", kubeconfig: config":       "a path from the root",
		whole + ", tolerates: nvidia.com":    "a list of keys",
		"name: a, kind: kubernetes":          `"namespace" is missing`,
		"name: a, kind: slurm, namespace: n": "is for kind kubernetes alone",
	} {
		if _, err := ParseDaemon("f", []byte("providers: [{"+text+"}]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
