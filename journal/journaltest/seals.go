package journaltest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"starling/journal"
)

func seals() []contract {
	return []contract{
		{"Seal", testSeal},
		{"SealOfNothing", testSealOfNothing},
		{"SealWhileWriting", testSealWhileWriting},
		{"SealThenTrim", testSealThenTrim},
		{"SealProvesNothing", testSealProvesNothing},
	}
}

// seal seals the journal, or asks for its seal, and fails unless it is the one that is wanted.
func seal(t testing.TB, j journal.Journal, to string, want journal.Seal) {
	t.Helper()
	got, err := j.Seal(limited(t), to)
	must(t, err)
	if got != want {
		t.Errorf("the seal is %+v, want %+v", got, want)
	}
}

func testSeal(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	all := appendAll(t, a, "w", 5)
	early, late := follow(t, b, 0), follow(t, b, 6)
	wantSame(t, early.take(5), all)
	seal(t, b, "", journal.Seal{})

	want := journal.Seal{Index: 5, To: "a better place"}
	seal(t, a, want.To, want)
	for _, j := range []journal.Journal{a, b, h.open(t)} {
		seal(t, j, "", want)
		seal(t, j, "elsewhere", want)
		wantError(t, "append a new record", j.Append(limited(t), record("w", 6)), journal.ErrSealed)
		wantError(t, "append as a new writer", j.Append(limited(t), record("v", 1)), journal.ErrSealed)
		must(t, j.Append(limited(t), all[4])) // a resend is there
		if got := head(t, j); got != 5 {
			t.Errorf("the head is %d, want 5", got)
		}
		reader := follow(t, j, 3)
		wantSame(t, reader.take(3), all[2:])
		wantError(t, "follow to the end", reader.returned(), journal.ErrSealed)
	}
	wantError(t, "a reader that had read all", early.returned(), journal.ErrSealed)
	wantError(t, "a reader that waited for more", late.returned(), journal.ErrSealed)
}

func testSealOfNothing(t *testing.T, h Harness) {
	a := h.open(t)
	want := journal.Seal{To: "a better place"}
	seal(t, a, want.To, want)
	wantError(t, "append", h.open(t).Append(limited(t), record("w", 1)), journal.ErrSealed)
	wantError(t, "follow", follow(t, h.open(t), 0).returned(), journal.ErrSealed)
	seal(t, h.open(t), "", want)
}

// testSealWhileWriting seals what others write to, twice at once: what was acknowledged is there, and nothing after.
func testSealWhileWriting(t *testing.T, h Harness) {
	const writers = 4
	var acknowledged atomic.Int64
	var writing, warm sync.WaitGroup
	warm.Add(writers)
	for w := range writers {
		j := h.open(t)
		writing.Go(func() {
			for n := 1; ; n++ {
				err := j.Append(limited(t), record(string(rune('a'+w)), n))
				if n == 10 || err != nil && n < 10 {
					warm.Done()
				}
				if err == nil {
					acknowledged.Add(1)
					continue
				}
				if !errors.Is(err, journal.ErrSealed) {
					t.Errorf("append: %v", err)
				}
				return
			}
		})
	}
	warm.Wait()
	var sealing sync.WaitGroup
	seals := make([]journal.Seal, 2)
	for i, to := range []string{"here", "there"} {
		j := h.open(t)
		sealing.Go(func() {
			var err error
			if seals[i], err = j.Seal(limited(t), to); err != nil {
				t.Errorf("seal: %v", err)
			}
		})
	}
	sealing.Wait()
	writing.Wait()
	if seals[0] != seals[1] || int64(seals[0].Index) != acknowledged.Load() {
		t.Errorf("the seals are %+v and %+v, and %d records were acknowledged", seals[0], seals[1], acknowledged.Load())
	}
	reader := follow(t, h.open(t), 0)
	reader.take(int(seals[0].Index))
	wantError(t, "follow to the end", reader.returned(), journal.ErrSealed)
}

// testSealThenTrim trims what is sealed already: it stays so.
func testSealThenTrim(t *testing.T, h Harness) {
	a := h.open(t)
	all := appendAll(t, a, "w", 6)
	first, last := snapshot(t, a, 4, 1), snapshot(t, a, 6, 1)
	want := journal.Seal{Index: 6, To: "a better place"}
	seal(t, a, want.To, want)
	must(t, a.Trim(limited(t), first))
	reader := follow(t, h.open(t), 5)
	wantSame(t, reader.take(2), all[4:])
	wantError(t, "follow to the end", reader.returned(), journal.ErrSealed)
	must(t, a.Trim(limited(t), last))
	wantSnapshot(t, h.open(t), last)
	seal(t, h.open(t), "", want)
	wantError(t, "append", h.open(t).Append(limited(t), record("w", 7)), journal.ErrSealed)
	wantError(t, "follow after the snapshot", follow(t, h.open(t), 7).returned(), journal.ErrSealed)
}

// testSealProvesNothing asks whether a pulse lives when that does not matter here any more.
func testSealProvesNothing(t *testing.T, h Harness) {
	a := h.open(t)
	p := h.begin(t, a, "p")
	must(t, p.Confirm(limited(t)))
	_, err := h.open(t).Seal(limited(t), "a better place")
	must(t, err)
	wantError(t, "confirm", p.Confirm(limited(t)), journal.ErrSealed)
	must(t, p.Publish(limited(t), []byte("still here")))
	live, err := a.Pulses(limited(t))
	if must(t, err); len(live) != 1 || string(live[0].Value) != "still here" {
		t.Errorf("the pulses are %v, want that of p", live)
	}
}
