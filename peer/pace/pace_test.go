package pace

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"starling/terms"
)

func slot(job string, index uint32) terms.SlotName {
	return terms.SlotName{Job: terms.JobName(job), Task: "main", Index: index}
}

// crash has an instance start and fail during some time, and returns how often it did; each time it ran for so long.
// The clock is that of synctest, which a sleep moves on.
func crash(p *Pace, which terms.SlotName, during, ran time.Duration) (starts int) {
	for began := time.Now(); time.Since(began) < during; starts++ {
		started := time.Now()
		<-time.After(ran)
		p.Saw(which, started, time.Now())
		p.Saw(which, started, time.Now().Add(-1)) // it is told again
		<-time.After(time.Millisecond)
		p.Await(context.Background(), which, func(string) {})
	}
	return starts
}

// TestCrashLoopsAreSlow has instances fail at once for a minute, as their job files let them each millisecond.
func TestCrashLoopsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		if got := crash(&p, slot("a/loops", 0), time.Minute, time.Millisecond); got < 60 || got > 70 {
			t.Errorf("one was started %d times in a minute, want about once a second", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		var all [100]int
		var crashing sync.WaitGroup
		for i := range all {
			crashing.Go(func() { all[i] = crash(&p, slot("a/loops", uint32(i)), time.Minute, time.Millisecond) })
		}
		other := crash(&p, slot("b/loops", 0), time.Minute, time.Millisecond)
		crashing.Wait()
		sum := 0
		for _, n := range all {
			sum += n
		}
		if sum > 1200 {
			t.Errorf("a hundred of a pool were started %d times in a minute, want about ten times a second", sum)
		}
		if other < 60 {
			t.Errorf("one of another pool was started %d times: it waits for what is none of its pool's", other)
		}
	})
}

// TestOthersStartAtOnce has what lives for longer, or has failed a few times, start when it may.
func TestOthersStartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		if got := crash(&p, slot("a/lives", 0), time.Minute, 1100*time.Millisecond); got < 54 {
			t.Errorf("what lives for a second was started %d times in a minute", got)
		}
		for range freely - 1 {
			p.Saw(slot("a/few", 0), time.Now(), time.Now())
			<-time.After(time.Millisecond)
		}
		if _, why := p.Slows(slot("a/few", 0)); why != "" {
			t.Errorf("what has failed %d times waits: %s", freely-1, why)
		}
		p.Saw(slot("a/few", 0), time.Now(), time.Now())
		if _, why := p.Slows(slot("a/few", 0)); !strings.Contains(why, fmt.Sprint(freely, " times in a row")) {
			t.Errorf("what has failed %d times: %q", freely, why)
		}
		<-time.After(2 * forgotten)
		p.Saw(slot("a/few", 0), time.Now(), time.Now())
		if _, why := p.Slows(slot("a/few", 0)); why != "" {
			t.Errorf("what has failed long ago waits: %s", why)
		}
		ctx, cancel := context.WithCancel(context.Background())
		for range freely {
			<-time.After(time.Millisecond)
			p.Saw(slot("a/gone", 0), time.Now(), time.Now())
		}
		cancel()
		if p.Await(ctx, slot("a/gone", 0), func(string) {}) {
			t.Error("what is not wanted any more is started")
		}
	})
}
