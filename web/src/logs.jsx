// What an instance has written, as it comes.

import {useEffect, useRef, useState} from 'preact/hooks'
import {stream} from './api.js'
import {at, epoch, pause, seen} from './store.js'
import {text} from './words.js'
import {Failed} from './parts.jsx'

const tailBytes = 16 << 10
const keptMax = 64 << 10

// lasting are the failures after which nothing else comes of asking again.
const lasting = ['signed_out', 'not_found', 'invalid_argument', 'permission_denied', 'unauthenticated']

const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))

export function Logs({job, task, slot}) {
  const [which, setWhich] = useState('stdout')
  const [state, setState] = useState({text: '', failure: null})
  const box = useRef()
  useEffect(() => {
    if (at.value != null || !seen.value) return
    const abort = new AbortController()
    let all = ''
    let frame = 0
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0
        setState({text: all, failure: null})
      })
    }
    // once reads until the output ends. After a break it reads the end again, as far back as is shown.
    const once = (began) => {
      const decoder = new TextDecoder()
      const request = {job, task, slot, stream: which, follow: true, tail_bytes: String(all ? keptMax : tailBytes)}
      let read = ''
      const visit = (message) => {
        began()
        if (message.data) {
          read = (read + decoder.decode(bytesOf(message.data), {stream: true})).slice(-keptMax)
          all = read
        }
        draw()
      }
      return stream('Logs', request, visit, {signal: abort.signal})
    }
    const follow = async () => {
      for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
        try {
          return await once(() => (wait = 250))
        } catch (failure) {
          if (abort.signal.aborted) return
          setState({text: all, failure})
          // A peer that has just begun may not know yet what was read before.
          if (lasting.includes(failure.code) && !(all && failure.code === 'not_found')) return
        }
        await pause(wait)
        if (abort.signal.aborted) return
      }
    }
    setState({text: '', failure: null})
    follow()
    return () => {
      abort.abort()
      cancelAnimationFrame(frame)
    }
  }, [job, task, slot, which, at.value == null, seen.value, epoch.value])
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight
  }, [state.text])
  if (at.value != null)
    return <p class="calm">What it has written is no part of the past: go back to live to read it.</p>
  return (
    <>
      <p class="filters">
        <label>
          Output{' '}
          <select value={which} onChange={(e) => setWhich(e.target.value)}>
            <option>stdout</option>
            <option>stderr</option>
          </select>
        </label>
      </p>
      <pre class="log" ref={box} tabIndex={0} aria-label={`${which} of ${task}[${slot}]`}>
        {text(state.text) || 'nothing yet'}
      </pre>
      <Failed failure={state.failure} />
    </>
  )
}
