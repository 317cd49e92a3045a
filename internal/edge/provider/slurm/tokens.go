package slurm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// The names of what a pilot has in the shared folder: its token, and the end of its log if it failed or its head was silent.
const (
	tokenSuffix = ".token"
	logSuffix   = ".log"
	halfPrefix  = ".token-" // of one that is being written
)

// keepToken is how long a token stays of a pilot that the host does not show: Submit may just be under way.
const keepToken = 10 * time.Minute

// keepLog is how long the log of a failed pilot stays.
const keepLog = 7 * 24 * time.Hour

// tokens is the folder that holds them.
func (s *Slurm) tokens() string { return filepath.Join(s.o.Dir, "pilots") }

// openTokens makes the folder, or checks that nobody else can read what lies there. Errors: Denied.
func (s *Slurm) openTokens() error {
	if err := os.Mkdir(s.tokens(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return errkind.Errorf(errkind.Invalid, "slurm: shared: make a folder for tokens there: %w: name one of yours that is there, here "+
			"and on the nodes", err)
	}
	info, err := os.Lstat(s.tokens())
	if err != nil {
		return errkind.Errorf(errkind.Invalid, "slurm: look at the folder of tokens: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errkind.Errorf(errkind.Denied, "slurm: %s is no folder: tokens would lie elsewhere", s.tokens())
	case info.Mode().Perm()&0o077 != 0 || ok && int(owner.Uid) != os.Geteuid():
		return errkind.Errorf(errkind.Denied, "slurm: %s is open to others (%v), who could join by the tokens there: chmod 700 it, and "+
			"let it be yours", s.tokens(), info.Mode())
	}
	return nil
}

// path of a pilot's file.
func (s *Slurm) path(name, suffix string) string {
	return filepath.Join(s.tokens(), s.o.prefix()+name+suffix)
}

// putToken writes a pilot's token for nobody else to read. Errors: as openTokens; Exhausted: it can't be written, so nothing was asked.
func (s *Slurm) putToken(name, token string) error {
	if err := s.openTokens(); err != nil {
		return err
	}
	path := s.path(name, tokenSuffix)
	f, err := os.CreateTemp(s.tokens(), halfPrefix+"*")
	if err != nil {
		return errkind.Errorf(errkind.Exhausted, "slurm: write a token: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errkind.Errorf(errkind.Exhausted, "slurm: write a token: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// dropToken forgets a token that nobody needs any more. What can't be removed is tried again by tidy.
func (s *Slurm) dropToken(name string) {
	if s.o.Dir != "" {
		_ = os.Remove(s.path(name, tokenSuffix))
	}
}

// tidy removes the tokens of pilots that are gone, and old logs. Of pilots that left a log, as they failed or their head was
// silent, it adds its last line to Why; where none can be left it says what to do.
func (s *Slurm) tidy(list []provider.Seen) {
	if s.o.Dir == "" {
		for i := range list {
			if p := &list[i]; p.State == provider.Ended && strings.HasPrefix(p.Why, "FAILED") {
				p.Why += ": what it said is lost: give key shared, and the end of its log is kept"
			}
		}
		return
	}
	alive, over := map[string]bool{}, map[string]bool{}
	for i := range list {
		p := &list[i]
		if p.State != provider.Ended {
			alive[p.Name] = true
			continue
		}
		over[p.Name] = true
		if !p.Preempted {
			if line := lastLine(s.path(p.Name, logSuffix)); line != "" {
				p.Why += ": " + line
			}
		}
	}
	entries, err := os.ReadDir(s.tokens())
	if err != nil {
		return // it is made by the next Submit, or said there why not
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), s.o.prefix())
		info, err := e.Info()
		half := strings.HasPrefix(e.Name(), halfPrefix)
		if !ours && !half || err != nil {
			continue
		}
		age := s.now().Sub(info.ModTime())
		name, token := strings.CutSuffix(rest, tokenSuffix)
		switch {
		case half && age > keepToken, token && !alive[name] && (over[name] || age > keepToken),
			strings.HasSuffix(rest, logSuffix) && age > keepLog:
			_ = os.Remove(filepath.Join(s.tokens(), e.Name()))
		}
	}
}

// lastLine of a pilot's log.
func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if !strings.Contains(lines[i], " the daemon ended with ") {
			return strings.ToValidUTF8(brief(lines[i]), "?")
		}
	}
	return ""
}
