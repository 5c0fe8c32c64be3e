/** Of a host that is gone, the charts are those of the sources that are remembered. */
import { expect, it } from 'vitest'
import { hostCharts } from '../../console/host-charts.ts'
import { rememberedOf } from '../../console/host-history.ts'

it('finds the sources of which something is remembered', async () => {
  const asked: string[] = []
  const consumer = {
    query: async (_: string, { metric, host }: { metric: string; host: string }) => {
      asked.push(`${metric} ${host}`)
      return { plain: metric.startsWith('gmetric.load') ? [{ metric }] : [] }
    },
  }
  const metrics = await rememberedOf(consumer as never, 'web1', new AbortController().signal)
  expect([...metrics]).toEqual(['gmetric.load_one', 'gmetric.load_five', 'gmetric.load_fifteen'])
  expect(asked).toContain('host.cpu.user web1')
  expect(hostCharts(metrics, { host: 'web1' }, false).map(({ title }) => title)).toEqual(['Load'])
})
