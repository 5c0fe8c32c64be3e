import { describe, expect, it } from 'vitest'
import { ConnectionError, type Consumer, StatusError } from '../../client/browser.ts'
import { pagesOf, untilAnswered } from '../../console/query.ts'

const lost = new ConnectionError('CLOSED', 'the connection is lost')
const late = new ConnectionError('TIMEOUT', 'there was no answer')
const refused = new StatusError('QUERY', 11, '')

/** A consumer that is connected when a test says so. */
class FakeConsumer {
  capabilities: object | undefined
  readonly listeners = new Set<() => void>()

  on(_event: string, listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  connected(): void {
    for (const listener of this.listeners) listener()
  }
}

describe('untilAnswered', () => {
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
  const asking = (consumer: FakeConsumer, outcomes: (Error | string)[], signal = new AbortController().signal) =>
    untilAnswered(consumer as unknown as Consumer, signal, async () => {
      const outcome = outcomes.shift()
      if (outcome instanceof Error) throw outcome
      return outcome
    })

  it('asks again on the next connection, and not before', async () => {
    const consumer = new FakeConsumer()
    const outcomes = [lost, 'answer']
    const answer = asking(consumer, outcomes)
    await settled()
    expect(outcomes).toEqual(['answer'])
    consumer.connected()
    expect(await answer).toBe('answer')
    expect(consumer.listeners.size).toBe(0)
  })

  it('asks again after a timeout on a connection that is there', async () => {
    const consumer = new FakeConsumer()
    consumer.capabilities = {}
    expect(await asking(consumer, [late, 'answer'])).toBe('answer')
  })

  it('does not ask again what the server refuses', async () => {
    await expect(asking(new FakeConsumer(), [refused, 'answer'])).rejects.toBe(refused)
  })

  it('waits no longer once nobody wants the answer', async () => {
    const consumer = new FakeConsumer()
    const abort = new AbortController()
    const answer = asking(consumer, [lost], abort.signal)
    await settled()
    abort.abort()
    await expect(answer).rejects.toBe(abort.signal.reason)
    expect(consumer.listeners.size).toBe(0)
  })
})

describe('pagesOf', () => {
  async function read(pages: readonly unknown[], options = {}) {
    const asked: string[] = []
    const rest = [...pages]
    const ask = (after: string) => {
      asked.push(after)
      return Promise.resolve({ plain: rest.shift() as never })
    }
    const records: unknown[] = []
    for await (const page of pagesOf(ask, options)) records.push(...page)
    return { asked, records }
  }

  it('begins each page after the place that the last REC of the page before names', async () => {
    const pages = [[{ name: 'a' }, { more: true, after: 'A' }], [{ name: 'b' }]]
    expect(await read(pages, { first: '0' })).toEqual({ asked: ['0', 'A'], records: [{ name: 'a' }, { name: 'b' }] })
  })

  it('begins it after the last entry where no place is named', async () => {
    const pages = [[{ channel: 7 }, { more: true }], [{ channel: 9 }]]
    expect(await read(pages, { key: 'channel' })).toEqual({
      asked: ['', '7'],
      records: [{ channel: 7 }, { channel: 9 }],
    })
  })

  it('ends where it cannot go on', async () => {
    expect(await read([[{ more: true }]], { key: 'name' })).toEqual({ asked: [''], records: [] })
    expect(await read([null])).toEqual({ asked: [''], records: [] })
  })
})
