import { expect, it } from 'vitest'
import { type Consumer, StatusError } from '../../client/browser.ts'
import { HostReader } from '../../console/host-values.ts'

interface Asked {
  readonly metric: string
  readonly args: object
}

/** What differs from a server that has nothing scraped of the host, and values of it in each family. */
interface Differences {
  readonly producer?: string
  /** The series of the host among what is scraped. */
  readonly scraped?: readonly object[]
  /** The values of what is scraped. */
  readonly values?: readonly object[]
  readonly isListDenied?: boolean
}

/** A server with these metrics. */
function reader(metrics: readonly string[], differences: Differences = {}) {
  const { producer = '', scraped = [], values, isListDenied = false } = differences
  const asked: Asked[] = []
  const answers: Readonly<Record<string, readonly object[]>> = {
    'producer.metrics': metrics.map((name) => ({ name })),
    'producer.series': scraped,
  }
  const consumer = {
    query(metric: string, args: object) {
      asked.push({ metric, args })
      if (metric === 'qmf.*') return Promise.reject(new StatusError('QUERY', 6, 'qmf.* takes no host'))
      if (isListDenied && metric === 'producer.series') return Promise.reject(new StatusError('QUERY', 4, 'no rule'))
      const elements = metric === 'prometheus.*' && values !== undefined ? values : [metric]
      return Promise.resolve({ plain: answers[metric], elements, time: 7, isCut: false })
    },
  } as unknown as Consumer
  const of = (metric: string) => asked.filter((one) => one.metric === metric)
  return { asked, of, web1: new HostReader(consumer, 'web1', producer, new AbortController().signal) }
}

it('asks each family, but what is scraped only if there are series of the host among it', async () => {
  const metrics = ['gmetric.load_one', 'gmetric.mem_free', 'ganglia.host.up', 'prometheus.up', 'qmf.x.y']
  const { of, web1 } = reader(metrics)
  for (let reading = 1; reading <= 12; reading++) {
    expect(await web1.read()).toEqual({ kind: 'answer', samples: ['gmetric.*', 'ganglia.*'], time: 7, isCut: false })
  }
  expect(of('gmetric.*')[0]?.args).toEqual({ host: 'web1' })
  expect(of('prometheus.*')).toEqual([])
  expect(of('producer.series')).toEqual([
    { metric: 'producer.series', args: { match: 'prometheus.*', host: 'web1', limit: 1 } },
  ])
  // After a minute there may be others.
  await web1.read()
  expect(of('producer.metrics')).toHaveLength(2)
})

it('asks what is scraped too, if it has series of the host', async () => {
  const { web1 } = reader(['gmetric.x', 'prometheus.up'], { scraped: [{ name: 'prometheus.up', host: 'web1' }] })
  expect(await web1.read()).toMatchObject({ samples: ['gmetric.*', 'prometheus.*'] })
})

it('shows the other families to those who may not list series', async () => {
  const { web1 } = reader(['gmetric.x', 'prometheus.up'], { isListDenied: true })
  expect(await web1.read()).toMatchObject({ samples: ['gmetric.*'] })
})

it('says why, if every family refuses', async () => {
  const { web1 } = reader(['qmf.x.y'])
  expect(await web1.read()).toEqual({ kind: 'refused', reason: 'Qmf.* takes no host.', isByServer: true })
})

it('asks another server for its families, and once a minute for what is scraped there', async () => {
  const place = { host: 'web1', producer: 'rack1' }
  const { asked, of, web1 } = reader(['gmetric.x', 'prometheus.up'], { producer: 'rack1', values: [] })
  for (let reading = 1; reading <= 12; reading++) await web1.read()
  expect(of('producer.metrics')).toMatchObject([{ args: { producer: 'rack1' } }])
  expect(of('gmetric.*').map(({ args }) => args)).toEqual(Array.from({ length: 12 }, () => place))
  expect(of('prometheus.*').map(({ args }) => args)).toEqual([place])
  expect(asked).toHaveLength(1 + 12 + 1)
})

it('asks what is scraped at another server too, if that has values of the host', async () => {
  const { web1 } = reader(['gmetric.x', 'prometheus.up'], { producer: 'rack1' })
  await web1.read()
  expect(await web1.read()).toMatchObject({ samples: ['gmetric.*', 'prometheus.*'] })
})

it('asks another server that lists no metrics for all that it has of the host', async () => {
  const { asked, web1 } = reader([], { producer: 'rack1' })
  await web1.read()
  expect(asked.slice(1)).toEqual([{ metric: '*', args: { host: 'web1', producer: 'rack1' } }])
})
