// The slider over the past, at the foot of every page.

import {useEffect, useRef, useState} from 'preact/hooks'
import {call} from './api.js'
import {at, head, line, link, route, set, shown} from './store.js'
import {date} from './words.js'

// oldestIndex asks for the oldest index that a peer still knows; there is nothing to see before the first entry.
const oldestIndex = async () => Math.max(1, Number((await call('Series', {points: 1})).oldest))

// Who is about to move the slider has the peer fold the newest entries once, at so many moments, the newest first.
const momentsAhead = 8
const entriesAhead = 10_000

async function foldAhead(newest, oldest) {
  for (let i = 0; i < momentsAhead; i++) {
    const at = newest - 1 - i * (entriesAhead / momentsAhead)
    if (at < oldest) return
    try {
      await call('ListJobs', {page_size: 1}, {at})
    } catch {
      return // a step will say what is wrong
    }
  }
}

const stepsOfPlay = 120
const pauseOfPlay = 400

export function Slider() {
  const [oldest, setOldest] = useState(null)
  const [why, setWhy] = useState('')
  const [playing, setPlaying] = useState(false)
  const [held, setHeld] = useState(null)
  const timer = useRef(0)
  const folded = useRef(0) // the newest index when that was asked for
  const newest = head.value.index
  const loaded = newest > 0
  useEffect(() => {
    if (loaded) oldestIndex().then(setOldest, (failure) => setWhy(failure.message))
  }, [loaded])
  useEffect(() => {
    if (!playing) return
    const step = Math.max(1, Math.round((head.value.index - oldest) / stepsOfPlay))
    const run = setInterval(() => {
      const next = (at.value ?? oldest) + step
      set({at: next >= head.value.index ? null : next})
      if (next >= head.value.index) setPlaying(false)
    }, pauseOfPlay)
    return () => clearInterval(run)
  }, [playing, oldest])
  if (!loaded) return null
  if (oldest == null)
    return (
      <footer class="slider">
        <span class="calm">{why || 'Looking how far the past goes …'}</span>
      </footer>
    )
  const value = held ?? at.value ?? newest
  const go = (index) => {
    setPlaying(false)
    set({at: index >= newest ? null : Math.max(oldest, index)})
  }
  // While it is moved the page follows ten times a second, and at once when it begins to move.
  const move = (event) => {
    setPlaying(false)
    setHeld(Number(event.target.value))
    clearTimeout(timer.last)
    const show = () => {
      timer.current = 0
      timer.shown = performance.now()
      const index = Number(event.target.value)
      set({at: index >= head.value.index ? null : index})
      timer.last = setTimeout(() => setHeld(null), 300)
    }
    timer.current ||= setTimeout(show, (timer.shown || 0) + 100 - performance.now())
  }
  const ahead = () => {
    if (newest - folded.current < entriesAhead / momentsAhead) return
    folded.current = newest
    foldAhead(newest, oldest)
  }
  const play = () => {
    if (at.value == null) set({at: oldest})
    setPlaying(!playing)
  }
  const time = at.value == null ? head.value.time : shown.value.index === at.value ? shown.value.time : null
  const from = route.value.query.get('from')
  return (
    <footer
      class={at.value == null ? 'slider' : 'slider past'}
      aria-label="The past"
      onPointerEnter={ahead}
      onFocusIn={ahead}
    >
      <button onClick={play} aria-label={playing ? 'Pause' : 'Play the past'}>
        {playing ? '❚❚' : '▶'}
      </button>
      <button onClick={() => go(value - 1)} disabled={value <= oldest} aria-label="One entry back">
        ‹
      </button>
      <input
        type="range"
        min={oldest}
        max={newest}
        value={value}
        onInput={move}
        aria-label="Moment, as an index of the journal"
        aria-valuetext={at.value == null ? 'live' : `index ${value}${time ? ', ' + date(time) : ''}`}
      />
      <button onClick={() => go(value + 1)} disabled={value >= newest} aria-label="One entry on">
        ›
      </button>
      <output>
        {at.value == null ? line.value.state : `${value}`}
        <span class="calm">{time ? date(time) : ''}</span>
      </output>
      <button class="live" onClick={() => go(newest)} disabled={at.value == null}>
        Back to live
      </button>
      <a class="button" href={link('/compare', {from: value})}>
        {from == null ? 'Compare from here' : `Compare from here (now ${from})`}
      </a>
    </footer>
  )
}
