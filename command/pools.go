package command

import (
	"math"

	"starling/terms"
	"starling/terms/codec"
)

func (m *ChangePools) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Integer(c, &m.Against, math.MaxUint32)
	codec.List(c, &m.Pools, PoolsMax, codePool)
	codec.List(c, &m.Gone, PoolsMax, terms.CodePoolPath)
}

// PoolsMax bounds the pools of one command, of each kind of change.
const PoolsMax = 1 << 14

func codePool(c *codec.Coder, s *terms.Pool) { s.Code(c) }
