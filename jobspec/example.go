package jobspec

// Example is a job file that runs as it is, with comments that explain it.
type Example struct {
	// Name is the file's, such as "hello.yaml".
	Name string
	Data []byte
}

// Examples returns the files that "starling init" writes, in the order in which a newcomer reads them.
func Examples() []Example { return nil }
