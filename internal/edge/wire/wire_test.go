package wire

import (
	"bytes"
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

var (
	factKinds    = known(knownFact)
	messageKinds = known(knownMessage)
)

func known[K ~uint8](is func(K) bool) []K {
	var all []K
	for k := range 256 {
		if is(K(k)) {
			all = append(all, K(k))
		}
	}
	return all
}

func TestFactsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFact(t)
		b := AppendFact(nil, &want)
		got, err := DecodeFact(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("\n got %+v\nwant %+v", got, want)
		}
		if again := AppendFact([]byte("kept"), &got); !bytes.Equal(again, append([]byte("kept"), b...)) {
			t.Fatalf("same value, other bytes:\n%x\n%x", again, b)
		}
	})
}

func TestMessagesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := messageOf(rapid.SampledFrom(messageKinds).Draw(t, "kind"))
		drawFields(t, &want)
		if want.Body != nil {
			draw(t, reflect.ValueOf(want.Body).Elem())
		}
		b := AppendMessage(nil, &want)
		got, err := DecodeMessage(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("\n got %+v\nwant %+v", got, want)
		}
		if again := AppendMessage(nil, &got); !bytes.Equal(again, b) {
			t.Fatalf("same value, other bytes:\n%x\n%x", again, b)
		}
	})
}

func TestListsComeBack(t *testing.T) {
	want := []protocol.Fact{{Kind: protocol.JobForgotten, Job: "a", Body: &protocol.Forgetting{}}, {Kind: protocol.Booted, Epoch: 9}}
	b := AppendFacts(nil, want)
	var got []protocol.Fact
	if err := DecodeFacts(b, func(f protocol.Fact) error { got = append(got, f); return nil }); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	stop := errors.New("stop")
	if err := DecodeFacts(b, func(protocol.Fact) error { return stop }); !errors.Is(err, stop) {
		t.Fatalf("the callback's error was lost: %v", err)
	}
	for cut := range len(b) {
		n := 0
		err := DecodeFacts(b[:cut], func(protocol.Fact) error { n++; return nil })
		if whole := cut == 0 || cut == 1+int(b[0]); whole != (err == nil) {
			t.Fatalf("cut at %d of %d: %v after %d facts", cut, len(b), err, n)
		}
	}
}

func TestAnErrorOfAnyTypeTravelsAsKindAndText(t *testing.T) {
	for _, err := range []error{errors.New("plain"), errkind.Errorf(errkind.Exhausted, "no room: %w", os.ErrInvalid), errors.New("")} {
		b := AppendMessage(nil, &protocol.Message{Kind: protocol.Reply, Body: &protocol.Receipt{Err: err}})
		got, e := DecodeMessage(b)
		if e != nil || got.Body.(*protocol.Receipt).Err == nil || got.Body.(*protocol.Receipt).Err.Error() != err.Error() ||
			errkind.Of(got.Body.(*protocol.Receipt).Err) != errkind.Of(err) {
			t.Errorf("%v became %v (%v)", err, got.Body.(*protocol.Receipt).Err, e)
		}
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	good := AppendFact(nil, &protocol.Fact{Kind: protocol.JobAccepted, Job: "a", Body: &protocol.Acceptance{}})
	cases := []struct {
		name string
		b    []byte
		kind errkind.Kind
		says string
	}{
		{"nothing", nil, errkind.Corrupt, "no bytes"},
		{"newer version", append([]byte{Version + 1}, good[1:]...), errkind.Unsupported, "format 2"},
		{"unknown kind", []byte{Version, 0x08, 0x1f}, errkind.Unsupported, "kind 31"},
		{"no kind", []byte{Version}, errkind.Unsupported, "kind 0"},
		{"unknown field", append(bytes.Clone(good), 0xf8, 0x3f, 0x01), errkind.Unsupported, "field 1023"},
		{"unknown member of a set", []byte{Version, 0x08, 0x01, 0x12, 0x02, 0x08, 0x63}, errkind.Unsupported, "value 99"},
		{"unknown flag", []byte{Version, 0x08, 0x01, 0x80, 0x01, 0x02}, errkind.Unsupported, "value 2 of field 16"},
		{"more resources", []byte{Version, 0x08, byte(protocol.Claimed), 0x72, 0x02, 0x02, 0x02}, errkind.Unsupported, "2 resources"},
		{"another kind's field", []byte{Version, 0x08, 0x01, 0x72, 0x01, 0x02}, errkind.Unsupported, "field 14"},
		{"no body", []byte{Version, 0x08, byte(protocol.QueueSet)}, errkind.Corrupt, "no field 21"},
		{"no spec", good, errkind.Corrupt, "no field 20"},
		{"a record without its spec", []byte{Version, 0x08, byte(protocol.HomeKept), 0xda, 0x01, 0x00}, errkind.Corrupt, "no field 27"},
		{"fields out of order", append(bytes.Clone(good), 0x08, 0x01), errkind.Corrupt, "field 1 after field 3"},
		{"zero written", []byte{Version, 0x08, 0x01, 0x20, 0x00}, errkind.Corrupt, "zero"},
		{"empty text written", []byte{Version, 0x08, 0x01, 0x1a, 0x00}, errkind.Corrupt, "empty"},
		{"empty value written", []byte{Version, 0x08, 0x01, 0x2a, 0x00}, errkind.Corrupt, "zero"},
		{"long number", []byte{Version, 0x08, 0x81, 0x00}, errkind.Corrupt, "cannot be read"},
		{"wrong wire type", []byte{Version, 0x0a, 0x00}, errkind.Corrupt, "wire type"},
		{"cut short", good[:len(good)-1], errkind.Corrupt, "cut short"},
		{"epoch too large", []byte{Version, 0x08, 0x01, 0x20, 0xff, 0xff, 0xff, 0xff, 0x1f}, errkind.Unsupported, "field 4"},
	}
	for _, c := range cases {
		got, err := DecodeFact(c.b)
		if errkind.Of(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%v), want %v with %q", c.name, err, errkind.Of(err), c.kind, c.says)
		}
		if !reflect.ValueOf(got).IsZero() {
			t.Errorf("%s: half a fact came back: %+v", c.name, got)
		}
	}
}

func TestAnUnknownKindIsABug(t *testing.T) {
	for name, f := range map[string]func(){
		"fact":    func() { AppendFact(nil, &protocol.Fact{}) },
		"message": func() { AppendMessage(nil, &protocol.Message{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a %s without a kind was written", name)
				}
			}()
			f()
		}()
	}
}

// TestEveryKindIsKnown reads the constants of package protocol, so that a kind added there and not here fails.
func TestEveryKindIsKnown(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	paths, _ := filepath.Glob("../../core/protocol/*.go")
	for _, p := range paths {
		f, err := parser.ParseFile(fset, p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: nowhere{}, Error: func(error) {}}
	pkg, _ := conf.Check("protocol", fset, files, nil) // imports are not resolved; the constants are
	facts, messages := map[uint64]bool{}, map[uint64]bool{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		named, ok := c.Type().(*types.Named)
		if !ok {
			continue
		}
		v, _ := constant.Uint64Val(c.Val())
		switch named.Obj().Name() {
		case "FactKind":
			facts[v] = true
			if !knownFact(protocol.FactKind(v)) {
				t.Errorf("fact %s (%d) is not known here: add it to kinds.go", name, v)
			}
		case "Kind":
			messages[v] = true
			if !knownMessage(protocol.Kind(v)) {
				t.Errorf("message %s (%d) is not known here: add it to kinds.go", name, v)
			}
		}
	}
	if len(facts) != len(factKinds) || len(messages) != len(messageKinds) {
		t.Errorf("%d facts and %d messages in package protocol, %d and %d known here", len(facts), len(messages), len(factKinds),
			len(messageKinds))
	}
}

type nowhere struct{}

func (nowhere) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }
