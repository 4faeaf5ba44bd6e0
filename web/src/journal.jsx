// The journal in words: what was asked, and what came of it.

import {useEffect, useState} from 'preact/hooks'
import {stream} from './api.js'
import {at, epoch, link, route, seen, set, shown} from './store.js'
import {clock, times} from './words.js'
import {Empty, Failed, Title} from './parts.jsx'

const entriesMax = 300

// useEntries returns the latest entries before the moment that is shown, the newest first, and goes on with them.
function useEntries() {
  const [state, setState] = useState({entries: [], oldest: 0, ready: false, failure: null})
  useEffect(() => {
    if (!seen.value) return
    const abort = new AbortController()
    const end = at.value
    let entries = []
    let oldest = 0
    let frame = 0
    const draw = () =>
      (frame ||= requestAnimationFrame(() => {
        frame = 0
        setState({entries: [...entries].reverse(), oldest, ready: true, failure: null})
      }))
    const question =
      end == null ? {last: entriesMax, follow: true} : {from: String(Math.max(1, end - entriesMax + 1))}
    const visit = ({entry, oldest_index: first}) => {
      if (Number(first) > 0) oldest = Number(first)
      if (entry && end != null && Number(entry.index) > end) {
        abort.abort()
        return
      }
      if (entry) entries.push(entry)
      if (entries.length > entriesMax) entries = entries.slice(-entriesMax)
      if (end != null && Number(entry?.index) === end) shown.value = {index: end, time: entry.time}
      draw()
    }
    draw()
    let left = false
    stream('TailJournal', question, visit, {signal: abort.signal}).catch((failure) => {
      if (!abort.signal.aborted && !left) setState((was) => ({...was, ready: true, failure}))
    })
    return () => {
      left = true
      abort.abort()
      cancelAnimationFrame(frame)
    }
  }, [at.value, seen.value, epoch.value])
  return state
}

const jobLink = (job) => job && <a href={link('/job/' + encodeURIComponent(job))}>{job}</a>

function Entry({entry}) {
  return (
    <li>
      <a class="index" href={link('/journal', {at: entry.index})} title="Show this moment">
        {entry.index}
      </a>
      <time class="calm" dateTime={entry.time}>
        {clock(entry.time)}
      </time>
      <div>
        {entry.dropped && <p class="calm">dropped: {entry.dropped}</p>}
        {entry.commands.map((c) => (
          <p>
            {times(c.text)}
            {c.refusal && <span class="bad"> ✕ refused: {c.refusal}</span>}
          </p>
        ))}
        {entry.effects.map((e) => (
          <p class="effect">
            → {times(e.text)} {e.job && !e.text.includes(e.job) && jobLink(e.job)}
          </p>
        ))}
      </div>
      <span class="calm writer">{entry.writer}</span>
    </li>
  )
}

export function Journal() {
  const {entries, oldest, ready, failure} = useEntries()
  const query = route.value.query
  const search = (query.get('q') || '').toLowerCase()
  const only = query.get('only') || ''
  const has = (entry) => {
    if (only === 'asked' && !entry.commands.some((c) => c.by || c.job)) return false
    if (only === 'refused' && !entry.commands.some((c) => c.refusal) && !entry.dropped) return false
    if (only === 'effects' && entry.effects.length === 0) return false
    return (
      !search ||
      [entry.writer, ...entry.commands.map((c) => c.text), ...entry.effects.map((e) => e.text)].some((t) =>
        t.toLowerCase().includes(search),
      )
    )
  }
  const found = entries.filter(has)
  return (
    <>
      <Title aside={<span class="calm">{ready && `the latest ${entries.length} entries`}</span>}>Journal</Title>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <label>
          Search <input type="search" value={query.get('q') || ''} onInput={(e) => set({q: e.target.value})} />
        </label>
        <label>
          Show{' '}
          <select value={only} onChange={(e) => set({only: e.target.value})}>
            <option value="">all</option>
            <option value="asked">requests about jobs</option>
            <option value="effects">what had effects</option>
            <option value="refused">what was refused</option>
          </select>
        </label>
      </form>
      <Failed failure={failure} />
      <ol class="journal" aria-label="Entries, the newest first">
        {found.map((e) => (
          <Entry key={e.index} entry={e} />
        ))}
      </ol>
      {ready && !failure && found.length === 0 && (
        <Empty>
          {entries.length > 0
            ? 'No entry is like that.'
            : oldest > 0
              ? `The peer remembers the words of entries from ${oldest} on; other pages still show this moment.`
              : 'No entry yet.'}
        </Empty>
      )}
    </>
  )
}
