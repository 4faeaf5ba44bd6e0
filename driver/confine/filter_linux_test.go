package confine

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// asker returns what tells the filter's answer to a system call.
func asker(t *testing.T, code []unix.SockFilter) func(architecture, number, flags uint32) uint32 {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, one := range code {
		raw = append(raw, bpf.RawInstruction{Op: one.Code, Jt: one.Jt, Jf: one.Jf, K: one.K})
	}
	instructions, known := bpf.Disassemble(raw)
	if !known {
		t.Fatal("the program has an unknown instruction")
	}
	filter, err := bpf.NewVM(instructions)
	if err != nil {
		t.Fatal(err)
	}
	return func(architecture, number, flags uint32) uint32 {
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[numberOffset:], number)
		binary.BigEndian.PutUint32(data[architectureOffset:], architecture)
		binary.BigEndian.PutUint32(data[argumentOffset:], flags)
		binary.BigEndian.PutUint32(data[secondOffset:], flags)
		result, err := filter.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(result)
	}
}

// TestFilter asks the filter about all system calls, and about those of other architectures.
func TestFilter(t *testing.T) {
	for _, clone3 := range []bool{false, true} {
		ask := asker(t, program(clone3, false))
		for number := range uint32(600) {
			want := uint32(unix.SECCOMP_RET_ALLOW)
			switch {
			case slices.Contains(refused(), number):
				want = errorReturn(unix.EPERM)
			case number == unix.SYS_CLONE3 && !clone3:
				want = errorReturn(unix.ENOSYS)
			}
			if got := ask(architecture, number, 0); got != want {
				t.Errorf("system call %d: got %#x, want %#x", number, got, want)
			}
		}
		for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
			if got := ask(architecture, number, unix.CLONE_NEWUSER|unix.CLONE_FS); got != errorReturn(unix.EPERM) {
				t.Errorf("system call %d with a new namespace: got %#x", number, got)
			}
			if got := ask(architecture, number, unix.CLONE_FS); got != unix.SECCOMP_RET_ALLOW {
				t.Errorf("system call %d without a new namespace: got %#x", number, got)
			}
		}
		for _, foreign := range [][2]uint32{{architecture ^ 1, 0}, {architecture, foreignNumbers}} {
			if got := ask(foreign[0], foreign[1], 0); got != errorReturn(unix.ENOSYS) {
				t.Errorf("a system call of another architecture, %#x: got %#x", foreign, got)
			}
		}
	}
}

// TestFilterKeepsAttributes asks for changes of attributes by which files could be taken out of a quota.
func TestFilterKeepsAttributes(t *testing.T) {
	const getFlags = 0x80086601
	whole, alone := asker(t, program(true, true)), asker(t, attributeCode())
	for _, c := range []struct {
		number, command uint32
		want            uint32
	}{
		{unix.SYS_IOCTL, setProject, errorReturn(unix.EPERM)},
		{unix.SYS_IOCTL, unix.FS_IOC_SETFLAGS, errorReturn(unix.EPERM)},
		{unix.SYS_IOCTL, getFlags, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_FILE_SETATTR, 0, errorReturn(unix.EPERM)},
		{unix.SYS_READ, setProject, unix.SECCOMP_RET_ALLOW},
	} {
		for what, ask := range map[string]func(architecture, number, flags uint32) uint32{"whole": whole, "alone": alone} {
			if got := ask(architecture, c.number, c.command); got != c.want {
				t.Errorf("%s: system call %d with %#x: got %#x, want %#x", what, c.number, c.command, got, c.want)
			}
		}
	}
	if got := asker(t, program(true, false))(architecture, unix.SYS_IOCTL, setProject); got != unix.SECCOMP_RET_ALLOW {
		t.Errorf("without quotas: got %#x", got)
	}
	for number, command := range map[uint32]uint32{54: setFlags32, foreignNumbers + 514: setProject} {
		if got := alone(unix.AUDIT_ARCH_I386, number, command); got != errorReturn(unix.EPERM) {
			t.Errorf("another architecture: got %#x", got)
		}
	}
}
