// The workflow of a job: its tasks, and the jobs before and after it, in their order.

import {useEffect, useMemo, useState} from 'preact/hooks'
import {call} from './api.js'
import {at, link, useChanges} from './store.js'
import {counts, shapeOf, times, tone} from './words.js'
import {box, layout} from './layout.js'

// jobsMax bounds the jobs that are asked for, nodesMax what is drawn.
const jobsMax = 40
const nodesMax = 400

const ask = (job, options) => call('JobStatus', {job, page_size: 1, followers: true}, options).catch(() => null)

// useJobs asks for jobs beside one, and by those for more: the jobs before it, or after it.
function useJobs(names, more) {
  const [found, setFound] = useState(new Map())
  const changes = useChanges('job', [...names, ...found.keys()])
  useEffect(() => {
    const abort = new AbortController()
    const read = async () => {
      const all = new Map()
      for (let next = names; next.length > 0 && all.size < jobsMax; ) {
        const answers = await Promise.all(next.map((job) => ask(job, {at: at.value, signal: abort.signal})))
        next.forEach((name, i) => all.set(name, answers[i]))
        const found = answers.flatMap((a) => (a ? more(a) : [])).filter((name) => !all.has(name))
        next = [...new Set(found)].slice(0, jobsMax - all.size)
      }
      if (!abort.signal.aborted) setFound(all)
    }
    if (names.length > 0) read()
    else setFound((was) => (was.size > 0 ? new Map() : was))
    return () => abort.abort()
  }, [names.join(), at.value, changes])
  return found
}

const before = (status) => status.spec.after
const after = (status) => status.followers

// stateText says how far a task is, as starling job graph does.
function stateText(task) {
  if (task.state === 'held') return 'waiting for ' + task.held_by.join(', ')
  return task.follows ? `${task.state}, then ${times(task.follows)}` : task.state
}

// done says how many of the wanted instances have succeeded, or run if they have no end.
function done(job, spec, task) {
  const c = task.counts
  const wanted = task.sealed_by ? c.desired : Math.max(c.desired, spec.instances)
  return `${job.type === 'batch' ? c.succeeded : c.running} of ${wanted}`
}

// nodesOf are the boxes: jobs before, tasks, and jobs after, which come after all tasks that none comes after.
function nodesOf({job, spec, tasks}, earlier, later) {
  const nodes = []
  const last = spec.tasks.filter((t) => !spec.tasks.some((o) => o.after.includes(t.name))).map((t) => 'task ' + t.name)
  for (const [name, status] of [...earlier, ...later]) {
    nodes.push({
      id: 'job ' + name,
      name,
      after: (status?.spec.after || []).flatMap((a) => (a === job.name ? last : ['job ' + a])),
      state: status?.job.status || 'not there',
      count: status ? counts(status.job.counts) : '',
      job: true,
    })
  }
  for (const t of spec.tasks) {
    const task = tasks.find((one) => one.name === t.name)
    if (!task) continue
    nodes.push({
      id: 'task ' + t.name,
      name: t.name,
      after: t.after.length > 0 ? t.after.map((a) => 'task ' + a) : spec.after.map((a) => 'job ' + a),
      state: task.state === 'held' ? 'waiting' : task.state,
      words: stateText(task),
      count: done(job, t, task),
    })
  }
  return nodes
}

function Node({node, show, names}) {
  const looks = node.state === 'waiting' ? 'calm' : tone(node.state)
  const behind = node.after.map((id) => names.get(id)).filter(Boolean)
  const told = [node.name, node.state, node.job ? 'job' : node.count] // as it can be read in the box, and then more
  if (node.words !== node.state) told.push(node.words)
  if (node.job) told.push(node.count)
  if (behind.length > 0) told.push('comes after ' + behind.join(', '))
  const words = told.filter(Boolean).join(', ')
  const inside = (
    <>
      <b>{node.name}</b>{' '}
      <span class={looks}>
        {shapeOf(looks)} {node.state}
      </span>{' '}
      <span class="calm">{node.job ? 'job' : node.count}</span>
    </>
  )
  if (node.job) {
    return (
      <a class="node job" href={link('/job/' + encodeURIComponent(node.name))} title={words} aria-label={words}>
        {inside}
      </a>
    )
  }
  return (
    <button class="node" onClick={() => show(node.name)} title={words} aria-label={words}>
      {inside}
    </button>
  )
}

// Workflow draws the tasks of a job that come after others, and the jobs that come before and after it, if there are
// any.
export function Workflow({status, show}) {
  const earlier = useJobs(status.spec.after, before)
  const later = useJobs(status.followers || [], after)
  const nodes = nodesOf(status, earlier, new Map([...later].filter(([name]) => !earlier.has(name))))
  const key = JSON.stringify(nodes.map((n) => [n.id, n.after]))
  const drawn = useMemo(() => (nodes.length > nodesMax ? null : layout(nodes)), [key])
  if (nodes.every((n) => n.after.length === 0)) return null
  const names = new Map(nodes.map((n) => [n.id, n.name]))
  if (!drawn) {
    return (
      <section class="card">
        <h2>Workflow</h2>
        <p class="calm">
          {nodes.length} tasks are too many to draw: <code>starling job graph {status.job.name}</code> lists them in
          order.
        </p>
      </section>
    )
  }
  const {places, edges, width, height} = drawn
  const place = ({id}) => places.get(id)
  const ordered = [...nodes].sort((a, b) => place(a).x - place(b).x || place(a).y - place(b).y)
  const size = {width: width + 'px', height: height + 'px'}
  return (
    <section class="card" aria-label="Workflow">
      <h2>Workflow</h2>
      <div class="graph" style={size}>
        <svg aria-hidden="true" width={width} height={height}>
          <defs>
            <marker id="arrow" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="6" markerHeight="6" orient="auto">
              <path d="M0 0L6 3L0 6z" />
            </marker>
          </defs>
          {edges.map((e) => (
            <path key={e.from + '>' + e.to} d={e.path} marker-end="url(#arrow)" />
          ))}
        </svg>
        <ol>
          {ordered.map((n) => {
            const {x, y} = place(n)
            const where = {left: x + 'px', top: y + 'px', width: box.width + 'px', height: box.height + 'px'}
            return (
              <li key={n.id} style={where}>
                <Node node={n} show={show} names={names} />
              </li>
            )
          })}
        </ol>
      </div>
    </section>
  )
}
