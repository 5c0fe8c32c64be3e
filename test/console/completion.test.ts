/** What completes an expression: what the server is asked for it, how often, and what comes of no answer. */
import { beforeEach, describe, expect, it } from 'vitest'
import { Completion, type LabelMatch } from '../../console/completion.ts'

interface Asked {
  readonly metric: string
  readonly args: unknown
}

describe('a completion', () => {
  let asked: Asked[]
  let nowMs: number
  let answer: () => unknown
  let completion: Completion
  beforeEach(() => {
    asked = []
    nowMs = 0
    answer = () => [{ text: 'a' }, { text: 'b' }, { more: true }]
    const query = async (metric: string, args: unknown = {}) => {
      asked.push({ metric, args })
      return { plain: answer() }
    }
    completion = new Completion({ query } as never, () => nowMs)
  })
  const matcher = (name: string, value: string, isOpen = false, operator: LabelMatch['operator'] = '=') => ({
    name,
    operator,
    value,
    matchesEmpty: () => isOpen,
  })

  it('asks for names of metrics and labels, and for texts of labels', async () => {
    expect(await completion.metricNames()).toEqual(['a', 'b'])
    await completion.labelNames()
    await completion.labelNames('up')
    await completion.labelValues('job')
    await completion.labelValues('job', 'up', [matcher('host', 'a"b'), matcher('job', 'x'), matcher('z', '.*', true)])
    expect(asked.map(({ args }) => args)).toEqual([
      { label: '__name__' },
      {},
      { match: 'up' },
      { label: 'job' },
      { label: 'job', match: 'up{host="a\\"b"}' },
    ])
    expect(new Set(asked.map(({ metric }) => metric))).toEqual(new Set(['producer.history.labels']))
  })

  it('asks with the operators and names of the expression, and with its escapes as they are', async () => {
    const others = [
      matcher('host', 'a|b', false, '=~'),
      matcher('x.y', '\\\\"', false, '!='),
      matcher('z', '\\d', false, '!~'),
    ]
    await completion.labelValues('job', 'up', others)
    await completion.labelNames('host.load')
    expect(asked.map(({ args }) => args)).toEqual([
      { label: 'job', match: 'up{host=~"a|b", "x.y"!="\\\\\\"", z!~"\\d"}' },
      { match: '{"host.load"}' },
    ])
  })

  it('asks the same once in ten seconds', async () => {
    await completion.metricNames()
    nowMs = 9_000
    await completion.metricNames()
    expect(asked).toHaveLength(1)
    nowMs = 11_000
    await completion.metricNames()
    expect(asked).toHaveLength(2)
  })

  it('describes metrics by the catalogue', async () => {
    answer = () => [
      { name: 'host.net.received_bytes', monotonic: true, description: 'Bytes.' },
      { name: 'x', description: '' },
    ]
    expect(await completion.metricMetadata()).toEqual({
      host_net_received_bytes: [{ type: 'counter', help: 'Bytes.' }],
      x: [{ type: 'gauge', help: '' }],
    })
    expect(asked).toEqual([{ metric: 'producer.metrics', args: {} }])
  })

  it('is empty where the server does not answer, or says what is wrong', async () => {
    answer = () => {
      throw new Error('refused')
    }
    expect([await completion.metricNames(), await completion.metricMetadata()]).toEqual([[], {}])
    answer = () => [{ error_type: 'bad_data', error: 'x' }]
    expect(await completion.labelNames('{')).toEqual([])
    answer = () => null
    expect(await completion.labelNames('z')).toEqual([])
  })
})
