package pod

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor"
)

// TestWhatIsSealedIsOpenedByItsPodAlone: with its key, for its name, unchanged.
func TestWhatIsSealedIsOpenedByItsPodAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, other := NewKey("a"), NewKey("a")
		name := rapid.StringMatching(`sluice-[a-z]{1,5}-[0-9]-[0-9]{1,3}`).Draw(t, "name")
		want := Run{Part: executor.Part{Token: job.Token{Epoch: 1, Seq: rapid.Uint64().Draw(t, "seq")}},
			Command: rapid.SliceOfN(rapid.StringMatching(`[ -~]*`),
				1, 5).Draw(t, "command"), Output: "https://s3/x?secret=1", Progress: "https://s3/y?secret=2"}
		text, err := Seal(&k, name, &want)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Seal(&k, name, &want); err != nil || again == text {
			t.Fatalf("sealed twice it is the same, %v: who reads both learns of what is in them", err)
		}
		if KeyOf(text) != "a" || strings.Contains(text, "secret") {
			t.Fatal(text)
		}
		again, ok := ParseKey("a", k.Text())
		plain, err := Open(&again, name, text)
		if !ok {
			t.Fatal(k.Text())
		}
		var got Run
		if err != nil || json.Unmarshal(plain, &got) != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: %s", err, plain)
		}
		changed := []byte(text)
		at := rapid.IntRange(2, len(text)-2).Draw(t, "at") // the last letter has bits that mean nothing
		for changed[at] == text[at] {
			changed[at] = rapid.SampledFrom([]byte("abcXYZ01")).Draw(t, "letter")
		}
		for what, failed := range map[string]error{
			"another key": second(Open(&other, name, text)), "another Pod": second(Open(&k, name+"1", text)),
			"changed":                 second(Open(&k, name, string(changed))),
			"another name of the key": second(Open(&Key{ID: "b", Secret: k.Secret}, name, text)), "cut": second(Open(&k, name, text[:at])),
			"no key": second(Open(&Key{ID: "a"}, name, text)),
		} {
			if errkind.Of(failed) != errkind.Denied {
				t.Errorf("%s: %v", what, failed)
			}
		}
	})
}

func second(_ []byte, err error) error { return err }

// TestWhatIsTooLongIsSaid: rather than a Pod whose container cannot start.
func TestWhatIsTooLongIsSaid(t *testing.T) {
	k, noise := NewKey("a"), make([]byte, MaxSealed)
	_, _ = rand.Read(noise)
	if _, err := Seal(&k, "p", &Run{Env: []string{"X=" + base64.StdEncoding.EncodeToString(noise)}}); errkind.Of(err) != errkind.Invalid ||
		!strings.Contains(err.Error(), "environment") {
		t.Error(err)
	}
	if text, err := Seal(&k, "p", &Run{Env: []string{"X=" + strings.Repeat("x", 1<<20)}}); err != nil || len(text) > 8<<10 {
		t.Error(len(text), err)
	} else if plain, err := Open(&k, "p", text); err != nil || !bytes.Contains(plain, bytes.Repeat([]byte("x"), 1<<20)) {
		t.Error(err)
	}
}
