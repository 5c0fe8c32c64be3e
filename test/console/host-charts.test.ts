import { describe, expect, it } from 'vitest'
import { hostCharts } from '../../console/host-charts.ts'

const HOST = { host: 'web1' }

describe('the charts of a host', () => {
  it('are those of one source, with the metrics that the host has', () => {
    const charts = hostCharts(
      new Set(['gmetric.load_one', 'gmetric.load_five', 'host.load.one', 'gmetric.words']),
      HOST,
    )
    expect(charts).toEqual([
      {
        title: 'Load',
        spec: {
          lines: [
            { metric: 'gmetric.load_one', args: HOST },
            { metric: 'gmetric.load_five', args: HOST },
          ],
        },
      },
    ])
  })

  it('show counters as their growth, and every file system', () => {
    const charts = hostCharts(new Set(['host.disk.free', 'host.net.sent_bytes']), HOST)
    expect(charts.map(({ title, spec: { scale } }) => [title, scale])).toEqual([
      ['Disk space free', undefined],
      ['Network', 'rate'],
    ])
    expect(charts[0]?.spec.lines[0]?.args).toEqual({ host: 'web1', mount: '*' })
  })

  it('are none for a host without such metrics', () => {
    expect(hostCharts(new Set(['gmetric.words']), HOST)).toEqual([])
  })
})
