package command

import (
	"math"

	"starling/terms"
	"starling/terms/codec"
)

func (m *ChangePools) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Integer(c, &m.Against, math.MaxUint32)
	codec.List(c, &m.Pools, PoolsMax, pool)
	codec.List(c, &m.Gone, PoolsMax, poolPath)
}

// PoolsMax bounds the pools of one command, of each kind of change.
const PoolsMax = 1 << 14

func poolPath(c *codec.Coder, p *terms.PoolPath) { codec.Text(c, p, terms.JobNameBytesMax) }

func pool(c *codec.Coder, s *terms.Pool) {
	poolPath(c, &s.Path)
	for k := range s.Quotas {
		q := &s.Quotas[k]
		codec.Integer(c, &q.Reservation, math.MaxInt64)
		codec.Integer(c, &q.Limit, math.MaxInt64)
		codec.Integer(c, &q.Share, math.MaxInt64)
		codec.Flags(c, &q.Static)
	}
	codec.Integer(c, &s.ControllerLimit, math.MaxUint8)
	codec.Integer(c, &s.SlackLimit, math.MaxUint8)
	codec.Integer(c, &s.PatienceMillis, math.MaxUint32)
	codec.Integer(c, &s.JobScheduler, uint64(terms.JobPercentage))
	codec.List(c, &s.Owners, terms.RequestsPerTaskMax, owner)
}

func owner(c *codec.Coder, o *string) { codec.Text(c, o, 256) }
