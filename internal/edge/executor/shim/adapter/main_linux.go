package adapter

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/edge/executor/shim/adapter/directory"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/tasks"
)

// Main is the adapter: args are those after Verb. It returns the exit status.
func Main(args []string) int {
	var s Settings
	if len(args) < 3 || json.Unmarshal([]byte(args[0]), &s) != nil || !s.Given() {
		fmt.Fprintln(os.Stderr, "sluice-shim adapt runs the command of a subjob; Sluice starts it")
		return 2
	}
	if s.Directory.Path != "" {
		d := directory.Settings{Directory: s.Directory, Grace: s.Grace, Total: s.Total, Room: s.Room}
		return directory.Main(d, Unready, args[1], args[2:])
	}
	if s.Tasks() {
		return tasks.Main(tasksOf(&s), Unready, args[2:])
	}
	p, err := pieceOf(os.Getenv)
	if err != nil {
		return unready(err)
	}
	l, err := open(&s, p)
	if err != nil {
		return unready(err)
	}
	return l.run(args[1], args[2:])
}

// tasksOf are the settings of an adapter that runs tasks.
func tasksOf(s *Settings) tasks.Settings {
	t := tasks.Settings{Keep: s.Keep, Grace: s.Grace}
	if a := &s.Array; a.Indices != "" {
		t.Array = &tasks.Array{Indices: a.Indices, Name: a.Name, Output: a.Output, Error: a.Error, Limit: a.Limit}
	}
	if s.Trials.Table != "" {
		t.Trials = &tasks.Trials{Table: filepath.Join(s.Root, s.Trials.Table), Stop: s.Trials.Stop, Bars: s.Bars}
	}
	return t
}
