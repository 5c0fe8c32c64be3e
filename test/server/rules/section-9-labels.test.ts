/** Section 9.12, Labels: families whose series have any labels. The sensor of the test is a guest, so its bounds are kept too. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { done } from '../../support/administration.ts'
import { args, command, join, status, str, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { OpenSensor } from '../../support/test-sensor.ts'

let producer: TestProducer
let open: OpenSensor
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start({
    sensors: (hub) => {
      open = new OpenSensor(hub)
    },
  })
  seat = await producer.seat()
})
afterEach(() => producer.stop())

const push = (name: string, labels: Record<string, string>, value: number, time = value): void =>
  open.push(name, labels, { type: BasicType.UINT32, value }, EPOCH + time)
const texts = (given: Record<string, string>) =>
  args(...Object.entries(given).map(([name, text]) => [name, type.string, str(text)] as const))

async function follow(name: string, given: Record<string, string> = {}): Promise<number> {
  const id = await seat.collect(name, texts(given))
  await seat.ok((seq) => command.subscribe(seq, id))
  return id
}

async function query(name: string, given: Record<string, string> = {}) {
  const rows = decoded(await seat.query(name, texts(given)))
  return rows.map(({ time: _, ...row }: Record<string, unknown>) => row)
}

describe('every id is a pattern', () => {
  it('a value is a REC of all labels in their order, then `value`', async () => {
    const id = await follow('open.a')
    push('open.a', { zone: 'z', host: 'h', Job: 'j', object: 'o', é: 'e' }, 7)
    const value = await seat.value()
    const label = (name: string, text: string) => join(str(name), u32(type.string), str(text))
    const labels = [label('host', 'h'), label('object', 'o'), label('Job', 'j'), label('zone', 'z'), label('é', 'e')]
    const record = join(u32(type.rec), u32(6), ...labels, str('value'), u32(type.uint32), u32(7))
    expect(value.bytes).toEqual(Buffer.from(join(u32(id), u64(value.transaction), u64(EPOCH + 7), record)))
  })

  it('a label that an exact text fixes is left out, one that a pattern selects is not', async () => {
    await follow('open.a', { job: 'api', env: 'p*' })
    push('open.a', { job: 'api', env: 'prod', more_: 'x' }, 1)
    push('open.a', { job: 'api', env: 'test' }, 2)
    push('open.a', { job: 'web', env: 'prod' }, 3)
    push('open.a', { job: 'api', env: 'p2' }, 4)
    expect((await seat.values(2)).map(decoded)).toEqual([
      { env: 'prod', more_: 'x', value: 1 },
      { env: 'p2', value: 4 },
    ])
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })

  it('a series without labels is a REC of `value` alone; QUERY of one name gives an ARRAY', async () => {
    await follow('open.a')
    push('open.a', {}, 1)
    expect(decoded(await seat.value())).toEqual({ value: 1 })
    expect(decoded(await seat.query('open.a'))).toEqual([{ time: EPOCH + 1, value: 1 }])
  })

  it('an absent label is the empty text: `*` matches it, and the empty argument selects only those without it', async () => {
    push('open.a', { job: 'api' }, 1)
    push('open.a', { job: 'api', env: 'prod' }, 2)
    expect(await query('open.a', { env: '*' })).toHaveLength(2)
    expect(await query('open.a', { env: '' })).toEqual([{ job: 'api', value: 1 }])
    expect(await query('open.a', { env: 'prod' })).toEqual([{ job: 'api', value: 2 }])
    expect(await query('open.a', { nowhere: 'x' })).toEqual([])
  })

  it('names as those of properties of objects are names of labels like others', async () => {
    push('open.a', JSON.parse('{"__proto__": "p", "constructor": "c", "1": "one"}'), 1)
    push('open.a', {}, 2)
    expect(await query('open.a', { constructor: 'c' })).toEqual([
      Object.fromEntries([
        ['1', 'one'],
        ['__proto__', 'p'],
        ['value', 1],
      ]),
    ])
    expect(await query('open.a', { toString: '' })).toHaveLength(2)
  })
})

describe('arguments', () => {
  it('of another type are INVALID_ARGUMENT, those of every metric keep theirs', async () => {
    const answer = await seat.ask((seq) => command.collect(seq, 'open.a', args(['job', type.uint32, u32(1)])))
    expect(answer).toMatchObject({
      status: status.INVALID_ARGUMENT,
      detail: 'argument job has to be string, not uint32',
    })
    await seat.collect('open.a', args(['interval_ms', type.uint32, u32(1000)]))
    const text = await seat.ask((seq) => command.collect(seq, 'open.a', args(['interval_ms', type.string, str('x')])))
    expect(text.status).toBe(status.INVALID_ARGUMENT)
  })

  it('with more than eight stars are refused', async () => {
    const answer = await seat.ask((seq) => command.collect(seq, 'open.a', texts({ job: '*a'.repeat(9) })))
    expect(answer.status).toBe(status.INVALID_ARGUMENT)
  })

  it('of closed families are still refused if they are unknown, unless a pattern reaches open labels', async () => {
    for (const name of ['test.a', 'test.*', 'host.*', 'host.load.one']) {
      const answer = await seat.ask((seq) => command.collect(seq, name, texts({ job: 'api' })))
      expect(answer.status, name).toBe(status.INVALID_ARGUMENT)
    }
    push('open.a', { job: 'api' }, 1)
    producer.push.push('test.a', { type: BasicType.UINT32, value: 2 }, EPOCH)
    expect(await query('*', { job: 'api' })).toEqual([{ name: 'open.a', value: 1 }])
    // What a closed family does not take selects nothing of it, even if it would match the empty text.
    expect((await query('*', { job: '*' })).map(({ name }: { name: string }) => name)).toEqual(['open.a'])
  })
})

describe('rules', () => {
  it('name labels as arguments; an absent one is the empty text', async () => {
    await producer.addUser('root', { role: 'admin' })
    await producer.addUser('op', { role: 'operator' })
    const root = await producer.seat('root')
    await done(root, 'role.deny', { role: 'operator', command: 'COLLECT', object: 'open.*' })
    await done(root, 'role.allow', { role: 'operator', command: 'COLLECT', object: 'open.*', where: 'env=test*' })
    await done(root, 'role.allow', { role: 'operator', command: 'COLLECT', object: 'open.b', where: 'job=*' })
    push('open.a', { env: 'test-1' }, 1)
    push('open.a', { env: 'prod' }, 2)
    push('open.a', {}, 3)
    push('open.b', {}, 4)
    seat = await producer.seat('op')
    expect(await query('open.a')).toEqual([{ env: 'test-1', value: 1 }])
    expect(await query('open.b')).toEqual([{ value: 4 }])
    const series = decoded(await seat.query('producer.series', texts({ match: 'open.*' })))
    expect(series.map(({ name, env }: Record<string, string>) => [name, env])).toEqual([
      ['open.a', 'test-1'],
      ['open.b', undefined],
    ])
  })
})

describe('lists', () => {
  it('`producer.series` has all labels, takes any, and goes on where it ended', async () => {
    push('open.a', { job: 'api', zone: 'b' }, 1)
    push('open.a', { job: 'api', zone: 'a' }, 2)
    push('open.a', { job: 'web"\n' }, 3)
    producer.push.push('test.a', { type: BasicType.UINT32, value: 2 }, EPOCH)
    const shown = async (given: Record<string, string>, limit = 10) => {
      const list = Object.entries(given).map(([name, text]) => [name, type.string, str(text)] as const)
      return decoded(await seat.query('producer.series', args(...list, ['limit', type.uint32, u32(limit)])))
    }
    const all = await shown({ match: 'open.*' })
    expect(all.map(({ time: _, ...labels }: Record<string, string>) => labels)).toEqual([
      { name: 'open.a', job: 'api', zone: 'a' },
      { name: 'open.a', job: 'api', zone: 'b' },
      { name: 'open.a', job: 'web"\n' },
    ])
    expect(await shown({ zone: 'b' })).toHaveLength(1)
    const seen: unknown[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const [record, rest]: Record<string, string>[] = await shown({ match: 'open.*', after }, 1)
      seen.push(record)
      after = rest?.['after']
    }
    expect(seen).toEqual(all)
  })

  it('`producer.recent` has all labels and takes any', async () => {
    push('open.a', { job: 'api' }, 5)
    push('open.a', { job: 'web' }, 6)
    const rows = decoded(await seat.query('producer.recent', texts({ metric: 'open.a', job: 'w*' })))
    expect(rows).toMatchObject([{ name: 'open.a', job: 'web', values: [6] }])
  })
})

it('keep-latest keeps one value for each set of labels', async () => {
  const channel = await seat.defChannel(['overflow', type.string, str('keep-latest')])
  const id = await seat.collect('open.a')
  await seat.ok((seq) => command.buffer(seq, id, channel))
  for (const value of [1, 2, 3]) for (const job of ['a', 'b']) push('open.a', { job }, value)
  await producer.settle()
  expect((await seat.ledger(channel)).queued).toBe(2)
})

it('a series with labels beyond the bounds is a fault of its sensor, and the others go on', async () => {
  await follow('open.a')
  push('open.a', { job: 'x'.repeat(1025) }, 1)
  push('open.a', { job: 'x' }, 2)
  expect(decoded(await seat.value())).toEqual({ job: 'x', value: 2 })
  expect(producer.logged.join('')).toContain('label job: more than 1024 bytes')
})

it('bindings come back after a restart, and values with them', async () => {
  const channel = await seat.defChannel()
  const id = await seat.collect('open.a', texts({ job: 'api' }))
  await seat.ok((seq) => command.subscribe(seq, id, channel))
  await producer.settle()
  producer = await producer.restart()
  push('open.a', { job: 'api', env: 'prod' }, 1)
  seat = await producer.seat()
  await seat.setChannel(channel)
  expect(decoded(await seat.value())).toEqual({ env: 'prod', value: 1 })
})
