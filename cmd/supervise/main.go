// Command supervise owns one task, as the subcommand of this name of starling does: the same function of package
// process, in a program that has nothing else in it and so starts in a tenth of the time.
package main

import (
	"fmt"
	"os"

	"starling/driver/process"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: supervise DIR, as starling calls it")
		os.Exit(2)
	}
	os.Exit(process.Supervise(os.Args[1], nil))
}
