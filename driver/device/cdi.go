package device

import (
	"slices"
	"strings"
)

// CDIKind is what specs of CDI, the Container Device Interface, call the GPUs of its vendor; "" if that is not known.
func (g *GPU) CDIKind() string {
	if g.vendor == nil {
		return ""
	}
	return g.vendor.kind
}

// partsFolder has the devices that lead to parts of a GPU, the instances of MIG.
const partsFolder = "/dev/nvidia-caps/"

// IsAll tells whether these devices lead to the whole GPU and to no other of the list.
func (g *GPU) IsAll(files []string, list []GPU) bool {
	for _, file := range g.Files {
		if !slices.Contains(files, file) {
			return false
		}
	}
	return !slices.ContainsFunc(files, func(file string) bool {
		return strings.HasPrefix(file, partsFolder) || !slices.Contains(g.Files, file) &&
			slices.ContainsFunc(list, func(other GPU) bool { return slices.Contains(other.Files, file) })
	})
}
