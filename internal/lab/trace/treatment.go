package trace

// Treatment is a known way in which files depart from their format, and how a reader treats it instead of refusing the file. It is named,
// counted and reported: a summary of a file shows these too.
type Treatment struct {
	// Name says what was found and what it was taken for, such as "negative run time: taken as unknown".
	Name string
	// Count of the values, or of the lines where it is about a line; First is the first such line, from 1.
	Count int64
	First int
}

// treatments of one file, in the order of their first lines.
type treatments []Treatment

// add counts. There are few names: a list is searched faster than a map.
func (t *treatments) add(name string, line int) {
	for i := range *t {
		if (*t)[i].Name == name {
			(*t)[i].Count++
			return
		}
	}
	*t = append(*t, Treatment{Name: name, Count: 1, First: line})
}

// Treat counts a treatment of the line, or of one of its values. name is one of a few constants of the format.
func (l *Line) Treat(name string) { l.treated.add(name, l.Number) }
