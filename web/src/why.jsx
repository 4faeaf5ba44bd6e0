// Why: what waits, and what would help.

import {at, link, shown, useAsk, useThings} from './store.js'
import {age, counted, times, waits} from './words.js'
import {Empty, Failed, State, Title} from './parts.jsx'

const jobsMax = 50

// Findings explains a job in the words of starling why.
export function Findings({job, quiet}) {
  const {answer, failure} = useAsk('Why', {job})
  if (!answer) return failure ? <Failed failure={failure} /> : <p class="calm">Asking why …</p>
  const now = at.value == null ? null : shown.value.time
  return (
    <>
      <Failed failure={failure} />
      {answer.findings.map((f) => (
        <div class="finding">
          <p>
            <b>{f.task || 'the job'}</b>
            {f.instances > 0 && `, ${counted(f.instances, 'instance')}`}: {times(f.reason)}
            {f.since && <span class="calm"> for {age(f.since, now)}</span>}
          </p>
          {f.details.length > 0 && (
            <ul>
              {f.details.map((d) => (
                <li>{times(d)}</li>
              ))}
            </ul>
          )}
        </div>
      ))}
      {answer.findings.length === 0 && !quiet && <p class="calm">It waits for nothing.</p>}
    </>
  )
}

export function Why() {
  const {things, ready, failure} = useThings(['job'])
  const waiting = [...things.values()].filter((t) => waits(t.job)).sort((a, b) => (a.name < b.name ? -1 : 1))
  return (
    <>
      <Title aside={<span class="calm">{ready && `${counted(waiting.length, 'job')} waiting`}</span>}>Why</Title>
      <Failed failure={failure} />
      {waiting.slice(0, jobsMax).map(({job}) => (
        <section class="card" key={job.name}>
          <h2>
            <a href={link('/job/' + encodeURIComponent(job.name))}>{job.name}</a> <State word={job.status} />
          </h2>
          <Findings job={job.name} />
        </section>
      ))}
      {waiting.length > jobsMax && (
        <Empty>And {counted(waiting.length - jobsMax, 'job')} more: search for one under Jobs.</Empty>
      )}
      {ready && waiting.length === 0 && (
        <Empty>
          Nothing waits{at.value != null && ' at this moment'}: everything that was asked for runs or has ended.
        </Empty>
      )}
    </>
  )
}
