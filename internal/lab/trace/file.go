package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sluice.dev/sluice/internal/core/errkind"
)

// Each reads the file at path as f and calls visit for every record, in order. It stops at the first error of visit and
// returns it. Other errors are those of Reader, and come after the records before the first problem: drop what those gave.
// One for a file that is not there has kind NotFound.
func Each(f Format, path string, visit func(*Record) error) error {
	_, err := Read(f, path, visit)
	return err
}

// Read is Each, and returns how what was not as the format has it was treated.
func Read(f Format, path string, visit func(*Record) error) ([]Treatment, error) {
	file, err := os.Open(path)
	if err != nil {
		kind := errkind.Unavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = errkind.NotFound
		}
		return nil, &errkind.Error{Kind: kind, Err: fmt.Errorf("read a %s trace: %w", f.Name, err)}
	}
	defer file.Close()
	reader := f.Open(file, path)
	var r Record
	for {
		switch err := reader.Next(&r); {
		case errors.Is(err, io.EOF):
			return reader.Treated(), nil
		case err != nil:
			return nil, err
		}
		if err := visit(&r); err != nil {
			return nil, err
		}
	}
}
