package command

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/codec"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// seal adds the checksum.
func seal(data ...byte) []byte { return binary.LittleEndian.AppendUint32(data, checksum(data)) }

// TestRoundTrip encodes random entries and reads them back.
func TestRoundTrip(t *testing.T) {
	f := &filler{rng: rand.New(rand.NewPCG(1, 2))}
	for range 5000 {
		e := f.entry()
		data := Encode(e)
		got, err := Decode(data, rules.Next)
		e.Rules, e.Bytes = Needs(e.Commands), uint32(len(data))
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("Decode(Encode(%+v)) = %+v, %v", e, got, err)
		}
		size := len(Encode(&Entry{Rules: e.Rules, Writer: e.Writer, Seq: e.Seq, Time: e.Time, Cause: e.Cause}))
		if size > OverheadBytesMax {
			t.Fatalf("%+v has %d bytes beside its commands, at most %d are planned for", e, size, OverheadBytesMax)
		}
		for _, one := range e.Commands {
			size += Size(one)
		}
		if size != len(data) {
			t.Fatalf("the sizes of %+v sum up to %d bytes, the entry has %d", e, size, len(data))
		}
	}
}

// FuzzDecode reads any bytes under any rules, as they are and with a checksum that fits: it must refuse what Encode
// does not write, and keep what it cannot read.
func FuzzDecode(f *testing.F) {
	for _, e := range samples() {
		data := Encode(e)
		f.Add(data, uint32(1))
		f.Add(data[:len(data)-checksumBytes], uint32(1))
		f.Add(data[:len(data)-checksumBytes], uint32(0))
	}
	f.Add(Encode(&Entry{Writer: "a~1", Seq: 1, Commands: []Command{&PassTime{RequestID: "r", Millis: 7}}}),
		uint32(rules.Next))
	f.Add(seal(entryOf(frameOf(KindPassTime, 1, 0, 7), frameOf(KindTellTime, 2), frameOf(KindTellTime, 1, 0))...),
		uint32(1))
	f.Fuzz(func(t *testing.T, data []byte, in uint32) {
		for _, data := range [][]byte{data, seal(slices.Clone(data)...)} {
			e, err := Decode(data, rules.Number(in))
			if err == nil && !bytes.Equal(Encode(e), data) {
				t.Errorf("Decode(%x) = %+v, which is encoded as %x", data, e, Encode(e))
			}
		}
	})
}

// entryOf is an entry by a~1 with these commands, without its checksum.
func entryOf(frames ...[]byte) []byte {
	entry := append([]byte{format, 1, 3, 'a', '~', '1', 1, 0, 0}, binary.AppendUvarint(nil, uint64(len(frames)))...)
	return append(entry, bytes.Join(frames, nil)...)
}

func frameOf(kind Kind, version uint64, body ...byte) []byte {
	frame := binary.AppendUvarint(nil, uint64(kind))
	frame = binary.AppendUvarint(frame, version)
	return append(binary.AppendUvarint(frame, uint64(len(body))), body...)
}

// TestDecodeRefuses gives Decode what all peers drop.
func TestDecodeRefuses(t *testing.T) {
	tell := frameOf(KindTellTime, 1)
	after := func(data ...byte) []byte { return seal(append(entryOf()[:len(entryOf())-1], data...)...) }
	cases := []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "entry has 0 bytes, must have 5 to 1044480"},
		{"a checksum of nothing", seal(), "entry has 4 bytes, must have 5 to 1044480"},
		{"too much", make([]byte, EntryBytesMax+1), "entry has 1044481 bytes, must have 5 to 1044480"},
		{"a damaged byte", append([]byte{3}, after(0)[1:]...), "entry is damaged: its checksum does not match"},
		{"the format before the first release", seal(1, 3, 'a', '~', '1', 1, 0, 0, 0),
			"entry has format 1, which was written before the first release"},
		{"a format of tomorrow", seal(3, 1, 0, 0, 0, 0), "entry has format 3, which version 1 of the rules does not have"},
		{"no header", seal(format), "entry ends within a number"},
		{"no rules", seal(format, 0, 0, 1, 0, 0, 0), "entry needs version 0 of the rules: they begin with 1"},
		{"rules of tomorrow, and nothing that can be read", seal(format, 2, 0xff),
			`entry needs version 2 of the rules, which are at 1: raise them first, see "starling rules"`},
		{"a short writer", seal(format, 1, 3, 'a'), "entry ends within a text"},
		{"a long writer", seal(append([]byte{format, 1, 76}, strings.Repeat("a", 80)...)...),
			"entry holds 76 where at most 75 is allowed"},
		{"a writer that is not UTF-8", seal(format, 1, 1, 0xff, 1, 0, 0, 0), "entry holds a text that is not UTF-8"},
		{"a time beyond all", seal(format, 1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0),
			"entry holds 144115188075855871 where at most 36028797018963967 is allowed"},
		{"a number of eleven bytes", seal(format, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
			"entry ends within a number"},
		{"a number that is longer than it must be", seal(format, 1, 0, 0x81, 0, 0, 0, 0),
			"entry holds a number that is not in its shortest form"},
		{"no commands", after(), "entry ends within a number"},
		{"a command too few", after(append([]byte{2}, tell...)...), "entry ends within a number"},
		{"a command too many", after(append([]byte{0}, tell...)...), "entry has 3 bytes too many"},
		{"too many commands", after(0x81, 0x20), "entry holds 4097 where at most 4096 is allowed"},
		{"a kind beyond 16 bits", after(1, 0x80, 0x80, 4, 1, 0), "entry holds 65536 where at most 65535 is allowed"},
		{"a version beyond 16 bits", after(1, byte(KindTellTime), 0x80, 0x80, 4, 0),
			"entry holds 65536 where at most 65535 is allowed"},
		{"a command that is longer than the entry", after(1, byte(KindTellTime), 1, 1), "entry ends within a command"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if e, err := Decode(c.data, rules.First); err == nil || err.Error() != c.want {
				t.Errorf("Decode(%x) = %+v, %v; want %q", c.data, e, err, c.want)
			}
		})
	}
}

// TestDecodeKeepsWhatItCannotRead gives Decode commands that are refused alone, between two that count.
func TestDecodeKeepsWhatItCannotRead(t *testing.T) {
	policy := append([]byte{0, 0, 0, 1}, make([]byte, 28)...)
	const unknown = `, is not known under version 1 of the rules: if it is one of a newer program, raise them first, see "starling rules"`
	cases := []struct {
		name  string
		frame []byte
		want  string
	}{
		{"kind 0", frameOf(0, 1), "a command of kind 0, version 1" + unknown},
		{"a kind of tomorrow", frameOf(kindEnd, 1, 1, 2, 3),
			fmt.Sprintf("a command of kind %d, version 1%s", kindEnd, unknown)},
		{"a kind that this program has and the rules have not", frameOf(KindPassTime, 1, 0, 7),
			"a command of kind 65535, version 1" + unknown},
		{"a version of tomorrow", frameOf(KindTellTime, 2), "a command of kind 10, version 2" + unknown},
		{"version 0", frameOf(KindTellTime, 0), "a command of kind 10, version 0" + unknown},
		{"bytes too many", frameOf(KindTellTime, 1, 7), "tell-time has 1 bytes too many"},
		{"bytes too few", frameOf(KindLeave, 1, 3, 'a'), "leave-cluster ends within a text"},
		{"an attempt beyond 32 bits", frameOf(KindPrepareJoin, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x10),
			"prepare-join-cluster holds 4294967296 where at most 4294967295 is allowed"},
		{"a long request id", frameOf(KindKillJob, 1, RequestIDBytesMax+1), "kill-job holds 65 where at most 64 is allowed"},
		{"an unknown job type", frameOf(KindSubmitJob, 1, 0, 0, 0, 5), "submit-job holds 5 where at most 4 is allowed"},
		{"too many tasks", frameOf(KindSubmitJob, 1, append(policy, terms.TasksMax+1)...),
			"submit-job holds 65 where at most 64 is allowed"},
		{"more tasks than bytes", frameOf(KindSubmitJob, 1, append(policy, 64, 0, 0)...), "submit-job ends within a list"},
		{"an unknown ending", frameOf(KindReportTasks, 1, 0, 1, 0, 0, 0, 0, 0, byte(facts.OutOfDisk)),
			"report-tasks holds 11 where at most 10 is allowed"},
		{"a slot beyond 16 bits", frameOf(KindReportTasks, 1, 0, 1, 0, 0x80, 0x80, 4, 0, 0, 0, 0, 0),
			"report-tasks holds 65536 where at most 65535 is allowed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := seal(entryOf(frameOf(KindTellTime, 1), c.frame, frameOf(KindLeave, 1, 3, 'b', '~', '1'))...)
			e, err := Decode(data, rules.First)
			if err != nil || len(e.Commands) != 3 || !bytes.Equal(Encode(e), data) {
				t.Fatalf("Decode(%x) = %+v, %v; want three commands, encoded alike", data, e, err)
			}
			if got, ok := e.Commands[1].(*Unreadable); !ok || got.Problem != c.want {
				t.Errorf("got %+v, want %q", e.Commands[1], c.want)
			}
			if got, ok := e.Commands[2].(*Leave); !ok || got.Peer != "b~1" {
				t.Errorf("the neighbour is %+v", e.Commands[2])
			}
		})
	}
}

// TestRulesOpenWhatTheyHave reads under the rules of tomorrow what those of today refuse.
func TestRulesOpenWhatTheyHave(t *testing.T) {
	e := &Entry{Writer: "a~1", Seq: 1, Commands: []Command{
		&TellTime{}, &PassTime{Millis: 7}, &KillJob{RequestID: strings.Repeat("r", RequestIDBytesMax+1), Job: "web"},
	}}
	if _, err := Decode(Encode(e), rules.First); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("needs version %d of the rules", rules.Next)) {
		t.Errorf("under the first rules: %v, want that it needs the next", err)
	}
	got, err := Decode(Encode(e), rules.Next)
	if e.Rules, e.Bytes = rules.Next, uint32(len(Encode(e))); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("under the next rules: %+v, %v", got, err)
	}
	// A header that says too little opens nothing.
	e.Rules = rules.First
	got, err = Decode(Encode(e), rules.First)
	if err != nil || !bytes.Equal(Encode(got), Encode(e)) {
		t.Fatalf("under the first rules: %+v, %v", got, err)
	}
	for i, want := range []bool{false, true, true} {
		if _, refused := got.Commands[i].(*Unreadable); refused != want {
			t.Errorf("command %d is %+v", i, got.Commands[i])
		}
	}
}

// TestDecodeNoticesDamage cuts and changes every sample everywhere.
func TestDecodeNoticesDamage(t *testing.T) {
	for f, e := range samples() {
		data := Encode(e)
		for at := range data {
			if _, err := Decode(data[:at], rules.Released); err == nil {
				t.Errorf("the first %d bytes of %v are taken for an entry", at, f)
			}
			if at > 0 && at < len(data)-checksumBytes {
				if _, err := Decode(seal(slices.Clone(data[:at])...), rules.Released); err == nil {
					t.Errorf("the first %d bytes of %v, sealed, are taken for an entry", at, f)
				}
			}
			for bit := range 8 {
				changed := slices.Clone(data)
				changed[at] ^= 1 << bit
				if _, err := Decode(changed, rules.Released); err == nil {
					t.Errorf("%v with bit %d of byte %d changed is taken for an entry", f, bit, at)
				}
			}
		}
	}
}

// TestACommandHasOneVersion refuses one that is written in a version above the lowest that has all of its fields.
func TestACommandHasOneVersion(t *testing.T) {
	submit := &SubmitJob{Spec: terms.Job{Name: "web", Tasks: []terms.Task{{Name: "main"}}}}
	for _, c := range []struct {
		delay   uint32
		version uint16
		want    string
	}{
		{0, 1, ""},
		{5, 2, ""},
		{0, 2, "submit-job is written in version 2, must be in version 1, which has all of its fields"},
	} {
		submit.Spec.Tasks[0].StopDelayMillis = c.delay
		f, body := form{KindSubmitJob, c.version}, &codec.Coder{Writing: true}
		f.code(body, submit)
		framed := append(binary.AppendUvarint([]byte{byte(f.kind), byte(f.version)}, uint64(len(body.Data))), body.Data...)
		e, err := Decode(seal(entryOf(framed)...), rules.Released)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if u, bad := e.Commands[0].(*Unreadable); bad {
			got = u.Problem
		} else if read := e.Commands[0].(*SubmitJob); !reflect.DeepEqual(read, submit) {
			t.Errorf("version %d is read as %+v, want %+v", c.version, read, submit)
		}
		if got != c.want {
			t.Errorf("version %d with a delay of %d: %q, want %q", c.version, c.delay, got, c.want)
		}
	}
}

// TestLimitsFit encodes the largest lists and texts that are allowed.
func TestLimitsFit(t *testing.T) {
	long := strings.Repeat("x", terms.TextBytesMax)
	e := &Entry{Writer: terms.NewPeerID(terms.NodeName(strings.Repeat("a", terms.NameBytesMax)), 1<<32-1), Seq: 1<<64 - 1}
	e.Commands = []Command{
		&SubmitJob{RequestID: strings.Repeat("r", RequestIDBytesMax), Spec: terms.Job{Tasks: []terms.Task{{
			Command: slices.Repeat([]string{"y"}, terms.ArgumentsMax), WorkDir: long,
			Restart: terms.Restart{AttemptsMax: terms.RestartsUnlimited},
			Constraints: []constraint.Constraint{{Attribute: strings.Repeat("z", 4*terms.NameBytesMax),
				Values: slices.Repeat([]string{""}, terms.RequestsPerTaskMax)}},
		}}}},
		&ReportTasks{Reports: slices.Repeat(
			[]Report{{ExitCode: -1 << 31, Detail: strings.Repeat("d", facts.FailureDetailBytesMax)}}, 1000)},
	}
	for len(e.Commands) < CommandsMax {
		e.Commands = append(e.Commands, &TellTime{})
	}
	got, err := Decode(Encode(e), rules.First)
	if e.Rules, e.Bytes = rules.First, uint32(len(Encode(e))); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("the largest entry comes back with error %v", err)
	}
}
