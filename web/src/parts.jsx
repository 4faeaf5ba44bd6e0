// Small parts that all pages are made of.

import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks'
import {requestID} from './api.js'
import {shapeOf, tone} from './words.js'

// State shows a state by a shape and its word.
export const State = ({word, children}) => (
  <span class={'state ' + tone(word)}>
    <span class="shape" aria-hidden="true">
      {shapeOf(tone(word))}
    </span>{' '}
    {children || word}
  </span>
)

export const Empty = ({children}) => <p class="empty">{children}</p>

export const Failed = ({failure}) =>
  failure && (
    <p class="failed" role="alert">
      <b>✕</b> {failure.message}
    </p>
  )

// Bar shows how much of something is taken; the words beside it say the same.
export const Bar = ({part, of, label}) => (
  <span class="bar" role="img" aria-label={label} title={label}>
    <span style={{width: Math.min(100, of > 0 ? (100 * part) / of : 0) + '%'}} />
  </span>
)

export const Title = ({children, aside}) => (
  <header class="title">
    <h1>{children}</h1>
    {aside}
  </header>
)

// useWindow returns which rows of a long list can be seen, and some more, and how wide it is. All are as high as it
// says.
export function useWindow(box, height) {
  const [view, setView] = useState({first: 0, end: 40, wide: 0})
  const look = () => {
    if (!box.current) return // the list has gone, and this was to be done yet
    const at = box.current.getBoundingClientRect()
    const first = Math.max(0, Math.floor(-at.top / height) - 10)
    const end = Math.max(first, Math.ceil((innerHeight - at.top) / height) + 10)
    setView((was) =>
      was.first === first && was.end === end && was.wide === at.width ? was : {first, end, wide: at.width},
    )
  }
  useLayoutEffect(look)
  useEffect(() => {
    addEventListener('scroll', look, {passive: true})
    addEventListener('resize', look)
    return () => {
      removeEventListener('scroll', look)
      removeEventListener('resize', look)
    }
  }, [])
  return view
}

// Rows draws a long table as a window on it: only rows that can be seen are there.
export function Rows({rows, columns, draw, name, height = 30}) {
  const box = useRef()
  const view = useWindow(box, height)
  const first = Math.min(view.first, rows.length)
  const last = Math.min(rows.length, view.end)
  return (
    <table class="rows" aria-label={name} aria-rowcount={rows.length + 1} ref={box}>
      <thead>
        <tr>
          {columns.map((c) => (
            <th key={c.name} class={c.class}>
              {c.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {first > 0 && (
          <tr class="space" aria-hidden="true">
            <td colSpan={columns.length} style={{height: first * height + 'px'}} />
          </tr>
        )}
        {rows.slice(first, last).map((row, i) => draw(row, first + i + 2))}
        {last < rows.length && (
          <tr class="space" aria-hidden="true">
            <td colSpan={columns.length} style={{height: (rows.length - last) * height + 'px'}} />
          </tr>
        )}
      </tbody>
    </table>
  )
}

// Confirm asks before something is done, in a dialog that the keyboard works in. What is done has one id, however often
// the user tries.
export function Confirm({question, verb, act, close, not, children}) {
  const box = useRef()
  const id = useRef(requestID())
  const [state, setState] = useState({busy: false, failure: null})
  useEffect(() => box.current.showModal(), [])
  const yes = async (event) => {
    event.preventDefault()
    setState({busy: true, failure: null})
    try {
      await act(id.current)
      close()
    } catch (failure) {
      setState({busy: false, failure})
    }
  }
  return (
    <dialog ref={box} onClose={close} aria-label={question}>
      <form onSubmit={yes}>
        <p>{question}?</p>
        {children}
        <Failed failure={state.failure} />
        <p class="buttons">
          <button type="button" onClick={() => box.current.close()}>
            No
          </button>
          <button type="submit" class="strong" disabled={state.busy || not}>
            {verb}
          </button>
        </p>
      </form>
    </dialog>
  )
}
