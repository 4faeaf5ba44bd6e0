package command

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/cluster"
	"starling/terms"
	"starling/terms/constraint"
)

// seal adds the checksum.
func seal(data ...byte) []byte { return binary.LittleEndian.AppendUint32(data, checksum(data)) }

// TestRoundTrip encodes random entries and reads them back.
func TestRoundTrip(t *testing.T) {
	f := &filler{rng: rand.New(rand.NewPCG(1, 2))}
	for range 5000 {
		e := f.entry()
		data := Encode(e)
		got, err := Decode(data)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("Decode(Encode(%+v)) = %+v, %v", e, got, err)
		}
		size := len(Encode(&Entry{Writer: e.Writer, Seq: e.Seq, Time: e.Time, Cause: e.Cause}))
		for _, one := range e.Commands {
			size += Size(one)
		}
		if size != len(data) {
			t.Fatalf("the sizes of %+v sum up to %d bytes, the entry has %d", e, size, len(data))
		}
	}
}

// FuzzDecode reads any bytes, as they are and with a checksum that fits: it must refuse what Encode does not write.
func FuzzDecode(f *testing.F) {
	for _, e := range samples() {
		data := Encode(e)
		f.Add(data)
		f.Add(data[:len(data)-checksumBytes])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, seal(slices.Clone(data)...)} {
			if e, err := Decode(data); err == nil && !bytes.Equal(Encode(e), data) {
				t.Errorf("Decode(%x) = %+v, which is encoded as %x", data, e, Encode(e))
			}
		}
	})
}

// TestDecodeRefuses gives Decode what Encode never writes.
func TestDecodeRefuses(t *testing.T) {
	// start is an entry by a~1 without its commands.
	start := []byte{encodingVersion, 3, 'a', '~', '1', 1, 0, 0}
	after := func(data ...byte) []byte { return seal(append(slices.Clone(start), data...)...) }
	// policy is a job up to its tasks.
	policy := append([]byte{1, byte(KindSubmitJob), 0, 0, 0, 1}, make([]byte, 26)...)
	cases := []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "entry has 0 bytes, must have 5 to 1044480"},
		{"a checksum of nothing", seal(), "entry has 4 bytes, must have 5 to 1044480"},
		{"too much", make([]byte, EntryBytesMax+1), "entry has 1044481 bytes, must have 5 to 1044480"},
		{"a damaged byte", append([]byte{2}, after(0)[1:]...), "entry is damaged: its checksum does not match"},
		{"another version", seal(2, 0, 0, 0, 0, 0), "entry has encoding version 2, this program knows 1: run a newer one"},
		{"no header", seal(encodingVersion), "entry ends within a number"},
		{"a short writer", seal(encodingVersion, 3, 'a'), "entry ends within a text"},
		{"a long writer", seal(append([]byte{encodingVersion, 76}, strings.Repeat("a", 80)...)...), "entry holds 76 where at most 75 is allowed"},
		{"a writer that is no UTF-8", seal(encodingVersion, 1, 0xff, 1, 0, 0, 0), "entry holds a text that is no UTF-8"},
		{"a time beyond all", seal(encodingVersion, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0), "entry holds 144115188075855871 where at most 36028797018963967 is allowed"},
		{"a number of eleven bytes", seal(encodingVersion, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), "entry ends within a number"},
		{"a number that is longer than it must be", seal(encodingVersion, 0, 0x81, 0, 0, 0, 0), "entry holds a number that is not in its shortest form"},
		{"no commands", after(), "entry ends within a number"},
		{"a command too few", after(2, byte(KindTellTime)), "entry ends within a number"},
		{"a command too many", after(0, byte(KindTellTime)), "entry has 1 bytes too many"},
		{"too many commands", after(0x81, 0x20), "entry holds 4097 where at most 4096 is allowed"},
		{"kind 0", after(1, 0), "entry holds a command of kind 0, which this program does not know: run a newer one"},
		{"a kind of tomorrow", after(1, byte(kindEnd)), "entry holds a command of kind 20, which this program does not know: run a newer one"},
		{"a kind of two bytes", after(1, 0x80, 1), "entry holds 128 where at most 127 is allowed"},
		{"an attempt beyond 32 bits", after(1, byte(KindPrepareJoin), 0, 0x80, 0x80, 0x80, 0x80, 0x10), "entry holds 4294967296 where at most 4294967295 is allowed"},
		{"a long request id", after(1, byte(KindKillJob), RequestIDBytesMax+1), "entry holds 65 where at most 64 is allowed"},
		{"an unknown job type", after(1, byte(KindSubmitJob), 0, 0, 0, 5), "entry holds 5 where at most 4 is allowed"},
		{"too many tasks", after(append(policy, terms.TasksMax+1)...), "entry holds 65 where at most 64 is allowed"},
		{"more tasks than bytes", after(append(policy, 64, 0, 0)...), "entry ends within a list"},
		{"an unknown ending", after(1, byte(KindReportTasks), 0, 1, 0, 0, 0, 0, 0, byte(cluster.EndingCount)), "entry holds 11 where at most 10 is allowed"},
		{"a slot beyond 16 bits", after(1, byte(KindReportTasks), 0, 1, 0, 0x80, 0x80, 4, 0, 0, 0, 0, 0), "entry holds 65536 where at most 65535 is allowed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if e, err := Decode(c.data); err == nil || err.Error() != c.want {
				t.Errorf("Decode(%x) = %+v, %v; want %q", c.data, e, err, c.want)
			}
		})
	}
}

// TestDecodeNoticesDamage cuts and changes every sample everywhere.
func TestDecodeNoticesDamage(t *testing.T) {
	for kind, e := range samples() {
		data := Encode(e)
		for at := range data {
			if _, err := Decode(data[:at]); err == nil {
				t.Errorf("the first %d bytes of %s are taken for an entry", at, kind)
			}
			if at > 0 && at < len(data)-checksumBytes {
				if _, err := Decode(seal(slices.Clone(data[:at])...)); err == nil {
					t.Errorf("the first %d bytes of %s, sealed, are taken for an entry", at, kind)
				}
			}
			for bit := range 8 {
				changed := slices.Clone(data)
				changed[at] ^= 1 << bit
				if _, err := Decode(changed); err == nil {
					t.Errorf("%s with bit %d of byte %d changed is taken for an entry", kind, bit, at)
				}
			}
		}
	}
}

// TestLimitsFit encodes the largest lists and texts that are allowed.
func TestLimitsFit(t *testing.T) {
	long := strings.Repeat("x", terms.TextBytesMax)
	e := &Entry{Writer: terms.NewPeerID(terms.NodeName(strings.Repeat("a", terms.NameBytesMax)), 1<<32-1), Seq: 1<<64 - 1}
	e.Commands = []Command{
		&SubmitJob{RequestID: strings.Repeat("r", RequestIDBytesMax), Spec: terms.Job{Tasks: []terms.Task{{
			Command: slices.Repeat([]string{"y"}, terms.ArgumentsMax), WorkDir: long, Restart: terms.Restart{AttemptsMax: terms.RestartsUnlimited},
			Constraints: []constraint.Constraint{{Attribute: strings.Repeat("z", 4*terms.NameBytesMax), Values: slices.Repeat([]string{""}, terms.RequestsPerTaskMax)}},
		}}}},
		&ReportTasks{Reports: slices.Repeat([]Report{{ExitCode: -1 << 31, Detail: strings.Repeat("d", cluster.FailureDetailBytesMax)}}, 1000)},
	}
	for len(e.Commands) < CommandsMax {
		e.Commands = append(e.Commands, &TellTime{})
	}
	if got, err := Decode(Encode(e)); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("the largest entry comes back with error %v", err)
	}
}
