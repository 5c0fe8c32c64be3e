/** Where values come from: each sensor with its state and all of its counters. */
import { type SensorState, sourceLook } from '../fleet.ts'
import { Problem, State } from '../parts/state.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatRate } from '../units.ts'

/** Counters of what was not taken, by their names (docs/sources/README.md): they should stay 0. */
const REFUSALS = /refused|bad|full$|^over|drops|invalid|failures|unserved|unanswered|wrong|cutoff/i

export function refusedBy({ counters }: SensorState): number {
  return Object.entries(counters).reduce((sum, [name, count]) => sum + (REFUSALS.test(name) ? count : 0), 0)
}

/** The entry of a server that is consumed begins with this; the name of that server follows. */
export const UPSTREAM = 'upstream/'

/** How many things report through it, as `14 hosts`; empty if it does not count them. */
export function reporters({ name: sensor, counters }: SensorState): string {
  // Of a server that is consumed, connections are all that there have been.
  const names = sensor.startsWith(UPSTREAM) ? ['metrics'] : ['hosts', 'agents', 'sources', 'brokers', 'connections']
  for (const name of names) {
    const count = counters[name]
    if (count !== undefined) return `${formatCount(count)} ${count === 1 ? name.slice(0, -1) : name}`
  }
  return ''
}

export function SourcesView({ fleet, router }: ViewProps) {
  const chosen = router.route.value.object
  const sensors = fleet.sensors.value ?? []
  const shown = chosen === '' ? sensors : sensors.filter(({ name }) => name === chosen)
  return (
    <>
      <header>
        <h1>Sources</h1>
        {chosen === '' ? null : (
          <p class="note">
            <a href={linkTo('sources')}>all sources</a>
          </p>
        )}
      </header>
      <Problem text={fleet.problems.value['producer.sensors']} />
      {shown.length === 0 && fleet.sensors.value !== undefined ? (
        <p class="empty">{chosen === '' ? 'No source is on.' : `There is no source ${chosen}.`}</p>
      ) : null}
      {shown.map((sensor) => (
        <section key={sensor.name} class="card" aria-label={sensor.name}>
          <div class="head">
            <h2 class="code">
              <bdi>{sensor.name}</bdi>
            </h2>
            <State look={sourceLook(sensor)} text={sensor.state} />
            <p class="note">
              {[reporters(sensor), formatRate(fleet.curve(`sensor ${sensor.name}`).value.at(-1))]
                .filter(Boolean)
                .join(' · ')}
            </p>
          </div>
          {sensor.detail === '' ? null : <p class="padded">{sensor.detail}</p>}
          <dl class="counters">
            {Object.entries(sensor.counters).map(([name, count]) => (
              <div key={name} class={count > 0 && REFUSALS.test(name) ? 'refusal' : ''}>
                <dt>{name}</dt>
                <dd>{formatCount(count)}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </>
  )
}
