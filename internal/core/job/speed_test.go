package job_test

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

func TestSpeeds(t *testing.T) {
	declared := []job.SpeedOn{{Profile: "1g.10gb", Permille: 210}, {Profile: "2g.20gb", Permille: 0}, {Profile: "3g.40gb", Permille: 1500},
		{Profile: "slow", Permille: 1}}
	for _, c := range []struct {
		name     string
		speeds   []job.SpeedOn
		profile  string
		slice    int64
		speed    int64
		walltime time.Duration // of a minute; of a century where so named
	}{
		{"nothing declared", nil, "1g.10gb", 143, 143, time.Minute},
		{"declared slower", declared, "1g.10gb", 143, 210, 285714285715},
		{"declared faster", declared, "3g.40gb", 429, 1500, 40 * time.Second},
		{"another profile runs at the slice's speed", declared, "4g.40gb", 500, 500, 2 * time.Minute},
		{"can not run", declared, "2g.20gb", 286, 0, 0},
	} {
		s := &job.Spec{Kind: job.Rigid, Walltime: time.Minute, Speeds: c.speeds}
		speed := s.SpeedOn(c.profile, c.slice)
		if speed != c.speed {
			t.Errorf("%s: speed %d, want %d", c.name, speed, c.speed)
		}
		if speed > 0 && s.WalltimeAt(speed) != c.walltime {
			t.Errorf("%s: walltime %v, want %v", c.name, s.WalltimeAt(speed), c.walltime)
		}
	}
	century := &job.Spec{Kind: job.Rigid, Walltime: 100 * 365 * 24 * time.Hour, Speeds: declared}
	if w := century.WalltimeAt(1); w < century.Walltime || w > math.MaxInt64/2 {
		t.Errorf("a century at a thousandth of the speed takes %v", w)
	}
}
