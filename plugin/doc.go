// Package plugin tells the instances of a job about each other: environment and files, from a list of who they are.
//
// The list is a Roster, with a version. Whoever starts an instance asks the job's Set for its Environment; whoever sees
// a newer version asks for the files of each running instance again and replaces them together. So all that an instance
// finds is of one version, but for its environment, which a running program keeps: what it says is of the version with
// which it was started. A job that grows and shrinks should read the files.
//
// Nothing secret is in what a plugin gives: a file names the key that it is to hold, and who writes it derives that.
//
// All files are below one folder of the instance, never elsewhere on its machine: a job that could choose would write
// into the machine's own. All plugins give the same for the same input; nothing here reads or writes anything.
//
// A plugin is asked for three things, by the names they have where they come from: what is wrong with a job that asks
// for it (OnJobAdd), the environment of a new instance (OnInstanceCreate), and the files after a change (OnJobUpdate).
// The folder of an instance goes with it, so that there is nothing to be told when a job is deleted.
package plugin
