// One machine: how it stands, what it has and holds, and what runs on it.

import {at, link} from './store.js'
import {bytes, clock, counted, cpu, shapeOf} from './words.js'
import {Bar, State} from './parts.jsx'

// stateOf is how a machine stands, in the words of starling peers.
function stateOf(peer) {
  if (peer.state === 'member' && peer.detail) return 'refused'
  if (peer.state === 'member' && peer.away_until) return 'away'
  if (peer.state === 'member' && !peer.alive) return 'silent'
  if (peer.state !== 'member') return peer.state
  return peer.draining ? 'draining' : peer.state
}

// chipsMax bounds the jobs that are named of a machine.
export const chipsMax = 12

// devicesMax bounds the devices of a kind that are drawn.
const devicesMax = 64

// byKind sorts the devices that instances have by kind, and then by number.
function byKind(held) {
  const kinds = new Map()
  for (const h of held || []) {
    if (!kinds.has(h.kind)) kinds.set(h.kind, new Map())
    const numbers = kinds.get(h.kind)
    numbers.set(h.number, [...(numbers.get(h.number) || []), h])
  }
  return kinds
}

// Devices shows which devices of a kind are free, held as a whole or by shares, and by which instances.
function Devices({of, held}) {
  if (!held) return null // all are free, or they have no numbers
  const shown = Math.min(of.count, devicesMax)
  return (
    <span class="cells">
      {Array.from({length: shown}, (_, number) => {
        const by = held.get(number) || []
        const part = by.reduce((sum, h) => sum + h.milli, 0)
        const looks = part === 0 ? 'calm' : part < 1000 ? 'busy' : 'good'
        const who = by.map((h) => `${h.job}.${h.instance}${h.milli < 1000 ? ` ${h.milli / 10} %` : ''}`).join(', ')
        const words = `${of.kind} ${number}: ${who || 'free'}`
        const inside = (
          <>
            {shapeOf(looks)} <span>{number}</span>
          </>
        )
        if (by.length === 0)
          return (
            <span class="cell calm" role="img" title={words} aria-label={words}>
              {inside}
            </span>
          )
        const href = link('/job/' + encodeURIComponent(by[0].job), {instance: by[0].instance})
        return (
          <a class={'cell ' + looks} href={href} title={words} aria-label={words}>
            {inside}
          </a>
        )
      })}
      {of.count > shown && <span class="calm">and {of.count - shown} more</span>}
    </span>
  )
}

// Machine shows one machine; voter is how it keeps the journal, if it does; drain is there if the viewer may do that.
export function Machine({peer, voter, drain}) {
  const state = stateOf(peer)
  const {capacity: has, free} = peer
  const held = byKind(peer.held)
  const used = (what) => Number(has[what]) - Number(free?.[what] || 0)
  return (
    <li class="machine">
      <h3>{peer.node}</h3> <State word={state} />
      {drain && at.value == null && peer.state === 'member' && has && (
        <button class="quiet" onClick={drain} aria-label={(peer.draining ? 'Undrain ' : 'Drain ') + peer.node}>
          {peer.draining ? 'undrain' : 'drain'}
        </button>
      )}
      {has && (
        <dl>
          <dt>cpu</dt>
          <dd>
            <Bar part={used('cpu_millicores')} of={Number(has.cpu_millicores)} label="cpu held" />
          </dd>
          <dd>
            {cpu(used('cpu_millicores'))} of {cpu(has.cpu_millicores)}
          </dd>
          <dt>memory</dt>
          <dd>
            <Bar part={used('memory_bytes')} of={Number(has.memory_bytes)} label="memory held" />
          </dd>
          <dd>
            {bytes(used('memory_bytes'))} of {bytes(has.memory_bytes)}
          </dd>
          {peer.devices.map((d) => (
            <>
              <dt>{d.kind}</dt>
              <dd class="devices">
                {d.count} {d.model}
                <Devices of={d} held={held.get(d.kind)} />
              </dd>
            </>
          ))}
        </dl>
      )}
      <p class="chips">
        {peer.jobs.map(({job, running, other}) => (
          <a
            key={job}
            class={other ? 'chip busy' : 'chip'}
            href={link('/job/' + encodeURIComponent(job))}
            title={`${job}: ${running} running, ${other} other`}
          >
            <span>{job}</span> {running + other}
            {other ? ' ◐' : ''}
          </a>
        ))}
        {peer.job_count > peer.jobs.length && (
          <span class="calm">and {counted(peer.job_count - peer.jobs.length, 'job')} more</span>
        )}
        {peer.job_count === 0 && <span class="calm">nothing runs here</span>}
      </p>
      <p class="calm small">
        {peer.detail ||
          [
            peer.peer,
            voter,
            peer.journal_index > 0 && `index ${peer.journal_index}`,
            peer.digest && (peer.digest_agrees === false ? 'digest differs' : `digest ${peer.digest.slice(0, 8)}`),
            peer.away_until && `away until ${clock(peer.away_until)}`,
          ]
            .filter(Boolean)
            .join(' · ')}
      </p>
    </li>
  )
}
