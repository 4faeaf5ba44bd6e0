// One job: its tasks and instances, its update, its versions, what it has written and what it uses.

import {useMemo, useRef, useState} from 'preact/hooks'
import {call} from './api.js'
import {at, link, route, set, shown, useAsk, useGrid} from './store.js'
import {age, bytes, counted, counts, cpu, date, shapeOf, times, tone, waits} from './words.js'
import {Confirm, Empty, Failed, State, Title, useWindow} from './parts.jsx'
import {Findings} from './why.jsx'
import {Logs} from './logs.jsx'
import {Workflow} from './graph.jsx'
import {Update, Versions} from './update.jsx'
import {Scale} from './scale.jsx'
import {Shell} from './shell.jsx'
import {Refused, useMay} from './me.jsx'
import {jobVerbs, restart, stop, suspend} from './acts.js'

// stateOf is how an instance stands: its phase, and its health while it runs.
function stateOf(slot) {
  if (slot.phase === 'assigned') return 'starting'
  if (slot.phase === 'running' && slot.health && !/^(healthy|ready)$/.test(slot.health)) {
    return slot.health === 'unhealthy' ? 'unhealthy' : 'not healthy'
  }
  return slot.phase
}

// The size of a cell with the gap beside it, but for the digits of its number, and of each of those.
const cellHigh = 27
const cellWide = 34
const digitWide = 8

// Grid shows every instance of a task as a cell, whatever their number; one is chosen by click or Enter. Of many, only
// those that can be seen are there.
function Grid({slots, chosen, newest}) {
  const box = useRef()
  const view = useWindow(box, cellHigh)
  const columns = Math.max(1, Math.floor(view.wide / (cellWide + digitWide * String(slots.length).length)))
  const rows = Math.ceil(slots.length / columns)
  const first = Math.min(view.first, rows)
  const last = Math.min(rows, view.end)
  const style = {
    gridTemplateColumns: `repeat(${columns}, 1fr)`,
    paddingTop: first * cellHigh + 'px',
    paddingBottom: (rows - last) * cellHigh + 'px',
  }
  return (
    <div class="grid" ref={box} style={style}>
      {slots.slice(first * columns, last * columns).map((slot) => {
        const state = stateOf(slot)
        const name = `${slot.task}[${slot.number}]`
        const words = `${name} ${state}${slot.node ? ` on ${slot.node}` : ''}, version ${slot.version || '-'}`
        return (
          <button
            key={name + slot.seat}
            class={`cell ${tone(state)}${slot.version && slot.version < newest ? ' old' : ''}`}
            title={words}
            aria-label={words}
            aria-pressed={chosen === name}
            onClick={() => set({instance: name === chosen ? null : name})}
          >
            {shapeOf(tone(state))}
            <span>{slot.number}</span>
          </button>
        )
      })}
    </div>
  )
}

function Instance({job, slot, may}) {
  const [shell, setShell] = useState(null) // the allocation that it is beside
  const name = `${job}.${slot.task}[${slot.number}]`
  const runs = at.value == null && slot.phase === 'running' && slot.allocation
  const now = at.value == null ? null : shown.value.time
  const facts = [
    ['state', <State word={stateOf(slot)} />],
    ['for', age(slot.since, now)],
    ['node', slot.node || '-'],
    ['attempt', slot.allocation || '-'],
    ['version', slot.version || '-'],
    ['ports', slot.ports.map((p) => `${p.name} ${p.number}`).join(', ')],
    ['last end', slot.ended && `${slot.ended}, exit code ${slot.exit_code}`],
    ['failures in a row', slot.failures || ''],
    ['next at', slot.deadline && date(slot.deadline)],
    ['stops because', slot.cause],
    ['the update waits', times(slot.waits_for || '')],
  ]
  return (
    <section class="card" aria-label="The chosen instance">
      <h2>
        {name}
        {runs && !shell && may('exec').may && (
          <button class="quiet" aria-label={`Shell beside ${name}`} onClick={() => setShell(slot.allocation)}>
            shell
          </button>
        )}
      </h2>
      {runs && <Refused may={may} verbs={['exec']} what="open a shell in it" />}
      {shell && <Shell name={name} allocation={shell} close={() => setShell(null)} />}
      <dl class="pairs">
        {facts
          .filter(([, f]) => f)
          .map(([name, fact]) => (
            <>
              <dt>{name}</dt>
              <dd>{fact}</dd>
            </>
          ))}
      </dl>
      <Logs job={job} task={slot.task} slot={slot.number} />
    </section>
  )
}

function Usage({job}) {
  const [state, setState] = useState({})
  const ask = async () => {
    setState({busy: true})
    try {
      setState({answer: await call('InstanceStats', {job, window_millis: 500})})
    } catch (failure) {
      setState({failure})
    }
  }
  if (at.value != null) return null
  return (
    <section class="card">
      <h2>
        Use{' '}
        <button class="quiet" onClick={ask} disabled={state.busy}>
          {state.busy ? 'measuring …' : 'measure now'}
        </button>
      </h2>
      <Failed failure={state.failure} />
      {state.answer && (
        <table>
          <thead>
            <tr>
              <th>Instance</th>
              <th class="num">CPU</th>
              <th class="num">Memory</th>
              <th class="num">Memory limit</th>
            </tr>
          </thead>
          <tbody>
            {state.answer.instances.map((i) => (
              <tr key={i.allocation}>
                <td>
                  {i.task}[{i.number}]
                </td>
                {i.use ? (
                  <>
                    <td class="num">{cpu(i.use.cpu_millicores)}</td>
                    <td class="num">{bytes(i.use.memory_bytes)}</td>
                  </>
                ) : (
                  <td colSpan={2}>{i.problem}</td>
                )}
                <td class="num">{i.limits ? bytes(i.limits.memory_bytes) : '-'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

export function Job({name}) {
  const chosen = route.value.query.get('instance')
  const [token, setToken] = useState('') // of the chosen instance
  const {answer, failure} = useAsk('JobStatus', {job: name, page_size: 1, page_token: token, followers: true})
  const slots = useGrid(name)
  const [asked, setAsked] = useState(null)
  const [sized, setSized] = useState(null)
  const may = useMay([...jobVerbs, 'exec'], name)
  const newest = answer?.job.version
  // The same grid is not drawn again with what is around it.
  const grids = useMemo(() => {
    const by = new Map()
    for (const slot of slots) by.set(slot.task, by.get(slot.task) || []).get(slot.task).push(slot)
    return new Map([...by].map(([task, some]) => [task, <Grid slots={some} chosen={chosen} newest={newest} />]))
  }, [slots, chosen, newest])
  if (!answer) {
    return (
      <>
        <Title>{name}</Title>
        {failure ? <Failed failure={failure} /> : <Empty>Asking …</Empty>}
        {failure && at.value != null && <Empty>Move the slider to a moment when the job was there.</Empty>}
      </>
    )
  }
  const {job, tasks} = answer
  const named = (s) => `${s.task}[${s.number}]` === chosen
  const cell = chosen && slots.find(named)
  const slot = cell && (answer.slots.find((s) => named(s) && s.seat === cell.seat) || cell)
  const wanted = cell ? `${tasks.findIndex((t) => t.name === cell.task)}.${cell.number}` : ''
  if (wanted !== token) setToken(wanted)
  const live = at.value == null && !job.finished_at
  const scalable =
    may('run').may && at.value == null && job.type !== 'daemon' && (!job.finished_at || job.status === 'idle')
  const show = (task) => document.getElementById('task ' + task).focus()
  return (
    <>
      <Title
        aside={
          live && (
            <span class="buttons">
              {may('suspend').may && <button onClick={() => setAsked(suspend(job))}>{suspend(job).verb}</button>}
              {may('restart').may && job.type !== 'batch' && (
                <button onClick={() => setAsked(restart(job))}>Restart</button>
              )}
              {may('stop').may && <button onClick={() => setAsked(stop(job))}>Stop</button>}
            </span>
          )
        }
      >
        {name} <State word={job.status} />
      </Title>
      <Failed failure={failure} />
      {live && <Refused may={may} verbs={jobVerbs} what="change it" />}
      <ul class="facts">
        <li>{job.type}</li>
        <li>
          version <b>{job.version}</b>
        </li>
        <li>{counts(job.counts)}</li>
        <li>
          submitted {date(job.submitted_at)} in{' '}
          <a href={link('/journal', {at: job.submitted_index})}>{job.submitted_index}</a>
        </li>
        {job.finished_at && <li>finished {date(job.finished_at)}</li>}
        {job.policy_action?.text && <li>{job.policy_action.text}</li>}
      </ul>
      {waits(job) && (
        <section class="card">
          <h2>Why it waits</h2>
          <Findings job={name} />
        </section>
      )}
      <Workflow status={answer} show={show} />
      {tasks.map((t) => (
        <section class="card" key={t.name} id={'task ' + t.name} tabIndex={-1}>
          <h2>
            {t.name}{' '}
            <span class="calm">
              {counts(t.counts)}
              {t.state && t.state !== 'held' && !counts(t.counts).includes(t.state) && `, ${t.state}`}
            </span>
            {scalable && (
              <button class="quiet" aria-label={`Scale ${t.name}`} onClick={() => setSized(t)}>
                scale
              </button>
            )}
          </h2>
          {t.held_by.length > 0 && <p>blocked by {t.held_by.join(', ')}</p>}
          {grids.get(t.name)}
        </section>
      ))}
      {slots.length > 0 && !slot && (
        <p class="calm">
          Choose one of {counted(slots.length, 'instance')} to see where it runs and what it has written.
        </p>
      )}
      {slot && <Instance job={name} slot={slot} may={may} key={chosen} />}
      <Update job={job} tasks={tasks} ask={may('steer-update').may && setAsked} />
      <Versions job={job} ask={may('rollback').may && setAsked} />
      <Usage job={name} />
      {asked && (
        <Confirm
          question={asked.question}
          verb={asked.verb}
          close={() => setAsked(null)}
          act={(id) => call(asked.procedure, {request_id: id, ...asked.request})}
        />
      )}
      {sized && <Scale job={job} task={sized} close={() => setSized(null)} />}
    </>
  )
}
