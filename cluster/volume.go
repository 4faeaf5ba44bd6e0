package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// VolumeSet names the volumes of one slot. The job's number tells it from later jobs of the same name, which begin with
// empty volumes.
type VolumeSet struct {
	Slot SlotName
	Job  JobID
}

// String returns for example "db.main[2]@17".
func (v VolumeSet) String() string { return fmt.Sprintf("%s@%d", v.Slot, v.Job) }

// ParseVolumeSet is the inverse of String; ok is false for what String never returns.
func ParseVolumeSet(text string) (set VolumeSet, ok bool) {
	slot, job, found := strings.Cut(text, "@")
	id, named := ParseAllocationID(slot + "#0")
	number, err := strconv.ParseUint(job, 10, 32)
	set = VolumeSet{Slot: id.Slot, Job: JobID(number)}
	return set, found && named && err == nil && set.String() == text
}
