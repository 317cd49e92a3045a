package slurm

import (
	"fmt"
	"strings"
	"time"
)

// Fields that the dump asks for. Some versions lack some of them.
func Fields() []string {
	return []string{
		"JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "State", "Submit", "Eligible", "Start", "End", "Elapsed", "Timelimit",
		"AllocNodes", "AllocTRES", "ReqTRES", "NodeList", "ExitCode", "Suspended", "DBIndex",
	}
}

// Check is the command that asks a version of sacct which of the fields it has: one that it does not know loses the whole dump. It prints
// those that it lacks, and nothing if it has all.
func Check() string {
	return fmt.Sprintf(`for f in %s; do sacct --helpformat | grep -qiw "$f" || echo "$f"; done`, strings.Join(Fields(), " "))
}

// Arguments are those of the sacct that prints these fields of what ran in [from, to), both as sacct takes them.
func Arguments(delimiter, from, to string, fields []string) []string {
	return []string{"-a", "-D", "-P", "--delimiter=" + delimiter, "-S", from, "-E", to, "-o", strings.Join(fields, ",")}
}

// Dump is the command that prints the accounting of [from, to) for Read.
func Dump(from, to time.Time) string {
	const day = "2006-01-02"
	return "TZ=UTC SLURM_TIME_FORMAT=%s sacct " + strings.Join(Arguments(`$'\x1f'`, from.Format(day), to.Format(day), Fields()), " ") +
		" | gzip > sacct.txt.gz"
}

// Help says how to get files for Read: text for a terminal.
func Help(now time.Time) string {
	month := now.AddDate(0, -1, 0).Format("2006-01-02")
	return `How to dump what Slurm has written down. Nothing is changed, and no right of an administrator is
needed, but where PrivateData hides the jobs of others.

1. Ask which fields this version has. One that it lacks would lose the whole dump. This prints those to leave out of step 2:

  ` + Check() + `

2. Dump a month or more of accounting:

  ` + Dump(now.AddDate(0, -1, 0), now) + `

   -D keeps every run of a requeued job (without it a quarter of the time can be missing), the
   delimiter keeps names whole, and seconds since 1970 need no time zone. Where it takes long, dump
   week by week into several files and give all of them. Held jobs, and those whose dependencies
   are not met, are not in such a dump; they hold no devices.

3. Describe the nodes, once; without it each has as many devices as were ever held there at once:

  TZ=UTC scontrol show node -o > nodes.txt
  TZ=UTC scontrol show reservation -o > reservations.txt
  TZ=UTC sacctmgr -P show event start=` + month + ` format=NodeName,TimeStart,TimeEnd,State,Reason > events.txt
`
}
