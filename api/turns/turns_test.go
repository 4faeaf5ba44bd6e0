package turns

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/api/door"
	"starling/api/wire"
	"starling/terms/access"
	"starling/trust"
)

func as(t *testing.T, name string) context.Context {
	return door.WithCaller(t.Context(), trust.Identity{Kind: access.OfUser, Name: name, Role: access.Viewer})
}

// taken is what comes of a request for a place.
type taken struct {
	place *Place
	err   error
}

// take asks for a place, beside others.
func take(ctx context.Context, from *Turns) <-chan taken {
	got := make(chan taken, 1)
	go func() {
		place, err := from.Take(ctx)
		got <- taken{place, err}
	}()
	synctest.Wait()
	return got
}

// TestACallerHasOnePlace has one caller ask for many, and another for one.
func TestACallerHasOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := New(2, "imagines")
		first := <-take(as(t, "vic"), two)
		second := take(as(t, "vic"), two)
		third := take(as(t, "vic"), two)
		if one := <-take(as(t, "ann"), two); one.err != nil {
			t.Fatalf("another caller gets %v", one.err)
		}
		ben := take(as(t, "ben"), two)
		if len(second)+len(third)+len(ben) > 0 {
			t.Fatal("there are more places than two")
		}
		first.place.Done()
		synctest.Wait()
		if len(second) != 1 || len(third)+len(ben) > 0 {
			t.Error("who has waited longest is not next")
		}
		(<-second).place.Done()
		synctest.Wait()
		if len(third) != 1 || len(ben) != 0 {
			t.Error("who has waited longest is not next")
		}
		time.Sleep(waitMax)
		var failure *wire.Failure
		if late := <-ben; !errors.As(late.err, &failure) || failure.Code != wire.Unavailable ||
			!strings.Contains(failure.Reason, "this peer imagines for others now, and 0 more wait") {
			t.Errorf("who waits too long gets %v", late.err)
		}
	})
}

// TestACallerHasSeveralPlaces has one caller ask for more places than it may have, and others come later: one place is
// theirs at once, and those that have none come before those that have some.
func TestACallerHasSeveralPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		four := NewShared(4, 3, "sends")
		var vic []<-chan taken
		for range 5 {
			vic = append(vic, take(as(t, "vic"), four))
		}
		if len(vic[0])+len(vic[1])+len(vic[2]) != 3 || len(vic[3])+len(vic[4]) > 0 {
			t.Fatal("one caller does not have the three places that it may have")
		}
		ann := take(as(t, "ann"), four)
		ben := take(as(t, "ben"), four)
		if len(ann) != 1 || len(ben) > 0 {
			t.Fatal("another does not have the last place")
		}
		(<-vic[0]).place.Done()
		synctest.Wait()
		if len(ben) != 1 || len(vic[3]) > 0 {
			t.Error("one with places comes before one without")
		}
		for _, got := range []<-chan taken{ann, ben, vic[1], vic[2], vic[3], vic[4]} {
			(<-got).place.Done()
			synctest.Wait()
		}
		if len(four.all)+len(four.holds)+len(four.waiting) > 0 || four.free != 4 {
			t.Errorf("it is left %+v", four)
		}
	})
}

func TestWhoHasGoneWaitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := New(1, "imagines")
		first := <-take(as(t, "vic"), one)
		ctx, cancel := context.WithCancel(as(t, "ann"))
		second := take(ctx, one)
		cancel()
		if got := <-second; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
		var many []<-chan taken
		for range ofCallerMax - 1 {
			many = append(many, take(as(t, "vic"), one))
		}
		if got := <-take(as(t, "vic"), one); got.err == nil || !strings.Contains(got.err.Error(), "wait already") {
			t.Errorf("one too many gets %v", got.err)
		}
		first.place.Done()
		for _, each := range many {
			(<-each).place.Done()
		}
		if len(one.all)+len(one.holds)+len(one.waiting) > 0 || one.free != 1 {
			t.Errorf("it is left %+v", one)
		}
	})
}

// TestWhoReadsNothingHasNoPlace sends what nobody reads, for more requests than there are places.
func TestWhoReadsNothingHasNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := New(1, "reads the past")
		read := make(chan struct{})
		ended := make(chan error, lentMax)
		for range lentMax {
			p := (<-take(as(t, "vic"), one)).place
			go func() {
				defer p.Done()
				ended <- p.Aside(t.Context(), func() error { <-read; return nil })
			}()
			time.Sleep(2 * lentAfter)
		}
		more := take(as(t, "vic"), one)
		other := <-take(as(t, "ann"), one)
		if other.err != nil || len(more) > 0 {
			t.Fatalf("another gets %v, and who reads nothing %d more places", other.err, len(more))
		}
		close(read)
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("what is read again goes on without a place")
		}
		other.place.Done()
		(<-more).place.Done()
		for range lentMax {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(one.all)+len(one.holds)+len(one.waiting)+len(one.lent) > 0 || one.free != 1 {
			t.Errorf("it is left %+v", one)
		}
	})
}
