package config

import (
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// Compose makes a job of single values, each at its path of keys, such as spec.items.total: what a command line gives. It is
// checked and filled as a file is; a problem's Path says which value is wrong, and its line nothing. The error is of kind
// Invalid and unwraps to *Problems.
func Compose(sets []Set) (spec *job.Spec, workdir string, err error) {
	c := &collector{file: "job"}
	doc, schema := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, jobFile()
	for _, s := range sets {
		c.set(doc, s)
	}
	if err := c.err(); err != nil {
		return nil, "", err
	}
	spec, workdir = c.job(value{c: c, node: doc, form: &schema})
	if err := c.err(); err != nil {
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
	return firstSentence(f.doc), f.example
}

// SchemaOf is the JSON Schema of one path, such as spec.items; an error of kind NotFound says what is near.
func SchemaOf(path string) ([]byte, error) {
	f, err := lookup(path)
	if err != nil {
		return nil, errkind.Errorf(errkind.NotFound, "%w", err)
	}
	s := f.form.schema()
	s["description"] = f.meaning()
	return encodeSchema(s), nil
}
