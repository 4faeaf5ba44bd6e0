// Package browser shows the page to a real Chromium, as users see it: each part of it, the past, and what goes wrong.
//
// STARLING_SHOTS names a folder for pictures of all parts at three widths; without it none are made.
//
// Folder axe holds axe-core 4.14.1 as npm has it, under the Mozilla Public License 2.0: it looks at the page in a test,
// and is no part of the program.
package browser
