/** Making notifiers ready takes time, between which the server does other work. */
import { describe, expect, it } from 'vitest'
import { PutNotifiers, type PutNotifiersServices } from '../../../../../server/wings/notify/put/put-notifiers.ts'
import { Sealing } from '../../../../../server/wings/notify/put/sealing.ts'
import type { NotifierRow } from '../../../../../storage/store.ts'

describe('between two notifiers being made ready the server does other work', () => {
  const sealing = new Sealing(new Uint8Array(32))
  const tables = ['a', 'b', 'c'].map((name) => `[[notify]]\nname = "${name}"\nurl = "webhook+http://h/"\n`)
  const rowOf = (name: string, settings: string): NotifierRow => ({
    ...{ tenant: 'default', name, user: 1, author: 'ann', token: 0, scope: '', put: 0, settings },
    sealed: sealing.seal(`default/${name}`, '{"url":"webhook+http://h/","contents":{}}'),
  })
  /** `turns`: the numbers of the turns in which one was made ready. */
  const opened = (notifiers: readonly NotifierRow[], reached = () => {}) => {
    const turns: number[] = []
    let number = 0
    const count = (): void => {
      number++
      pending = setImmediate(count)
    }
    let pending = setImmediate(count)
    const use = { notifiers: { used: 0, limit: 20, refused: 0 } }
    const wallMs = (): number => {
      turns.push(number)
      reached()
      return 0
    }
    const view = { readerOf: () => undefined, use: () => use }
    const peer = { view, stored: { notifiers }, delivery: { permits: () => true } }
    const kit = { log: { error() {} }, clock: { wallMs }, peer } as unknown as PutNotifiersServices['kit']
    const put = new PutNotifiers({ kit, sealing, configured: () => [] })
    return { put, use, turns, stop: () => clearImmediate(pending) }
  }

  it('when they are opened, of which those that are too large stop', async () => {
    const large = `${tables[1]}match = ['a=~"x{600}"']\n`
    const rows = [rowOf('a', tables[0] ?? ''), rowOf('b', large), rowOf('c', tables[2] ?? '')]
    const { put, turns, stop } = opened(rows)
    await put.open()
    stop()
    expect(new Set(turns).size).toBe(3)
    expect(
      put.shown('default').map(({ row, problem }) => [row.name, /500 parts .*: put it again$/.test(problem)]),
    ).toEqual([
      ['a', false],
      ['b', true],
      ['c', false],
    ])
  })

  it('when they are put, and what others have done meanwhile counts', async () => {
    const { put, turns, use, stop } = opened([], () => {
      if (turns.length === 3) use.notifiers.limit = 2
    })
    expect(await put.changes('default', tables.slice(0, 2).join(''), '')).toHaveLength(2)
    expect(new Set(turns).size).toBe(2)
    expect(await put.changes('default', tables.join(''), '')).toEqual({
      refused: 'the tenant would have 3 notifiers, and its quota is 2: remove some',
    })
    stop()
    expect([turns.length, use.notifiers.refused]).toEqual([5, 1])
  })
})
