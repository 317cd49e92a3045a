package versioned

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       errkind.Kind
		says       string
	}{
		{"the oldest", `{"version": 2, "names": ["a"]}`, errkind.Unknown, ""},
		{"the newest", `{"version": 3, "names": ["a"]}`, errkind.Unknown, ""},
		{"a newer one of another form", `{"version": 4, "names": {"a": 1}}`, errkind.Unsupported, "versions up to 3"},
		{"one that is too old", `{"version": 1, "names": ["a"]}`, errkind.Corrupt, "its version is 1"},
		{"none", `{"names": ["a"]}`, errkind.Corrupt, "its version is 0"},
		{"another form", `{"version": 3, "names": {"a": 1}}`, errkind.Corrupt, "cannot unmarshal object"},
		{"cut off", `{"version": 3, "names": ["a"`, errkind.Corrupt, "unexpected end"},
		{"empty", ``, errkind.Corrupt, "unexpected end"},
		{"no object", `[3]`, errkind.Corrupt, "cannot unmarshal array"},
	} {
		var content struct {
			Version int
			Names   []string
		}
		err := Decode("dir/file", []byte(c.text), 2, 3, "restore it", &content)
		switch {
		case c.says == "" && (err != nil || len(content.Names) != 1):
			t.Errorf("%s: %+v, %v", c.name, content, err)
		case c.says != "" && (errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "dir/file")):
			t.Errorf("%s: %v", c.name, err)
		case c.kind == errkind.Corrupt && !strings.Contains(err.Error(), "restore it"):
			t.Errorf("%s does not say what to do: %v", c.name, err)
		}
	}
}
