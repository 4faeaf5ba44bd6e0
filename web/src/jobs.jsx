// All jobs, searched and filtered.

import {link, route, set, shown, at, useThings} from './store.js'
import {age, counted, counts, pool} from './words.js'
import {Empty, Failed, Rows, State, Title} from './parts.jsx'

const columns = [
  {name: 'Job'},
  {name: 'State'},
  {name: 'Instances'},
  {name: 'Pool', class: 'wide'},
  {name: 'Version', class: 'wide num'},
  {name: 'Submitted', class: 'wide num'},
]

function draw({job}, number) {
  const now = at.value == null ? null : shown.value.time
  const update = job.update && !job.update.final
  return (
    <tr key={job.name} aria-rowindex={number}>
      <td class="name">
        <a href={link('/job/' + encodeURIComponent(job.name))} title={job.name}>
          {job.name}
        </a>
      </td>
      <td>
        <State word={job.status}>
          {job.status}
          {update ? ', updating' : ''}
        </State>
      </td>
      <td class="clip" title={counts(job.counts)}>
        {counts(job.counts)}
      </td>
      <td class="wide">{pool(job.name)}</td>
      <td class="wide num">{job.version}</td>
      <td class="wide num">{age(job.submitted_at, now)}</td>
    </tr>
  )
}

export function Jobs() {
  const {things, ready, failure} = useThings(['job'])
  const query = route.value.query
  const search = (query.get('q') || '').toLowerCase()
  const state = query.get('state') || ''
  const inPool = query.get('pool') || ''
  const every = [...things.values()]
  const states = [...new Set(every.map((t) => t.job.status))].sort()
  const pools = [...new Set(every.map((t) => pool(t.name)))].sort()
  const rows = every
    .filter(
      ({job}) =>
        (state === 'all' || (state ? job.status === state : !job.finished_at)) &&
        (!inPool || pool(job.name) === inPool || pool(job.name).startsWith(inPool + '/')) &&
        job.name.toLowerCase().includes(search),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return (
    <>
      <Title aside={<span class="calm">{ready && `${rows.length} of ${counted(every.length, 'job')}`}</span>}>
        Jobs
      </Title>
      <Failed failure={failure} />
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <label>
          Search <input type="search" value={query.get('q') || ''} onInput={(e) => set({q: e.target.value})} />
        </label>
        <label>
          State{' '}
          <select value={state} onChange={(e) => set({state: e.target.value})}>
            <option value="">not ended</option>
            <option value="all">all</option>
            {states.map((s) => (
              <option>{s}</option>
            ))}
          </select>
        </label>
        <label>
          Pool{' '}
          <select value={inPool} onChange={(e) => set({pool: e.target.value})}>
            <option value="">all</option>
            {pools.map((p) => (
              <option>{p}</option>
            ))}
          </select>
        </label>
      </form>
      {!ready ? (
        <Empty>Asking for the jobs …</Empty>
      ) : rows.length > 0 ? (
        <Rows name="Jobs" rows={rows} columns={columns} draw={draw} />
      ) : every.length > 0 ? (
        <Empty>
          No job is like that.{' '}
          {state !== 'all' && <a href={link('/jobs', {state: 'all'})}>Show those that have ended, too</a>}
        </Empty>
      ) : (
        <Empty>
          There are no jobs
          {at.value == null ? (
            <>
              : <code>starling run -- echo hi</code> runs one.
            </>
          ) : (
            ' at this moment.'
          )}
        </Empty>
      )}
    </>
  )
}
