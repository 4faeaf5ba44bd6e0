// Package archive keeps what a peer folds, so that the past can be asked: which value the cluster was at an index, and
// what led from one to another.
//
// It is a folder of segments. Each begins with a snapshot of the value and goes on with the records that follow, each
// with the digest of the value after it: any index is reached by one snapshot and a bounded number of records, and what
// was altered is found. Segments are only appended to: what a crash has torn is cut off when the folder is opened.
//
// A peer is never kept waiting, and never stopped: when the disk is full or too slow the archive pauses, and what it
// does not have is a hole. So is what the peer itself has not folded, because it took a snapshot instead. Old segments
// are deleted by their age and by the size of all.
//
// A file of records that is handed around, see Export, is one such segment.
package archive
