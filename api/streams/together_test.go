package streams

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// counted counts what is sent.
type counted struct {
	*httptest.ResponseRecorder
	writes, flushes int
}

func (c *counted) Write(data []byte) (int, error) {
	c.writes++
	return c.ResponseRecorder.Write(data)
}

func (c *counted) Flush() {
	c.flushes++
	c.ResponseRecorder.Flush()
}

// TestTogether sends a message alone, many in succession, one that nothing follows for a while, and one at the end.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &counted{ResponseRecorder: httptest.NewRecorder()}
		sends := func(what string, body, writes, flushes int) {
			t.Helper()
			if to.Body.Len() != body || to.writes != writes || to.flushes != flushes {
				t.Errorf("%s: %d bytes were sent in %d writes and flushed %d times, want %d, %d, %d", what, to.Body.Len(), to.writes,
					to.flushes, body, writes, flushes)
			}
		}
		message := []byte(strings.Repeat("x", 100))
		Together(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			send := func() {
				if _, err := w.Write(message); err != nil {
					t.Fatal(err)
				}
				w.(http.Flusher).Flush()
			}
			send()
			sends("one alone", 100, 1, 1)
			for range 1000 {
				send()
			}
			most := togetherBytes/100 + 1
			sends("many", 100*(1+1000/most*most), 1+1000/most, 1)
			<-time.After(pause)
			synctest.Wait()
			sends("a rest", 100*1001, 2+1000/most, 2)
			send()
			sends("one more, soon after", 100*1001, 2+1000/most, 2)
		})).ServeHTTP(to, nil)
		sends("the end", 100*1002, 3+1000/(togetherBytes/100+1), 2)
	})
}
