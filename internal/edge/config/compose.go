package config

import (
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/strict"
)

// Compose makes a job of single values, each at its path of keys, such as spec.items.total: what a command line gives. It is
// checked and filled as a file is; a problem's Path says which value is wrong, and its line nothing. The error is of kind
// Invalid and unwraps to *Problems.
func Compose(sets []strict.Set) (spec *job.Spec, workdir string, err error) {
	c := &strict.File{File: "job"}
	doc, schema := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, jobFile()
	for _, s := range sets {
		c.Set(doc, s)
	}
	if err := c.Err(); err != nil {
		return nil, "", err
	}
	spec, workdir = oneJob(c.Root(doc, &schema))
	if err := c.Err(); err != nil {
		return nil, "", err
	}
	return spec, workdir, nil
}

// Describe is what the first sentence of a path's meaning says, and an example of it. It panics for a path that is not one
// of Paths.
func Describe(path string) (meaning, example string) {
	f, err := lookup(path)
	if err != nil {
		panic(err)
	}
	return firstSentence(f.Doc), f.Example
}

// SchemaOf is the JSON Schema of one path, such as spec.items; an error of kind NotFound says what is near.
func SchemaOf(path string) ([]byte, error) {
	f, err := lookup(path)
	if err != nil {
		return nil, errkind.Errorf(errkind.NotFound, "%w", err)
	}
	s := schema(&f.Form)
	s["description"] = meaning(f)
	return encodeSchema(s), nil
}
