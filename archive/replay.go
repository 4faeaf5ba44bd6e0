package archive

import (
	"errors"
	"io"

	"starling/cluster"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// Replay folds a file of records, up to an index if that is not 0, and returns the value there. Each entry is visited
// with what it did and the value after it; visit may be nil. The error is a Differs for an entry that this program
// folds differently.
func Replay(from io.Reader, knows rules.Number, to terms.Index,
	visit func(*cluster.State, *report.Folded) error) (*cluster.State, error) {
	r, err := NewReader(from)
	if err != nil {
		return nil, err
	}
	s, err := r.Value(knows)
	if err != nil {
		return nil, err
	}
	for to == 0 || s.Index < to {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, err
		}
		folded, err := fold(s, &e, knows, visit != nil)
		if err == nil && visit != nil {
			err = visit(s, &folded)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}
