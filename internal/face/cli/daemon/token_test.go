package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestATokenIsReadFromAFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, file, token string
		flag              bool
		want, wrong       string
	}{
		{name: "no file", token: "sluice-join-1-a", want: "sluice-join-1-a"},
		{name: "neither"},
		{name: "a file", file: file("good", "sluice-join-1-b\n", 0o600), want: "sluice-join-1-b"},
		{name: "a file before the environment", file: file("first", "sluice-join-1-b", 0o400), token: "c", want: "sluice-join-1-b"},
		{name: "both", file: file("both", "b", 0o600), token: "c", flag: true, wrong: "not both"},
		{name: "open to others", file: file("open", "b", 0o640), wrong: "chmod 600"},
		{name: "empty", file: file("empty", "\n", 0o600), wrong: "want one line"},
		{name: "two lines", file: file("two", "a\nb\n", 0o600), wrong: "want one line"},
		{name: "large", file: file("large", strings.Repeat("a", maxToken+1), 0o600), wrong: "want one line"},
		{name: "a folder", file: dir, wrong: dir},
		{name: "not there", file: filepath.Join(dir, "none"), wrong: "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := invitation(c.token, c.flag, c.file)
			if c.wrong == "" {
				if err != nil || got != c.want {
					t.Errorf("%q, %v: want %q", got, err, c.want)
				}
				return
			}
			if err == nil || got != "" || !strings.Contains(err.Error(), c.wrong) || !c.flag && errkind.Of(err) != errkind.Invalid {
				t.Errorf("%q, %v of kind %v: want an error that says %q", got, err, errkind.Of(err), c.wrong)
			}
		})
	}
}
