package snapshot

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/retries"
	"starling/terms"
	"starling/terms/rules"
)

var rewrite = flag.Bool("rewrite", false, "write the golden snapshot")

// sample returns a value that has something of everything.
func sample() *cluster.State {
	s := cluster.NewState()
	s.Index, s.Time = 7, 1_000
	for _, name := range []terms.NodeName{"a", "b"} {
		n := s.EnsureNode(name).Index
		s.Wrote(n, 1, 3)
		s.SetPeer(n, terms.NewPeerID(name, 1))
		s.SetOffer(n, &terms.Offer{
			Capacity: terms.Resources{4_000, 1 << 30, 1 << 30}, Attributes: []terms.EnvVar{{Name: "disk", Value: "ssd"}},
			Devices: []terms.DeviceOffer{{Kind: "gpu", Count: 2}}, PortFirst: 100, PortLast: 199, Address: "a:1", Rules: 2,
		})
	}
	s.SetWatched("a~1", "b~1")
	s.SetWatched("b~1", "a~1")
	s.SetAttempt("c~1", membership.Attempt{Number: 1, Phase: membership.Aborted, Began: 2, BeganAt: 3})
	spec := &terms.Job{Name: "web", Type: terms.Stateless, Tasks: []terms.Task{{
		Name: "main", Instances: 3, Command: []string{"run"}, Resources: terms.Resources{100, 1, 0},
		Ports:   []terms.PortRequest{{Name: "http"}},
		Devices: []terms.DeviceRequest{{Kind: "gpu", Amount: terms.WholeDevice}}, StopDelayMillis: 5,
	}}}
	j, anywhere := s.AddJob(spec), func(facts.TaskKey, facts.NodeIndex) bool { return true }
	s.AddVersion(j.ID, facts.JobVersion{Kind: facts.Submitted, Spec: spec}, anywhere)
	s.AddVersion(j.ID, facts.JobVersion{Kind: facts.Restarted, Of: 1, Spec: spec}, anywhere)
	s.SetDesired(j.ID, 0, 3)
	r := facts.SlotRef{Job: j.ID}
	s.Assign(facts.KeyOf(j.ID, 0), 0, 1, func(facts.SlotRef) {})
	slot, _ := s.SlotAt(r)
	slot.Phase, slot.Since, slot.ExitCode = facts.Running, 5, -3
	s.SetSlot(r, slot)
	s.SetAttempts(r, retries.Attempts{Made: 2, Latest: []retries.Attempt{{At: 4, DelayMillis: 9}}})
	s.SetFailure(j.ID, 0, facts.Failure{Index: 1, Order: 6, At: 6, Ended: facts.ByItself, ExitCode: 1, Detail: "it fell"})
	s.Remember("request", facts.Request{Index: 4, Refusal: facts.Refusal{Code: facts.Conflict, Reason: "so"}, Job: "web"})
	return s
}

// TestComesBack writes a value and makes it anew.
func TestComesBack(t *testing.T) {
	s := sample()
	data := Encode(s.Facts())
	f, err := Decode(data, rules.First)
	if err != nil {
		t.Fatal(err)
	}
	anew := cluster.Rebuild(f)
	if anew.Digest() != s.Digest() || !bytes.Equal(Encode(anew.Facts()), data) {
		t.Errorf("made anew the value has digest %016x, want %016x", anew.Digest(), s.Digest())
	}
	if found := anew.Audit(); len(found) > 0 {
		t.Error(found)
	}
	if f.Jobs[0].Versions[0].Spec != f.Jobs[0].Versions[1].Spec {
		t.Error("two versions with one spec have two of them")
	}
}

// TestGolden reads what the first program that wrote snapshots has written.
func TestGolden(t *testing.T) {
	s := sample()
	const file = "testdata/format1.snapshot"
	if *rewrite {
		if err := os.WriteFile(file, Encode(s.Facts()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Decode(data, rules.First)
	if err != nil {
		t.Fatal(err)
	}
	if got := cluster.Rebuild(f).Digest(); got != s.Digest() {
		t.Errorf("the value has digest %016x, want %016x", got, s.Digest())
	}
}

// TestNotAValue reads what cannot be read.
func TestNotAValue(t *testing.T) {
	s := sample()
	data := Encode(s.Facts())
	for n := range data {
		if _, err := Decode(data[:n], rules.First); err == nil {
			t.Errorf("the first %d of %d bytes are a snapshot", n, len(data))
		}
	}
	s.Rules = rules.Released
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"too long", append(bytes.Clone(data), 0), "the snapshot is damaged: it has 1 bytes too many"},
		{"another file", []byte{0, 1}, "this is not a snapshot: it begins with 0"},
		{"newer format", []byte{format + 1}, "format 2: " + ErrNewer.Error()},
		{"newer rules", Encode(s.Facts()), fmt.Sprintf("version %d of the rules: %v", rules.Released, ErrNewer)},
	} {
		_, err := Decode(c.data, rules.First)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if newer := strings.HasPrefix(c.name, "newer"); newer != errors.Is(err, ErrNewer) {
			t.Errorf("%s: is it ErrNewer: %v", c.name, !newer)
		}
	}
}

// FuzzDecode reads any bytes: what can be read comes back when it is written.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(sample().Facts()))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Decode(data, rules.Released)
		if err != nil {
			return
		}
		once := Encode(all)
		if all, err = Decode(once, rules.Released); err != nil || !bytes.Equal(Encode(all), once) {
			t.Errorf("it does not come back: %v", err)
		}
	})
}
