// Charts: what a pool, or the whole cluster, used and might use, over all of the past that a peer knows, and how many
// entries peers folded.

import {useEffect, useRef, useState} from 'preact/hooks'
import uPlot from 'uplot'
import {call} from './api.js'
import {at, epoch, head, set} from './store.js'
import {amount, clock, date} from './words.js'
import {Failed} from './parts.jsx'

const points = 150
const restOfChart = 3000 // milliseconds between two looks at what is new

// useSeries asks for the points, for more of them as long as a peer still folds, and again after entries.
function useSeries(pool, kind) {
  const [state, setState] = useState({points: [], failure: null})
  useEffect(() => {
    const abort = new AbortController()
    let timer = 0
    let asked = 0
    let busy = false
    const ask = async () => {
      if (busy || timer) return
      busy = true
      asked = head.value.index
      let more = false
      try {
        const answer = await call('Series', {pool, kind, points}, {signal: abort.signal})
        more = answer.more
        setState({points: answer.points, more, failure: null})
      } catch (failure) {
        if (!abort.signal.aborted) setState((was) => ({...was, failure}))
      }
      busy = false
      if (abort.signal.aborted) return
      timer = setTimeout(() => ((timer = 0), (more || head.value.index > asked) && ask()), more ? 50 : restOfChart)
    }
    const end = head.subscribe(() => ask())
    return () => {
      end()
      abort.abort()
      clearTimeout(timer)
    }
  }, [pool, kind, epoch.value])
  return state
}

// lines are what is drawn: each with its colour and how it is dashed, so that it is told without the colour, too.
const lines = [
  {name: 'entitled', colour: '--calm', dash: [6, 4], of: (p) => Number(p.entitlement)},
  {name: 'allocated and asked for', colour: '--busy', dash: [2, 3], of: (p) => Number(p.allocated) + Number(p.demand)},
  {name: 'allocated', colour: '--accent', fill: true, of: (p) => Number(p.allocated)},
]

// folds is chosen beside the kinds of resources: how many entries a second came to the journal, each of which all peers
// fold. It is counted in thousandths, over a second at least.
const folds = 'entries a second'
const foldLines = [{name: folds, colour: '--accent', fill: true, of: foldsAt}]
function foldsAt(_, i, all) {
  const from = all[Math.min(i, all.length - 2)]
  const since = (p) => (new Date(p.time) - new Date(from.time)) / 1000
  const to = all.slice(i).find((p) => since(p) >= 1) || all.at(-1)
  return Math.round((1000 * (to.index - from.index)) / Math.max(since(to), 1))
}

const linesOf = (kind) => (kind === folds ? foldLines : lines)

const high = 190

// steps are those of the axis of time, in seconds.
const day = 86400
const steps = [1, 5, 10, 30, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, day, 7 * day, 30 * day, 365 * day]
const moments = (_, all, __, ___, step) =>
  all.map((s) => (step < day ? clock(s * 1000) : new Date(s * 1000).toLocaleDateString()))

// options of the chart for the colours that are wanted now; visit is called with the number of a point that is chosen.
function optionsOf(kind, width, visit) {
  const style = getComputedStyle(document.documentElement)
  const colour = (name) => style.getPropertyValue(name).trim()
  const axis = {stroke: colour('--calm'), grid: {stroke: colour('--edge'), width: 1}, ticks: {show: false}}
  return {
    width,
    height: high,
    legend: {show: false},
    cursor: {y: false, drag: {x: false, y: false}},
    hooks: {ready: [(chart) => chart.over.addEventListener('click', (e) => visit(chart.posToIdx(e.offsetX)))]},
    scales: {y: {range: (_, low, most) => [0, Math.max(most * 1.08, 1)]}},
    axes: [
      {...axis, space: 80, size: 30, incrs: steps, values: moments},
      {...axis, size: 64, values: (_, all) => all.map((n) => amount(kind, n))},
    ],
    series: [
      {},
      ...linesOf(kind).map((l) => ({
        stroke: colour(l.colour),
        dash: l.dash,
        width: 2,
        points: {show: false},
        paths: uPlot.paths.stepped({align: 1}),
        fill: l.fill && colour(l.colour) + '33',
      })),
    ],
  }
}

function Drawing({kind, all}) {
  const box = useRef()
  const chart = useRef(null)
  const shown = useRef(all)
  shown.current = all
  const data = () => [
    shown.current.map((p) => new Date(p.time).getTime() / 1000),
    ...linesOf(kind).map((l) => shown.current.map(l.of)),
  ]
  useEffect(() => {
    const visit = (number) => set({at: shown.current[number].index})
    const make = () => {
      if (!box.current) return // the colours change while the page goes elsewhere
      chart.current?.destroy()
      chart.current = new uPlot(optionsOf(kind, box.current.clientWidth, visit), data(), box.current)
    }
    make()
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', make)
    const resized = new ResizeObserver(
      () => box.current && chart.current?.setSize({width: box.current.clientWidth, height: high}),
    )
    resized.observe(box.current)
    return () => {
      dark.removeEventListener('change', make)
      resized.disconnect()
      chart.current?.destroy()
      chart.current = null
    }
  }, [kind])
  useEffect(() => chart.current?.setData(data()), [all])
  return <div class="chart" ref={box} aria-hidden="true" />
}

// Chart draws one kind of a pool, '' for the whole cluster; a click leads to that moment.
export function Chart({pool, kinds: resources}) {
  const [chosen, setKind] = useState('cpu')
  const kinds = pool ? resources : [...resources, folds]
  const kind = kinds.includes(chosen) ? chosen : kinds[0]
  const {points: all, more, failure} = useSeries(pool, kind === folds ? '' : kind)
  if (!kind) return null
  const last = all.at(-1)
  return (
    <section class="card" aria-label="Use over time">
      <h2>
        {pool ? `Pool ${pool}` : 'All pools'} over time{' '}
        <label class="calm">
          of{' '}
          <select value={kind} onChange={(e) => setKind(e.target.value)}>
            {kinds.map((k) => (
              <option>{k}</option>
            ))}
          </select>
        </label>
        {more && <span class="calm">looking at the past …</span>}
      </h2>
      <Failed failure={failure} />
      {all.length > 1 ? (
        <>
          <Drawing kind={kind} all={all} />
          <ul class="keys">
            {linesOf(kind).map((l) => (
              <li key={l.name}>
                <svg width="26" height="8" aria-hidden="true" style={{color: `var(${l.colour})`}}>
                  <path d="M0 4H26" stroke="currentColor" stroke-width="2" stroke-dasharray={l.dash?.join(' ')} />
                </svg>{' '}
                {l.name} <b>{amount(kind, l.of(last, all.length - 1, all))}</b>
              </li>
            ))}
          </ul>
          <p class="calm small">
            From index {all[0].index}, {date(all[0].time)}, to {last.index}. Click to go to a moment
            {at.value != null && `; now at ${at.value}`}.
          </p>
        </>
      ) : (
        <p class="calm">{more || !last ? 'Looking at the past …' : 'There is no past to draw yet.'}</p>
      )}
    </section>
  )
}
