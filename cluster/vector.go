package cluster

// Edition marks what was made since the last copy of a State: only that may be changed in place.
type Edition struct{ _ byte }

const pageRows = 64

// Vector is a dense table of rows numbered from 0, in pages that copies of a State share until one changes.
// Rows that were never set are zero and cost nothing but their share of a page pointer.
type Vector[T any] struct {
	pages   []*page[T]
	edition *Edition
	length  int
}

type page[T any] struct {
	edition *Edition
	rows    [pageRows]T
}

// Len returns the number of rows.
func (v *Vector[T]) Len() int { return v.length }

// At returns row i, which must be below Len.
func (v *Vector[T]) At(i int) T {
	if p := v.pages[i/pageRows]; p != nil {
		return p.rows[i%pageRows]
	}
	var zero T
	return zero
}

// Resize makes the vector n rows long; rows that come are zero, and rows that go are lost.
func (v *Vector[T]) Resize(e *Edition, n int) {
	pages := (n + pageRows - 1) / pageRows
	v.own(e)
	for len(v.pages) < pages {
		v.pages = append(v.pages, nil)
	}
	clear(v.pages[pages:])
	v.pages = v.pages[:pages]
	old := v.length
	v.length = n
	var zero T
	for i := n; i < min(old, pages*pageRows); i++ {
		*v.slot(e, i) = zero
	}
}

// Set replaces row i, which must be below Len.
func (v *Vector[T]) Set(e *Edition, i int, row T) {
	v.own(e)
	*v.slot(e, i) = row
}

func (v *Vector[T]) own(e *Edition) {
	if v.edition != e {
		v.pages = append(make([]*page[T], 0, len(v.pages)+1), v.pages...)
		v.edition = e
	}
}

func (v *Vector[T]) slot(e *Edition, i int) *T {
	p := v.pages[i/pageRows]
	switch {
	case p == nil:
		p = &page[T]{edition: e}
		v.pages[i/pageRows] = p
	case p.edition != e:
		clone := *p
		clone.edition = e
		p = &clone
		v.pages[i/pageRows] = p
	}
	return &p.rows[i%pageRows]
}
