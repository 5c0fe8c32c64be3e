/** What became of everything that a channel accepted, as one bar; whatever is not zero has a sliver at least. */
import { type ChannelState, droppedOf } from '../fleet.ts'
import { formatCount } from '../units.ts'

const WIDTH = 100
const LEAST = 1.5

export function LedgerBar({ channel }: { readonly channel: ChannelState }) {
  const { accepted, committed, inFlight, queued } = channel
  const dropped = droppedOf(channel)
  const parts = [
    { kind: 'committed', count: committed },
    { kind: 'in-flight', count: inFlight },
    { kind: 'queued', count: queued },
    { kind: 'dropped', count: dropped },
  ].filter(({ count }) => count > 0)
  const label = [
    `accepted ${formatCount(accepted)}`,
    `committed ${formatCount(committed)}`,
    `in flight ${formatCount(inFlight)}`,
    `queued ${formatCount(queued)}`,
    `dropped ${formatCount(dropped)}`,
  ].join(', ')
  const widths = parts.map(({ count }) => Math.max(LEAST, (count / Math.max(1, accepted)) * WIDTH))
  const all = widths.reduce((sum, width) => sum + width, 0)
  let x = 0
  return (
    <svg class="ledger" viewBox={`0 0 ${WIDTH} 8`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      {parts.map(({ kind }, index) => {
        const width = ((widths[index] as number) / Math.max(all, WIDTH)) * WIDTH
        x += width
        return <rect key={kind} class={kind} x={x - width} y="0" width={Math.max(0, width - 0.4)} height="8" />
      })}
    </svg>
  )
}
