/** The past states of one alert as a line; what fires is as high as the line, and what is pending half as high. */
import { type AlertHistory, type PastAlert, type StateSpan, secondsIn } from '../alert-history.ts'
import { formatDuration, formatMoment } from '../units.ts'

const WIDTH = 1_000
const HEIGHT = 20
/** What is shorter is drawn as wide as this, so that it is seen. */
const LEAST_WIDTH = 4

interface StateLineProps {
  readonly alert: Pick<PastAlert, 'name' | 'spans'>
  readonly history: Pick<AlertHistory, 'from' | 'to'>
}

export function StateLine({ alert, history: { from, to } }: StateLineProps) {
  const at = (time: number): number => (WIDTH * (time - from)) / (to - from)
  return (
    <svg
      class="state-line"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={statesText(alert, to - from)}
    >
      {alert.spans.map((span) => (
        <rect
          key={span.from}
          class={span.state}
          x={Math.min(at(span.from), WIDTH - LEAST_WIDTH)}
          y={span.state === 'firing' ? 0 : HEIGHT / 2}
          width={Math.max(LEAST_WIDTH, at(span.to) - at(span.from))}
          height={span.state === 'firing' ? HEIGHT : HEIGHT / 2}
        >
          <title>{spanText(span, to)}</title>
        </rect>
      ))}
    </svg>
  )
}

/** For those who do not see the line. */
export function statesText({ spans }: Pick<PastAlert, 'spans'>, seconds: number): string {
  const said = (['firing', 'pending'] as const)
    .map((state) => [state, secondsIn({ spans }, state)] as const)
    .filter(([, lasted]) => lasted > 0)
    .map(([state, lasted]) => `${state} for ${formatDuration(lasted)}`)
  return `In the last ${formatDuration(seconds)}: ${said.length === 0 ? 'neither pending nor firing' : said.join(', ')}`
}

/** `firing 14:02:00 – 14:30:00, 28 min`. What ends at `now` goes on. */
export function spanText({ state, from, to }: StateSpan, now: number): string {
  const end = to >= now ? 'now' : formatMoment(to * 1e6)
  return `${state} ${formatMoment(from * 1e6)} – ${end}, ${formatDuration(to - from)}`
}
