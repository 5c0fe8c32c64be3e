/** Drains to receivers of JSON: what is in a request, who can trust it, and what comes twice. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import type { DrainTable } from '../../../../server/wings/drains/config.ts'
import { Authority } from '../../../support/certificates.ts'
import { eventually } from '../../../support/eventually.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { tableTo } from './fake-destination.ts'
import { JsonReceiver, type ReceivedItem } from './json-receiver.ts'

const SECRET = `whsec_${Buffer.from('a secret that has 32 bytes in it').toString('base64')}`
const OTHER = `whsec_${Buffer.from('one more secret with 32 bytes in').toString('base64')}`

let receiver: JsonReceiver
let producer: TestProducer | undefined
let directory = ''
beforeEach(async () => {
  receiver = new JsonReceiver()
  await receiver.open()
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-drain-'))
})
afterEach(async () => {
  await producer?.stop()
  await receiver.close()
  rmSync(directory, { recursive: true, force: true })
})

async function start(more: Partial<DrainTable> = {}): Promise<Seat> {
  producer = await TestProducer.start({ config: { drain: [tableTo(receiver.port, more, 'json')] } })
  await producer.addUser('root', { role: 'admin' })
  return producer.seat('root')
}

/** A file with these lines. */
function secretFile(...lines: readonly string[]): string {
  const file = join(directory, 'secret')
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
  return file
}

function push(name: string, value: Value | number, ms = 0): void {
  const given: Value = typeof value === 'number' ? { type: BasicType.DOUBLE, value } : value
  producer?.push.push(`test.${name}`, given, EPOCH + ms * 1_000, 'h')
}

/** Time goes on until it holds; the receiver answers in real time. */
async function until(holds: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    producer?.clock.advance(500)
    await producer?.settle()
    await holds()
  })
}

async function ledger(seat: Seat): Promise<Record<string, number>> {
  const channels = decoded(await seat.query('producer.channels')) as { name: string }[]
  return channels.find(({ name }) => name === 'drain:d') as unknown as Record<string, number>
}

async function status(seat: Seat): Promise<{ state: string; detail: string; counters: Record<string, number> }> {
  const sensors = decoded(await seat.query('producer.sensors')) as { name: string }[]
  return sensors.find(({ name }) => name === 'drain/d') as never
}

/** The first request has the first transaction that there is: each channel begins at a number of its own. */
const begun = (): number => receiver.requests[0]?.first ?? 0
const ranges = (): unknown[] =>
  receiver.requests.map(({ first = 0, last = 0 }) => [first - begun() + 1, last - begun() + 1])

const measured = ({ type }: ReceivedItem): boolean => type === 'value'

describe('a request', () => {
  it('has each value with its name, labels, unit, type and time, and says what it is of', async () => {
    const seat = await start()
    push('a-b.c', 1.5, 7.001)
    push('text', { type: BasicType.STRING, value: 'grün' }, 8)
    push('big', { type: BasicType.UINT64, value: 2n ** 60n }, 9)
    push('rec', { type: BasicType.REC, value: [{ name: 'n', type: BasicType.INT32, value: -1 }] }, 10)
    await until(async () => expect(await ledger(seat)).toMatchObject({ accepted: 4, committed: 4 }))
    push('gone', { type: BasicType.VOID, value: null }, 11)
    push('odd', Number.NaN, 12)
    await until(async () => expect(await ledger(seat)).toMatchObject({ accepted: 6, committed: 6 }))
    const [one, other] = receiver.requests
    const about = { type: 'metrics.values', tenant: 'default', drain: 'd' }
    const labels = { host: 'h' }
    expect(one).toMatchObject({ ...about, producer: 'n1', last: begun() + 3 })
    expect(one?.values).toEqual([
      {
        type: 'value',
        transaction: begun(),
        time: EPOCH + 7_001,
        name: 'test.a-b.c',
        labels,
        valueType: 'double',
        value: 1.5,
      },
      {
        type: 'value',
        transaction: begun() + 1,
        time: EPOCH + 8_000,
        name: 'test.text',
        labels,
        valueType: 'string',
        value: 'grün',
      },
      {
        type: 'value',
        transaction: begun() + 2,
        time: EPOCH + 9_000,
        name: 'test.big',
        labels,
        valueType: 'uint64',
        value: String(2n ** 60n),
      },
      {
        type: 'value',
        transaction: begun() + 3,
        time: EPOCH + 10_000,
        name: 'test.rec',
        labels,
        valueType: 'rec',
        value: { n: -1 },
      },
    ])
    expect(other).toMatchObject({ first: begun() + 4, last: begun() + 5, stream: one?.stream })
    expect(other?.values).toMatchObject([
      { name: 'test.gone', valueType: 'void', value: null },
      { name: 'test.odd', valueType: 'double', value: 'NaN' },
    ])
    expect(one?.headers).toMatchObject({
      'content-type': 'application/json',
      'idempotency-key': `${one?.stream}-${begun()}-${begun() + 3}`,
      'webhook-id': `${one?.stream}-${begun()}-${begun() + 3}`,
    })
    expect(one?.headers['webhook-signature']).toBeUndefined()
  })

  it('has the unit of a metric that has one', async () => {
    await start({ metrics: ['host.load.one'] })
    await until(() => expect(receiver.kept.length).toBeGreaterThan(0))
    expect(receiver.kept[0]).toMatchObject({ name: 'host.load.one', unit: '1', labels: { host: expect.any(String) } })
  })

  it('has losses as they are, in their place', async () => {
    receiver.answer = () => ({ status: 503 })
    const seat = await start({ batchSize: 1 })
    const { registry } = producer!.server.parts.producer
    const channel = [...registry.all()].find(({ row }) => row.name === 'drain:d')!
    registry.configure(channel, { ...channel.row, maxBytes: 4_096, windowBytes: 4_096 })
    for (let value = 0; value < 500; value++) push('a', value, value)
    receiver.answer = () => ({ status: 204 })
    await until(async () => expect(await ledger(seat)).toMatchObject({ queued: 0, in_flight: 0 }))
    const { overflow } = channel.queue.counts.dropped
    const gaps = receiver.kept.filter(({ type }) => type === 'gap')
    expect(gaps.map(({ reason, name }) => ({ reason, name }))).toContainEqual({ reason: 'overflow', name: 'test.*' })
    expect(gaps.reduce((sum, { count }) => sum + Number(count), 0)).toBe(overflow)
    const counted = gaps.find(({ count }) => Number(count) > 0)
    expect(counted?.['from']).toBeGreaterThanOrEqual(EPOCH)
    expect(receiver.kept.filter(measured)).toHaveLength(500 - overflow)
    const transactions = receiver.kept.map(({ transaction }) => transaction)
    expect(transactions).toEqual([...transactions].sort((one, next) => one - next))
  })

  it('has 1 MiB at most; a value that is longer alone stands alone', async () => {
    const seat = await start({ batchSize: 40, batchAgeMs: 60_000 })
    const text = (length: number): Value => ({ type: BasicType.STRING, value: '\u0001'.repeat(length) })
    // Six characters of JSON for each.
    for (let at = 0; at < 38; at++) push('text', text(8_000), at)
    push('text', text(180_000), 38)
    push('last', 1, 39)
    await until(async () => expect(await ledger(seat)).toMatchObject({ accepted: 40, committed: 40 }))
    expect(receiver.kept).toHaveLength(40)
    const lengths = receiver.requests.map(({ text, values }) => ({
      length: Buffer.byteLength(text),
      count: values.length,
    }))
    expect(lengths.filter(({ length }) => length > 1 << 20).map(({ count }) => count)).toEqual([1])
    expect(lengths.map(({ count }) => count)).toEqual([21, 17, 1, 1])
    expect((await status(seat)).counters).toMatchObject({ values: 40, requests: 4, retries: 0 })
  })
})

describe('a signature', () => {
  it('is good over HTTPS, for one attempt at a time', async () => {
    await receiver.close()
    const authority = await Authority.make()
    const ca = join(directory, 'ca.pem')
    writeFileSync(ca, authority.cert)
    receiver = new JsonReceiver(await authority.server())
    await receiver.open()
    receiver.secret = SECRET
    let failures = 2
    receiver.answer = () => ({ status: failures-- > 0 ? 503 : 200 })
    const url = { protocol: 'json' as const, href: `https://127.0.0.1:${receiver.port}/values`, text: 'json+https' }
    const seat = await start({ url, ca, secretFile: secretFile(SECRET) })
    push('a', 1)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 1 }))
    expect(receiver.requests.map(({ isSigned }) => isSigned)).toEqual([true, true, true])
    const of = (header: string) => new Set(receiver.requests.map(({ headers }) => headers[header]))
    expect(of('idempotency-key').size).toBe(1)
    expect(of('webhook-timestamp').size).toBe(3)
    expect(of('webhook-signature').size).toBe(3)
    expect(new Set(receiver.requests.map(({ text }) => text)).size).toBe(1)
  })

  it('that is wrong costs no value, whatever a receiver answers: it is mended in the file', async () => {
    receiver.secret = SECRET
    const seat = await start({ secretFile: secretFile(OTHER) })
    for (let value = 0; value < 4; value++) push('a', value, value)
    await until(() => expect(receiver.requests.length).toBeGreaterThan(4))
    expect(await ledger(seat)).toMatchObject({ accepted: 4, committed: 0 })
    expect(await status(seat)).toMatchObject({ state: 'failed', detail: expect.stringContaining('answered 400') })
    // Both, while one takes the place of the other.
    secretFile(OTHER, SECRET)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 4 }))
    expect(receiver.kept.map(({ value }) => value)).toEqual([0, 1, 2, 3])
    expect((await status(seat)).counters).toMatchObject({ values: 4, refusedInvalid: 0 })
  })

  it.each([
    ['is missing', undefined],
    ['is empty', ''],
    ['has something else in it', 'whsec_tooshort'],
    ['has too many', [SECRET, SECRET, SECRET, SECRET, SECRET].join('\n')],
  ])('waits while its file %s, and the secret is shown nowhere', async (_what, text) => {
    const file = text === undefined ? join(directory, 'missing') : secretFile(...(text === '' ? [] : [text]))
    const seat = await start({ secretFile: file })
    push('a', 1)
    await until(async () => expect((await status(seat)).state).toBe('failed'))
    expect(receiver.requests).toEqual([])
    expect((await status(seat)).detail).toContain(file)
    expect(JSON.stringify(await status(seat)) + producer?.logged.join()).not.toMatch(/tooshort|whsec_[A-Za-z0-9]/)
    writeFileSync(file, `${SECRET}\n`)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 1 }))
  })
})

describe('a receiver', () => {
  it.each([408, 410, 429, 500])(
    'that answers %i gets the same again, and nothing is committed before',
    async (code) => {
      receiver.answer = () => ({ status: code })
      const seat = await start()
      push('a', 1)
      await until(() => expect(receiver.requests.length).toBeGreaterThan(2))
      push('a', 2, 1)
      expect(await ledger(seat)).toMatchObject({ accepted: 2, committed: 0 })
      receiver.answer = () => ({ status: 200 })
      await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
      const texts = receiver.requests.filter(({ first }) => first === begun()).map(({ text }) => text)
      expect(texts.length).toBeGreaterThan(2)
      expect(new Set(texts).size).toBe(1)
    },
  )

  it('that refuses some values gets the others, each request with a key of its own', async () => {
    receiver.answer = ({ values }) => ({ status: values.some(({ name }) => name === 'test.bad') ? 422 : 200 })
    const seat = await start({ batchSize: 8 })
    for (let value = 0; value < 8; value++) push(value === 5 ? 'bad' : 'good', value, value)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 8 }))
    expect(receiver.kept.map(({ value }) => value)).toEqual([0, 1, 2, 3, 4, 6, 7])
    expect((await status(seat)).counters).toMatchObject({ values: 7, refusedInvalid: 1, retries: 0 })
    const keys = receiver.requests.map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('that finds a request too large gets halves of it', async () => {
    receiver.answer = ({ values }) => ({ status: values.length > 2 ? 413 : 200 })
    const seat = await start({ batchSize: 4 })
    for (let value = 0; value < 4; value++) push('a', value, value)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 4 }))
    expect(ranges()).toEqual([
      [1, 4],
      [1, 2],
      [3, 4],
    ])
  })
})

describe('after a crash', () => {
  it('values come again under the same transactions of the same stream: a receiver keeps each of them once', async () => {
    const seat = await start({ batchSize: 2 })
    push('a', 1)
    push('a', 2, 1)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
    receiver.answer = () => ({ status: 0 })
    push('a', 3, 2)
    push('a', 4, 3)
    await until(() => expect(receiver.requests.at(-1)?.last).toBe(begun() + 3))
    const before = receiver.requests.at(-1)
    receiver.answer = () => ({ status: 200 })
    producer = await producer?.crash()
    const count = receiver.requests.length
    push('a', 5, 4)
    const again = await producer!.seat('root')
    await until(async () => expect(await ledger(again)).toMatchObject({ accepted: 5, committed: 5 }))
    // A full request has the same borders, so it is the same one.
    const after = receiver.requests[count]
    expect(after?.text).toBe(before?.text)
    expect(after?.headers['idempotency-key']).toBe(before?.headers['idempotency-key'])
    expect(receiver.kept.filter(measured).map(({ value }) => value)).toEqual([1, 2, 3, 4, 5])
  })

  it('a request may begin as before and have more: the values that both have are the same', async () => {
    const seat = await start({ batchSize: 4, batchAgeMs: 100 })
    receiver.answer = () => ({ status: 0 })
    push('a', 1)
    await until(() => expect(receiver.requests.at(-1)?.last).toBe(begun()))
    push('a', 2, 1)
    push('a', 3, 2)
    await until(async () => expect(await ledger(seat)).toMatchObject({ accepted: 3, committed: 0 }))
    receiver.answer = () => ({ status: 200 })
    const before = receiver.requests.at(-1)
    producer = await producer?.crash()
    const count = receiver.requests.length
    const again = await producer!.seat('root')
    await until(async () => expect(await ledger(again)).toMatchObject({ accepted: 3, committed: 3 }))
    const after = receiver.requests[count]
    expect(after).toMatchObject({ stream: before?.stream, first: before?.first })
    expect(after?.values[0]).toEqual(before?.values[0])
    expect(receiver.kept.filter(measured).map(({ value }) => value)).toEqual([1, 2, 3])
  })
})
