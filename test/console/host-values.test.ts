import { expect, it } from 'vitest'
import type { Consumer } from '../../client/browser.ts'
import { HostReader } from '../../console/host-values.ts'

interface Asked {
  readonly metric: string
  readonly args: object
}

function reader(series: readonly object[], producer = '') {
  const asked: Asked[] = []
  const consumer = {
    query(metric: string, args: object) {
      asked.push({ metric, args })
      return Promise.resolve(
        metric === 'producer.series' ? { plain: series } : { elements: [metric], time: 7, isCut: false },
      )
    },
  } as unknown as Consumer
  return { asked, reader: new HostReader(consumer, 'web1', producer, new AbortController().signal) }
}

it('asks the families that have series of the host, and again which these are after a minute', async () => {
  const { asked, reader: web1 } = reader([
    { name: 'gmetric.load_one', host: 'web1' },
    { name: 'gmetric.mem_free', host: 'web1' },
    { name: 'ganglia.host.up', host: 'web1' },
    { name: 'producer.stats' },
  ])
  const args = { host: 'web1' }
  expect(await web1.read()).toEqual({ kind: 'answer', samples: ['gmetric.*', 'ganglia.*'], time: 7, isCut: false })
  expect(asked.slice(1)).toEqual([
    { metric: 'gmetric.*', args },
    { metric: 'ganglia.*', args },
  ])
  for (let reading = 2; reading <= 13; reading++) await web1.read()
  expect(asked.filter(({ metric }) => metric === 'producer.series')).toHaveLength(2)
})

it('asks nothing of a host without series but whether it has some now', async () => {
  const { asked, reader: web1 } = reader([])
  for (let reading = 1; reading <= 2; reading++) {
    expect(await web1.read()).toEqual({ kind: 'answer', samples: [], time: 0, isCut: false })
  }
  expect(asked.map(({ metric }) => metric)).toEqual(['producer.series', 'producer.series'])
})

it('asks another server for all that it has of the host', async () => {
  const { asked, reader: web1 } = reader([], 'rack1')
  await web1.read()
  expect(asked).toEqual([{ metric: '*', args: { host: 'web1', producer: 'rack1' } }])
})
