package programs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scene makes a cube that turns, rendered by Cycles on one thread.
const scene = `
import bpy, os
s = bpy.context.scene
s.render.engine, s.cycles.device, s.cycles.samples, s.cycles.seed, s.cycles.use_denoising = 'CYCLES', 'CPU', 64, 1, False
s.render.resolution_x = s.render.resolution_y = 128
s.render.threads_mode, s.render.threads = 'FIXED', 1
c = bpy.data.objects['Cube']
for frame, turn in (1, 0), (200, 3):
    c.rotation_euler = 0, 0, turn
    c.keyframe_insert('rotation_euler', frame=frame)
bpy.ops.wm.save_as_mainfile(filepath=os.path.abspath('scene.blend'))
`

// TestBlender: the frames of an animation, cut and struck, are all there once, with the pixels that they have uncut.
func TestBlender(t *testing.T) {
	needs(t, "blender", "blender", "--version")
	program{
		name: "blender", units: 80, window: 8 * time.Second, key: "perItem", estimate: "1s",
		prepare: func(t *testing.T, dir string, units int) {
			if err := os.WriteFile(filepath.Join(dir, "scene.py"), []byte(scene), 0o600); err != nil {
				t.Fatal(err)
			}
			do(t, dir, "blender", "-b", "--python-exit-code", "3", "--python", "scene.py")
			edit(t, filepath.Join(dir, "job.yaml"), "total: 250", "total: "+strconv.Itoa(units), "perItem: 20s", "perItem: 1s",
				"startup: 10s", "startup: 2s", "parallelism: 2", "parallelism: 1")
		},
		same: func(t *testing.T, uncut, cut *daemon, job string, units int) {
			want, got := rendered(t, uncut, job), rendered(t, cut, job)
			for frame := 1; frame <= units; frame++ {
				a, b := want[frame], got[frame]
				if a == nil || b == nil || a.Bounds() != b.Bounds() {
					t.Errorf("frame %d is there uncut: %v, cut: %v", frame, a != nil, b != nil)
				} else if !bytes.Equal(pixels(a), pixels(b)) {
					t.Errorf("frame %d has other pixels where the job was cut", frame)
				}
			}
		},
	}.compare(t)
}

// rendered are the frames that count, each of which must be there once.
func rendered(t *testing.T, d *daemon, job string) map[int]image.Image {
	t.Helper()
	var list []struct {
		Path     string
		From, To int
	}
	if err := json.Unmarshal([]byte(d.must("", "output", job, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	found := map[int]image.Image{}
	for _, o := range list {
		for frame := o.From + 1; frame <= o.To; frame++ {
			text, err := os.ReadFile(filepath.Join(o.Path, fmt.Sprintf("frame-%06d.png", frame)))
			if err != nil {
				t.Errorf("frame %d: %v", frame, err)
				continue
			}
			if found[frame] != nil {
				t.Errorf("frame %d is committed twice", frame)
			}
			if found[frame], err = png.Decode(strings.NewReader(string(text))); err != nil {
				t.Errorf("frame %d: %v", frame, err)
			}
		}
	}
	return found
}

func pixels(i image.Image) (all []byte) {
	for y := i.Bounds().Min.Y; y < i.Bounds().Max.Y; y++ {
		for x := i.Bounds().Min.X; x < i.Bounds().Max.X; x++ {
			r, g, b, a := i.At(x, y).RGBA()
			for _, v := range []uint32{r, g, b, a} {
				all = append(all, byte(v>>8), byte(v))
			}
		}
	}
	return all
}
