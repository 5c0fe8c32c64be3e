/** What is ready has to be right without anybody having tried it: names of metrics, and the URL of the board. */
import { describe, expect, it } from 'vitest'
import { boardArgs, chartsOf, MAX_LINES_OF_CHART } from '../../console/board.ts'
import { hostCharts } from '../../console/host-charts.ts'
import { READY_BOARDS } from '../../console/ready-boards.ts'
import { statNumberViews } from '../../server/kernel/producer/stat-numbers.ts'
import { statsView } from '../../server/kernel/producer/status.ts'
import { HOST_DEFINITIONS } from '../../server/wings/host/definitions.ts'

const known = new Set(HOST_DEFINITIONS.map(({ name }) => name))

const metricsOf = (family: string) =>
  READY_BOARDS.flatMap(({ metric, charts }) => [
    metric,
    ...charts.flatMap(({ lines }) => lines.map((line) => line.metric)),
  ]).filter((name) => name.startsWith(family))

describe('boards that are ready', () => {
  it.each(READY_BOARDS)('$title is in its URL as it is', ({ title, charts }) => {
    const args = new URLSearchParams(boardArgs(charts, title))
    expect(chartsOf(args)).toEqual(charts)
    for (const { lines } of charts) expect(lines.length).toBeLessThanOrEqual(MAX_LINES_OF_CHART)
  })

  it('and the charts of a host have metrics of the machine of the server that there are', () => {
    const own = metricsOf('host.')
    expect(own.length).toBeGreaterThan(10)
    expect(own.filter((name) => !known.has(name))).toEqual([])
    const charts = hostCharts(known, {}, false)
    expect(charts.map(({ title }) => title)).toEqual(['CPU', 'Load', 'Memory', 'Disk', 'Disk space free', 'Network'])
    const drawn = charts.flatMap(({ spec }) => spec.lines.map(({ metric }) => metric))
    expect(drawn).toEqual(expect.arrayContaining(['host.cpu.steal', 'host.load.fifteen', 'host.mem.swap_used']))
    expect(drawn.length).toBe(16)
  })

  it('have metrics of the server itself that there are', () => {
    const views = statNumberViews(statsView(() => ({}) as never))
    const names = new Set(views.map(({ metric }) => metric.name))
    const own = metricsOf('producer.')
    expect(own.length).toBeGreaterThan(7)
    expect(own.filter((name) => !names.has(name))).toEqual([])
  })
})
