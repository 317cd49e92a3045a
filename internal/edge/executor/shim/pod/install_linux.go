package pod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
)

// Prepare is `sluice-shim install DIRECTORY POD`: the program and the run file of the Pod are in the directory then. sealed is the latter, key the text of what opens it.
func Prepare(dir, name, sealed, key string) error {
	if err := itself(filepath.Join(dir, Program)); err != nil {
		return fmt.Errorf("copying sluice-shim: %w", err)
	}
	k, ok := ParseKey(KeyOf(sealed), key)
	if !ok {
		return errkind.Errorf(errkind.Denied, "key %q of the namespace is not one of ours: somebody has changed it", KeyOf(sealed))
	}
	plain, err := Open(&k, name, sealed)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, RunFile), plain, 0o600)
}

// itself copies the program to a path, where a container finds it that has none.
func itself(path string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = self.Close() }()
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755) //nolint:gosec // it is a program
	if err != nil {
		return err
	}
	_, err = io.Copy(to, self)
	return errors.Join(err, to.Close(), os.Rename(path+".new", path))
}
