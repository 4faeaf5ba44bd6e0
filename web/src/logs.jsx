// What an instance has written, as it comes.

import {useEffect, useRef, useState} from 'preact/hooks'
import {stream} from './api.js'
import {at, epoch, seen} from './store.js'
import {text} from './words.js'
import {Failed} from './parts.jsx'

const tailBytes = 16 << 10
const keptMax = 64 << 10

const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))

export function Logs({job, task, slot}) {
  const [which, setWhich] = useState('stdout')
  const [state, setState] = useState({text: '', failure: null})
  const box = useRef()
  useEffect(() => {
    if (at.value != null || !seen.value) return
    const abort = new AbortController()
    const decoder = new TextDecoder()
    let all = ''
    let frame = 0
    setState({text: '', failure: null})
    stream(
      'Logs',
      {job, task, slot, stream: which, follow: true, tail_bytes: String(tailBytes)},
      (message) => {
        if (!message.data) return
        all = (all + decoder.decode(bytesOf(message.data), {stream: true})).slice(-keptMax)
        frame ||= requestAnimationFrame(() => {
          frame = 0
          setState({text: all, failure: null})
        })
      },
      {signal: abort.signal},
    ).catch((failure) => {
      if (!abort.signal.aborted) setState({text: all, failure})
    })
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
