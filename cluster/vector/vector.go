// Package vector has tables that copies of a value share, page by page, until one of them changes.
package vector

// Epoch marks what was made since the last copy of a value: only that may be changed in place.
type Epoch struct{ _ byte }

// PageRows is how many rows a page has.
const PageRows = 64

// Of is a dense table of rows numbered from 0, in pages that copies of a value share until one changes.
// Rows that were never set are zero and cost nothing but their share of a page pointer.
type Of[T any] struct {
	pages  []*page[T]
	epoch  *Epoch
	length int
}

// page holds up to PageRows rows; those beyond the end of rows are zero.
type page[T any] struct {
	epoch *Epoch
	rows  []T
}

// single is the memory of a vector that begins with one row, as most do: it is taken at once.
type single[T any] struct {
	page  page[T]
	pages [1]*page[T]
	rows  [1]T
}

// Len returns the number of rows.
func (v *Of[T]) Len() int { return v.length }

// At returns row i, which must be below Len.
func (v *Of[T]) At(i int) T {
	if p := v.pages[i/PageRows]; p != nil && i%PageRows < len(p.rows) {
		return p.rows[i%PageRows]
	}
	var zero T
	return zero
}

// EachSince visits the numbers of the rows of two tables that do not stand on a page of both. When one is a copy of the
// other that was changed, or the other way round, all rows that differ are among them; a row may be of one table alone.
func (v *Of[T]) EachSince(old *Of[T], visit func(i int)) {
	both, rows := min(v.length, old.length), max(v.length, old.length)
	for first := 0; first < rows; first += PageRows {
		next := first
		if number := first / PageRows; v.page(number) == old.page(number) {
			next = max(both, first)
		}
		for ; next < min(first+PageRows, rows); next++ {
			visit(next)
		}
	}
}

// page returns a page, nil if none of its rows was ever set.
func (v *Of[T]) page(number int) *page[T] {
	if number < len(v.pages) {
		return v.pages[number]
	}
	return nil
}

// Resize makes the vector n rows long; rows that come are zero, and rows that go are lost.
func (v *Of[T]) Resize(e *Epoch, n int) {
	pages := (n + PageRows - 1) / PageRows
	if v.pages == nil && n == 1 {
		first := new(single[T])
		first.page.rows, first.page.epoch, first.pages[0] = first.rows[:], e, &first.page
		v.pages, v.epoch, v.length = first.pages[:], e, 1
		return
	}
	v.own(e)
	for len(v.pages) < pages {
		v.pages = append(v.pages, nil)
	}
	clear(v.pages[pages:])
	v.pages = v.pages[:pages]
	old := v.length
	v.length = max(n, old)
	var zero T
	for i := n; i < min(old, pages*PageRows); i++ {
		*v.slot(e, i) = zero
	}
	v.length = n
}

// Set replaces row i, which must be below Len.
func (v *Of[T]) Set(e *Epoch, i int, row T) {
	v.own(e)
	*v.slot(e, i) = row
}

// Edit returns row i, which must be below Len, for changing.
func (v *Of[T]) Edit(e *Epoch, i int) *T {
	v.own(e)
	return v.slot(e, i)
}

func (v *Of[T]) own(e *Epoch) {
	if v.epoch != e {
		v.pages = append(make([]*page[T], 0, len(v.pages)+1), v.pages...)
		v.epoch = e
	}
}

func (v *Of[T]) slot(e *Epoch, i int) *T {
	p := v.pages[i/PageRows]
	// A page is as long as the vector needs it: a vector of one row costs one row.
	want := min(v.length-i/PageRows*PageRows, PageRows)
	switch {
	case p == nil:
		p = &page[T]{epoch: e, rows: make([]T, want)}
		v.pages[i/PageRows] = p
	case p.epoch != e || len(p.rows) < want:
		clone := &page[T]{epoch: e, rows: make([]T, max(want, len(p.rows)))}
		copy(clone.rows, p.rows)
		p = clone
		v.pages[i/PageRows] = p
	}
	return &p.rows[i%PageRows]
}
