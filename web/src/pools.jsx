// Pools as a tree, with what each uses and what it is entitled to.

import {at, link, route, set, useAsk} from './store.js'
import {amount, counted} from './words.js'
import {Bar, Empty, Failed, Title} from './parts.jsx'
import {Chart} from './chart.jsx'

// Explained tells why a pool is entitled to what it is, in the words of starling pool explain.
function Explained({path}) {
  const {answer, failure} = useAsk('PoolStatus', {path})
  if (!answer) return <Failed failure={failure} />
  return (
    <section class="card">
      <h2>Pool {path}</h2>
      {answer.explanations
        .filter((e) => e.sentences.length > 0)
        .map((e) => (
          <details open={e.kind === 'cpu'} key={e.kind}>
            <summary>{e.kind}</summary>
            <ul>
              {e.sentences.map((s) => (
                <li>{s}</li>
              ))}
            </ul>
          </details>
        ))}
      <p>
        <a href={link('/jobs', {pool: path})}>Its {counted(answer.pool.jobs, 'job')}</a>
      </p>
    </section>
  )
}

function Use({use}) {
  if (!use) return <td class="calm">-</td>
  const words = `${amount(use.kind, use.allocated)} of ${amount(use.kind, use.entitlement)}`
  return (
    <td title={`allocated ${words} entitled`}>
      <Bar part={Number(use.allocated)} of={Number(use.entitlement)} label={`allocated ${words} entitled`} /> {words}
      {Number(use.demand) > 0 && <span class="busy"> ◐ {amount(use.kind, use.demand)} more asked</span>}
      {Number(use.borrowed) > 0 && <span class="calm"> {amount(use.kind, use.borrowed)} borrowed</span>}
      {Number(use.lent) > 0 && <span class="calm"> {amount(use.kind, use.lent)} lent</span>}
    </td>
  )
}

export function Pools() {
  const {answer, failure} = useAsk('ListPools', {page_size: 1000}, {list: 'pools'})
  if (!answer)
    return (
      <>
        <Title>Pools</Title>
        {failure ? <Failed failure={failure} /> : <Empty>Asking for the pools …</Empty>}
      </>
    )
  const chosen = route.value.query.get('of')
  const pools = [...answer.pools].sort((a, b) => (a.spec.path < b.spec.path ? -1 : 1))
  const kinds = answer.capacity
    .filter((c) => Number(c.amount) > 0 && ['cpu', 'memory', 'gpu'].includes(c.kind))
    .map((c) => c.kind)
  return (
    <>
      <Title aside={<span class="calm">version {answer.version}</span>}>Pools</Title>
      <Failed failure={failure} />
      <div class="scroll">
        <table class="pools">
          <thead>
            <tr>
              <th>Pool</th>
              <th class="num">Jobs</th>
              {kinds.map((k) => (
                <th>{k}: allocated of entitled</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {pools.map((p) => {
              const parts = p.spec.path.split('/')
              return (
                <tr key={p.spec.path} class={p.spec.path === chosen ? 'chosen' : ''}>
                  <td style={{paddingLeft: 10 + 18 * (parts.length - 1) + 'px'}}>
                    <button
                      class="quiet"
                      aria-expanded={p.spec.path === chosen}
                      title={p.spec.path}
                      onClick={() => set({of: p.spec.path === chosen ? null : p.spec.path})}
                    >
                      {parts.at(-1)}
                    </button>
                  </td>
                  <td class="num">{p.jobs}</td>
                  {kinds.map((k) => (
                    <Use key={k} use={p.uses.find((u) => u.kind === k)} />
                  ))}
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
      {answer.warnings.map((w) => (
        <p class="busy">
          ◐ {w.path}: {w.reason}
        </p>
      ))}
      {pools.length === 0 && <Empty>There are no pools{at.value != null && ' at this moment'}.</Empty>}
      {pools.length > 0 && <Chart pool={chosen || ''} kinds={kinds} key={chosen} />}
      {chosen ? (
        <Explained path={chosen} key={chosen} />
      ) : (
        pools.length > 0 && <p class="calm">Choose a pool to see how its entitlement comes about.</p>
      )}
    </>
  )
}
