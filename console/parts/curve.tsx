/** A small curve without axes, from zero to its greatest value. */
import type { Points } from '../fleet.ts'

const WIDTH = 120
const HEIGHT = 24

export function Curve({ points, kind }: { readonly points: Points; readonly kind: string }) {
  const most = Math.max(1e-9, ...points)
  const at = (value: number, index: number): string => {
    const x = points.length < 2 ? WIDTH : (index / (points.length - 1)) * WIDTH
    return `${x.toFixed(1)},${(HEIGHT - 1 - (value / most) * (HEIGHT - 2)).toFixed(1)}`
  }
  const line = points.map(at).join(' ')
  return (
    <svg class={`curve ${kind}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {points.length < 2 ? null : (
        <>
          <polygon points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />
          <polyline points={line} />
        </>
      )}
    </svg>
  )
}
