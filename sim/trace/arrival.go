package trace

import "math/rand/v2"

// arrivals returns the tasks, by number, in the order in which they arrive: all of them in a random order. Unless
// enough is 0, tasks are drawn again until all together ask for so many thousandths of GPUs, and those that would come
// after that much has arrived are left out.
func arrivals(tasks []Task, enough int64, seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 0))
	order, demand := make([]int, len(tasks)), int64(0)
	for i := range tasks {
		order[i] = i
		demand += int64(tasks[i].GPU)
	}
	for demand < enough {
		again := random.IntN(len(tasks))
		order = append(order, again)
		demand += int64(tasks[again].GPU)
	}
	random.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	if enough == 0 {
		return order
	}
	demand = 0
	for i, task := range order {
		if demand += int64(tasks[task].GPU); demand >= enough {
			return order[:i+1]
		}
	}
	return order
}
