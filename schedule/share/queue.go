package share

// queue has the least of its items in front.
type queue[T any] struct {
	items []T
	less  func(a, b T) bool
}

func newQueue[T any](items []T, less func(a, b T) bool) queue[T] {
	q := queue[T]{items, less}
	for i := len(items)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
	return q
}

// pop drops the item in front.
func (q *queue[T]) pop() {
	last := len(q.items) - 1
	q.items[0] = q.items[last]
	q.items = q.items[:last]
	q.sink(0)
}

// sink puts an item that has grown where it belongs.
func (q *queue[T]) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.items); child++ {
			if q.less(q.items[child], q.items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
}
