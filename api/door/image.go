package door

import (
	"context"
	"errors"
	"net/http"

	"starling/api/wire"
	"starling/driver/image"
	"starling/terms"
)

// PinRequest asks for the name of an image with the digest that its tag has now.
type PinRequest struct {
	Image string `json:"image"`
	// Secret is that of the pool with which the registry is asked, "" for none.
	Pool   terms.PoolPath `json:"pool,omitempty"`
	Secret string         `json:"secret,omitempty"`
	// Index is that of a value which has the secret.
	Index terms.Index `json:"index"`
}

// PinAnswer has it.
type PinAnswer struct {
	Image string `json:"image"`
}

// pin asks a registry for a node that may not open the secret. The node learns the digest alone: credentials are sent
// to none but the registry that the secret has them for.
func (d *Door) pin(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathPin, func(request *PinRequest) (*PinAnswer, error) { return d.Pin(r.Context(), request) })
}

// Pin asks the registry of an image. Its failures are *wire.Failure where whoever asks can do something about them.
func (d *Door) Pin(ctx context.Context, request *PinRequest) (*PinAnswer, error) {
	var config image.Config
	if request.Secret != "" && !image.Pinned(request.Image) {
		state, err := d.keptState(ctx, request.Index)
		if err != nil {
			return nil, err
		}
		value, _, err := d.openSecret(state, request.Pool, &terms.SecretUse{Name: request.Secret})
		if err != nil {
			return nil, err
		}
		config = func(context.Context) ([]byte, error) { return value, nil }
	}
	pinned, err := d.images.Pin(ctx, request.Image, config)
	switch {
	case errors.Is(err, image.ErrUnavailable):
		return nil, &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	case err != nil:
		return nil, &wire.Failure{Code: wire.NotFound, Reason: err.Error()}
	}
	return &PinAnswer{pinned}, nil
}
