package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files are those of a tar, with their modes.
func files(t *testing.T, r io.Reader) (content map[string]string, modes map[string]int64) {
	t.Helper()
	content, modes = map[string]string{}, map[string]int64{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return content, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		content[h.Name], modes[h.Name] = string(data), h.Mode
	}
}

// TestAnImageIsReadBack: from the index over manifest and configuration to the programs, each by its digest; and the same programs give
// the same bytes.
func TestAnImageIsReadBack(t *testing.T) {
	dir := t.TempDir()
	var programs []string
	for name, text := range map[string]string{"sluice": "the operator", "sluice-shim": "the supervisor"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	programs = append(programs, filepath.Join(dir, "sluice"), filepath.Join(dir, "sluice-shim"))
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, []byte("a certificate"), 0o644); err != nil {
		t.Fatal(err)
	}
	image, err := build("registry.example.com/team/sluice:v1", "arm64", ca, programs)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := build("registry.example.com/team/sluice:v1", "arm64", ca, programs); err != nil || !bytes.Equal(image, again) {
		t.Errorf("another image, %v", err)
	}
	if !bytes.HasSuffix(image, make([]byte, 1024)) {
		t.Error("the archive has no end")
	}
	layout, _ := files(t, bytes.NewReader(image))
	blob := func(d descriptor, into any) []byte {
		data, there := layout["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if !there || digest([]byte(data)) != d.Digest || len(data) != d.Size {
			t.Fatalf("%+v is not there, or is another", d)
		}
		if into != nil {
			if err := json.Unmarshal([]byte(data), into); err != nil {
				t.Fatal(err)
			}
		}
		return []byte(data)
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal([]byte(layout["index.json"]), &index); err != nil || len(index.Manifests) != 1 || layout["oci-layout"] == "" {
		t.Fatalf("%v: %s", err, layout["index.json"])
	}
	if a := index.Manifests[0].Annotations; a["org.opencontainers.image.ref.name"] != "v1" ||
		a["io.containerd.image.name"] != "registry.example.com/team/sluice:v1" {
		t.Errorf("%v", a)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	blob(index.Manifests[0], &manifest)
	var config struct {
		Architecture, OS string
		Config           struct {
			User       string
			Entrypoint []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob(manifest.Config, &config)
	zip, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != user || config.Config.Entrypoint[0] != "/sluice" ||
		config.RootFS.DiffIDs[0] != digest(plain) {
		t.Errorf("%+v", config)
	}
	content, modes := files(t, bytes.NewReader(plain))
	for name, want := range map[string]string{"sluice": "the operator", "sluice-shim": "the supervisor", bundle: "a certificate",
		"tmp/": ""} {
		if got, there := content[name]; !there || got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if modes["sluice"] != 0o755 || modes["sluice-shim"] != 0o755 || modes["tmp/"] != 0o1777 {
		t.Errorf("%v", modes)
	}
	if _, err := build("a:b", "amd64", filepath.Join(dir, "none"), programs); err == nil {
		t.Error("certificates that are not there")
	}
}
