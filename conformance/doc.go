// Package conformance checks what the four designs promise, as data: every file below testdata is run against the
// pure core. It holds tests only; the READMEs beside the data describe the formats.
//
// Below testdata/given are the files as they were given; what slots must give where the peer gives something else was
// added to them, as slot_expected. Below testdata/own are small cases of our own in the same forms.
//
// A file that no runner knows fails, and so does a case with a key that nothing reads. What is not checked has a row
// with its reason in the table leftOut; a row that nothing needs any more fails, too. The counts of all files are
// printed at the end, where go test shows them: with -v, when something fails, and when it is run in this folder.
package conformance
