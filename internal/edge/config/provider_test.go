package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
)

func TestProviders(t *testing.T) {
	d, err := ParseDaemon("f", []byte(`providers:
  - {name: scavenger, kind: slurm, partition: preempt, gres: gpu:1g.10gb:2, atMost: 8, lengths: [10m, 30m, 2h], idle: 3m}
  - name: shares
    kind: slurm
    partition: gpu
    atMost: 1
    lengths: [1h]
    idle: 1m
    start: 45s
    every: 20s
    slices: [{memory: 10Gi, count: 2, speed: 0.5, model: A100-SXM4-80GB, profile: mig-1g.10gb}, {memory: 1Gi}]
    cpus: 4
    memory: 16Gi
    account: a
    qos: low
    constraint: "a100|h100"
    reservation: r
    exclude: node[1-3]
    options: [--nice=100]
    shared: /shared/sluice
    scratch: $TMPDIR
    sluice: /usr/bin/sluice
    before: [module load cuda]
    within: [apptainer, exec, --nv, image.sif]
    gpus: nvml
    head: head.example:7118
    userSignal: true
    ownerless: never
`))
	if err != nil {
		t.Fatal(err)
	}
	slice := supply.Slice{Capacity: trp.Vector{trp.Memory: 9856 << 20}, Speed: 142, Profile: "1g.10gb"}
	if got := d.Providers[0].Pool.Slices; len(got) == 2 {
		slice.Speed, slice.Capacity = got[0].Speed, got[0].Capacity // as package mig knows them
		if slice.Speed < 100 || slice.Speed > 200 || slice.Capacity[trp.Memory] < 9<<30 {
			t.Errorf("a slice of 1g.10gb is %+v", slice)
		}
	}
	want := []Provider{
		{Kind: "slurm", Partition: "preempt", Gres: "gpu:1g.10gb:2", Every: 5 * time.Second, Ownerless: time.Minute,
			Pool: supply.Pool{Name: "scavenger", Most: 8,
				Lengths: []time.Duration{10 * time.Minute, 30 * time.Minute, 2 * time.Hour}, Step: time.Minute, Idle: 3 * time.Minute,
				Start: 30 * time.Second, HandOver: 10 * time.Second, Slices: []supply.Slice{slice, slice}}},
		{Kind: "slurm", Partition: "gpu", Every: 20 * time.Second, CPUs: 4, Memory: 16 << 30, Account: "a", QOS: "low",
			Constraint: "a100|h100", Reservation: "r", Exclude: "node[1-3]", Options: []string{"--nice=100"}, Shared: "/shared/sluice",
			Scratch: "$TMPDIR", Sluice: "/usr/bin/sluice", Before: []string{"module load cuda"},
			Within: []string{"apptainer", "exec", "--nv", "image.sif"}, GPUs: "nvml", Head: "head.example:7118", UserSignal: true,
			Pool: supply.Pool{Name: "shares", Most: 1, Lengths: []time.Duration{time.Hour}, Step: time.Minute, Idle: time.Minute,
				Start: 45 * time.Second, HandOver: 10 * time.Second, Slices: []supply.Slice{
					{Capacity: trp.Vector{trp.Memory: 10 << 30}, Speed: 500, Model: "NVIDIA A100-SXM4-80GB", Profile: "1g.10gb"},
					{Capacity: trp.Vector{trp.Memory: 10 << 30}, Speed: 500, Model: "NVIDIA A100-SXM4-80GB", Profile: "1g.10gb"},
					{Capacity: trp.Vector{trp.Memory: 1 << 30}, Speed: 1000},
				}}},
	}
	for i := range want {
		if !reflect.DeepEqual(d.Providers[i], want[i]) {
			t.Errorf("read\n%+v, want\n%+v", d.Providers[i], want[i])
		}
	}
}

func TestAProviderThroughSlurmrestd(t *testing.T) {
	d, err := ParseDaemon("f", []byte(`providers: [{name: a, kind: slurm, partition: p, gres: gpu:1g.10gb:1, atMost: 1, lengths: [10m],
  rest: {url: "https://slurm.example:6820", user: ada, tokenFile: /home/ada/.slurm-jwt, version: v0.0.43}}]`))
	want := &SlurmREST{URL: "https://slurm.example:6820", User: "ada", TokenFile: "/home/ada/.slurm-jwt", Version: "v0.0.43"}
	if err != nil || len(d.Providers) != 1 || !reflect.DeepEqual(d.Providers[0].REST, want) {
		t.Errorf("%+v, %v: want %+v", d, err, want)
	}
}

// All that is wrong is said at once, each with its place and what to write instead.
func TestWrongProviders(t *testing.T) {
	const rest = "partition: p, gres: gpu:1g.10gb:1, atMost: 1, lengths: [10m]"
	for text, want := range map[string]string{
		"providers: x":    "want a list of providers",
		"providers: [{}]": `"name" is missing`,
		"providers: [{kind: slurm, " + rest + "}]":                                                "write for example name: scavenger",
		"providers: [{name: a, " + rest + "}]":                                                    `"kind" is missing`,
		"providers: [{name: a, kind: fake, " + rest + "}]":                                        "is \"fake\"",
		"providers: [{name: A_b, kind: slurm, " + rest + "}]":                                     "lower-case letters",
		"providers: [{name: a23456789012345678901, kind: slurm, " + rest + "}]":                   "at most 20",
		"providers: [{name: a, kind: slurm, " + rest + ", lengthz: [1m]}]":                        "lengths",
		"providers: [{name: a, kind: slurm, partition: p, atMost: 1, lengths: [10m]}]":            "for example slices: [{memory: 10Gi}]",
		"providers: [{name: a, kind: slurm, " + rest + ", slices: []}]":                           "want 1 to 64",
		"providers: [{name: a, kind: slurm, " + rest + ", slices: [{count: 2}]}]":                 `"memory" is missing`,
		"providers: [{name: a, kind: slurm, " + rest + ", ownerless: 5s}]":                        "want 10s to 10m",
		"providers: [{name: a, kind: slurm, " + rest + ", ownerless: 11m}]":                       "want 10s to 10m",
		"providers: [{name: a, kind: slurm, " + rest + ", head: head.example}]":                   "such as head.example:7118",
		"providers: [{name: a, kind: slurm, " + rest + ", shared: shared}]":                       "a path from the root",
		"providers: [{name: a, kind: slurm, " + rest + ", options: [\"a\\nb\"]}]":                 "text on one line",
		"providers: [{name: a, kind: slurm, " + rest + ", rest: {}}]":                             "url: unix:/run/slurmrestd.sock",
		"providers: [{name: a, kind: slurm, " + rest + ", rest: {url: x, port: 1}}]":              "tokenFile",
		"providers: [{name: a, kind: slurm, " + rest + ", rest: {url: x, tokenFile: jwt}}]":       "a path from the root",
		"providers: [{name: a, kind: slurm, " + rest + ", rest: {url: x}, options: [--nice=1]}]":  "not called with rest",
		"providers: [{name: a, kind: slurm, " + rest + "}, {name: a, kind: slurm, " + rest + "}]": "given in line 1 too",
	} {
		if _, err := ParseDaemon("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for lengths, want := range map[string]string{
		"[]": "at least one", "[90s]": "want whole ones", "[30s]": "want 1m", "[30m, 10m]": "is 10m, after 30m",
		"[10m, 10m]": "longer than the one before", "10m": "want a list of lengths",
	} {
		text := "providers: [{name: a, kind: slurm, partition: p, gres: gpu:1g.10gb:1, atMost: 1, lengths: " + lengths + "}]"
		if _, err := ParseDaemon("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := ParseDaemon("f", []byte("providers: [{name: A, kind: x, atMost: 0, lengths: [90s], every: 0s, idle: -1s, gpus: ''}]"))
	for _, key := range []string{"name", "kind", "atMost", "lengths[0]", "every", "idle", "gpus"} {
		if err == nil || !strings.Contains(err.Error(), "providers[0]."+key) {
			t.Errorf("%v: nothing of %s", err, key)
		}
	}
}

func TestSlicesOfGres(t *testing.T) {
	for gres, want := range map[string]string{
		"gpu:1g.10gb:2": "1g.10gb 1g.10gb", "gpu:1g.10gb": "1g.10gb", "gpu:a100-80gb_3g.40gb:1": "NVIDIA A100-SXM4-80GB/3g.40gb",
		"gpu:nvidia_a100_80gb_pcie_1g.10gb:1": "NVIDIA A100 80GB PCIe/1g.10gb", "gpu:2": "", "gpu": "",
		"gpu:a100:1": "", "": "", "gpu:1g.10gb:0": "", "gpu:1g.10gb:x": "", "gpu:9g.1234gb:1": "", "shard:1g.10gb:1:2": ""} {
		got := ""
		for _, s := range slicesOfGres(gres) {
			if got != "" {
				got += " "
			}
			if s.Model != "" {
				got += s.Model + "/"
			}
			got += s.Profile
			if s.Capacity[trp.Memory] < 1<<30 || s.Speed < 1 || s.Speed > 1000 {
				t.Errorf("%s: %+v", gres, s)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", gres, got, want)
		}
	}
}
