// Plan: what a pasted file would do, in the words of starling plan, and then to have it done.

import {signal} from '@preact/signals'
import {useRef, useState} from 'preact/hooks'
import {call, local, requestID} from './api.js'
import {at, link} from './store.js'
import {counted} from './words.js'
import {Confirm, Empty, Failed, Title} from './parts.jsx'

// written stays while other parts of the page are looked at.
const written = signal('')
const none = {answer: null, failure: null, busy: false, done: []}

const example = `job: hello
type: stateless
tasks:
  - name: main
    command: sleep 600`

// offsetOf is where a line and a column of a text begin.
function offsetOf(text, line, column) {
  const lines = text.split('\n')
  const before = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0)
  return before + Math.min(Math.max(0, column - 1), (lines[line - 1] || '').length)
}

function Problems({problems, show}) {
  return (
    <section class="card">
      <h2>{counted(problems.length, 'error')}; nothing was planned</h2>
      <ul class="problems">
        {problems.map((p) => (
          <li>
            <button class="quiet" onClick={() => show(p)}>
              line {p.line}, column {p.column}
            </button>{' '}
            {p.reason}
          </li>
        ))}
      </ul>
    </section>
  )
}

const Warnings = ({of}) => (of || []).map((w) => <p class="busy">◐ warning: {w}</p>)

function Job({job}) {
  return (
    <section class="card">
      <h2>
        <a href={link('/job/' + encodeURIComponent(job.name))}>{job.name}</a>
      </h2>
      <Words text={job.words} />
      <Warnings of={job.warnings} />
    </section>
  )
}

// Words shows lines as the command line writes them.
export const Words = ({text}) => <pre class="words">{text.trimEnd()}</pre>

function Tree({tree}) {
  const [head, ...rows] = tree.rows || []
  return (
    <section class="card">
      <h2>Pools</h2>
      <Words text={tree.words} />
      {head && (
        <table>
          <thead>
            <tr>
              {head.map((cell) => (
                <th>{cell.toLowerCase()}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>
                {row.map((cell) => (
                  <td>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Warnings of={tree.warnings} />
    </section>
  )
}

// submit has the peers do what was planned, job by job, and tells of each what has become of it.
async function submit(answer, tell) {
  if (answer.pools) {
    const {against, pools, gone} = answer.pools
    await call('ChangePools', {request_id: answer.id, against, pools, gone})
    tell(`done: the tree has version ${against + 1} now`)
    return
  }
  for (const job of answer.jobs) {
    if (job.submitted) continue
    const said = await call('SubmitJob', {request_id: job.id, spec: job.spec, against: job.against})
    job.submitted = true
    tell(said.unchanged ? `${job.name}: nothing has changed, it keeps version ${job.against}` : job.name, job.name)
  }
}

function Result({answer, show, ask}) {
  const {problems, jobs, pools} = answer
  if (problems) return <Problems problems={problems} show={show} />
  const changes = pools ? pools.changes : jobs.some((j) => j.changes)
  return (
    <>
      {jobs?.map((j) => (
        <Job key={j.name} job={j} />
      ))}
      {pools && <Tree tree={pools} />}
      {changes && answer.refusal && (
        <p class="calm refused">
          You may not {pools ? 'apply' : 'submit'} this: {answer.refusal}
        </p>
      )}
      {changes && !answer.refusal && (
        <p>
          <button class="strong" onClick={ask}>
            {pools ? 'Apply' : 'Submit'}
          </button>
        </p>
      )}
    </>
  )
}

function question({jobs, pools}) {
  if (pools) return 'Make this file the tree of pools'
  return `Submit ${counted(jobs.length, 'job')}: ${jobs.map((j) => j.name).join(', ')}`
}

export function Plan() {
  const [state, setState] = useState(none)
  const [asked, setAsked] = useState(false)
  const box = useRef()
  const {answer, failure, busy, done} = state
  if (at.value != null) {
    return (
      <>
        <Title>Plan</Title>
        <Empty>A plan is about what comes next: go back to live to make one.</Empty>
      </>
    )
  }
  const make = async (event) => {
    event?.preventDefault()
    setState({...none, busy: true})
    try {
      const answer = await local('plan', {text: written.value})
      answer.id = requestID() // sent again after a failure, it counts once
      answer.jobs?.forEach((j) => (j.id = requestID()))
      setState({...none, answer})
    } catch (failure) {
      setState({...none, failure})
    }
  }
  const show = ({line, column}) => {
    const from = offsetOf(written.value, line, column)
    const end = written.value.indexOf('\n', from)
    box.current.focus()
    box.current.setSelectionRange(from, end < 0 ? written.value.length : end)
  }
  const did = (text, job) => setState((was) => ({...was, done: [...was.done, {text, job}]}))
  return (
    <>
      <Title>Plan</Title>
      <form onSubmit={make} class="plan">
        <label for="file">A job file, or a pools file: what would come of it is told, and nothing is done.</label>
        <textarea
          id="file"
          ref={box}
          rows={14}
          spellcheck={false}
          placeholder={example}
          value={written.value}
          onInput={(e) => ((written.value = e.target.value), setState(none))}
          onKeyDown={(e) => e.key === 'Enter' && (e.ctrlKey || e.metaKey) && make(e)}
        />
        <p>
          <button type="submit" class={answer?.problems || !answer ? 'strong' : ''} disabled={busy}>
            {busy ? 'Planning …' : 'Plan it'}
          </button>
        </p>
      </form>
      <Failed failure={failure} />
      <div aria-live="polite">
        {answer && done.length === 0 && <Result answer={answer} show={show} ask={() => setAsked(true)} />}
        {done.map(({text, job}) => (
          <p>● {job ? <>submitted <a href={link('/job/' + encodeURIComponent(job))}>{text}</a></> : text}</p>
        ))}
      </div>
      {asked && (
        <Confirm
          question={question(answer)}
          verb={answer.pools ? 'Apply' : 'Submit'}
          close={() => setAsked(false)}
          act={() => submit(answer, did)}
        />
      )}
    </>
  )
}
