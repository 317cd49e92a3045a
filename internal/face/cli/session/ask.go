package session

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
)

// Interactive reports whether a person sees a question and can answer it.
func (a *Session) Interactive() bool {
	if a.Options.Interactive != nil {
		return a.Options.Interactive()
	}
	in, ok := a.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && terminal.Is(a.RawOut)
}

// Confirmed waits for a line that says yes. It is the only place that waits for what somebody types, but for a job file
// named "-".
func (a *Session) Confirmed(ctx context.Context) error {
	said := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(a.In).ReadString('\n')
		if err != nil && err != io.EOF {
			line = ""
		}
		said <- line
	}()
	select {
	case line := <-said:
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
	case <-ctx.Done():
	}
	return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("nothing was done")}
}
