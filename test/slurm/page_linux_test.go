package slurm

import (
	"os"
	"strings"
	"testing"
)

// block is a piece of code of the page, with the language that it says.
type block struct{ language, text string }

// page reads the blocks of docs/slurm.md between a heading and the next, so that what people paste is what is tested.
func page(t *testing.T, heading string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile("../../docs/slurm.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/slurm.md has no %q", heading)
	}
	in := false
	for line := range strings.Lines(part) {
		switch {
		case strings.HasPrefix(line, "```"):
			if in = !in; in {
				blocks = append(blocks, block{language: strings.TrimSpace(line[3:])})
			}
		case in:
			blocks[len(blocks)-1].text += line
		case strings.HasPrefix(line, "## "), strings.HasPrefix(line, "### "):
			return blocks
		}
	}
	return blocks
}

// onlyBlock is the text of the only block of a language.
func onlyBlock(t *testing.T, blocks []block, language string) string {
	t.Helper()
	var texts []string
	for _, b := range blocks {
		if b.language == language {
			texts = append(texts, b.text)
		}
	}
	if len(texts) != 1 {
		t.Fatalf("%d blocks of %s, want one: %q", len(texts), language, texts)
	}
	return texts[0]
}

// commands of the n-th console block.
func commands(t *testing.T, blocks []block, n int) (list []string) {
	t.Helper()
	for _, b := range blocks {
		if b.language != "console" {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		for line := range strings.Lines(b.text) {
			if c, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
				list = append(list, c)
			}
		}
		break
	}
	if len(list) == 0 {
		t.Fatalf("there is no such block of commands among %q", blocks)
	}
	return list
}
