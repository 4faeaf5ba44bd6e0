package terms

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNameProblem(t *testing.T) {
	cases := []struct {
		name string
		dots bool
		want string
	}{
		{"web", false, ""},
		{"Web-2_b", false, ""},
		{"2", false, ""},
		{"db.example.org", true, ""},
		{strings.Repeat("a", NameBytesMax), false, ""},
		{"", false, "must not be empty"},
		{strings.Repeat("a", NameBytesMax+1), false, "must have at most 63 characters, has 64"},
		{"a.b", false, `must be of letters, digits, "-" and "_" and begin with a letter or digit; '.' is not allowed at position 2`},
		{".b", true, `must be of letters, digits, "-", "_" and "." and begin with a letter or digit; '.' is not allowed at position 1`},
		{"-a", false, `must be of letters, digits, "-" and "_" and begin with a letter or digit; '-' is not allowed at position 1`},
		{"a b", true, `must be of letters, digits, "-", "_" and "." and begin with a letter or digit; ' ' is not allowed at position 2`},
		{"a~1", true, `must be of letters, digits, "-", "_" and "." and begin with a letter or digit; '~' is not allowed at position 2`},
		{"a[0]", false, `must be of letters, digits, "-" and "_" and begin with a letter or digit; '[' is not allowed at position 2`},
	}
	for _, c := range cases {
		if got := NameProblem(c.name, c.dots); got != c.want {
			t.Errorf("NameProblem(%q, %v) = %q, want %q", c.name, c.dots, got, c.want)
		}
	}
}

// TestShown tells letters that are not ASCII, where NameProblem tells their first bytes.
func TestShown(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"é", "'é' is not allowed at position 1"},
		{"aña", "'ñ' is not allowed at position 2"},
		{"a b日", "' ' is not allowed at position 2"},
		{"a\xff", "'�' is not allowed at position 2"},
	} {
		if got := Shown(NameProblem(c.name, false), c.name); !strings.HasSuffix(got, "; "+c.want) {
			t.Errorf("of %q it says %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPeerID(t *testing.T) {
	cases := []struct {
		id          PeerID
		node        NodeName
		incarnation uint32
	}{
		{"a~1", "a", 1},
		{"db.example.org~4294967295", "db.example.org", 1<<32 - 1},
		{"a~4294967296", "a~4294967296", 0},
		{"a~01", "a~01", 0},
		{"a~+1", "a~+1", 0},
		{"a~", "a~", 0},
		{"a~1~2", "a~1~2", 0},
		{"a", "a", 0},
		{"", "", 0},
		{"~1", "", 1},
	}
	for _, c := range cases {
		node, incarnation := c.id.Split()
		if node != c.node || incarnation != c.incarnation {
			t.Errorf("%q.Split() = %q, %d, want %q, %d", c.id, node, incarnation, c.node, c.incarnation)
		}
		if incarnation != 0 && NewPeerID(node, incarnation) != c.id {
			t.Errorf("NewPeerID(%q, %d) = %q, want %q", node, incarnation, NewPeerID(node, incarnation), c.id)
		}
	}
}

// randomName returns a name that NameProblem takes.
func randomName(rng *rand.Rand, dots bool) string {
	letters := "abcXYZ019-_."
	if !dots {
		letters = letters[:len(letters)-1]
	}
	name := []byte{letters[rng.IntN(9)]}
	for range rng.IntN(NameBytesMax) {
		name = append(name, letters[rng.IntN(len(letters))])
	}
	return string(name)
}

func TestAllocationIDRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		job := NewJobName([]PoolPath{DefaultPool, "analytics", "a/b-2/C"}[rng.IntN(3)], randomName(rng, false))
		id := AllocationID{Slot: SlotName{job, TaskName(randomName(rng, false)), rng.Uint32()}, Order: Index(rng.Uint64())}
		if got, ok := ParseAllocationID(id.String()); !ok || got != id {
			t.Fatalf("ParseAllocationID(%q) = %v, %v", id, got, ok)
		}
		p := NewPeerID(NodeName(randomName(rng, true)), rng.Uint32()|1)
		if node, incarnation := p.Split(); NewPeerID(node, incarnation) != p || p.Node() != node {
			t.Fatalf("%q.Split() = %q, %d", p, node, incarnation)
		}
	}
}

func TestParseAllocationIDRefuses(t *testing.T) {
	for _, text := range []string{
		"", "web.server[2]", "web.server#1", "web[2]#1", "server[2]#1x", "web.server[2]#", "web.server[]#1", "web.server[2#1",
		"web.server[02]#1", "web.server[-1]#1", "web.server[4294967296]#1", "web.server[2]#18446744073709551616",
		"web.server[2]]#1",
		"web.server[2]#1 ", "web.server[2]#1#2",
	} {
		if id, ok := ParseAllocationID(text); ok {
			t.Errorf("ParseAllocationID(%q) = %v, want a refusal", text, id)
		}
	}
}

func FuzzParseAllocationID(f *testing.F) {
	f.Add("web.server[2]#4711")
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseAllocationID(text); ok && id.String() != text {
			t.Errorf("ParseAllocationID(%q) = %v", text, id)
		}
	})
}

func TestParseVolumeSet(t *testing.T) {
	want := VolumeSet{Slot: SlotName{Job: "db", Task: "main", Index: 2}, Job: 17}
	if got, ok := ParseVolumeSet("db.main[2]@17"); !ok || got != want || got.String() != "db.main[2]@17" {
		t.Errorf("got %+v, %t, want %+v", got, ok, want)
	}
	for _, text := range []string{"", "db.main[2]", "db.main[2]@", "db.main[2]@-1", "db.main[2]@017", "db.main@17",
		"db.main[2]#1@17"} {
		if got, ok := ParseVolumeSet(text); ok {
			t.Errorf("ParseVolumeSet(%q): got %+v, want none", text, got)
		}
	}
}
