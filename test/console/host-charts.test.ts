import { describe, expect, it } from 'vitest'
import { hostCharts } from '../../console/host-charts.ts'

const HOST = { host: 'web1' }

describe('the charts of a host', () => {
  it('are those of one source, with the metrics that the host has', () => {
    const charts = hostCharts(
      new Set(['gmetric.load_one', 'gmetric.load_five', 'host.load.one', 'gmetric.words']),
      HOST,
      true,
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
    const charts = hostCharts(new Set(['host.disk.free', 'host.net.sent_bytes']), HOST, true)
    expect(charts.map(({ title, spec: { scale } }) => [title, scale])).toEqual([
      ['Disk space free', undefined],
      ['Network', 'rate'],
    ])
    expect(charts[0]?.spec.lines[0]?.args).toEqual({ host: 'web1', mount: '*' })
  })

  it('are expressions over the history where metrics alone would say little', () => {
    const metrics = new Set(['prometheus.node_cpu_seconds_total', 'prometheus.node_load1'])
    const [cpu, load] = hostCharts(metrics, HOST, true)
    const rate = 'rate(node_cpu_seconds_total{host="web1", mode!="idle"}[5m])'
    expect(cpu).toEqual({ title: 'CPU', spec: { lines: [], expr: `100 * avg without (cpu) (${rate})` } })
    expect(load?.spec.lines).toEqual([{ metric: 'prometheus.node_load1', args: HOST }])
    expect(hostCharts(metrics, HOST, false).map(({ title }) => title)).toEqual(['Load'])
  })

  it('are none for a host without such metrics', () => {
    expect(hostCharts(new Set(['gmetric.words']), HOST, true)).toEqual([])
  })
})
