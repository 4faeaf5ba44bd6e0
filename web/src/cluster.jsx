// The cluster: its machines, and what runs on each.

import {useState} from 'preact/hooks'
import {call} from './api.js'
import {at, head, link, shown, useAsk, useThings} from './store.js'
import {bytes, clock, counted, cpu, date} from './words.js'
import {Bar, Confirm, Empty, Failed, State, Title} from './parts.jsx'

// stateOf is how a machine stands, in the words of starling peers.
function stateOf(peer) {
  if (peer.state === 'member' && peer.detail) return 'refused'
  if (peer.state === 'member' && peer.away_until) return 'away'
  if (peer.state === 'member' && !peer.alive) return 'silent'
  if (peer.state !== 'member') return peer.state
  return peer.draining ? 'draining' : peer.state
}

// perJob counts the instances on each machine by job.
function perJob(things) {
  const nodes = new Map()
  for (const {instance} of things.values()) {
    const {node, phase} = instance.slot
    if (!node || !['running', 'assigned', 'stopping', 'backing off', 'unknown'].includes(phase)) continue
    if (!nodes.has(node)) nodes.set(node, new Map())
    const jobs = nodes.get(node)
    if (!jobs.has(instance.job)) jobs.set(instance.job, {running: 0, other: 0})
    jobs.get(instance.job)[phase === 'running' ? 'running' : 'other']++
  }
  return nodes
}

const chipsMax = 12

function Machine({peer, jobs, drain}) {
  const state = stateOf(peer)
  const {capacity: has, free} = peer
  const used = (what) => Number(has[what]) - Number(free?.[what] || 0)
  const all = [...(jobs || [])].sort((a, b) => (a[0] < b[0] ? -1 : 1))
  return (
    <li class="machine">
      <h2>{peer.node}</h2> <State word={state} />
      {at.value == null && peer.state === 'member' && has && (
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
        </dl>
      )}
      <p class="chips">
        {all.slice(0, chipsMax).map(([job, n]) => (
          <a
            class={n.other ? 'chip busy' : 'chip'}
            href={link('/job/' + encodeURIComponent(job))}
            title={`${job}: ${n.running} running, ${n.other} other`}
          >
            <span>{job}</span> {n.running + n.other}
            {n.other ? ' ◐' : ''}
          </a>
        ))}
        {all.length > chipsMax && <span class="calm">and {counted(all.length - chipsMax, 'job')} more</span>}
        {all.length === 0 && <span class="calm">nothing runs here</span>}
      </p>
      <p class="calm small">
        {peer.detail ||
          [
            peer.peer,
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

export function Cluster() {
  const {answer, failure} = useAsk('ListPeers', {page_size: 1000})
  const quorum = useAsk('Quorum', {}, {past: 'once'})
  const {things, ready} = useThings(['instance'])
  const [asked, setAsked] = useState(null)
  if (!answer) return failure ? <Failed failure={failure} /> : <Empty>Asking for the machines …</Empty>
  const jobs = perJob(things)
  const peers = [...answer.peers].sort((a, b) => a.node.localeCompare(b.node, 'en', {numeric: true}))
  const members = peers.filter((p) => p.state === 'member')
  const silent = members.filter((p) => !p.alive).length
  const differ = peers.filter((p) => p.digest_agrees === false)
  const agree = members.filter((p) => p.digest_agrees === true)
  const voters = quorum.answer?.members || []
  const down = voters.filter((m) => m.state && !/^(voter|leader|up|ok|healthy|follower)/.test(m.state))
  return (
    <>
      <Title>Cluster</Title>
      <Failed failure={failure} />
      <ul class="facts">
        <li>
          <b>{members.length}</b> {members.length === 1 ? 'machine' : 'machines'}
          {silent > 0 && `, ${silent} silent`}
        </li>
        <li>
          <b>{ready ? [...things.values()].filter((t) => t.instance.slot.phase === 'running').length : '…'}</b>{' '}
          instances running
        </li>
        <li>
          journal at <b>{answer.index}</b>
        </li>
        {differ.length > 0 && (
          <li>
            <State word="differs">digest differs on {differ.map((p) => p.node).join(', ')}</State>
          </li>
        )}
        {differ.length === 0 && agree.length > 0 && (
          <li>
            <State word="ok">digests agree</State>
            {agree.length < members.length && ` on ${agree.length} of ${members.length}`}
          </li>
        )}
        {at.value == null && voters.length > 0 && (
          <li>
            quorum of <b>{voters.length}</b>
            {down.length > 0 && `: ${down.map((m) => `${m.node} ${m.state}`).join(', ')}`}
          </li>
        )}
      </ul>
      <ul class="machines">
        {peers.map((p) => (
          <Machine key={p.node} peer={p} jobs={jobs.get(p.node)} drain={() => setAsked(p)} />
        ))}
      </ul>
      {peers.length === 0 && (
        <Empty>No machine was there{at.value != null && ` at ${date(shown.value.time)}`}.</Empty>
      )}
      {asked && (
        <Confirm
          verb={asked.draining ? 'Undrain' : 'Drain'}
          close={() => setAsked(null)}
          question={
            asked.draining
              ? `Give ${asked.node} work again`
              : `Drain ${asked.node}: its ${counted(asked.allocations, 'instance')} move to other machines`
          }
          act={(id) => call('DrainNode', {request_id: id, node: asked.node, drain: !asked.draining})}
        />
      )}
      {head.value.index === 0 && <Empty>Nothing has happened yet.</Empty>}
    </>
  )
}
