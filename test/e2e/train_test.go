package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// trainer saves to ckpt, goes on from there, ends on SIGTERM with a status that says nothing, and knows nothing of Sluice.
const trainer = `
i=0; sum=7
for f in ckpt/state-*; do [ -e "$f" ] && n=${f##*-} && [ "$n" -gt $i ] && i=$n; done
[ $i -gt 0 ] && sum=$(cat ckpt/state-$i)
save() { echo $sum > ckpt/.new && mv ckpt/.new ckpt/state-$i && for f in ckpt/state-*; do [ $f = ckpt/state-$i ] || rm $f; done; }
told=; trap 'told=1' TERM
while [ $i -lt 400 ]; do
	i=$((i+1)); sum=$(( (sum * 31 + i) % 1000003 )); echo "step $i of 400"; sleep 0.02
	[ $((i % 7)) = 0 ] && save
	if [ -n "$told" ]; then save; exit 3; fi
done
save; echo $sum > ckpt/result
`

// TestTrainOutlastsItsDaemon: a program that knows nothing of Sluice, and declares no time, is cut into subjobs, through kills of the
// daemon, and has in the end what it has without that; also where nobody says how long it is, or even how far.
func TestTrainOutlastsItsDaemon(t *testing.T) {
	t.Parallel()
	t.Run("steps", func(t *testing.T) {
		t.Parallel()
		trains(t, "15s", "400/400 100%", "--steps", "400", "--progress", `step (\d+)`)
	})
	t.Run("no length", func(t *testing.T) { t.Parallel(); trains(t, "15s", "400/400 100%", "--progress", `step (\d+)`) })
	t.Run("time", func(t *testing.T) { t.Parallel(); trains(t, "7s", "", "--set", "startup=100ms") })
}

func trains(t *testing.T, horizon, progress string, flags ...string) {
	t.Helper()
	d := up(t, "sim:custom,mem=64Mi", "--horizon", horizon)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.sh"), []byte(trainer), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"train", "--server", d.addr, "--checkpoint-dir", "ckpt", "--mem", "16Mi", "--grace", "3s", "--name", "tr",
		"--detach"}, flags...)
	c := exec.Command(filepath.Join(bin, "sluice"), append(args, "--", "sh", "train.sh")...)
	c.Env, c.Dir = append(os.Environ(), "SLUICE_TOKEN="+d.token), dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	says(t, string(out), "the current directory goes along: 1 file, ")
	d.until("its first steps", func() bool {
		out, _, _ := d.sluice("jobs", "-o", "json")
		return strings.Contains(out, `"subjobs": 2`)
	})
	d.kill()
	d.start()
	if out, errs, code := d.sluice("wait", "tr", "--quiet"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	says(t, d.must("jobs"), progress, "COMPLETED")
	found, err := filepath.Glob(filepath.Join(d.data, "output", "tr", "*", "ckpt", "result"))
	if err != nil || len(found) != 1 {
		t.Fatalf("results %v: %v", found, err)
	}
	got, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	whole := exec.Command("sh", "-c", "mkdir ckpt; "+trainer)
	whole.Dir = dir
	if err := whole.Run(); err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(filepath.Join(dir, "ckpt", "result")); err != nil || string(got) != string(want) {
		t.Errorf("the result is %s, uncut %s: %v", got, want, err)
	}
}
