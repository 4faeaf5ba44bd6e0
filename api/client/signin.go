package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/oauth2"

	"starling/api/door"
	"starling/api/wire"
	"starling/trust"
	"starling/trust/provider"
)

// SignIn has the user of a browser vouched for by the cluster's OpenID Connect provider: tell says what to do there.
// The nodes at the addresses are shown nothing, and must have one of the authorities.
func SignIn(ctx context.Context, addresses []string, known []trust.Shows,
	tell func(*oauth2.DeviceAuthResponse)) (*trust.Credentials, error) {
	return signIn(ctx, addresses, known, door.SignInRequest{}, func(begun *door.SignInAnswer) (provider.Arrival, error) {
		tell(begun.Device)
		return provider.Arrival{}, nil
	})
}

// SignInHere is SignIn with a browser of this machine, which is to show the page that open is told, and is led back.
func SignInHere(ctx context.Context, addresses []string, known []trust.Shows,
	open func(page string)) (*trust.Credentials, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	defer listener.Close()
	verifier := oauth2.GenerateVerifier()
	request := door.SignInRequest{
		Redirect: "http://" + listener.Addr().String() + "/", Challenge: oauth2.S256ChallengeFromVerifier(verifier),
	}
	return signIn(ctx, addresses, known, request, func(begun *door.SignInAnswer) (provider.Arrival, error) {
		if begun.Visit == nil {
			return provider.Arrival{}, errors.New("the node is of an older version, which knows no sign-in with a browser of this machine")
		}
		code, err := led(ctx, listener, begun.Visit, open)
		return provider.Arrival{Code: code, Verifier: verifier}, err
	})
}

// led waits until the browser is led back, and returns the code that it brings.
func led(ctx context.Context, listener net.Listener, visit *provider.Visit, open func(page string)) (string, error) {
	type brought struct {
		code string
		err  error
	}
	back := make(chan brought, 1)
	answer := func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if query.Get("state") != visit.State {
			http.Error(w, "This page is of no sign-in that goes on.", http.StatusNotFound)
			return
		}
		one := brought{code: query.Get("code")}
		if one.code == "" {
			one.err = fmt.Errorf("the sign-in was refused: %s", strconv.QuoteToASCII(query.Get("error")))
		}
		select {
		case back <- one:
			fmt.Fprintln(w, "Starling goes on in the terminal. This page can be closed.")
		default:
			http.Error(w, "This sign-in has been used.", http.StatusNotFound)
		}
	}
	server := &http.Server{ReadHeaderTimeout: askMax, Handler: http.HandlerFunc(answer)}
	go func() { _ = server.Serve(listener) }()
	open(visit.URL)
	ctx, cancel := context.WithTimeout(ctx, signInMax)
	defer cancel()
	select {
	case one := <-back:
		_ = server.Shutdown(ctx) // when the browser has its answer
		return one.code, one.err
	case <-ctx.Done():
		_ = server.Close()
		return "", errors.New("no browser came back in time: sign in again")
	}
}

// signIn begins a sign-in for a new key, has the user do what that takes, and returns what is given for it.
func signIn(ctx context.Context, addresses []string, known []trust.Shows, request door.SignInRequest,
	do func(*door.SignInAnswer) (provider.Arrival, error)) (*trust.Credentials, error) {
	mine, err := trust.NewRequest()
	if err != nil {
		return nil, err
	}
	request.CSR = mine.CSR
	c := newClient(addresses, func() []trust.Shows { return known })
	defer c.Close()
	begun := &door.SignInAnswer{}
	if err := c.post(ctx, door.PathSignIn, request, begun); err != nil {
		return nil, err
	}
	arrival, err := do(begun)
	if err != nil {
		return nil, err
	}
	answer, done := &door.UserAnswer{}, door.SignedInRequest{SignInAnswer: *begun, CSR: mine.CSR, Arrival: arrival}
	for tries := 1; ; tries++ {
		err := c.postFor(ctx, signInMax, door.PathSignedIn, done, answer)
		if err == nil {
			return mine.Credentials(addresses, answer.Certificate, answer.Authority)
		}
		var failure *wire.Failure
		if !errors.As(err, &failure) || failure.Code != wire.Unavailable || tries == signInTries {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(signInPause):
		}
	}
}

// signInMax bounds the wait for a user who signs in; an answer that does not come is asked for so often, with a pause.
const (
	signInMax   = time.Hour
	signInTries = 5
	signInPause = time.Second
)
