// Package draft tells what would come of what a user has in mind, before it is done: of a job file, a pools file, and
// other numbers of instances.
//
// The command line and the page ask it, so that both plan alike and say it in the same words. It reads nothing but what
// peers answer, and changes nothing.
package draft
