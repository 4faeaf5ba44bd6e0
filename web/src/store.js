// What all parts of the page share: where it is, which moment it shows, and what changes in the cluster.

import {computed, signal} from '@preact/signals'
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks'
import {call, callAll, stream, whileHeard} from './api.js'

const read = () => {
  const [path, query] = (location.hash.slice(1) || '/').split('?')
  return {path, query: new URLSearchParams(query || '')}
}

// route is where the page is; go and link lead elsewhere, and keep the moment.
export const route = signal(read())
addEventListener('hashchange', () => (route.value = read()))

export function link(path, query = {}) {
  const all = new URLSearchParams(query)
  if (at.value != null && !all.has('at')) all.set('at', at.value)
  const text = all.toString()
  return '#' + path + (text ? '?' + text : '')
}

// set changes parameters of the address, without a new step of the browser's history.
export function set(changes) {
  const query = new URLSearchParams(route.value.query)
  for (const [name, value] of Object.entries(changes)) {
    if (value == null || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  history.replaceState(null, '', '#' + route.value.path + (text ? '?' + text : ''))
  route.value = read()
}

// at is the index that is shown, null for the present.
export const at = computed(() => {
  const text = route.value.query.get('at')
  return /^\d{1,15}$/.test(text) ? Number(text) : null
})

// head is the newest entry that is known; line tells of the connection; epoch counts how often all must be read anew.
export const head = signal({index: 0, time: null})
export const line = signal({state: 'connecting', why: ''})
export const epoch = signal(0)
// known tells whether there is a newest entry. Unlike head it changes once, and so does what is drawn because of it.
export const known = computed(() => head.value.index > 0)
// shown is the moment that the page shows, as the last answer told it.
export const shown = signal({index: 0, time: null})

// reads counts what was asked about the moment that is shown and not answered yet; busy tells whether there is any.
const reads = signal(0)
export const busy = computed(() => reads.value > 0)

// reading counts a read; the function that it returns ends that, once.
function reading() {
  reads.value++
  let open = true
  return () => {
    if (open) reads.value--
    open = false
  }
}

const listeners = new Set()
export const pause = (ms) => new Promise((done) => setTimeout(done, ms))

// saw notes how far the journal is, the first time at once, and then once a frame.
let newest = head.value
let frameOfHead = 0
function saw(message) {
  const index = Number(message.index)
  if (index <= newest.index) return
  newest = {index, time: message.time}
  if (head.value.index === 0) head.value = newest
  else frameOfHead ||= requestAnimationFrame(() => ((frameOfHead = 0), (head.value = newest)))
}

// told is the last change that came, and whether all of its entry has come.
let told = {index: 0, whole: true}

// seen tells whether the page can be seen. While it cannot, it reads no stream: a browser has six connections to the
// page's server, which all its tabs share.
export const seen = signal(!document.hidden)
document.addEventListener('visibilitychange', () => (seen.value = !document.hidden))

// whileSeen waits until the page can be seen, and does the work with a signal that is aborted when it no longer can.
async function whileSeen(work) {
  const abort = new AbortController()
  let leave
  await new Promise((done) => (leave = seen.subscribe((now) => now && done())))
  leave()
  leave = seen.subscribe((now) => now || abort.abort())
  try {
    return await work(abort.signal)
  } catch (failure) {
    if (!abort.signal.aborted) throw failure
  } finally {
    leave()
  }
}

// follow reads what changes for as long as the page is there. After a break it goes on where it was, by any peer.
export async function follow() {
  let resume = null
  let wait = 250
  const read = async (signal, heard) => {
    if (resume == null) {
      const info = await call('Info', {}, {signal})
      heard()
      saw(info)
      resume = info.index
      epoch.value++
    }
    await stream(
      'Watch',
      {after: String(resume)},
      (message) => {
        heard()
        if (line.value.state !== 'live') line.value = {state: 'live', why: ''}
        wait = 250
        resume = message.resume
        saw(message)
        told = {index: Number(message.index), whole: message.resume === message.index}
        if (message.kind) listeners.forEach((tell) => tell(message))
      },
      {signal},
    )
  }
  for (;;) {
    try {
      await whileSeen((signal) => whileHeard(signal, read))
      if (!seen.value) wait = 250
    } catch (failure) {
      if (failure.code === 'signed_out') {
        line.value = {state: 'signed out', why: failure.message}
        return
      }
      if (['not_found', 'resource_exhausted', 'invalid_argument', 'out_of_range'].includes(failure.code))
        resume = null
      if (failure.code === 'not_found') newest = {index: 0, time: null} // the journal may end before what was seen
      line.value = {state: failure.code === 'stale' ? 'stale' : 'lost', why: failure.message}
    }
    await pause(wait)
    wait = Math.min(wait * 2, 5000)
  }
}

// Of more things than many the changes are drawn with a rest between, so that the page has time for what users do.
const many = 1000
const restOfMany = 100

// What is asked for because of what was drawn is asked for at once, not after the browser has painted that.

// useThings returns a map of what there is of some kinds at the moment that is shown, and keeps it up to date. The same
// map is returned changed, at most once a frame. Where no peer can be reached it tries again. From one moment to
// another it asks for what differs.
export function useThings(kinds) {
  const [state, setState] = useState({things: new Map(), ready: false, failure: null})
  const last = useRef({}) // what was there, and at which index, if that is known
  const key = kinds.join() + '/' + epoch.value
  useLayoutEffect(() => {
    const abort = new AbortController()
    const live = at.value == null
    const before = last.current.key === key && last.current.index != null ? last.current : null
    let things = before ? before.things : new Map()
    const early = []
    let read = [] // what came till all is told
    let index = null
    let frame = 0
    let timer = 0
    let drawn = -restOfMany
    const answered = reading()
    const draw = () => {
      const rest = things.size > many ? drawn + restOfMany - performance.now() : 0
      if (rest > 0) {
        timer ||= setTimeout(() => ((timer = 0), draw()), rest)
        return
      }
      frame ||= requestAnimationFrame(() => {
        frame = 0
        drawn = performance.now()
        setState({things, ready: true, failure: null})
        answered()
      })
    }
    const put = (message) => {
      const name = message.kind + '/' + message.name
      if (message.type === 'removed') things.delete(name)
      else things.set(name, message)
    }
    const apply = (message) => {
      if (Number(message.index) <= index) return
      put(message)
      draw()
    }
    const tell = (message) => {
      if (!kinds.includes(message.kind)) return
      if (index == null) early.push(message)
      else apply(message)
    }
    if (live) listeners.add(tell)
    const question = {kinds, once: true, min_index: live ? String(newest.index) : '0'}
    if (before) question.known = String(before.index)
    const visit = (message) => {
      if (message.kind) read.push(message)
      else if (message.type === 'synced') {
        index = Number(message.index)
        shown.value = {index, time: message.time}
        read.forEach(put)
        read = []
        early.forEach(apply)
        draw()
      }
    }
    const ask = async () => {
      for (let wait = 250; !abort.signal.aborted; wait = Math.min(wait * 2, 5000)) {
        try {
          return await stream('Watch', question, visit, {at: at.value, signal: abort.signal})
        } catch (failure) {
          if (abort.signal.aborted) return
          read = []
          things = new Map()
          if (question.known) {
            delete question.known // that peer does not have it: all is asked for
            continue
          }
          setState({things, ready: true, failure})
          if (failure.code !== 'unavailable') return answered()
        }
        await pause(wait)
      }
    }
    ask()
    return () => {
      abort.abort()
      listeners.delete(tell)
      cancelAnimationFrame(frame)
      clearTimeout(timer)
      answered()
      // What differs is asked for by an index of which all is there.
      let whole = index
      if (index == null) whole = before?.things === things ? before.index : null
      else if (live && told.index > index) whole = told.whole ? told.index : null
      last.current = {key, things, index: whole}
    }
  }, [key, at.value])
  return state
}

// useGrid returns the instances of a job at the moment that is shown, by task and number, in short: each has its task,
// number, seat, phase, health, version and node, and all else where that came with a change.
export function useGrid(job) {
  const [slots, setSlots] = useState([])
  useLayoutEffect(() => {
    const abort = new AbortController()
    const answered = reading()
    const early = []
    let list = null // as answered
    let all = null // by name, from the first change on
    let index = 0
    let frame = 0
    const keyOf = (slot) => `${slot.task}[${slot.number}]${slot.seat}`
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0
        setSlots([...all.values()])
      })
    }
    const apply = (message) => {
      if (Number(message.index) <= index) return
      all ||= new Map(list.map((slot) => [keyOf(slot), slot]))
      const {slot} = message.instance
      const key = keyOf(slot)
      if (message.type === 'removed') all.delete(key)
      else {
        const sorted = all.has(key)
        all.set(key, slot)
        if (!sorted) all = new Map([...all].sort(([, a], [, b]) => order(a, b)))
      }
      draw()
    }
    const tell = (message) => {
      if (message.kind !== 'instance' || message.instance?.job !== job) return
      if (list) apply(message)
      else early.push(message)
    }
    if (at.value == null) listeners.add(tell)
    const ask = async () => {
      for (let wait = 250; !abort.signal.aborted; wait = Math.min(wait * 2, 5000)) {
        try {
          const request = {job, page_size: 1, grid: true, min_index: at.value == null ? String(newest.index) : '0'}
          const answer = await call('JobStatus', request, {at: at.value, signal: abort.signal})
          index = Number(answer.index)
          list = cells(answer)
          setSlots(list)
          early.forEach(apply)
          return answered()
        } catch (failure) {
          if (abort.signal.aborted) return
          if (failure.code !== 'unavailable') return answered(setSlots([]))
        }
        await pause(wait)
      }
    }
    ask()
    return () => {
      abort.abort()
      listeners.delete(tell)
      cancelAnimationFrame(frame)
      answered()
    }
  }, [job, at.value, epoch.value])
  return slots
}

// order is that of instances of a job.
const order = (a, b) =>
  a.task === b.task ? a.number - b.number || (a.seat < b.seat ? -1 : 1) : a.task < b.task ? -1 : 1

// cells are the instances that the grid of an answer tells of.
function cells({grid}) {
  const {kinds, nodes, numbers, kind, node} = grid
  return numbers.map((number, i) => ({...kinds[kind[i]], number, node: nodes[node[i] - 1] || ''}))
}

// useChanges counts the changes of the things of a kind, or of some of them, as they come in the present.
export function useChanges(kind, names) {
  const [count, setCount] = useState(0)
  useEffect(() => {
    const tell = (message) => {
      if (message.kind === kind && (!names || names.includes(message.name))) setCount((n) => n + 1)
    }
    listeners.add(tell)
    return () => listeners.delete(tell)
  }, [kind, names?.join()])
  return `${epoch.value}.${count}`
}

// useAsk returns the answer of a procedure at the moment that is shown, with all of the list that is named. In the
// present it is asked again after entries, not more often than it answers and three times a second, and never by the
// clock alone.
export function useAsk(procedure, request, {past = true, list = ''} = {}) {
  const [state, setState] = useState({answer: null, failure: null})
  const asked = useRef({})
  const key = procedure + JSON.stringify(request) + at.value + '/' + epoch.value
  useLayoutEffect(() => {
    const abort = new AbortController()
    asked.current = {key, done: 0, busy: false, abort}
    return () => abort.abort()
  }, [key])
  useLayoutEffect(() => {
    const mine = asked.current
    const ask = async () => {
      if (mine.busy || procedure === '') return
      mine.busy = true
      const upTo = head.value.index
      const answered = at.value == null ? () => {} : reading()
      try {
        const answer = await callAll(procedure, request, list, {
          at: past === false ? null : at.value,
          signal: mine.abort.signal,
        })
        if (answer.time && at.value != null) shown.value = {index: Number(answer.index), time: answer.time}
        setState({answer, failure: null, key})
      } catch (failure) {
        if (!mine.abort.signal.aborted)
          setState((was) => ({answer: was.key === key ? was.answer : null, failure, key}))
      }
      answered()
      if (mine.abort.signal.aborted) return
      await pause(330)
      mine.busy = false
      if (!mine.abort.signal.aborted && at.value == null && past !== 'once' && head.value.index > upTo) ask()
    }
    if (at.value != null || past === 'once') ask()
    else return head.subscribe(() => ask()) // now, and after each entry; it is not drawn because of one
  }, [key])
  return state
}
