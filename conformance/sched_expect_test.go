package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// schedRule compares what a key expects with a crowd and lists what is wrong.
type schedRule func(c *crowd, name string, expected *yaml.Node) ([]string, error)

// schedRules are the keys of expect. A key that begins with desired_ goes before what upstream does, which begins with
// onyx_ or upstream_ and is not compared.
var schedRules = map[string]schedRule{
	"tasks": checkCounts, "task_min": checkCounts, "task_max": checkCounts,
	"job_totals": checkTotals, "job_total_min": checkTotals, "job_total_max": checkTotals,
	"job_totals_min": checkTotals, "job_totals_max": checkTotals,
	"task_exact": checkTasks, "desired": checkWords,
	"tasks_any_of": checkAny, "job_totals_any_of": checkAny,
	"idle": checkIdle, "idle_min": checkIdle, "idle_max": checkIdle,
	"killed": checkKilled, "never_allocated": checkNever, "placement": checkPlacement,
	"placement_unchanged": checkUnmoved, "peers_from_sites": checkSites, "allocated_with_tag": checkTagged,
}

// schedRemarks are keys that only explain.
var schedRemarks = []string{"rule", "note"}

// slotKeys are not compared.
var slotKeys = []string{"slot_ids", "invariant"}

var slotsApart = &difference{name: "slots apart", column: true,
	reason: "which slot of its task a peer takes is decided by the fold, and not by " +
		"the division that these cases are about: the runner would compute it itself"}

// check lists what is wrong at the end.
func (c *schedCase) check(t *trial, crowd *crowd) (wrong []string) {
	for _, key := range sortedKeys(c.Expect) {
		if slices.Contains(schedRemarks, key) || strings.HasPrefix(key, "onyx_") || strings.HasPrefix(key, "upstream_") {
			continue
		}
		if slices.Contains(slotKeys, key) {
			c.apart = true
			continue
		}
		name := strings.TrimPrefix(key, "desired_")
		if known := schedRules[key]; known != nil {
			name = key
		}
		rule := schedRules[name]
		if rule == nil {
			t.Fatalf("no rule for the expectation %s", key)
		}
		node := c.Expect[key]
		lines, err := rule(crowd, name, &node)
		if err != nil {
			t.Fatalf("read %s: %v", key, err)
		}
		wrong = append(wrong, lines...)
	}
	return wrong
}

// within compares a number, by the end of the key's name.
func within(name string, got, want int) bool {
	switch {
	case strings.HasSuffix(name, "_min"):
		return got >= want
	case strings.HasSuffix(name, "_max"):
		return got <= want
	}
	return got == want
}

// countsOf returns the counts of a job, none if it has ended.
func (c *crowd) countsOf(name string, tasks int) []int {
	if j := c.job(name); j != nil {
		return j.counts()
	}
	return make([]int, tasks)
}

func checkCounts(c *crowd, name string, expected *yaml.Node) (wrong []string, err error) {
	var want map[string][]int
	if err := expected.Load(&want); err != nil {
		return nil, err
	}
	return c.differentCounts(name, want), nil
}

func (c *crowd) differentCounts(name string, want map[string][]int) (wrong []string) {
	for _, job := range sortedKeys(want) {
		got := c.countsOf(job, len(want[job]))
		if !slices.EqualFunc(got, want[job], func(g, w int) bool { return within(name, g, w) }) {
			wrong = append(wrong, fmt.Sprintf("%s: %s has %v, want %v", name, job, got, want[job]))
		}
	}
	return wrong
}

func checkTotals(c *crowd, name string, expected *yaml.Node) (wrong []string, err error) {
	var want map[string]int
	if err := expected.Load(&want); err != nil {
		return nil, err
	}
	return c.differentTotals(name, want), nil
}

func (c *crowd) differentTotals(name string, want map[string]int) (wrong []string) {
	for _, job := range sortedKeys(want) {
		got := 0
		if j := c.job(job); j != nil {
			got = j.total()
		}
		if !within(name, got, want[job]) {
			wrong = append(wrong, fmt.Sprintf("%s: %s has %d, want %d", name, job, got, want[job]))
		}
	}
	return wrong
}

func checkTasks(c *crowd, name string, expected *yaml.Node) (wrong []string, err error) {
	var want map[string]map[string]int
	if err := expected.Load(&want); err != nil {
		return nil, err
	}
	return c.differentTasks(name, want), nil
}

// wordsOfTotal is a job with its total, as words tell it.
var wordsOfTotal = regexp.MustCompile(`(\w+) (\d+)`)

// checkWords compares the totals of the jobs that words name: "both jobs run: inner 8 (its minimum) and outer 3".
func checkWords(c *crowd, name string, expected *yaml.Node) (wrong []string, err error) {
	want := map[string]int{}
	for _, m := range wordsOfTotal.FindAllStringSubmatch(expected.Value, -1) {
		if want[m[1]], err = strconv.Atoi(m[2]); err != nil {
			return nil, err
		}
	}
	if len(want) != len(c.jobs) || strings.HasPrefix(expected.Value, "both") && len(want) != 2 {
		return nil, fmt.Errorf("no rule for %q", expected.Value)
	}
	return c.differentTotals(name, want), nil
}

// checkAny is content with one of several pictures. An item in words is a remark.
func checkAny(c *crowd, name string, expected *yaml.Node) (wrong []string, err error) {
	var items []yaml.Node
	if err := expected.Load(&items); err != nil {
		return nil, err
	}
	rule := checkTotals
	if strings.HasPrefix(name, "tasks") {
		rule = checkCounts
	}
	for i := range items {
		lines, err := rule(c, "either", &items[i])
		if err != nil || len(lines) == 0 {
			return nil, err
		}
		wrong = append(wrong, lines...)
	}
	return wrong, nil
}

func checkIdle(c *crowd, name string, expected *yaml.Node) ([]string, error) {
	want, got := 0, 0
	for _, p := range c.peers {
		if p.job == nil {
			got++
		}
	}
	err := expected.Load(&want)
	if within(name, got, want) {
		return nil, err
	}
	return []string{fmt.Sprintf("%s: %d are idle, want %d", name, got, want)}, err
}

func checkKilled(c *crowd, _ string, expected *yaml.Node) ([]string, error) {
	var want []string
	if err := expected.Load(&want); err != nil || slices.Equal(c.killed, want) {
		return nil, err
	}
	return []string{fmt.Sprintf("killed are %v, want %v", c.killed, want)}, nil
}

func checkNever(c *crowd, _ string, expected *yaml.Node) (wrong []string, err error) {
	var never []string
	err = expected.Load(&never)
	for _, name := range never {
		if c.used[name] {
			wrong = append(wrong, name+" had a task")
		}
	}
	return wrong, err
}

func checkPlacement(c *crowd, _ string, expected *yaml.Node) (wrong []string, err error) {
	var want map[string]map[string][]string
	if err := expected.Load(&want); err != nil {
		return nil, err
	}
	for _, job := range sortedKeys(want) {
		for _, task := range sortedKeys(want[job]) {
			got := c.holderNames(job, task)
			peers := slices.Sorted(slices.Values(want[job][task]))
			if !slices.Equal(got, peers) {
				wrong = append(wrong, fmt.Sprintf("task %s of %s has %v, want %v", task, job, got, peers))
			}
		}
	}
	return wrong, nil
}

func (c *crowd) holderNames(job, task string) (names []string) {
	for _, p := range c.peers {
		if p.job != nil && p.job.name == job && p.job.tasks[p.task] == task {
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	return names
}

func checkUnmoved(c *crowd, _ string, expected *yaml.Node) ([]string, error) {
	unchanged := false
	if err := expected.Load(&unchanged); err != nil || !unchanged || c.moved == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%d peers went from one task to another", c.moved)}, nil
}

func checkSites(c *crowd, _ string, expected *yaml.Node) (wrong []string, err error) {
	var sites []string
	err = expected.Load(&sites)
	for _, p := range c.peers {
		if p.job != nil && !slices.Contains(sites, p.site) {
			wrong = append(wrong, fmt.Sprintf("%s at site %s has a task", p.name, p.site))
		}
	}
	return wrong, err
}

// checkTagged wants the tasks to have peers, and each of them all tags that the task requires.
func checkTagged(c *crowd, _ string, expected *yaml.Node) (wrong []string, err error) {
	var want map[string][]string
	if err := expected.Load(&want); err != nil {
		return nil, err
	}
	for _, job := range sortedKeys(want) {
		for _, task := range want[job] {
			if len(c.holderNames(job, task)) == 0 {
				wrong = append(wrong, fmt.Sprintf("task %s of %s has no peer", task, job))
			}
			for _, p := range c.peers {
				if p.job == nil || p.job.name != job || p.job.tasks[p.task] != task {
					continue
				}
				for _, tag := range p.job.spec.Tasks[p.task].Tags {
					if !slices.Contains(p.tags, tag) {
						wrong = append(wrong, fmt.Sprintf("%s on task %s lacks the tag %s", p.name, task, tag))
					}
				}
			}
		}
	}
	return wrong, nil
}
