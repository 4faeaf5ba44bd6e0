package main

import "fmt"

// dash stands in tables for what is absent.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// counted writes "1 job" or "2 jobs".
func counted[N ~uint32 | ~int](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
