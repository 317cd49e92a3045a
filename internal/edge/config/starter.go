package config

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/strict"
)

// StarterKinds are the kinds of work that Starter knows; the first is the usual one.
func StarterKinds() []string { return kindsOfWork() }

// starters are the texts of a starter file for its kind of work, and a program that runs as it is.
func starters() map[string]struct{ work, script string } {
	const units = `i=$SLUICE_FROM
while [ "$i" -lt "$SLUICE_TO" ]; do
  echo "unit $i" >> "$SLUICE_OUTPUT_DIR/result.txt"    # the work
  i=$((i + 1))
  echo "{\"progress\": $i}" > "$SLUICE_PROGRESS_FILE.new" && mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
done
`
	return map[string]struct{ work, script string }{
		"items": {"total: 1000\nperItem: 5ms", units},
		"steps": {"total: 1000\nperStep: 5ms\nevery: 100\nrestore: 10ms\ncheckpoint: 10ms", `i=$SLUICE_FROM
sum=0; [ -z "$SLUICE_RESUME_DIR" ] || sum=$(cat "$SLUICE_RESUME_DIR/sum-$i")
while [ "$i" -lt "$SLUICE_TO" ]; do
  i=$((i + 1)); sum=$((sum + i))    # the work
  [ $((i % 100)) -eq 0 ] || continue
  echo "$sum" > "$SLUICE_CHECKPOINT_DIR/sum-$i"    # each checkpoint has a name of its own
  echo "{\"progress\": $i, \"checkpoint\": true}" > "$SLUICE_PROGRESS_FILE.new" && mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
done
echo "$sum" > "$SLUICE_OUTPUT_DIR/sum.txt"
`},
		"rigid": {"walltime: 1m", `sleep 3                                    # the work
echo done > "$SLUICE_OUTPUT_DIR/result.txt"
`},
		"external": {"total: 1000\nperUnit: 5ms", units},
	}
}

// Starter is a commented job file to start from: what is needed with values that run, the rest as comments.
func Starter(kind string) ([]byte, error) {
	start, ok := starters()[kind]
	if !ok {
		_, hint := strict.Suggest(kind, StarterKinds())
		return nil, errkind.Errorf(errkind.Invalid, "%q is no kind of job; %s", kind, hint)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# A job of kind %s. `sluice explain spec` describes every key; those behind # may be left out.\n", kind)
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: my-%s\nspec:\n", APIVersion, JobKind, kind)
	fields := specFields()
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Key == kind:
			comment(&b, "  ", f.Doc)
			fmt.Fprintf(&b, "  %s:\n", kind)
			given := strings.Split(start.work, "\n")
			for j := range f.Form.Keys {
				k := &f.Form.Keys[j]
				comment(&b, "    ", k.Doc)
				if at := slices.IndexFunc(given, func(line string) bool { return strings.HasPrefix(line, k.Key+":") }); at >= 0 {
					fmt.Fprintf(&b, "    %s\n", given[at])
				} else {
					fmt.Fprintf(&b, "    # %s: %s\n", k.Key, k.Example)
				}
			}
		case slices.Contains(kindsOfWork(), f.Key), len(f.Of) > 0 && !slices.Contains(f.Of, kind),
			f.Key == "adapter" && kind != "items": // its example is one of items
		case f.Key == "memory":
			comment(&b, "  ", f.Doc)
			b.WriteString("  memory: 64Mi\n")
		case f.Key == "command":
			comment(&b, "  ", f.Doc)
			fmt.Fprintf(&b, "  command:\n    - sh\n    - -c\n    - |\n      %s\n", strings.ReplaceAll(strings.TrimSpace(start.script), "\n",
				"\n      "))
		default:
			comment(&b, "  ", f.Doc)
			fmt.Fprintf(&b, "  # %s: %s\n", f.Key, f.Example)
		}
	}
	return []byte(b.String()), nil
}

// comment writes a text as lines of a comment.
func comment(b *strings.Builder, indent, text string) {
	for _, line := range wrap(text, 100-len(indent)) {
		fmt.Fprintf(b, "%s# %s\n", indent, line)
	}
}
