import { MsgHdrsImpl } from '@nats-io/transport-node'
import { describe, expect, test } from 'vitest'
import { Assembler, type LogEntry, partHeaders, partOf, type RecordPart } from '../../../storage/replicated/part.ts'

/** `one value, ` 2,000 times, as Python's zlib deflates it. */
const VALUES = Buffer.from(
  'edc6311100200800c02a04b094039b2793e6a703f3fff47533fe3e2f5794aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaacedb',
  'hex',
)

/** The headers of a message as they are on the wire. */
const wire = (lines: string) => MsgHdrsImpl.decode(new TextEncoder().encode(`NATS/1.0\r\n${lines}\r\n\r\n`))

/** What comes of messages like `r1 1/2 text`, with sequences from 1 on; `-` is a gap, `?` no part. */
function assembled(...messages: readonly string[]): (readonly [number, string])[] {
  const assembler = new Assembler()
  return messages.flatMap((message, index) => {
    if (message === '-') return []
    const [record = '', place = '', content = ''] = message.split(' ')
    const lines = `Cin-Kind: batch\r\nCin-Epoch: 7\r\nCin-Part: ${place}\r\nCin-Node: a\r\nCin-Format: 1\r\nCin-Record: ${record}`
    const part = message === '?' ? undefined : partOf(wire(lines))
    const entry = assembler.take(index + 1, part, Buffer.from(content))
    return entry === undefined ? [] : [[entry.sequence, Buffer.from(entry.bytes).toString()] as const]
  })
}

describe('the parts of a record', () => {
  test('are put together', () => {
    expect(assembled('r1 1/1 one', 'r2 1/3 a', 'r2 2/3 b', 'r2 3/3 c', 'r3 1/1 last')).toEqual([
      [1, 'one'],
      [4, 'abc'],
      [5, 'last'],
    ])
  })

  test.each([
    ['another record comes between', ['r1 1/3 a', 'r1 2/3 b', 'e 1/1 x', 'r1 3/3 c'], [[3, 'x']]],
    ['a part is missing', ['r1 1/3 a', 'r1 3/3 c', 'r2 1/1 x'], [[3, 'x']]],
    ['a message is missing', ['r1 1/2 a', '-', 'r1 2/2 b', 'r2 1/1 x'], [[4, 'x']]],
    ['they begin again', ['r1 1/2 a', 'r1 1/2 a', 'r1 2/2 b'], [[3, 'ab']]],
    ['a part comes twice', ['r1 1/2 a', 'r1 1/2 a', 'r1 1/2 a', 'r1 2/2 b', 'r1 2/2 b'], [[4, 'ab']]],
    ['they are of two records', ['r1 1/2 a', 'r2 2/2 b'], []],
    ['the first is missing', ['r1 2/2 b', 'r2 1/1 x'], [[2, 'x']]],
    ['something else comes between', ['r1 1/2 a', '?', 'r1 2/2 b', 'r2 1/1 x'], [[4, 'x']]],
  ])('are void if %s', (_, messages, expected) => {
    expect(assembled(...messages)).toEqual(expected)
  })

  test('are inflated as a whole', () => {
    const assembler = new Assembler()
    const parts = [VALUES.subarray(0, 40), VALUES.subarray(40)]
    const part = { format: 2, kind: 'batch', epoch: 1, node: 'a', record: 'r', count: 2 } as const
    const entries = parts.flatMap((data, index) => assembler.take(index + 1, { ...part, index: index + 1 }, data) ?? [])
    expect(entries.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(['one value, '.repeat(2_000)])
  })

  test.each([
    ['cut', VALUES.subarray(0, 60)],
    ['damaged', Buffer.concat([VALUES.subarray(0, 20), VALUES.subarray(21)])],
    ['nothing', new Uint8Array()],
  ])('are not skipped if they cannot be inflated: %s', (_, data) => {
    const part = { format: 2, kind: 'batch', epoch: 1, node: 'a', record: 'r', index: 1, count: 1 } as const
    expect(() => new Assembler().take(1, part, data)).toThrow(
      expect.objectContaining({ code: 'BEHIND', message: expect.stringContaining('record 1 of') }),
    )
  })

  test('of a newer format are not skipped', () => {
    const assembler = new Assembler()
    const part = partOf(
      wire('Cin-Kind: batch\r\nCin-Epoch: 7\r\nCin-Part: 1/1\r\nCin-Node: b\r\nCin-Format: 3\r\nCin-Record: r'),
    )
    expect(() => assembler.take(1, part, new Uint8Array())).toThrow(expect.objectContaining({ code: 'TOO_NEW' }))
  })

  test('use no more memory than a record may have', () => {
    const assembler = new Assembler()
    // One piece of memory, taken again and again.
    const data = new Uint8Array(2 ** 26)
    const part = { format: 1, kind: 'batch', epoch: 1, node: 'a', record: 'r', count: 17 } as const
    const found: (LogEntry | undefined)[] = []
    for (let index = 1; index <= 17; index++) found.push(assembler.take(index, { ...part, index }, data))
    expect(found.filter((entry) => entry !== undefined)).toEqual([])
  })
})

describe('the headers of a part', () => {
  const part: RecordPart = { format: 1, kind: 'epoch', epoch: 12, node: 'n1', record: 'xyz', index: 3, count: 40 }

  test('say what it is', () => {
    const made = partHeaders(part)
    expect(Object.fromEntries([...made].map(([name, values]) => [name, values.join()]))).toEqual({
      'Cin-Kind': 'epoch',
      'Cin-Epoch': '12',
      'Cin-Part': '3/40',
      'Cin-Node': 'n1',
      'Cin-Format': '1',
      'Cin-Record': 'xyz',
    })
    expect(partOf(made)).toEqual(part)
  })

  test.each([
    '',
    'Cin-Kind: batch',
    'Cin-Kind: other\r\nCin-Epoch: 1\r\nCin-Part: 1/1\r\nCin-Format: 1',
    'Cin-Kind: batch\r\nCin-Epoch: 1\r\nCin-Part: 0/1\r\nCin-Format: 1',
    'Cin-Kind: batch\r\nCin-Epoch: 1\r\nCin-Part: 2/1\r\nCin-Format: 1',
    'Cin-Kind: batch\r\nCin-Epoch: 1\r\nCin-Part: 1/1e9\r\nCin-Format: 1',
    'Cin-Kind: batch\r\nCin-Epoch: 1.5\r\nCin-Part: 1/1\r\nCin-Format: 1',
    'Cin-Kind: batch\r\nCin-Epoch: -1\r\nCin-Part: 1/1\r\nCin-Format: 1',
    'Cin-Kind: batch\r\nCin-Epoch: 1\r\nCin-Part: 1/1',
  ])('are those of no part: %j', (lines) => {
    expect(partOf(wire(lines))).toBeUndefined()
  })

  test('may be missing', () => {
    expect(partOf(undefined)).toBeUndefined()
  })
})
