// The ring: which machine watches which, and which of them keep the journal.

import {State} from './parts.jsx'

// shownMax bounds the machines that are drawn.
const shownMax = 200

// inOrder begins with the first machine and goes on with the one that each watches.
function inOrder(members) {
  const byPeer = new Map(members.map((m) => [m.peer, m]))
  const ring = []
  for (let next = members[0]; next && !ring.includes(next) && ring.length < shownMax; ) {
    ring.push(next)
    next = byPeer.get(next.watches)
  }
  return ring
}

export function Ring({members, quorum}) {
  const ring = inOrder(members)
  const voters = quorum?.members || []
  const outside = voters.filter((v) => !members.some((m) => m.node === v.node))
  if (ring.length < 2 && voters.length === 0) return null
  return (
    <section class="card">
      <h2>
        Ring <span class="calm">each machine watches the next, the last one the first</span>
      </h2>
      <ol class="ring">
        {ring.map((m) => {
          const voter = voters.find((v) => v.node === m.node)
          return (
            <li key={m.peer} class={m.alive ? '' : 'silent'}>
              {m.node}
              {!m.alive && <State word="silent" />}
              {voter && <b>◆ {voter.state}</b>}
            </li>
          )
        })}
      </ol>
      {members.length > ring.length && (
        <p class="calm">and {members.length - ring.length} more, which <code>starling peers</code> lists</p>
      )}
      {voters.length > 0 && (
        <p class="calm">
          ◆ keeps the journal, with a vote if it is no learner
          {outside.length > 0 && `; not in the ring: ${outside.map((v) => `${v.node || v.id} ${v.state}`).join(', ')}`}
        </p>
      )}
      {quorum?.next && <p class="calm">next: {quorum.next}</p>}
      {quorum?.problem && <p class="busy">◐ only what was known last: {quorum.problem}</p>}
    </section>
  )
}
