// Another number of instances of a task: what would come of it, and then to have it done.

import {useEffect, useState} from 'preact/hooks'
import {call, local} from './api.js'
import {Words} from './plan.jsx'
import {Confirm, Failed} from './parts.jsx'

const pause = 200

export function Scale({job, task, close}) {
  const [number, setNumber] = useState(task.counts.desired)
  const [state, setState] = useState({planned: null, failure: null})
  useEffect(() => {
    const abort = new AbortController()
    setState({planned: null, failure: null})
    const ask = async () => {
      try {
        const request = {job: job.name, task: task.name, instances: number}
        setState({planned: await local('scale', request, {signal: abort.signal}), failure: null})
      } catch (failure) {
        if (!abort.signal.aborted) setState({planned: null, failure})
      }
    }
    const soon = number === '' ? 0 : setTimeout(ask, pause)
    return () => {
      clearTimeout(soon)
      abort.abort()
    }
  }, [number])
  const {planned, failure} = state
  const act = (id) => call('SubmitJob', {request_id: id, spec: planned.spec, against: planned.against})
  const set = (text) => setNumber(text === '' ? '' : Number(text))
  return (
    <Confirm question={`Scale ${job.name}.${task.name}`} verb="Scale" close={close} not={!planned?.changes} act={act}>
      <p>
        <label>
          Instances{' '}
          <input type="number" min={0} step={1} value={number} onInput={(e) => set(e.target.value)} />
        </label>
      </p>
      <div aria-live="polite">
        {planned?.changes && <Words text={planned.words} />}
        {planned && !planned.changes && (
          <p class="calm">
            nothing has changed, it keeps version {job.version}
          </p>
        )}
        {planned?.warnings?.map((w) => (
          <p class="busy">◐ warning: {w}</p>
        ))}
      </div>
      <Failed failure={failure} />
    </Confirm>
  )
}
