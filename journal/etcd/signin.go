package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

const (
	// tokenFor is how long a token is used. By default the engine takes one for five minutes.
	tokenFor = 2 * time.Minute
	// signInMax bounds one sign-in. The engine takes a tenth of a second of a processor for each.
	signInMax = 5 * time.Second
	// signInMethod needs no token.
	signInMethod = "/etcdserverpb.Auth/Authenticate"
)

// signIn shows an ensemble who asks: it gives each request a token, and signs in for one now and then. etcd's client
// signs in before each stream that it opens, and pulses open many.
type signIn struct {
	user, password string
	client         *clientv3.Client

	mu    sync.Mutex
	token string
	since time.Time // when the engine gave it, zero if it has not
	// signing is closed when the sign-in under way has an answer, nil if none is.
	signing chan struct{}
	err     error // of the last
}

var _ credentials.PerRPCCredentials = (*signIn)(nil)

// RequireTransportSecurity implements credentials.PerRPCCredentials: an engine on this machine may have none.
func (*signIn) RequireTransportSecurity() bool { return false }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (s *signIn) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if info, _ := credentials.RequestInfoFromContext(ctx); info.Method == signInMethod {
		return nil, nil
	}
	s.mu.Lock()
	if !s.since.IsZero() && time.Since(s.since) < tokenFor {
		defer s.mu.Unlock()
		return s.shown(), nil
	}
	if s.signing == nil {
		s.signing = make(chan struct{})
		go s.renew()
	}
	signing := s.signing
	s.mu.Unlock()
	select {
	case <-signing:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown(), s.err
}

// shown is the token, in the engine's words; nil for an engine that wants none.
func (s *signIn) shown() map[string]string {
	if s.token == "" {
		return nil
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: s.token}
}

// renew signs in.
func (s *signIn) renew() {
	ctx, cancel := context.WithTimeout(s.client.Ctx(), signInMax)
	defer cancel()
	answer, err := s.client.Authenticate(ctx, s.user, s.password)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.token, s.since, s.err = "", time.Now(), nil; {
	case errors.Is(err, rpctypes.ErrAuthNotEnabled): // so it wants no token
	case err != nil:
		s.since, s.err = time.Time{}, status.Error(codes.Unauthenticated, rpctypes.ErrorDesc(err))
	default:
		s.token = answer.Token
	}
	close(s.signing)
	s.signing = nil
}

// heed forgets the token if that is why the engine refused something, and tells whether it is.
func (s *signIn) heed(err error) bool {
	known := rpctypes.Error(err)
	if !errors.Is(known, rpctypes.ErrInvalidAuthToken) && !errors.Is(known, rpctypes.ErrAuthOldRevision) &&
		!errors.Is(known, rpctypes.ErrUserEmpty) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
	return true
}

// options are those of the connections.
func (s *signIn) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithPerRPCCredentials(s),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, to *grpc.ClientConn,
			call grpc.UnaryInvoker, options ...grpc.CallOption) error {
			err := call(ctx, method, request, reply, to, options...)
			if s.heed(err) {
				err = call(ctx, method, request, reply, to, options...)
			}
			return err
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, description *grpc.StreamDesc, to *grpc.ClientConn,
			method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, description, to, method, options...)
			if err != nil {
				return nil, err
			}
			return heeding{stream, s}, nil
		}),
	}
}

// heeding is a stream that ends with a token that the engine does not take any more: the next has another.
type heeding struct {
	grpc.ClientStream
	signIn *signIn
}

// RecvMsg implements grpc.ClientStream.
func (h heeding) RecvMsg(message any) error {
	err := h.ClientStream.RecvMsg(message)
	h.signIn.heed(err)
	return err
}
