package all

import "testing"

// TestNothingSaidIsAuto: a daemon whose file says nothing looks after its machine's memory as well as it can; off is the only way out.
func TestNothingSaidIsAuto(t *testing.T) {
	auto, why, err := Detect(Auto, "")
	if err != nil {
		t.Fatal(err)
	}
	silent, same, err := Detect("", "")
	if err != nil {
		t.Fatal(err)
	}
	if (auto == nil) != (silent == nil) || why != same {
		t.Errorf("auto finds %q, and nothing said %q", why, same)
	}
	if auto != nil {
		_, _ = auto.Close(), silent.Close()
	}
	if off, why, err := Detect(Off, ""); off != nil || why == "" || err != nil {
		t.Errorf("off is %v, %q (%v)", off, why, err)
	}
}
