package mig

import (
	"fmt"
	"slices"
	"strings"
)

// Maximal says whether no further instance of the given profiles could be added to l.
func (g *Geometry) Maximal(l Layout, profiles []Profile) bool {
	compute, media := 0, 0
	counts := map[string]int{}
	for _, i := range l {
		compute, media = compute+i.Profile.Compute, media+i.Profile.Media
		counts[i.Profile.Name]++
	}
	for _, p := range profiles {
		if counts[p.Name] >= p.Max || !g.bears(compute+p.Compute, media+p.Media) {
			continue
		}
		for _, s := range p.Starts {
			if !slices.ContainsFunc(l, Instance{Profile: p, Start: s}.overlaps) {
				return false
			}
		}
	}
	return true
}

// DeviceName is what NVIDIA's DRA driver calls the instance on the GPU of that minor number:
// gpu-MINOR-mig-PROFILE-ID-START, with the dots of the profile's name dropped and '+' as '-': "gpu-0-mig-1g10gb-19-3".
func (i Instance) DeviceName(minor int) string {
	profile := strings.ReplaceAll(strings.ReplaceAll(i.Profile.Name, ".", ""), "+", "-")
	return fmt.Sprintf("gpu-%d-mig-%s-%d-%d", minor, profile, i.Profile.ID, i.Start)
}
