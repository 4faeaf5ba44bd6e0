// A shell beside an instance: the page's server passes it on, as starling exec does.

import {useEffect, useRef, useState} from 'preact/hooks'
import {shellSocket} from './api.js'
import {Failed} from './parts.jsx'

// command runs the better of the shells that there are.
const command = ['sh', '-c', 'command -v bash >/dev/null && exec bash; exec sh']

// styled loads the terminal's sheet, once.
let sheet = null
function styled() {
  sheet ||= new Promise((done, failed) => {
    const link = document.createElement('link')
    Object.assign(link, {rel: 'stylesheet', href: '/terminal.css', onload: done, onerror: failed})
    document.head.append(link)
  })
  return sheet
}

// begin opens a terminal and a session in it; tell is told how that goes. It returns what ends both.
function begin(box, {allocation, tell, leave}) {
  let socket = null
  let terminal = null
  let closed = false
  const send = (data) => socket?.readyState === WebSocket.OPEN && socket.send(data)
  const end = (state) => {
    if (closed) return
    closed = true
    terminal?.end()
    tell(state)
  }
  const start = async () => {
    const [{openTerminal}] = await Promise.all([import('./terminal.js'), styled()])
    if (closed) return
    terminal = openTerminal(box, {typed: send, resized: (size) => send(JSON.stringify(size)), leave})
    socket = shellSocket()
    socket.onopen = () => {
      send(JSON.stringify({allocation, command, ...terminal.size()}))
      tell({})
      terminal.focus()
    }
    socket.onmessage = ({data}) => {
      if (typeof data !== 'string') return terminal.write(new Uint8Array(data))
      const {exit_code, failure} = JSON.parse(data)
      end(failure ? {failure: new Error(failure)} : {code: exit_code})
    }
    socket.onclose = () => end({failure: new Error('The session broke: is starling ui still running?')})
  }
  start().catch((failure) => end({failure}))
  const hide = () => socket?.close() // the browser may keep a page that was left, with its connections
  addEventListener('pagehide', hide)
  return () => {
    removeEventListener('pagehide', hide)
    closed = true
    socket?.close()
    terminal?.close()
  }
}

export function Shell({name, allocation, close}) {
  const box = useRef()
  const button = useRef()
  const [state, setState] = useState({busy: true})
  useEffect(() => begin(box.current, {allocation, tell: setState, leave: () => button.current.focus()}), [])
  return (
    <section aria-label={`Shell beside ${name}`} class="shell">
      <p class="filters">
        <button ref={button} onClick={close}>
          {state.code == null && !state.failure ? 'End the shell' : 'Close the shell'}
        </button>
        <span class="calm" role="status">
          {state.busy && 'connecting …'}
          {state.code != null && `ended with exit code ${state.code}`}
          {!state.busy && state.code == null && !state.failure && `${allocation}; F6 leaves the terminal`}
        </span>
      </p>
      <div class="terminal-box" ref={box} />
      <Failed failure={state.failure} />
    </section>
  )
}
