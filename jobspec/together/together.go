// Package together says what the jobs of one file are to each other.
package together

import (
	"fmt"
	"slices"
	"strings"

	"starling/terms"
)

// Job is one of the jobs, which begins at a line.
type Job struct {
	Name  terms.JobName
	After []terms.JobName
	Line  int
}

// Problem is what is wrong with one of them, and with which of its fields.
type Problem struct {
	Job          int
	Path, Reason string
}

// Same finds the jobs whose names another has before them.
func Same(jobs []Job) (found []Problem) {
	first := map[terms.JobName]int{}
	for i, j := range jobs {
		if line, twice := first[j.Name]; twice {
			found = append(found, Problem{i, "job", fmt.Sprintf("%s is also the job of the document at line %d", j.Name, line)})
			continue
		}
		first[j.Name] = j.Line
	}
	return found
}

// Order returns the numbers of the jobs in the order in which they can be submitted: as they stand, but each behind
// those of them that it comes after. A job that comes after itself, by way of others, is a problem.
func Order(jobs []Job) (order []int, found []Problem) {
	number := map[terms.JobName]int{}
	for i, j := range jobs {
		number[j.Name] = i
	}
	done := make([]bool, len(jobs))
	var way []int
	var visit func(int)
	visit = func(i int) {
		if at := slices.Index(way, i); at >= 0 {
			found = append(found, Problem{i, "after", circle(jobs, append(slices.Clone(way[at:]), i))})
			return
		}
		if done[i] {
			return
		}
		way = append(way, i)
		for _, name := range jobs[i].After {
			if before, here := number[name]; here && len(found) == 0 {
				visit(before)
			}
		}
		way, done[i] = way[:len(way)-1], true
		order = append(order, i)
	}
	for i := range jobs {
		visit(i)
	}
	return order, found
}

func circle(jobs []Job, way []int) string {
	var names []string
	for _, i := range way {
		names = append(names, string(jobs[i].Name))
	}
	return "none of these could ever begin: " + strings.Join(names, " comes after ")
}
