/** Where values come from: each sensor with its state and all of its counters. */
import { Absent, State } from '../parts/state.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { isRefusal, reporters, sourceLook } from '../sources.ts'
import { formatCount, formatRate } from '../units.ts'

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
      {fleet.sensors.value === undefined ? (
        <Absent what="the sources" problem={fleet.problems.value['producer.sensors']} />
      ) : null}
      {shown.length === 0 && fleet.sensors.value !== undefined ? (
        <p class="empty" role="status">
          {chosen === '' ? 'No source is on.' : `There is no source ${chosen}.`}
        </p>
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
              <div key={name} class={count > 0 && isRefusal(name) ? 'refusal' : ''}>
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
