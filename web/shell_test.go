package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
)

// TestWhoOpensShells asks for a shell as the page does, and otherwise. A recorder cannot become a WebSocket: who is let
// in is answered 501.
func TestWhoOpensShells(t *testing.T) {
	b, _ := start(t)
	b.signIn(b.page.Link(0))
	other := &browser{T: t, page: b.page}
	other.signIn(b.page.Link(0))
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"the page", nil, 501},
		{"another name", []string{"Host", "example.org"}, 403},
		{"another port of this machine", []string{"Origin", "http://127.0.0.1:4712", "Sec-Fetch-Site", "same-site"}, 403},
		{"another page", []string{"Origin", "https://example.org"}, 403},
		{"no origin", []string{"Origin", ""}, 403},
		{"another site", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"the cookie alone", []string{"Sec-WebSocket-Protocol", shellProtocol}, 401},
		{"the secret alone", []string{"Cookie", ""}, 401},
		{"the secret of another browser", []string{"Sec-WebSocket-Protocol", pageProtocol + other.header}, 401},
		{"the secret where requests have it", []string{"Sec-WebSocket-Protocol", "", sessionHeader, b.header}, 401},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+self+shellPath, nil)
		r.AddCookie(b.cookie)
		all := append([]string{"Origin", "http://" + self, "Sec-Fetch-Site", "same-origin", "Connection", "Upgrade",
			"Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
			"Sec-WebSocket-Protocol", shellProtocol + ", " + pageProtocol + b.header}, c.headers...)
		for i := 0; i < len(all); i += 2 {
			if r.Header.Set(all[i], all[i+1]); all[i+1] == "" {
				r.Header.Del(all[i])
			}
			if all[i] == "Host" {
				r.Host = all[i+1]
			}
		}
		w := httptest.NewRecorder()
		b.page.server.Handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, w.Code, w.Body, c.want)
		}
	}
}

// echo is a program that repeats its input up to a line "end", and tells the sizes of its terminal.
func echo(ctx context.Context, request *starlingv1.ExecRequest, s client.Session) (int, error) {
	if request.GetAllocation() != "web.server[0]#1" {
		return 0, &wire.Failure{Code: wire.Conflict, Reason: "it does not run"}
	}
	fmt.Fprintf(s.Stdout, "%dx%d", request.GetColumns(), request.GetRows())
	go func() {
		for size := range s.Resized {
			fmt.Fprintf(s.Stdout, "%dx%d", size.GetColumns(), size.GetRows())
		}
	}()
	for {
		data := make([]byte, 100)
		n, err := s.Input.Read(data)
		switch {
		case err != nil:
			<-ctx.Done()
			return 0, ctx.Err()
		case string(data[:n]) == "end":
			return 7, nil
		}
		if _, err := s.Stdout.Write(data[:n]); err != nil {
			return 0, err
		}
	}
}

// TestShells talks with a program to its end, with one that is not there, and goes away from one.
func TestShells(t *testing.T) {
	ended := make(chan error, 3)
	closing, end := context.WithCancel(t.Context())
	all := newShells(closing, func(ctx context.Context, r *starlingv1.ExecRequest, s client.Session) (int, error) {
		code, err := echo(ctx, r, s)
		ended <- err
		return code, err
	})
	server := httptest.NewServer(all)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dial := func(allocation string) *websocket.Conn {
		conn, _, err := websocket.Dial(ctx, server.URL, &websocket.DialOptions{Subprotocols: []string{shellProtocol}})
		if err != nil {
			t.Fatal(err)
		}
		say(t, conn, websocket.MessageText, fmt.Sprintf(`{"allocation": %q, "command": ["sh"], "columns": 80, "rows": 24}`, allocation))
		return conn
	}
	hears := func(conn *websocket.Conn, want string) {
		t.Helper()
		_, got, err := conn.Read(ctx)
		if err != nil || string(got) != want {
			t.Errorf("heard %s, %v, want %s", got, err, want)
		}
	}
	conn := dial("web.server[0]#1")
	hears(conn, "80x24")
	say(t, conn, websocket.MessageBinary, "hello")
	hears(conn, "hello")
	say(t, conn, websocket.MessageText, `{"columns": 100, "rows": 30}`)
	hears(conn, "100x30")
	say(t, conn, websocket.MessageBinary, "end")
	hears(conn, `{"exit_code":7}`)
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("behind the end: %v", err)
	}
	<-ended
	hears(dial("gone"), `{"failure":"it does not run"}`)
	<-ended
	conn = dial("web.server[0]#1")
	hears(conn, "80x24")
	_ = conn.CloseNow()
	if err := <-ended; err == nil {
		t.Error("a program whose page has gone ends well")
	}
	conn = dial("web.server[0]#1")
	hears(conn, "80x24")
	end() // the page's server is closed
	if err := <-ended; err == nil {
		t.Error("a program goes on when the page's server is closed")
	}
	if _, _, err := conn.Read(ctx); err == nil || strings.Contains(err.Error(), "deadline") {
		t.Errorf("when the page's server is closed: %v", err)
	}
}

func say(t *testing.T, conn *websocket.Conn, kind websocket.MessageType, text string) {
	t.Helper()
	if err := conn.Write(t.Context(), kind, []byte(text)); err != nil {
		t.Fatal(err)
	}
}
