package door

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"starling/api/wire"
	"starling/cluster/registry"
	"starling/command"
	"starling/terms/access"
	"starling/trust"
	"starling/trust/provider"
)

// SignInLife is how long the certificate of a user is good for who has signed in.
const SignInLife = 12 * time.Hour

// SignInRequest begins a sign-in for a key: with a browser of this machine, if it says where that is led back to and
// what the code is bound to, see provider.Lead; else with one anywhere, where the user enters a code.
type SignInRequest struct {
	CSR       []byte `json:"csr"`
	Redirect  string `json:"redirect,omitempty"`
	Challenge string `json:"challenge,omitempty"`
}

// SignInAnswer is what the user has to do, as the provider says (RFC 8628, 3.2), or the page to open, and a proof that
// it was asked for the key: nobody else's is signed for it.
type SignInAnswer struct {
	Device *oauth2.DeviceAuthResponse `json:"device,omitempty"`
	Visit  *provider.Visit            `json:"visit,omitempty"`
	Proof  []byte                     `json:"proof"`
}

// secret is what the proof binds to the key, "" for nothing: of a visit also where it leads to.
func (a *SignInAnswer) secret() string {
	switch {
	case a.Visit != nil && a.Visit.State != "":
		return "visit " + a.Visit.State + " " + a.Visit.Redirect
	case a.Device != nil:
		return a.Device.DeviceCode
	}
	return ""
}

// SignedInRequest waits until the user has done that, or brings what the browser has brought, and asks for a
// certificate for the key.
type SignedInRequest struct {
	SignInAnswer
	CSR     []byte           `json:"csr"`
	Arrival provider.Arrival `json:"arrival"`
}

// keyOf is the key of a signing request, and its name.
func keyOf(csr []byte) (crypto.PublicKey, access.Key, error) {
	public, err := trust.KeyOf(csr)
	if err != nil {
		return nil, access.Key{}, &wire.Failure{Code: wire.Invalid, Reason: err.Error()}
	}
	key, err := trust.KeyOfPublic(public)
	return public, key, err
}

// errNoProvider tells that users cannot sign in here.
var errNoProvider = &wire.Failure{Code: wire.Conflict, Reason: "this node knows no OpenID Connect provider: give oidc.issuer " +
	"and oidc.client to the agents of all nodes that hold the authority's key, see docs/security.md"}

// canSignIn is an error if no user can sign in at this node.
func (d *Door) canSignIn(ctx context.Context) error {
	answer := d.answer.Load()
	switch {
	case d.config.SignIn == nil:
		return errNoProvider
	case !d.config.Keys.IsKeeper():
		return trust.ErrNotKeeper
	case answer == nil || answer.peer == nil:
		return errNoPeer
	case !d.isInForce(ctx):
		return errNoRegistry
	}
	return nil
}

// letSignIn gives a user a role, and the right to sign in.
func (d *Door) letSignIn(ctx context.Context, name string, role access.Role) (*UserAnswer, error) {
	err := d.canSignIn(ctx)
	if err == nil {
		err = d.enter(ctx, &command.AddUser{Credential: access.Credential{Key: access.SignInKey(name), Kind: access.OfUser,
			Name: name, Role: role}})
	}
	if err != nil {
		return nil, err
	}
	d.config.Log.Info("a user may sign in", "by", CallerOf(ctx).String(), "user", name, "role", role.String())
	return &UserAnswer{Authority: d.config.Keys.Signer().Raw, Address: d.config.Address}, nil
}

// signIn asks the provider for a code that the user enters there, or for a page that leads back.
func (d *Door) signIn(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathSignIn, func(request *SignInRequest) (*SignInAnswer, error) {
		if err := d.canSignIn(r.Context()); err != nil {
			return nil, err
		}
		_, key, err := keyOf(request.CSR)
		if err != nil {
			return nil, err
		}
		answer := &SignInAnswer{}
		if request.Redirect != "" {
			answer.Visit, err = d.config.SignIn.Lead(r.Context(), hostOf(r), request.Redirect, request.Challenge)
		} else {
			answer.Device, err = d.config.SignIn.Begin(r.Context(), hostOf(r))
		}
		if err != nil {
			return nil, failed(err)
		}
		answer.Proof, err = d.config.Keys.SignInProof(answer.secret(), key)
		return answer, err
	})
}

// hostOf is the address of who sends a request, "" for the socket.
func hostOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// failed gives an error of the provider its code.
func failed(err error) error {
	switch {
	case errors.Is(err, provider.ErrUnavailable):
		return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	case errors.Is(err, provider.ErrBusy):
		return &wire.Failure{Code: wire.Exhausted, Reason: err.Error()}
	}
	return err
}

// signedIn waits until the user has entered the code, and signs a certificate for who that is, if the cluster lets that
// one sign in.
func (d *Door) signedIn(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathSignedIn, func(request *SignedInRequest) (*UserAnswer, error) {
		ctx := r.Context()
		if err := d.canSignIn(ctx); err != nil {
			return nil, err
		}
		public, key, err := keyOf(request.CSR)
		switch {
		case err != nil:
			return nil, err
		case request.secret() == "" || !d.config.Keys.IsSignIn(request.Proof, request.secret(), key):
			return nil, errors.New("no sign-in was begun for this key at a node of this cluster: sign in again")
		}
		name, err := d.whoSignedIn(r, request)
		if err != nil {
			d.config.Log.Warn("a sign-in failed", "from", r.RemoteAddr, "error", err)
			return nil, failed(err)
		}
		all, _ := d.known()
		role, err := signInRole(all, name)
		if err != nil {
			d.config.Log.Warn("a sign-in was refused", "user", name, "from", r.RemoteAddr, "error", err)
			return nil, err
		}
		certificate, err := d.config.Keys.SignUser(name, role, public, SignInLife)
		if err == nil {
			err = d.addUser(ctx, name, access.NoRole, certificate) // the role is that of the right to sign in
		}
		if err == nil {
			err = d.maySignIn(ctx, name)
		}
		if err != nil {
			return nil, err
		}
		d.config.Log.Info("a user signed in", "user", name, "role", role.String(), "from", r.RemoteAddr)
		return &UserAnswer{certificate, d.config.Keys.Signer().Raw, d.config.Address}, nil
	})
}

// whoSignedIn is the name of who has signed in.
func (d *Door) whoSignedIn(r *http.Request, request *SignedInRequest) (string, error) {
	if request.Visit != nil {
		return d.config.SignIn.Arrive(r.Context(), hostOf(r), request.Visit, request.Arrival)
	}
	return d.config.SignIn.Finish(r.Context(), hostOf(r), request.Device)
}

// maySignIn is an error if the right to sign in ended before the credential was added; what ends it later ends the
// credential too.
func (d *Door) maySignIn(ctx context.Context, name string) error {
	state, err := d.answer.Load().peer.State(ctx, 0)
	if err == nil {
		_, err = signInRole(state.Registry(), name)
	}
	return err
}

// signInRole is the role of a user who signs in, or an error if the cluster does not let that one.
func signInRole(all *registry.Registry, name string) (access.Role, error) {
	if right := all.SignIn(name); right != nil {
		return right.Role, nil
	}
	return access.NoRole, fmt.Errorf("you are %s for the provider, and the cluster lets no user of that name sign in: ask an "+
		"admin for `starling user add %s --oidc`, with the --role that you need", name, name)
}
