package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"starling/api/door"
	"starling/api/wire"
	"starling/rights"
	"starling/trust"
)

// askMax bounds what is asked about identities.
const askMax = 15 * time.Second

// CreateToken asks for a token by which machines join.
func (c *Client) CreateToken(ctx context.Context, request door.TokenRequest) (*trust.Token, error) {
	answer := &door.TokenAnswer{}
	err := c.post(ctx, door.PathToken, request, answer)
	return answer.Token, err
}

// AddUser makes a key here and asks for a user's certificate for it.
func (c *Client) AddUser(ctx context.Context, request door.UserRequest) (*trust.Credentials, error) {
	mine, err := trust.NewRequest()
	if err != nil {
		return nil, err
	}
	request.CSR = mine.CSR
	answer := &door.UserAnswer{}
	if err := c.post(ctx, door.PathUser, request, answer); err != nil {
		return nil, err
	}
	return mine.Credentials([]string{answer.Address}, answer.Certificate, answer.Authority)
}

// Tokens lists the tokens by which machines may join yet.
func (c *Client) Tokens(ctx context.Context) (all []door.KnownToken, err error) {
	err = c.post(ctx, door.PathTokens, door.Done{}, &all)
	return all, err
}

// Users lists the credentials of users.
func (c *Client) Users(ctx context.Context) (all []door.KnownUser, err error) {
	err = c.post(ctx, door.PathUsers, door.Done{}, &all)
	return all, err
}

// Can asks whether a user may do something.
func (c *Client) Can(ctx context.Context, q door.Question) (answer rights.Answer, err error) {
	err = c.post(ctx, door.PathCan, q, &answer)
	return answer, err
}

// RemoveToken ends a token.
func (c *Client) RemoveToken(ctx context.Context, id string) error {
	return c.post(ctx, door.PathRemoveToken, door.Removal{Name: id}, &door.Done{})
}

// RemoveUser ends the credentials of a user.
func (c *Client) RemoveUser(ctx context.Context, name string) error {
	return c.post(ctx, door.PathRemoveUser, door.Removal{Name: name}, &door.Done{})
}

// RemoveNode takes a node out of the cluster for good.
func (c *Client) RemoveNode(ctx context.Context, name string) error {
	return c.post(ctx, door.PathRemoveNode, door.Removal{Name: name}, &door.Done{})
}

// post asks the peers one after another until one decides.
func (c *Client) post(ctx context.Context, path string, request, answer any) error {
	var err error
	for _, address := range c.addresses {
		err = post(ctx, &http.Client{Transport: c.transport}, wire.URL(address)+path, request, answer)
		var failure *wire.Failure
		if errors.As(err, &failure) && failure.Code != wire.Conflict && failure.Code != wire.Unavailable || err == nil {
			return err
		}
	}
	return err
}

// post sends a request about identities and reads its answer.
func post(ctx context.Context, by *http.Client, url string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	sent.Header.Set("Content-Type", "application/json")
	received, err := by.Do(sent)
	if err != nil {
		return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	}
	defer received.Body.Close()
	text, err = io.ReadAll(io.LimitReader(received.Body, answerBytesMax))
	if err != nil {
		return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	}
	if received.StatusCode != http.StatusOK {
		told := struct {
			Code    wire.Code
			Message string
		}{wire.Unavailable, received.Status}
		_ = json.Unmarshal(text, &told) // what is not from a peer has its status
		return &wire.Failure{Code: told.Code, Reason: told.Message, Decided: true}
	}
	return json.Unmarshal(text, answer)
}

// answerBytesMax bounds an answer about identities.
const answerBytesMax = 1 << 20

// Join has a node admitted to the cluster of a token: it asks nobody who does not have the token's authority, and
// never sends the secret.
func Join(ctx context.Context, token *trust.Token, node string, mine *trust.Request) (trust.Admission, error) {
	var errs []error
	for _, address := range token.Addresses {
		admission, err := joinAt(ctx, address, token, node, mine)
		if err == nil {
			return admission, nil
		}
		errs = append(errs, fmt.Errorf("join at %s: %w", address, err))
		var failure *wire.Failure
		if errors.As(err, &failure) && failure.Code == wire.Denied {
			break
		}
	}
	return trust.Admission{}, errors.Join(errs...)
}

func joinAt(ctx context.Context, address string, token *trust.Token, node string,
	mine *trust.Request) (trust.Admission, error) {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	dialed, err := (&tls.Dialer{Config: trust.JoinTLS(token)}).DialContext(ctx, "tcp", address)
	if err != nil {
		return trust.Admission{}, err
	}
	defer dialed.Close()
	state := dialed.(*tls.Conn).ConnectionState() // it has been shaken by Dial
	channel, err := trust.Channel(&state)
	if err != nil {
		return trust.Admission{}, err
	}
	one := &http.Client{Transport: &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return dialed, nil },
	}}
	answer := &door.JoinAnswer{}
	err = post(ctx, one, wire.URL(address)+door.PathJoin, door.JoinRequest{
		Node: node, Claims: token.Claims, Proof: token.Proof(channel, mine.CSR), CSR: mine.CSR}, answer)
	if err != nil {
		return trust.Admission{}, err
	}
	admission := mine.Admission(answer.Certificate, answer.Authority)
	if len(answer.AuthorityKey) > 0 {
		return admission.WithAuthority(answer.AuthorityKey)
	}
	return admission, nil
}

// Renew has a node's certificate renewed by the first of the nodes at these addresses that can.
func Renew(ctx context.Context, keys *trust.Keys, addresses []string) error {
	certificate, csr, err := keys.RenewalRequest()
	if err != nil {
		return err
	}
	if keys.IsKeeper() {
		renewed, _, err := keys.RenewNode(certificate, csr)
		if err != nil {
			return err
		}
		return keys.Renewed(renewed)
	}
	// What may have expired is not shown, lest the connection be refused: the request itself proves whose it is.
	transport := wire.Transport(func() []trust.Shows { return []trust.Shows{{CA: keys.CA()}} })
	defer transport.CloseIdleConnections()
	var errs []error
	for _, address := range addresses {
		answer := &door.RenewAnswer{}
		err := post(ctx, &http.Client{Transport: transport}, wire.URL(address)+door.PathRenew,
			door.RenewRequest{Certificate: certificate, CSR: csr}, answer)
		if err == nil {
			return keys.Renewed(answer.Certificate)
		}
		errs = append(errs, fmt.Errorf("ask %s: %w", address, err))
	}
	return errors.Join(append(errs, errors.New("no node renewed this node's certificate"))...)
}
