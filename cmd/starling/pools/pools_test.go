package pools

import (
	"testing"

	starlingv1 "starling/api/v1"
	"starling/terms"
)

// TestUses shows what revocable work uses, once: of memory it is a part of what is used, of cpu it comes beyond that.
func TestUses(t *testing.T) {
	for _, c := range []struct {
		kind terms.Kind
		use  *starlingv1.PoolUse
		want string
	}{
		{terms.CPU, &starlingv1.PoolUse{Allocated: 1000, Entitlement: 8000}, "1/8/4"},
		{terms.CPU, &starlingv1.PoolUse{Allocated: 1000, SlackAllocated: 7000, Entitlement: 8000}, "1+7/8/4"},
		{terms.Memory, &starlingv1.PoolUse{Allocated: 2048, SlackAllocated: 1024, Entitlement: 4096}, "2Ki/4Ki/3.9Ki"},
	} {
		if got := uses(c.kind, c.use, 4000); got != c.want {
			t.Errorf("of %s got %s, want %s", c.kind, got, c.want)
		}
	}
}
