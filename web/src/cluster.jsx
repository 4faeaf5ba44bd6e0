// The cluster: its machines, and what runs on each.

import {useState} from 'preact/hooks'
import {call} from './api.js'
import {at, route, set, shown, useAsk} from './store.js'
import {bytes, counted, cpu, date} from './words.js'
import {Confirm, Empty, Failed, State, Title} from './parts.jsx'
import {Refused, useMay} from './me.jsx'
import {chipsMax, Machine} from './machine.jsx'
import {Ring} from './ring.jsx'

// attributeOf is the value that a machine has of an attribute, '' for none.
const attributeOf = (peer, name) => peer.attributes.find((a) => a.name === name)?.value || ''

// grouping returns the attributes by which machines can be grouped, and the one that is chosen: racks if there are any.
function grouping(peers) {
  const names = [...new Set(peers.flatMap((p) => p.attributes.map((a) => a.name)))].sort()
  const asked = route.value.query.get('by')
  return [names, asked === '-' ? '' : asked ?? ['rack', 'zone'].find((n) => names.includes(n)) ?? '']
}

// groups divides machines by an attribute, those without it last.
function groups(peers, by) {
  if (!by) return [['', peers]]
  const all = new Map()
  for (const p of peers) {
    const value = attributeOf(p, by)
    all.set(value, [...(all.get(value) || []), p])
  }
  return [...all].sort(([a], [b]) => (a === '') - (b === '') || a.localeCompare(b, 'en', {numeric: true}))
}

// sum says what machines have together of a resource, and how much of it is held.
function sum(peers, what, write) {
  const has = (from) => peers.reduce((n, p) => n + Number(p[from]?.[what] || 0), 0)
  return `${write(has('capacity') - has('free'))} of ${write(has('capacity'))}`
}

function Group({by, value, peers, children}) {
  if (!by) return <ul class="machines">{children}</ul>
  return (
    <section class="group">
      <h2>
        {value ? `${by} ${value}` : `no ${by}`}{' '}
        <span class="calm">
          {counted(peers.length, 'machine')}
          {peers.some((p) => p.capacity) &&
            `, cpu ${sum(peers, 'cpu_millicores', cpu)}, memory ${sum(peers, 'memory_bytes', bytes)}`}
        </span>
      </h2>
      <ul class="machines">{children}</ul>
    </section>
  )
}

export function Cluster() {
  const {answer, failure} = useAsk('ListPeers', {jobs: chipsMax}, {list: 'peers'})
  const quorum = useAsk('Quorum', {}, {past: 'once'})
  const [asked, setAsked] = useState(null)
  const may = useMay(['drain'], 'any') // it is the same of every machine
  if (!answer)
    return (
      <>
        <Title>Cluster</Title>
        {failure ? <Failed failure={failure} /> : <Empty>Asking for the machines …</Empty>}
      </>
    )
  const [names, by] = grouping(answer.peers)
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
          <b>{peers.reduce((n, p) => n + p.running, 0)}</b> instances running
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
      {at.value == null && <Refused may={may} verbs={['drain']} what="drain machines" />}
      {names.length > 0 && (
        <form class="filters" onSubmit={(e) => e.preventDefault()}>
          <label>
            Group by{' '}
            <select value={by} onChange={(e) => set({by: e.target.value || '-'})}>
              <option value="">nothing</option>
              {names.map((n) => (
                <option>{n}</option>
              ))}
            </select>
          </label>
        </form>
      )}
      {groups(peers, by).map(([value, some]) => (
        <Group key={value} by={by} value={value} peers={some}>
          {some.map((p) => (
            <Machine
              key={p.node}
              peer={p}
              voter={at.value == null && voters.find((v) => v.node === p.node)?.state}
              drain={may('drain').may && (() => setAsked(p))}
            />
          ))}
        </Group>
      ))}
      <Ring members={members} quorum={at.value == null ? quorum.answer : null} />
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
    </>
  )
}
