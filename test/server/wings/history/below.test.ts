/** What a lower server remembers, asked for at the upper one: what may be read there and here, and how a long answer goes on. */
import { afterEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { args, command, str, type, u32, u64 } from '../../../support/bytes.ts'
import { EPOCH, type TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { Tree } from '../../../support/tree.ts'

const EVER_MS = 36_500 * 86_400_000
const SECOND = 1_000_000

const recorded = (...metrics: string[]) => ({
  ...defaultConfig().history,
  keepMs: EVER_MS,
  keepRollupsMs: EVER_MS,
  resolutionMs: 0,
  metrics,
})

interface Shown {
  readonly metric: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly values: readonly number[]
}

let tree: Tree
afterEach(() => tree.stop())

async function start(options: Parameters<typeof Tree.start>[0]): Promise<Seat> {
  tree = await Tree.start(options)
  await tree.connected()
  await tree.upper.addUser('root', { role: 'admin' })
  return tree.upper.seat('root')
}

function push(producer: TestProducer, name: string, value: number, host = 'h1'): void {
  producer.push.push(`test.${name}`, { type: BasicType.DOUBLE, value }, EPOCH + value * SECOND, host)
}

interface Page {
  readonly more?: true
  readonly after?: string
}

/** What a server shows of what is remembered of these metrics, page by page; null if nothing is remembered. */
async function remembered(seat: Seat, metric: string, producer?: string): Promise<readonly Shown[] | null> {
  const of = producer === undefined ? [] : [['producer', type.string, str(producer)] as const]
  const first = [
    ['metric', type.string, str(metric)],
    ['from', type.uint64, u64(EPOCH)],
    ['to', type.uint64, u64(EPOCH + 60 * SECOND)],
    ['with_losses', type.boolean, u32(1)],
  ] as const
  const shown: Shown[] = []
  for (let after: string | undefined; ; ) {
    const next = after === undefined ? first : [['after', type.string, str(after)] as const]
    const page = decoded(await tree.inTime(seat.query('producer.history.select', args(...next, ...of))))
    if (page === null) return null
    const records = page as unknown as (Shown & Page)[]
    shown.push(...records.filter(({ more }) => more !== true))
    after = records.at(-1)?.after
    if (after === undefined) return shown
  }
}

const lines = (all: readonly Shown[] | null): string[] | undefined =>
  all?.map(({ name, labels, values }) => `${name}{${Object.entries(labels)}} ${values}`)

describe('what a lower server remembers', () => {
  it('is asked for there, and both show the same', async () => {
    const root = await start({ history: { lower: recorded('test.*') } })
    const below = await tree.lower.seat('main')
    push(tree.lower, 'a', 1)
    push(tree.lower, 'a', 2)
    push(tree.lower, 'b', 3, 'h2')
    const all = ['test_a{host,h1} 1,2', 'test_b{host,h2} 3']
    await tree.until(async () => expect(lines(await remembered(below, 'test.*'))).toEqual(all))
    // The thread answers while no clock goes on.
    await tree.until(async () =>
      expect(await remembered(root, 'test.*', 'east')).toEqual(await remembered(below, 'test.*')),
    )
    expect(await remembered(root, 'test.*')).toBe(null)
  })

  it('is judged at both: by the rules for the user there, and for the user here', async () => {
    const root = await start({ role: 'limited', history: { lower: recorded('test.*') } })
    await tree.lower.addUser('boss', { role: 'admin' })
    const boss = await tree.lower.seat('boss')
    await done(boss, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.b' })
    for (const [index, name] of ['a', 'b', 'c', 'd'].entries()) push(tree.lower, name, index + 1, `h${index}`)
    const all = ['test_a{host,h0} 1', 'test_b{host,h1} 2', 'test_c{host,h2} 3', 'test_d{host,h3} 4']
    await tree.until(async () => expect(lines(await remembered(boss, 'test.*'))).toEqual(all))
    const fewer = all.filter((line) => !line.includes('_b'))
    await tree.until(async () => expect(lines(await remembered(root, 'test.*', 'east'))).toEqual(fewer))
    await tree.upper.addUser('bob', { role: 'narrow' })
    await done(root, 'role.deny', { role: 'narrow', command: 'COLLECT', object: 'test.c', where: 'producer=east' })
    await done(root, 'role.deny', { role: 'narrow', command: 'COLLECT', object: '*', where: 'host=h3' })
    const bob = await tree.upper.seat('bob')
    await tree.until(async () => expect(lines(await remembered(bob, 'test.*', 'east'))).toEqual(['test_a{host,h0} 1']))
  })

  it('is only what the table of the lower server names', async () => {
    const metrics = ['test.a', 'producer.*']
    const root = await start({ metrics, history: { lower: recorded('test.*') } })
    const below = await tree.lower.seat('main')
    push(tree.lower, 'a', 1)
    push(tree.lower, 'b', 2)
    await tree.until(async () => expect(await remembered(below, 'test.*')).toHaveLength(2))
    await tree.until(async () => expect(lines(await remembered(root, 'test.*', 'east'))).toEqual(['test_a{host,h1} 1']))
  })

  it('is nothing to subscribe to: it comes to be judged, and is not sent on', async () => {
    const root = await start({ history: { lower: recorded('test.*') } })
    const list = args(['metric', type.string, str('test.*')], ['producer', type.string, str('east')])
    const id = await root.collect('producer.history.select', list)
    await root.ok((seq) => command.subscribe(seq, id, 0))
    await tree.bound(1)
    await tree.until(async () => expect(Number((await tree.below()).committed)).toBeGreaterThan(1))
    expect(root.rest().filter((message) => message.kind === 'value' && message.metric === id)).toEqual([])
  })
})

describe('with `below`', () => {
  it('a server records what its consumers can see of those below, with the label `producer`, and its own as before', async () => {
    const root = await start({ history: { upper: { ...recorded('test.*'), below: true } } })
    await tree.until(async () => expect((await tree.below())?.bound).toBe(1))
    push(tree.lower, 'a', 1)
    push(tree.lower, 'a', 2)
    push(tree.upper, 'a', 3)
    const all = ['test_a{host,h1,producer,east} 1,2', 'test_a{host,h1} 3']
    await tree.until(async () => expect(lines(await remembered(root, 'test.*'))?.toSorted()).toEqual(all))

    await tree.upper.addUser('bob', { role: 'narrow' })
    await done(root, 'role.deny', { role: 'narrow', command: 'COLLECT', object: 'test.a', where: 'producer=east' })
    const bob = await tree.upper.seat('bob')
    await tree.until(async () => expect(lines(await remembered(bob, 'test.*'))).toEqual(['test_a{host,h1} 3']))
    // What is remembered here is there when the server below is not.
    await tree.stopLower()
    await tree.until(async () => expect(lines(await remembered(root, 'test.*'))?.toSorted()).toEqual(all))
  })
})
