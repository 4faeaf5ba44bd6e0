package command

import (
	"math"

	"starling/terms"
)

func (m *ChangePools) code(c *coder) {
	requestID(c, &m.RequestID)
	integer(c, &m.Against, math.MaxUint32)
	list(c, &m.Pools, PoolsMax, pool)
	list(c, &m.Gone, PoolsMax, poolPath)
}

// PoolsMax bounds the pools of one command, of each kind of change.
const PoolsMax = 1 << 14

func poolPath(c *coder, p *terms.PoolPath) { text(c, p, terms.JobNameBytesMax) }

func pool(c *coder, s *terms.Pool) {
	poolPath(c, &s.Path)
	for k := range s.Quotas {
		q := &s.Quotas[k]
		integer(c, &q.Reservation, math.MaxInt64)
		integer(c, &q.Limit, math.MaxInt64)
		integer(c, &q.Share, math.MaxInt64)
		flag(c, &q.Static)
	}
	integer(c, &s.ControllerLimit, math.MaxUint8)
	integer(c, &s.SlackLimit, math.MaxUint8)
	integer(c, &s.PatienceMillis, math.MaxUint32)
	integer(c, &s.JobScheduler, uint64(terms.JobPercentage))
	list(c, &s.Owners, terms.RequestsPerTaskMax, owner)
}

func owner(c *coder, o *string) { text(c, o, 256) }
