/** Answers for agents: lists that come page by page, and what has to fit. */
import { describe, expect, it } from 'vitest'
import {
  type Arguments,
  BasicType,
  type Consumer,
  type Sample,
  StatusError,
  type Value,
} from '../../../client/index.ts'
import { fittedAnswer, ifReadable, isoTime, listOf, plainToJson } from '../../../packages/mcp/answer.ts'
import { StatusCode } from '../../../protocol/monitor/status.ts'

const never = new AbortController().signal
const name = (text: string) => [{ name: 'name', type: BasicType.STRING, value: text }] as const

/** A consumer whose metric has so many names, of which an answer holds two. `says`: whether an answer says where to go on. */
function paged(names: readonly string[], says: boolean): { asked: Arguments[]; consumer: Pick<Consumer, 'query'> } {
  const asked: Arguments[] = []
  const query = async (_: string, args: Arguments = {}): Promise<Sample> => {
    asked.push(args)
    const from = args['after'] === undefined ? 0 : names.indexOf(String(args['after'])) + 1
    const page: Value = {
      type: BasicType.ARRAY,
      value: {
        element: BasicType.REC,
        items: [
          ...names.slice(from, from + 2).map(name),
          ...(from + 2 < names.length
            ? [
                [
                  { name: 'more', type: BasicType.BOOLEAN, value: true },
                  ...(says ? [{ name: 'after', type: BasicType.STRING, value: names[from + 1] }] : []),
                ],
              ]
            : []),
        ],
      },
    } as Value
    return { value: page, time: 7 } as Sample
  }
  return { asked, consumer: { query } }
}

describe('listOf', () => {
  const next = ({ name }: Readonly<Record<string, unknown>>) => ({ after: String(name) })
  const names = ['a', 'b', 'c', 'd', 'e']

  it.each([true, false])('reads page by page, whether or not the server says where to go on: %s', async (says) => {
    const { consumer, asked } = paged(names, says)
    const list = await listOf(consumer, 'x', { match: '*' }, { limit: 10, next, signal: never })
    expect(list.records.map(({ name }) => name)).toEqual(names)
    expect(list).toMatchObject({ isMore: false, time: 7 })
    expect(asked).toEqual([{ match: '*' }, { match: '*', after: 'b' }, { match: '*', after: 'd' }])
  })

  it('stops at the limit, and says that there is more', async () => {
    const { consumer, asked } = paged(names, true)
    const list = await listOf(consumer, 'x', {}, { limit: 3, next, signal: never })
    expect(list.records).toHaveLength(3)
    // What the server says would leave one out.
    expect(list).toMatchObject({ isMore: true, after: undefined })
    expect(asked).toHaveLength(2)
    expect(await listOf(consumer, 'x', {}, { limit: 4, next, signal: never })).toMatchObject({ after: 'd' })
  })

  it('fails where the server had no answer', async () => {
    const query = async () => ({ value: { type: BasicType.VOID, value: null }, time: 0 }) as Sample
    await expect(listOf({ query }, 'x', {}, { limit: 1, signal: never })).rejects.toThrow(/did not answer in time/)
  })
})

it('what may not be read is left out, and every other error is not', async () => {
  const denied = new StatusError('QUERY', StatusCode.NO_SUCH_METRIC, '')
  const busy = new StatusError('QUERY', StatusCode.BUSY, '')
  expect(await ifReadable(Promise.reject(denied))).toBeUndefined()
  await expect(ifReadable(Promise.reject(busy))).rejects.toBe(busy)
})

it('times are those of ISO 8601, and none for what has no time', () => {
  expect(isoTime(1_700_000_000_000_000)).toBe('2023-11-14T22:13:20.000Z')
  expect(isoTime(0)).toBeUndefined()
  expect(isoTime(Number.MAX_VALUE)).toBeUndefined()
})

it('values are JSON', () => {
  const plain = {
    exact: 2n ** 60n,
    numbers: [1.5, Number.NaN, Number.NEGATIVE_INFINITY],
    bytes: new Uint8Array([1, 2]),
  }
  expect(plainToJson({ ...plain, none: null, yes: true, text: 'a' })).toEqual({
    ...{ exact: '1152921504606846976', numbers: [1.5, 'NaN', '-Infinity'], bytes: 'AQI=' },
    ...{ none: null, yes: true, text: 'a' },
  })
})

describe('an answer', () => {
  const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
  const rows = Array.from({ length: 100 }, (_, index) => ({ index, text: 'ä'.repeat(50) }))

  it('that fits is whole, and says that its texts are data', () => {
    const answer = fittedAnswer({ facts: { total: 2 }, rows: rows.slice(0, 2), next: 'b' }, 'rows', 4_096)
    expect(answer).toEqual({
      untrusted: expect.stringMatching(/never|not follow/),
      total: 2,
      rows: rows.slice(0, 2),
      next: 'b',
    })
  })

  it('that is too long loses its last rows, in bytes and not in characters', () => {
    const answer = fittedAnswer({ facts: {}, rows, next: 'b' }, 'rows', 4_096)
    const kept = answer['rows'] as unknown[]
    expect(bytes(answer)).toBeLessThanOrEqual(4_096)
    expect(bytes(answer)).toBeGreaterThan(3_800)
    expect(kept).toEqual(rows.slice(0, kept.length))
    expect(answer['cut']).toContain(`rows: the first ${kept.length} of 100 are here`)
    expect(answer).not.toHaveProperty('next')
  })

  it('with a long text has its beginning', () => {
    const facts = { detail: 'ok', value: { stdout: 'x\n'.repeat(100_000), exit: 0 } }
    const answer = fittedAnswer({ facts, rows: [] }, 'steps', 4_096)
    expect(bytes(answer)).toBeLessThanOrEqual(4_096)
    expect(answer).toMatchObject({
      detail: 'ok',
      value: { exit: 0, stdout: expect.stringMatching(/^x\nx\n[\s\S]*…$/) },
    })
    expect(answer['cut']).toMatch(/1 long text is cut, marked with …: an answer has at most 4096 bytes/)
  })

  it('whose first row is too long has none, and says so', () => {
    const answer = fittedAnswer({ facts: {}, rows: [{ points: Array(10_000).fill(1) }] }, 'series', 4_096)
    expect(answer).toMatchObject({ series: [], cut: expect.stringMatching(/series: the first 0 of 1 are here/) })
  })
})
