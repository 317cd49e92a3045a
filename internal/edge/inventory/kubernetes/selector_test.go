//go:build kubernetes

package kubernetes

import (
	"slices"
	"testing"
)

func TestWhatSelectorsMean(t *testing.T) {
	d := &device{
		attributes: map[string]string{"type": "mig", driver + "/profile": "3g.40gb", "index": "2", "other.dev/zone": "a"},
		capacities: map[string]amount{"memory": {n: 40 << 30}, "memorySlice3": {n: 1}, "cores": {1500, 3}},
	}
	for text, want := range map[string]meant{
		`device.driver == "gpu.nvidia.com"`: is, `device.driver == 'other'`: isNot, `device.driver != "other"`: is,
		`device.attributes["gpu.nvidia.com"].profile == "3g.40gb"`:                                            is,
		`device.attributes['gpu.nvidia.com']['profile'] == '3g.40gb'`:                                         is,
		`device.attributes["gpu.nvidia.com"].profile != "3g.40gb"`:                                            isNot,
		`device.attributes["gpu.nvidia.com"].index == 2 && device.attributes["gpu.nvidia.com"].type == "mig"`: is,
		`device.attributes["gpu.nvidia.com"].index == 2 && device.attributes["gpu.nvidia.com"].type == "gpu"`: isNot,
		`device.attributes["gpu.nvidia.com"].missing != "x"`:                                                  isNot,
		`device.attributes["other.dev"].zone == "a"`:                                                          is,
		`device.attributes["other.dev"].type == "mig"`:                                                        isNot,
		`"memorySlice3" in device.capacity["gpu.nvidia.com"]`:                                                 is,
		`"memorySlice4" in device.capacity["gpu.nvidia.com"]`:                                                 isNot,
		`"type" in device.attributes["gpu.nvidia.com"]`:                                                       is,
		`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("20Gi")) >= 0`:                           is,
		`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0`:                           isNot,
		`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("lots")) >= 0`:                           maybe,
		`device.capacity["gpu.nvidia.com"].cores.compareTo(quantity("2")) >= 0`:                               isNot,
		`device.capacity["gpu.nvidia.com"].cores.compareTo(quantity("1.5")) == 0`:                             is,
		`device.attributes["gpu.nvidia.com"].profile.startsWith("3g")`:                                        maybe,
		`device.attributes["gpu.nvidia.com"].profile.startsWith("3g") && device.driver == "x"`:                isNot,
		`device.driver == "x" || device.driver == "gpu.nvidia.com"`:                                           maybe,
		`(device.driver == "x" && device.driver == "y") || true`:                                              maybe,
		`device.attributes["gpu.nvidia.com"].type == "mig" && "a && b" == "a && b"`:                           maybe,
		``: maybe,
	} {
		if got := parseSelector(text).means(driver, d); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	if selector(nil).means(driver, d) != is {
		t.Error("who selects nothing means all")
	}
}

// FuzzSelector: whatever is written, it is read, and one more term never makes it mean more.
func FuzzSelector(f *testing.F) {
	f.Add(`device.driver == "a" && (b || c) && "x" in device.capacity["d"]`)
	f.Add(`"\\" && '`)
	f.Fuzz(func(t *testing.T, text string) {
		s := parseSelector(text)
		d := &device{attributes: map[string]string{"a": "b"}}
		if len(s) == 0 || slices.Clip(s).means("d", d) < append(slices.Clip(s), term{kind: ofDriver, op: "==", value: "no"}).means("d", d) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}
