// Command image packs programs into a container image: an OCI layout in a tar, with one layer of static programs and nothing else. It
// needs no daemon and no registry, and the same programs give the same bytes. `ctr images import`, `podman load` and `skopeo copy
// oci-archive:FILE` take it.
//
//	image -o sluice.tar -name registry.example.com/sluice:v1 -arch amd64 bin/sluice bin/sluice-shim
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "", "the tar to write")
	name := flag.String("name", "", "what the image is called, with its tag")
	arch := flag.String("arch", runtime.GOARCH, "what the programs were built for")
	certificates := flag.String("ca", "", "certificates that its programs trust, PEM (default: this machine's, where it has them)")
	flag.Parse()
	if *out == "" || *name == "" || flag.NArg() == 0 {
		log.Fatal("usage: image -o FILE -name NAME:TAG [-arch ARCH] [-ca FILE] PROGRAM...; the first is what the image runs")
	}
	data, err := build(*name, *arch, *certificates, flag.Args())
	if err == nil {
		err = os.WriteFile(*out, data, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// user that its programs run as: nobody's, and not root.
const user = "65532:65532"

// bundle is where programs look for certificates, and where most machines have them.
const bundle = "etc/ssl/certs/ca-certificates.crt"

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// build makes the image.
func build(name, arch, certificates string, programs []string) ([]byte, error) {
	plain, err := layer(certificates, programs)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = zip.Write(plain)
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	var blobs [][]byte
	keep := func(kind string, b []byte) descriptor {
		blobs = append(blobs, b)
		return descriptor{MediaType: "application/vnd.oci.image." + kind, Digest: digest(b), Size: len(b)}
	}
	top := keep("layer.v1.tar+gzip", packed.Bytes())
	config := keep("config.v1+json", encode(map[string]any{
		"architecture": arch, "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(plain)}},
		"config": map[string]any{"User": user, "Entrypoint": []string{"/" + filepath.Base(programs[0])}, "Env": []string{"PATH=/"},
			"WorkingDir": "/"},
	}))
	manifest := keep("manifest.v1+json",
		encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
			"layers": []descriptor{top}}))
	tag := name[strings.LastIndexAny(name, ":/")+1:]
	manifest.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}

	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err = errors.Join(
		put(w, "oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)),
		put(w, "index.json", 0o644, encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
			"manifests": []descriptor{manifest}})),
	)
	for _, blob := range blobs {
		err = errors.Join(err, put(w, "blobs/sha256/"+strings.TrimPrefix(digest(blob), "sha256:"), 0o644, blob))
	}
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// layer is what the image has: the programs in its root, a user, certificates, and a place for what is temporary.
func layer(certificates string, programs []string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range programs {
		data, err := os.ReadFile(p)
		if err == nil {
			err = put(w, filepath.Base(p), 0o755, data)
		}
		if err != nil {
			return nil, err
		}
	}
	trusted, err := os.ReadFile(cmpOr(certificates, "/"+bundle))
	if err != nil && (certificates != "" || !errors.Is(err, os.ErrNotExist)) {
		return nil, fmt.Errorf("-ca: %w", err)
	}
	if len(trusted) > 0 {
		if err := put(w, bundle, 0o644, trusted); err != nil {
			return nil, err
		}
	}
	err = errors.Join(
		put(w, "etc/passwd", 0o644, []byte("sluice:x:65532:65532::/:/\n")),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, Format: tar.FormatPAX}),
		w.Close(),
	)
	return b.Bytes(), err
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// put writes one file, without a time.
func put(w *tar.Writer, name string, mode int64, data []byte) error {
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(w, bytes.NewReader(data))
	}
	return err
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return b
}
