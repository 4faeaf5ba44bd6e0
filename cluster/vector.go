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

// page holds up to pageRows rows; those beyond the end of rows are zero.
type page[T any] struct {
	edition *Edition
	rows    []T
}

// Len returns the number of rows.
func (v *Vector[T]) Len() int { return v.length }

// At returns row i, which must be below Len.
func (v *Vector[T]) At(i int) T {
	if p := v.pages[i/pageRows]; p != nil && i%pageRows < len(p.rows) {
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
	v.length = max(n, old)
	var zero T
	for i := n; i < min(old, pages*pageRows); i++ {
		*v.slot(e, i) = zero
	}
	v.length = n
}

// Set replaces row i, which must be below Len.
func (v *Vector[T]) Set(e *Edition, i int, row T) {
	v.own(e)
	*v.slot(e, i) = row
}

// Edit returns row i, which must be below Len, for changing.
func (v *Vector[T]) Edit(e *Edition, i int) *T {
	v.own(e)
	return v.slot(e, i)
}

func (v *Vector[T]) own(e *Edition) {
	if v.edition != e {
		v.pages = append(make([]*page[T], 0, len(v.pages)+1), v.pages...)
		v.edition = e
	}
}

func (v *Vector[T]) slot(e *Edition, i int) *T {
	p := v.pages[i/pageRows]
	// A page is as long as the vector needs it: a vector of one row costs one row.
	want := min(v.length-i/pageRows*pageRows, pageRows)
	switch {
	case p == nil:
		p = &page[T]{edition: e, rows: make([]T, want)}
		v.pages[i/pageRows] = p
	case p.edition != e || len(p.rows) < want:
		clone := &page[T]{edition: e, rows: make([]T, max(want, len(p.rows)))}
		copy(clone.rows, p.rows)
		p = clone
		v.pages[i/pageRows] = p
	}
	return &p.rows[i%pageRows]
}
