package command

import (
	"math"

	"starling/terms/codec"
	"starling/terms/rules"
)

// KindPassTime is of the rules that are there to try mixed versions with. No released kind has its number.
const KindPassTime Kind = math.MaxUint16

// PassTime lets the value's time pass. It counts since rules.Next.
type PassTime struct {
	RequestID string
	Millis    uint32
}

// Kind returns KindPassTime.
func (*PassTime) Kind() Kind { return KindPassTime }

func (m *PassTime) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Integer(c, &m.Millis, PassMillisMax)
}

// PassMillisMax bounds how much time passes by one command.
const PassMillisMax = 1000

// requestIDMost returns how many bytes the id of a request may have.
func requestIDMost(in rules.Number) int {
	return rules.Current(in, []rules.Row[int]{
		{Since: rules.First, Value: RequestIDBytesMax},
		{Since: rules.Next, Value: 2 * RequestIDBytesMax},
	})
}

func requestID(c *codec.Coder, id *string) { codec.Text(c, id, requestIDMost(c.In)) }
