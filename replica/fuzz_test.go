package replica

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"starling/cluster"
	"starling/command"
	"starling/replica/bound"
	"starling/terms"
	"starling/terms/rules"
)

// FuzzApply folds arbitrary entries: what peers have reason to write, with fields at the ends of their ranges, out of
// order, by members and others, under tiny limits, on values of any age. Whatever they are, the fold does not panic,
// moves by one index, keeps its books, visits no more rows than it may, and does the same on a copy.
//
// An input is short, since the engine tries it again without each of its bytes: the age of the value, and a block for
// each entry. What a block does not choose follows from it.
func FuzzApply(f *testing.F) {
	ages := make([]aged, agesMax)
	for age := range ages {
		ages[age] = grow(f, uint64(age))
		rng := rand.New(rand.NewPCG(uint64(age), 1))
		data := []byte{byte(age)}
		for range rng.IntN(entriesMax * blockBytes) {
			data = append(data, byte(rng.Uint32()))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		old := &ages[int(data[0])%len(ages)]
		h := old.history
		h.s, h.seqs = old.value.Copy(), maps.Clone(old.history.seqs)
		for data = data[1:min(len(data), 1+entriesMax*blockBytes)]; len(data) > 0; {
			block := data[:min(len(data), blockBytes)]
			h.rng = rand.New(&byteSource{block, rand.NewPCG(uint64(block[0]), uint64(block[len(block)-1]))})
			h.wild(t)
			data = data[len(block):]
		}
	})
}

// What an input may hold: with more the engine tries few inputs a second.
const (
	agesMax    = 32
	entriesMax = 6
	blockBytes = 12
)

// aged is a value that a history has made, and where that history goes on.
type aged struct {
	value   cluster.Frozen
	history history
}

// grow returns the value that a seed makes, under the limits that it draws, the older the higher the seed; 0 is before
// the first entry.
func grow(t testing.TB, seed uint64) aged {
	rng := rand.New(rand.NewPCG(seed, 2))
	h := &history{rng: rng, s: cluster.NewStateWithin(tinyLimits(rng)), seqs: map[terms.PeerID]uint64{}, now: 1_000_000,
		shrinks: true, wide: true}
	if seed%4 == 3 {
		h.s.Rules = rules.Next
	}
	for range 50 * seed {
		if h.chance(25) {
			h.wild(t)
			continue
		}
		Apply(h.s, h.s.Index+1, h.next(), false)
	}
	return aged{h.s.Freeze(), *h}
}

// byteSource draws from what the fuzzer writes, so that it steers every choice; after that chance goes on.
type byteSource struct {
	data []byte
	rest *rand.PCG
}

// Uint64 returns the next byte in the high bits, where small draws look.
func (b *byteSource) Uint64() uint64 {
	if len(b.data) == 0 {
		return b.rest.Uint64()
	}
	draw := uint64(b.data[0])
	b.data = b.data[1:]
	return draw<<56 | b.rest.Uint64()>>8
}

// tinyLimits draws limits that a few entries reach. No job is larger than what is cheap to audit.
func tinyLimits(rng *rand.Rand) terms.Limits {
	l := terms.DefaultLimits()
	l.Jobs, l.FinishedJobs, l.JobInstances, l.Instances, l.Nodes = 50, 50, 60, 200, 12
	for _, limit := range []*uint32{
		&l.Jobs, &l.FinishedJobs, &l.FinishedSlots, &l.Tasks, &l.JobInstances, &l.Instances, &l.Attempts, &l.Requests,
		&l.Nodes, &l.Lives,
		&l.Pools, &l.Placements, &l.Preemptions, &l.Trials,
	} {
		if rng.IntN(2) == 0 {
			*limit = 1 + rng.Uint32N(6)
		}
	}
	l.Versions = 2 + rng.Uint32N(3)
	l.Gang = min(l.Gang, l.Placements)
	return l
}

// told writes out an entry.
func told(e *command.Entry) string {
	text := fmt.Sprintf("of %s, number %d at %d", e.Writer, e.Seq, e.Time)
	for _, c := range e.Commands {
		text += fmt.Sprintf("\n\t%s %+v", c.Kind(), reflect.ValueOf(c).Elem())
	}
	return text
}

// wild folds one entry that is more or less what somebody might write, and checks what holds after any.
func (h *history) wild(t testing.TB) {
	e := h.next()
	for range h.rng.IntN(3) {
		h.distort(reflect.ValueOf(e.Commands[h.rng.IntN(len(e.Commands))]).Elem())
	}
	if h.chance(10) {
		h.distort(reflect.ValueOf(e).Elem())
	}
	e, err := command.Decode(command.Encode(e), h.s.Rules)
	if err != nil {
		return // it could not enter the journal
	}
	if e.Time > h.now+1<<40 {
		h.now = e.Time
	}
	if h.s.Rules > rules.Next {
		return // no program folds on
	}
	before, index := h.s.Copy(), h.s.Index
	digest := before.Digest()
	size := bound.SizeOf(h.s)
	outcome := Apply(h.s, index+1, e, h.chance(50))
	if most := bound.RowsMax(size, bound.SizeOf(h.s), len(e.Commands)); outcome.Visited > most {
		t.Fatalf("entry %d %s\nvisits %d rows, at most %d", index+1, told(e), outcome.Visited, most)
	}
	if h.s.Index != index+1 {
		t.Fatalf("entry %d moved the value to %d", index+1, h.s.Index)
	}
	if found := h.s.Audit(); len(found) > 0 {
		t.Fatalf("after entry %d %s\n%s", index+1, told(e), strings.Join(found, "; "))
	}
	if got := before.Digest(); got != digest {
		t.Fatalf("entry %d %s\nchanged a copy", index+1, told(e))
	}
	Apply(before, index+1, e, false)
	if got, want := before.Digest(), h.s.Digest(); got != want {
		t.Fatalf("entry %d %s\ngives %016x on a copy, %016x on the value", index+1, told(e), got, want)
	}
}

// distortList empties a list, repeats an element, adds one or distorts one.
func (h *history) distortList(v reflect.Value) {
	n, plain := v.Len(), v.Type().Elem().Kind() != reflect.Interface
	switch draw := h.rng.IntN(8); {
	case draw == 0:
		v.SetZero()
	case draw == 1 && n > 0 && n < 64:
		v.Set(reflect.Append(v, v.Index(h.rng.IntN(n))))
	case draw == 2 && n < 64 && plain:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
	case n > 0 && plain:
		h.distort(v.Index(h.rng.IntN(n)))
	}
}

// distort gives one field anywhere within a value another value, often one at the end of its range.
func (h *history) distort(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if n := v.NumField(); n > 0 && v.Field(0).CanSet() {
			h.distort(v.Field(h.rng.IntN(n)))
		}
	case reflect.Slice:
		h.distortList(v)
	case reflect.Array:
		h.distort(v.Index(h.rng.IntN(v.Len())))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString([]string{
			"", "j0", "j1", "j2", "j3", "default", "a", "a/b", "a/b/j0", "t0", "t1", "n0~1", "n1~1", "n1~4294967295",
			"stranger~1", "gpu", "peers",
			"app", "0", "size", "node", "exclusive", "http", "svc", "env", "/", "~", "r1", strings.Repeat("x", 63),
			strings.Repeat("y", 300),
		}[h.rng.IntN(30)])
	case reflect.Int64, reflect.Int32:
		v.SetInt([]int64{0, 1, 2, -1, 1000, math.MaxInt32, math.MinInt32, 1 << 40, 1 << 60, math.MaxInt64,
			math.MinInt64}[h.rng.IntN(11)])
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint([]uint64{
			0, 1, 2, 3, 5, 100, 1000, 1_000_000, math.MaxUint8, math.MaxUint16, math.MaxUint32, math.MaxInt64, math.MaxUint64,
			uint64(h.s.Index),
			1 << 46, uint64(h.now) + 3_600_000,
		}[h.rng.IntN(16)])
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			h.distort(v.Elem())
		}
	default:
		panic(fmt.Sprintf("no distortion of a %s", v.Kind()))
	}
}
