package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
)

// Attribute is the attribute of a node that holds the fingerprint of its secret.
const Attribute = "secret"

// fingerprintBytes are enough to tell the secrets of one cluster apart.
const fingerprintBytes = 4

// Fingerprint returns what tells this secret from others. It is derived as keys are, and so tells nothing of the
// secret.
func (s *Secret) Fingerprint() string {
	text, _ := hkdf.Key(sha256.New, s.seed[:], nil, "starling secret fingerprint",
		fingerprintBytes) // it fails for long ones only
	return hex.EncodeToString(text)
}

// Odd tells how this secret of a node is not that of most members, and what helps; "" if it is. Of two that equally
// many have, that of whoever came first counts. Members that tell nothing of a secret do not count.
func (s *Secret) Odd(state *cluster.State, node terms.NodeName) string {
	own := s.Fingerprint()
	var order []string
	first, members := map[string]terms.NodeName{}, map[string]int{}
	count := func(fingerprint string, node terms.NodeName) {
		if members[fingerprint]++; members[fingerprint] == 1 {
			order, first[fingerprint] = append(order, fingerprint), node
		}
	}
	here := false
	for n := range facts.NodeIndex(state.Nodes()) {
		row := state.Node(n)
		if row.Peer == "" || row.Offer == nil {
			continue
		}
		if row.Name == node { // what it offers may still be what it had before it was started again
			here = true
			count(own, node)
		} else if fingerprint, has := row.Offer.Attribute(Attribute); has {
			count(fingerprint, row.Name)
		}
	}
	if !here {
		count(own, node)
	}
	common := order[0]
	for _, fingerprint := range order[1:] {
		if members[fingerprint] > members[common] {
			common = fingerprint
		}
	}
	if common == own {
		return ""
	}
	more := ""
	if members[common] > 1 {
		more = fmt.Sprintf(" and %d more", members[common]-1)
	}
	return fmt.Sprintf("the cluster's secret of node %s is not that of node %s%s, and its keys open nothing there: copy the file that is the agent's "+
		"secret_file from there, and start this agent again", node, first[common], more)
}
