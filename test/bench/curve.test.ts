import { describe, expect, it } from 'vitest'
import { type Chart, curveSvg } from './curve.ts'

const chart: Chart = {
  title: 'Cost & size',
  xTitle: 'times',
  yTitle: 'cost',
  lines: [
    {
      name: 'channels',
      points: [
        [1, 1],
        [10, 1.5],
        [100, 4],
      ],
    },
  ],
}

describe('curveSvg', () => {
  it('places points by the logarithm of x, and y from 0 to a round number above the largest', () => {
    const svg = curveSvg(chart)
    // From 60 to 490, and from 310 (0) up to 40 (5).
    expect(svg).toContain('points="60,256 275,229 490,94"')
    expect(svg).toContain('>5</text>')
  })

  it('names its lines and escapes texts', () => {
    const svg = curveSvg(chart)
    expect(svg).toContain('>channels</text>')
    expect(svg).toContain('>Cost &amp; size</text>')
    expect(svg.startsWith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360"')).toBe(true)
  })

  it('shows a single point, and refuses none', () => {
    expect(curveSvg({ ...chart, lines: [{ name: 'one', points: [[10, 2]] }] })).toContain('points="60,40"')
    expect(() => curveSvg({ ...chart, lines: [] })).toThrow('needs points')
  })
})
