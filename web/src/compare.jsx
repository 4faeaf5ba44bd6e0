// What changed from one moment to another, and what led to it.

import {at, head, link, route, useAsk} from './store.js'
import {clock, date} from './words.js'
import {Empty, Failed, Title} from './parts.jsx'

const homes = {
  job: (name) => link('/job/' + encodeURIComponent(name)),
  node: () => link('/'),
  pool: () => link('/pools'),
}

function Changed({change}) {
  return (
    <section class="card">
      <h2>
        {change.kind} <a href={homes[change.kind]?.(change.name)}>{change.name}</a>
      </h2>
      <ul>
        {change.differences.map((d) => (
          <li>{d}</li>
        ))}
      </ul>
      {change.causes.length > 0 && (
        <details>
          <summary>what led to it</summary>
          <ol class="causes">
            {change.more > 0 && <li class="calm">{change.more} earlier</li>}
            {change.causes.map((c) => (
              <li>
                <a href={link(route.value.path, {...Object.fromEntries(route.value.query), at: c.index})}>
                  {c.index}
                </a>{' '}
                <span class="calm">{clock(c.time)}</span> {c.text}
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  )
}

function Between({from, to}) {
  const {answer, failure} = useAsk(
    'Diff',
    {from: String(Math.min(from, to)), to: String(Math.max(from, to))},
    {past: false},
  )
  if (!answer) return failure ? <Failed failure={failure} /> : <Empty>Comparing …</Empty>
  return (
    <>
      <Failed failure={failure} />
      <p class="calm">
        from index {answer.from}, {date(answer.from_time)}, to {answer.to}, {date(answer.to_time)}
      </p>
      {answer.changes.map((c) => (
        <Changed key={c.kind + c.name} change={c} />
      ))}
      {answer.changes.length === 0 && <Empty>Machines, pools and jobs are the same at both.</Empty>}
    </>
  )
}

export function Compare() {
  const from = route.value.query.get('from')
  return (
    <>
      <Title>Compare</Title>
      {/^\d+$/.test(from) ? (
        <Between from={Number(from)} to={at.value ?? head.value.index} />
      ) : (
        <Empty>Move the slider to a moment and choose “compare from here”; then move it on, or back to live.</Empty>
      )}
    </>
  )
}
