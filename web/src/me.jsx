// Who looks at the page, and what that one may do: as peers tell it, by the rule by which they refuse.

import {signal} from '@preact/signals'
import {useEffect, useState} from 'preact/hooks'
import {local} from './api.js'
import {epoch, useChanges} from './store.js'

const me = signal(null)

// useMay asks whether the viewer may do some things to an object. It returns a function that tells it of one, and why
// not; nothing is allowed before the answer, and all where no peer can tell: the peer that is asked to do it decides.
export function useMay(verbs, object = '') {
  const [answers, setAnswers] = useState(null)
  const changes = useChanges('pool')
  useEffect(() => {
    if (epoch.value === 0) return // nobody has signed in yet
    const abort = new AbortController()
    const acts = verbs.map((verb) => ({verb, object}))
    local('whoami', {acts}, {signal: abort.signal}).then(
      (answer) => {
        me.value = answer
        setAnswers(new Map(verbs.map((verb, i) => [verb, answer.answers[i]])))
      },
      () => abort.signal.aborted || setAnswers(new Map()),
    )
    return () => abort.abort()
  }, [verbs.join(), object, changes])
  return (verb) => (answers ? answers.get(verb) || {may: true, why: ''} : {may: false, why: ''})
}

// Refused says what the viewer may not do, and why.
export function Refused({may, verbs, what}) {
  const why = verbs.map((verb) => may(verb)).find((answer) => !answer.may)?.why
  return why ? (
    <p class="calm refused">
      You may not {what}: {why}
    </p>
  ) : null
}

// Viewer is who looks at the page, with the role in the whole cluster or the only one in a pool.
export function Viewer() {
  if (!me.value) return null
  const {name, role, pools} = me.value
  const all = [[role || 'none', 'the whole cluster'], ...(pools || []).map((p) => [p.role, p.pool])]
  const told = !role && all.length === 2 ? `${all[1][0]} in ${all[1][1]}` : role || `roles in ${all.length - 1} pools`
  return (
    <span class="who" title={all.map(([r, place]) => `${r} in ${place}`).join(', ')}>
      {name} <span class="calm">{told}</span>
    </span>
  )
}
