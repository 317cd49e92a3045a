//go:build kubernetes

package operator

import (
	"os"
	"regexp"
	"testing"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/store/s3"
)

// TestAPodKeepsItsIdentity: an operator whose container is started anew has its lease again at once, and no two processes elsewhere take
// each other for themselves.
func TestAPodKeepsItsIdentity(t *testing.T) {
	in := func(uid string) string {
		id, err := identity(func(key string) string { return map[string]string{"POD_UID": uid}[key] })
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first, again, other, one, another := in("a"), in("a"), in("b"), in(""), in("")
	if first != again || first == other || one == another {
		t.Errorf("%s, %s, %s, %s, %s", first, again, other, one, another)
	}
}

// TestStoresAreNamedAsTheyAreRead: where people are shown how to name a store, what they copy is taken.
func TestStoresAreNamedAsTheyAreRead(t *testing.T) {
	c := Command(&command.App{}, Deps{Policies: []string{"fair"}})
	texts := map[string]string{"the help of sluice operator": c.Example + c.Long + c.UsageString()}
	for _, file := range []string{"docs/kubernetes.md", "deploy/helm/sluice/values.yaml", "deploy/helm/sluice/templates/deployment.yaml"} {
		text, err := os.ReadFile("../../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	spec := regexp.MustCompile(`s3:[A-Za-z/]+(\?[a-z]+=[^'"\]\s]+)?`)
	for where, text := range texts {
		all := spec.FindAllString(text, -1)
		if len(all) == 0 {
			t.Errorf("%s names no store", where)
		}
		for _, s := range all {
			if _, err := s3.Parse(s); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
}
