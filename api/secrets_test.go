package api

import (
	"context"
	"fmt"
	"testing"

	"starling/cluster/registry"
	"starling/command"
	"starling/replica/report"
	"starling/terms/access"
)

// overtaken is a peer at which others put the same secret before the answer to a put is given.
type overtaken struct {
	*peer
	others int
}

func (o overtaken) Submit(ctx context.Context, c command.Command) (report.Receipt, error) {
	receipt, err := o.peer.Submit(ctx, c)
	for i := range o.others {
		text := fmt.Sprintf("other %d of %d", i, o.others)
		o.add("b~1", &command.PutSecret{RequestID: text, Secret: access.Secret{Pool: "default", Name: "key", Sealed: text}})
	}
	return receipt, err
}

// TestPutSecretNamesItsVersion puts secrets that others put as well, so often that the first is not kept any more.
func TestPutSecretNamesItsVersion(t *testing.T) {
	a, _ := pair()
	before := uint32(0)
	for _, others := range []int{0, 1, registry.SecretVersionsMax + 2} {
		peer := ask(t, serveHandler(t, NewServer(overtaken{a, others}, Options{})))
		answer, err := peer.PutSecret(within(t), "default", "key", []byte(fmt.Sprint("mine", others)))
		if err != nil || answer.GetVersion() != before+1 {
			t.Errorf("%d others: got version %d, want %d (%v)", others, answer.GetVersion(), before+1, err)
		}
		before += 1 + uint32(others)
	}
}
