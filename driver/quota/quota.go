// Package quota has the kernel bound what folders take of a disk: the file system counts what lies in a folder for a
// project of its own, and refuses what would be more than the project may have.
//
// Nothing is kept of a project but what the file system has: the number is an attribute of the folder, which what is
// made in it inherits. A number is taken as long as anything has it, so one is free again when its folder is deleted
// with all that was in it, wherever that was moved. Only its limit has to be lifted, before that.
package quota

// Taken is what lies in a folder.
type Taken struct{ Bytes, Files int64 }

// Add adds what lies in another.
func (t *Taken) Add(other Taken) {
	t.Bytes += other.Bytes
	t.Files += other.Files
}

// FileBytes is the least that a file, folder or link counts as: as many as have room by that are the most of a limit.
const FileBytes = 4 << 10

// spareFiles is how many files more a project may have than its limit says, for the folder itself and those of the
// driver in it.
const spareFiles = 16
