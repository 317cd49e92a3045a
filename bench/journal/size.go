package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sizes builds a program with nothing but each candidate and looks at it.
func sizes() error {
	fmt.Println("| | stripped binary, MB | modules | packages |\n|---|---|---|---|")
	for _, name := range []string{"plain", "bolt", "pebble", "etcdwal"} {
		pkg := "./size/" + name
		out := filepath.Join(os.TempDir(), "journal-size-"+name)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, b)
		}
		info, err := os.Stat(out)
		if err != nil {
			return err
		}
		packages, err := exec.Command("go", "list", "-deps", pkg).Output()
		if err != nil {
			return err
		}
		modules, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pkg).Output()
		if err != nil {
			return err
		}
		distinct := map[string]bool{}
		for m := range strings.FieldsSeq(string(modules)) {
			distinct[m] = true
		}
		fmt.Printf("| %s | %.2f | %d | %d |\n", name, float64(info.Size())/1e6, len(distinct)-1, strings.Count(string(packages), "\n"))
		if err := os.Remove(out); err != nil {
			return err
		}
	}
	return nil
}
