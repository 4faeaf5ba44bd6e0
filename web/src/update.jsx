// The update of a job, and its versions.

import {useState} from 'preact/hooks'
import {revert, steer, steeringsOf} from './acts.js'
import {at, useAsk} from './store.js'
import {date} from './words.js'
import {Failed, State} from './parts.jsx'

// Update shows how a job moves to its newest version; ask asks before the viewer does something with it, who may do
// nothing if it is false.
export function Update({job, tasks, ask}) {
  const {update} = job
  if (!update) return null
  const changing = tasks.filter((t) => t.changes)
  return (
    <section class="card">
      <h2>
        Update to version {update.to}{' '}
        <State word={update.state}>{update.state.toLowerCase().replace('_', ' ')}</State>
      </h2>
      <p class="calm">
        {update.from ? `from version ${update.from}` : 'the first'}, began {date(update.began_at)}
        {update.ended_at && `, ended ${date(update.ended_at)}`}
        {update.reason && `: ${update.reason}`}
      </p>
      {ask && at.value == null && steeringsOf(update).length > 0 && (
        <p class="buttons left">
          {steeringsOf(update).map((how) => (
            <button key={how} onClick={() => ask(steer(job, how))}>
              {steer(job, how).verb}
            </button>
          ))}
        </p>
      )}
      {!update.final &&
        changing.map((t) => (
          <p key={t.name}>
            {t.name}:{' '}
            {[
              ['to replace', t.changes.replace],
              ['to place', t.changes.place],
              ['to stop', t.changes.stop],
              ['up to date', t.changes.ignore],
              [t.changes.canaries === 1 ? 'canary' : 'canaries', t.changes.canaries],
            ]
              .filter(([, n]) => n)
              .map(([word, n]) => `${n} ${word}`)
              .join(', ') || 'nothing left to do'}
          </p>
        ))}
    </section>
  )
}

// Versions lists the versions of a job, and what differs between two of them.
export function Versions({job: now, ask}) {
  const job = now.name
  const {answer, failure} = useAsk('JobHistory', {job})
  const [between, setBetween] = useState(null)
  const all = answer ? [...answer.versions].sort((a, b) => b.number - a.number) : []
  const newest = all[0]?.number
  const [from, to] = between || [newest > 1 ? newest - 1 : 0, newest]
  const diff = useAsk(from && to && from !== to ? 'JobDiff' : '', {job, from, to})
  if (!answer) return <Failed failure={failure} />
  return (
    <section class="card">
      <h2>Versions</h2>
      <table>
        <thead>
          <tr>
            <th>Version</th>
            <th>What</th>
            <th>Outcome</th>
            <th class="wide">When</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {all.map((v) => (
            <tr key={v.number}>
              <td>{v.number}</td>
              <td>
                {v.kind}
                {v.of > 0 && ` of ${v.of}`}
              </td>
              <td>{v.outcome.toLowerCase().replace('_', ' ') || '-'}</td>
              <td class="wide">{date(v.brought_at)}</td>
              <td class="num">
                {ask && at.value == null && !now.finished_at && v.number < newest && (
                  <button
                    class="quiet"
                    aria-label={`Revert to version ${v.number}`}
                    onClick={() => ask(revert(now, v.number))}
                  >
                    revert to
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > 1 && (
        <>
          <p class="filters">
            <label>
              From{' '}
              <select value={from} onChange={(e) => setBetween([Number(e.target.value), to])}>
                {all.map((v) => (
                  <option value={v.number}>{v.number}</option>
                ))}
              </select>
            </label>
            <label>
              to{' '}
              <select value={to} onChange={(e) => setBetween([from, Number(e.target.value)])}>
                {all.map((v) => (
                  <option value={v.number}>{v.number}</option>
                ))}
              </select>
            </label>
          </p>
          <Failed failure={diff.failure} />
          <ul class="diff">
            {diff.answer?.changes?.map((c) => (
              <li key={c.path}>
                <b>{c.path}</b>: <del>{c.old || 'none'}</del> → <ins>{c.new || 'none'}</ins>
                {c.effect && <span class="calm"> ({c.effect})</span>}
              </li>
            ))}
          </ul>
          {from === to && <p class="calm">Choose two versions.</p>}
        </>
      )}
    </section>
  )
}
