// Package browser shows the page to a real Chromium, as users see it: each part of it, the past, and what goes wrong.
//
// STARLING_SHOTS names a folder for pictures of all parts at three widths; without it none are made.
package browser
