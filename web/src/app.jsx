// The page: its head, the part that the address names, and the slider at its foot.

import {render} from 'preact'
import {effect} from '@preact/signals'
import {useEffect, useRef, useState} from 'preact/hooks'
import {signIn} from './api.js'
import {at, busy, follow, head, known, line, link, route, shown} from './store.js'
import {date} from './words.js'
import {Empty, Failed, State, Title} from './parts.jsx'
import {Refused, useMay, Viewer} from './me.jsx'
import {Cluster} from './cluster.jsx'
import {Jobs} from './jobs.jsx'
import {Job} from './job.jsx'
import {Why} from './why.jsx'
import {Pools} from './pools.jsx'
import {Journal} from './journal.jsx'
import {Compare} from './compare.jsx'
import {Plan} from './plan.jsx'
import {Slider} from './slider.jsx'

// pages are the parts by their paths, with what the viewer must be allowed to see.
const pages = [
  ['/', 'Cluster', Cluster, 'see-cluster'],
  ['/jobs', 'Jobs', Jobs],
  ['/why', 'Why', Why],
  ['/pools', 'Pools', Pools, 'see-cluster'],
  ['/plan', 'Plan', Plan],
  ['/journal', 'Journal', Journal, 'see-cluster'],
  ['/compare', 'Compare', Compare, 'see-cluster'],
]

// Line tells whether what is shown is up to date.
function Line() {
  const {state, why} = line.value
  if (at.value != null) {
    return (
      <span class="line past">
        as of index {at.value}
        {shown.value.index === at.value && `, ${date(shown.value.time)}`}
      </span>
    )
  }
  if (state === 'live')
    return (
      <span class="line">
        <State word="ok">live</State> <span class="calm">index {head.value.index}</span>
      </span>
    )
  return (
    <span class="line" role="status" title={why}>
      <State word="not">{state}</State>
    </span>
  )
}

// hidden tells whether the viewer may not see something, once that is known.
const hidden = (may, verb) => verb && may(verb).why && !may(verb).may

function Part({may}) {
  const path = route.value.path
  if (path.startsWith('/job/')) return <Job name={decodeURIComponent(path.slice(5))} key={path} />
  const found = pages.find(([p]) => p === path)
  if (!found)
    return (
      <>
        <Title>No page</Title>
        <Empty>
          There is no page {path}. <a href={link('/')}>Show the cluster</a>
        </Empty>
      </>
    )
  const [, name, Page, verb] = found
  if (hidden(may, verb))
    return (
      <>
        <Title>{name}</Title>
        <Refused may={may} verbs={[verb]} what="see the whole cluster" />
        <p>
          <a href={link('/jobs')}>Show the jobs of your pools</a>
        </p>
      </>
    )
  return <Page />
}

function App() {
  const [failure, setFailure] = useState(null)
  useEffect(() => {
    signIn().then(follow, setFailure)
  }, [])
  const out = failure || (line.value.state === 'signed out' && {message: line.value.why})
  if (out) {
    return (
      <main class="out">
        <h1>Starling</h1>
        <Failed failure={out} />
        <p>
          In a terminal, <code>starling ui</code> opens this page, signed in as you.
        </p>
      </main>
    )
  }
  return <SignedIn />
}

function SignedIn() {
  const may = useMay(['see-cluster'])
  const path = route.value.path
  const main = useRef()
  useEffect(() => effect(() => main.current.setAttribute('aria-busy', busy.value)), [])
  const current = path.startsWith('/job/') ? '/jobs' : path
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById('main').focus())}>
        To the content
      </a>
      <nav aria-label="Pages">
        <a class="brand" href={link('/')}>
          Starling
        </a>
        {pages
          .filter(([, , , verb]) => !hidden(may, verb))
          .map(([p, name]) => (
            <a href={link(p)} aria-current={p === current ? 'page' : undefined}>
              {name}
            </a>
          ))}
        <span class="now">
          <Viewer />
          <Line />
        </span>
      </nav>
      {(line.value.state === 'lost' || line.value.state === 'stale') && (
        <p class="lost" role="alert">
          Not up to date: {line.value.why} Trying again.
        </p>
      )}
      <main id="main" tabIndex={-1} ref={main}>
        {known.value ? <Part may={may} /> : <p class="empty">Asking a peer …</p>}
      </main>
      <Slider />
    </>
  )
}

render(<App />, document.getElementById('app'))
