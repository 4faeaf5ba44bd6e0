// A terminal in the page. It is loaded when the first shell is opened.

import {FitAddon} from '@xterm/addon-fit'
import {Terminal} from '@xterm/xterm'

function colours() {
  const style = getComputedStyle(document.documentElement)
  const colour = (name) => style.getPropertyValue(name).trim()
  return {
    background: colour('--wash'),
    foreground: colour('--text'),
    cursor: colour('--accent'),
    cursorAccent: colour('--wash'),
    selectionBackground: colour('--accent') + '55',
  }
}

// openTerminal draws a terminal in a box. It tells what is typed, when it has another size, and when the user wants to
// leave it by the keyboard: F6, since Tab is for the program.
export function openTerminal(box, {typed, resized, leave}) {
  const terminal = new Terminal({
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
    fontSize: 13,
    scrollback: 5000,
    minimumContrastRatio: 4.5,
    screenReaderMode: true,
    theme: colours(),
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(box)
  fit.fit()
  const text = new TextEncoder()
  terminal.onData((data) => typed(text.encode(data)))
  terminal.onBinary((data) => typed(Uint8Array.from(data, (c) => c.charCodeAt(0))))
  terminal.onResize(({cols, rows}) => resized({columns: cols, rows}))
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== 'F6') return true
    if (event.type === 'keydown') leave()
    return false
  })
  const observer = new ResizeObserver(() => fit.fit())
  observer.observe(box)
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => (terminal.options.theme = colours())
  dark.addEventListener('change', recolour)
  return {
    size: () => ({columns: terminal.cols, rows: terminal.rows}),
    write: (data) => terminal.write(data),
    focus: () => terminal.focus(),
    end: () => (terminal.options.disableStdin = true),
    close() {
      observer.disconnect()
      dark.removeEventListener('change', recolour)
      terminal.dispose()
    },
  }
}
