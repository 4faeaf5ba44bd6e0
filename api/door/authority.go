package door

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms/access"
	"starling/terms/rules"
	"starling/trust"
)

// askWithin is how long another machine may take to show its certificate.
const askWithin = 2 * time.Second

// asksMax bounds how many are asked at a time.
const asksMax = 256

// The states of an authority.
const (
	// Signs is the newest, Counts another whose certificates count, Former one whose certificates count no more.
	Signs  = "signs"
	Counts = "counts"
	Former = "former"
)

// KnownAuthority is one of the cluster's authorities.
type KnownAuthority struct {
	ID      string    `json:"id"`
	State   string    `json:"state"`
	Expires time.Time `json:"expires"`
	// Machines are those whose certificates it has signed, of those that answered.
	Machines []string `json:"machines"`
}

// AuthoritiesAnswer lists the authorities, the oldest first, and the machines that did not show a certificate.
type AuthoritiesAnswer struct {
	Authorities []KnownAuthority `json:"authorities"`
	Away        []string         `json:"away"`
}

// RotateAnswer names the authority that signs from now on.
type RotateAnswer struct {
	ID string `json:"id"`
}

// KeyRequest asks for the key of the newest authority, for a node that holds that of another.
type KeyRequest struct {
	Proof []byte `json:"proof"`
}

// KeyAnswer has it.
type KeyAnswer struct {
	Key []byte `json:"key"`
}

// valueWithAuthorities is the value, of rules that have authorities.
func (d *Door) valueWithAuthorities(ctx context.Context) (*cluster.State, error) {
	answer := d.answer.Load()
	if answer == nil || answer.peer == nil {
		return nil, errNoPeer
	}
	state, err := answer.peer.State(ctx, 0)
	if err == nil && state.Rules < rules.Authorities {
		err = fmt.Errorf("an authority can be replaced since version %d of the rules, which are at %d: raise them, see "+
			"`starling rules`", rules.Authorities, state.Rules)
	}
	return state, err
}

// rotate makes the next authority on this node, and lets it sign.
func (d *Door) rotate(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathRotate, func(*Done) (*RotateAnswer, error) {
		state, err := d.valueWithAuthorities(r.Context())
		if err != nil {
			return nil, err
		}
		list := listed(state, d.config.Keys)
		signs := list[len(list)-1]
		fresh, err := d.config.Keys.Successor()
		if err == nil && (state.Registry() == nil || len(state.Registry().Authorities) == 0) {
			err = d.enter(r.Context(), &command.AddAuthority{Certificate: signs.Certificate})
		}
		if err == nil {
			err = d.enter(r.Context(), &command.AddAuthority{Against: signs.ID(), Certificate: fresh.Certificate})
		}
		if err != nil {
			return nil, err
		}
		d.config.Log.Info("another authority signs", "by", CallerOf(r.Context()).String(), "authority", fresh.ID().String())
		return &RotateAnswer{fresh.ID().String()}, nil
	})
}

// listed are the authorities as the value has them, or as this node does while none was ever replaced.
func listed(s *cluster.State, keys *trust.Keys) []access.Authority {
	if all := s.Registry(); all != nil && len(all.Authorities) > 0 {
		return all.Authorities
	}
	return keys.Listed()
}

// authorities lists the authorities, and asks each machine which of them has signed its certificate.
func (d *Door) authorities(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathAuthorities, func(*Done) (*AuthoritiesAnswer, error) {
		state, err := d.valueWithAuthorities(r.Context())
		if err != nil {
			return nil, err
		}
		list, answer := listed(state, d.config.Keys), &AuthoritiesAnswer{Away: []string{}}
		shown := d.shown(r.Context(), state)
		for i, one := range list {
			ca, err := trust.CertificateOf(one)
			if err != nil {
				return nil, err
			}
			known := KnownAuthority{ID: one.ID().String(), State: Counts, Expires: ca.NotAfter.UTC(), Machines: []string{}}
			switch {
			case one.Former:
				known.State = Former
			case i == len(list)-1:
				known.State = Signs
			}
			for _, m := range shown {
				if m.signed == one.ID() {
					known.Machines = append(known.Machines, m.node)
				}
			}
			answer.Authorities = append(answer.Authorities, known)
		}
		for _, m := range shown {
			if m.signed == (access.Key{}) {
				answer.Away = append(answer.Away, m.node)
			}
		}
		return answer, nil
	})
}

// shownBy is which authority has signed the certificate that a node shows, none if it shows none.
type shownBy struct {
	node, address string
	signed        access.Key
}

// shown asks all nodes that have a key.
func (d *Door) shown(ctx context.Context, s *cluster.State) []shownBy {
	addresses := map[string]string{}
	for n := range s.Nodes() {
		if node := s.Node(facts.NodeIndex(n)); node.Offer != nil {
			addresses[string(node.Name)] = node.Offer.Address
		}
	}
	var all []shownBy
	for _, o := range s.Registry().All(access.OfNode) {
		all = append(all, shownBy{node: o.Name, address: addresses[o.Name]})
	}
	var asking sync.WaitGroup
	limit := make(chan struct{}, asksMax)
	for i := range all {
		asking.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			if signer, _, err := d.config.Keys.Ask(ctx, all[i].address); err == nil {
				all[i].signed = trust.Listed(signer).ID()
			}
		})
	}
	asking.Wait()
	return all
}

// removeAuthority ends an authority.
func (d *Door) removeAuthority(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathRemoveAuthority, func(request *Removal) (*Done, error) {
		state, err := d.valueWithAuthorities(r.Context())
		if err != nil {
			return nil, err
		}
		for _, one := range listed(state, d.config.Keys) {
			if one.ID().String() == request.Name {
				return &Done{}, d.enter(r.Context(), &command.RemoveAuthority{ID: one.ID()})
			}
		}
		return nil, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf("there is no authority %s: see `starling ca ls`",
			request.Name)}
	})
}

// authorityKey gives the key of the newest authority to a node that holds that of another which counts.
func (d *Door) authorityKey(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathAuthorityKey, func(request *KeyRequest) (*KeyAnswer, error) {
		channel, err := trust.Channel(r.TLS)
		if err != nil {
			return nil, err
		}
		who := CallerOf(r.Context())
		key, err := trust.KeyOfPublic(r.TLS.PeerCertificates[0].PublicKey)
		if err != nil {
			return nil, err
		}
		if all, _ := d.known(); all.Find(who.Subject(), key) == nil {
			return nil, fmt.Errorf("the cluster does not know the key of %s", who)
		}
		answer := &KeyAnswer{}
		if answer.Key, err = d.config.Keys.KeyFor(request.Proof, channel); err != nil {
			return nil, err
		}
		d.config.Log.Info("a node holds the key of the newest authority as well", "node", who.Name)
		return answer, nil
	})
}
