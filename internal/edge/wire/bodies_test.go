package wire

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
)

// stranger is a body that goes with no kind.
type stranger struct{}

func (*stranger) Body() {}

func TestAnotherBodyThanTheKindsIsABug(t *testing.T) {
	for name, m := range map[string]protocol.Message{
		"another":     {Kind: protocol.Inventory, Body: &stranger{}},
		"none":        {Kind: protocol.Inventory},
		"one of none": {Kind: protocol.Tick, Body: &protocol.Stock{}},
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.As(err, new(invariant.Broken)) {
					t.Errorf("%s: %v, want a broken invariant", name, err)
				}
			}()
			AppendMessage(nil, &m)
		}()
	}
}

func TestAnotherBodyThanTheKindsIsDamage(t *testing.T) {
	stock := AppendMessage(nil, &protocol.Message{Kind: protocol.Inventory, Body: &protocol.Stock{Slices: []protocol.Slice{{ID: "s"}}}})
	for name, c := range map[string]struct {
		b    []byte
		says string
	}{
		"none":        {[]byte{MessageVersion, 0x08, byte(protocol.Inventory)}, "no body, where a message of kind 80 has one"},
		"one of none": {append([]byte{MessageVersion, 0x08, byte(protocol.Tick)}, stock[3:]...), "where a message of kind"},
		"not of any":  {append([]byte{MessageVersion, 0x08, byte(protocol.Inventory)}, 0xc0, 0x02, 0x01), "wire type"},
		"cut short":   {stock[:len(stock)-1], "cut short"},
		"out of order": {[]byte{MessageVersion, 0x08, byte(protocol.Inventory), 0xc2, 0x02, 0x04, 0x12, 0x00, 0x0a, 0x00},
			"field 1 after field 2"},
		"header follows": {append(stock[:len(stock):len(stock)], 0x2a, 0x01, 'j'), "after field 40"},
	} {
		got, err := DecodeMessage(c.b)
		if errkind.Of(err) != errkind.Corrupt || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%v), want damage with %q", name, err, errkind.Of(err), c.says)
		}
		if !reflect.ValueOf(got).IsZero() {
			t.Errorf("%s: half a message came back: %+v", name, got)
		}
	}
}

func TestAMessageOfTheFlatFormatIsRefused(t *testing.T) {
	if _, err := DecodeMessage([]byte{1, 0x08, byte(protocol.Tick)}); errkind.Of(err) != errkind.Unsupported ||
		!strings.Contains(err.Error(), "format 1") {
		t.Errorf("%v (%v), want that format 1 is not known", err, errkind.Of(err))
	}
}

// TestEveryBodyHasAKind reads the core: a type that is marked as a body and goes with no kind is in no message or fact.
func TestEveryBodyHasAKind(t *testing.T) {
	sent := map[string]bool{}
	for _, k := range messageKinds {
		if m := messageOf(k); m.Body != nil {
			sent[reflect.TypeOf(m.Body).String()] = true
		}
	}
	for _, k := range factKinds {
		if f := factOf(k); f.Body != nil {
			sent[reflect.TypeOf(f.Body).String()] = true
		}
	}
	paths, err := filepath.Glob("../../core/*/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "Body" || fn.Type.Results != nil {
				continue
			}
			star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				t.Errorf("%s: Body is of a pointer, so that all bodies are", p)
				continue
			}
			if name := "*" + f.Name.Name + "." + star.X.(*ast.Ident).Name; !sent[name] {
				t.Errorf("%s goes with no kind in bodies.go or facts.go", name)
			}
		}
	}
}
