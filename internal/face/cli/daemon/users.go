package daemon

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/edge/users"
)

// usersDir is where a daemon keeps its users, below its data directory.
const usersDir = "users"

// ownUser is the name of the user whom the daemon runs as, which its jobs have as their owner's.
func ownUser() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid-" + uid
}

// openUsers opens the users of a daemon whose data directory is locked, and says for the start who is served.
func openUsers(data string, single bool) (u *users.Users, note string, err error) {
	own := ownUser()
	if u, err = users.Open(users.Options{Dir: filepath.Join(data, usersDir), Own: own, Single: single}); err != nil {
		return nil, "", err
	}
	all := u.All()
	if !single {
		return u, fmt.Sprintf("users: %d, who call by their tokens (sluice user list); %s, whom this daemon runs as, is an admin", len(all),
			own), nil
	}
	note = "single-user mode: every subjob runs as this daemon's own user, who alone is served"
	var refused []string
	for i := range all {
		if all[i].Role == users.User || len(all[i].Queues) > 0 {
			refused = append(refused, all[i].Name)
		}
	}
	switch {
	case len(refused) > 0:
		note += "; refused, since they could submit: " + strings.Join(refused, ", ")
	case len(all) > 0:
		note += fmt.Sprintf(", beside %d who submit nothing (sluice user list)", len(all))
	}
	return u, note, nil
}
