package wire

import (
	"bytes"
	"encoding/hex"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

var update = flag.Bool("update", false, "write the golden files: only for fields and kinds that are new")

// TestGolden pins the encoding of every field and every kind. A line that changes or goes away is a change of the
// format that old journals do not survive; a line that is added is not.
func TestGolden(t *testing.T) {
	t.Run("fact", func(t *testing.T) {
		lines := map[string]string{}
		for _, k := range factKinds {
			lines["kind "+hex.EncodeToString([]byte{byte(k)})] = hex.EncodeToString(AppendFact(nil, new(factOf(k))))
		}
		everyFactLeaf(func(path string, f *protocol.Fact) {
			b := AppendFact(nil, f)
			lines[path] = hex.EncodeToString(b)
			undo := complete(f)
			defer undo()
			whole := AppendFact(nil, f)
			if got, err := DecodeFact(whole); err != nil || !reflect.DeepEqual(&got, f) {
				t.Errorf("%s does not come back: %v", path, err)
			}
			if _, err := DecodeFact(b); lacks(err) == bytes.Equal(b, whole) {
				t.Errorf("%s, of %x where %x is all that its kind needs: %v", path, b, whole, err)
			}
		})
		golden(t, "testdata/fact.golden", lines, func(b []byte) error {
			if _, err := DecodeFact(b); !lacks(err) { // a line has one field alone
				return err
			}
			return nil
		})
	})
	t.Run("message", func(t *testing.T) {
		lines := map[string]string{}
		for _, k := range messageKinds {
			lines["kind "+hex.EncodeToString([]byte{byte(k)})] = hex.EncodeToString(AppendMessage(nil, new(messageOf(k))))
		}
		everyLeaf(func(path string, m *protocol.Message) {
			b := AppendMessage(nil, m)
			lines[path] = hex.EncodeToString(b)
			if got, err := DecodeMessage(b); err != nil || !reflect.DeepEqual(&got, m) {
				t.Errorf("%s does not come back: %v", path, err)
			}
		})
		golden(t, "testdata/message.golden", lines, func(b []byte) error { _, err := DecodeMessage(b); return err })
	})
}

// lacks says whether a fact was refused for want of a field that its kind needs.
func lacks(err error) bool {
	return errkind.Of(err) == errkind.Corrupt && err != nil && strings.Contains(err.Error(), "where a fact of its kind has one")
}

func golden(t *testing.T, path string, now map[string]string, decode func([]byte) error) {
	seen := map[string]string{}
	for name, line := range now {
		if other, twice := seen[line]; twice {
			t.Errorf("%s and %s have the same encoding %s: a field is not encoded at all", name, other, line)
		}
		seen[line] = name
	}
	if *update {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(now)) {
			b.WriteString(name + "\t" + now[name] + "\n")
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]string{}
	for line := range strings.Lines(string(stored)) {
		name, encoding, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		old[name] = encoding
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		b, err := hex.DecodeString(old[name])
		if err != nil {
			t.Fatal(err)
		}
		if err := decode(b); err != nil {
			t.Errorf("old bytes of %s are not read any more: %v", name, err)
		}
		if now[name] != old[name] {
			t.Errorf("%s was %s, is %q: the format has changed; give back the field its number, or its name in the golden file", name,
				old[name], now[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := old[name]; !ok {
			t.Errorf("%s is new: go test ./internal/edge/wire -run Golden -update", name)
		}
	}
}
