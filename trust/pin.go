package trust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// PinPrefix begins every line that tells where a cluster is.
const PinPrefix = "starling-cluster-1:"

// Pin is where a cluster answers, and by which authority it is known. It is one line of text, and no secret.
type Pin struct {
	Addresses []string `json:"addresses"`
	// CA is the hash of the authority.
	CA string `json:"ca"`
}

// Line returns the pin as text.
func (p *Pin) Line() (string, error) { return encodeLine(PinPrefix, p) }

// ParsePin reads a line.
func ParsePin(line string) (*Pin, error) {
	p := &Pin{}
	if err := decodeLine(PinPrefix, line, p); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if len(p.Addresses) == 0 || p.CA == "" {
		return nil, errors.New("cluster: the line is damaged: copy all of it")
	}
	return p, nil
}

// Shows returns what is shown to the cluster by who knows only its pin: nothing, and only if it has the authority.
func (p *Pin) Shows(ctx context.Context) ([]Shows, error) {
	var errs []error
	for _, address := range p.Addresses {
		ca, err := p.authorityAt(ctx, address)
		if err == nil {
			return []Shows{{CA: ca}}, nil
		}
		errs = append(errs, fmt.Errorf("ask %s: %w", address, err))
	}
	return nil, errors.Join(errs...)
}

// shownWithin bounds the wait for a node's certificate.
const shownWithin = 5 * time.Second

// authorityAt has a node show the authority.
func (p *Pin) authorityAt(ctx context.Context, address string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, shownWithin)
	defer cancel()
	dialed, err := (&tls.Dialer{Config: PinnedTLS(p.CA)}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer dialed.Close()
	for _, ca := range dialed.(*tls.Conn).ConnectionState().PeerCertificates { // it has been shaken by Dial
		if Hash(ca) == p.CA {
			return ca, nil
		}
	}
	return nil, errNoCertificate
}
