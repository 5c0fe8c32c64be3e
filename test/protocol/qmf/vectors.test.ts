import { describe, expect, test } from 'vitest'
import { decodeBody, encodeMessage, MAX_MESSAGES } from '../../../protocol/qmf/messages.ts'
import { hex, join, toHex } from '../../support/bytes.ts'
import { knowing, knownFor, noneKnown, schemas, vector, vectors } from './vectors.ts'

const encoded = vectors.filter(({ decodedOnly }) => !decodedOnly)

describe('every vector', () => {
  test.each(vectors)('$name ($source) decodes', (given) => {
    expect(decodeBody(given.bytes, knownFor(given))).toStrictEqual({ messages: given.messages })
  })

  test.each(encoded)('$name ($source) is what we encode', (given) => {
    const parts = given.messages.map((message) => encodeMessage(message, knownFor(given)))
    expect(toHex(join(...parts))).toBe(toHex(given.bytes))
  })

  test.each(vectors)('$name, cut off anywhere, returns the messages before it and is reported', (given) => {
    const known = knownFor(given)
    const borders = [0]
    for (const message of given.messages.slice(0, -1))
      borders.push(borders.at(-1)! + encodeMessage(message, known).length)
    for (let length = 1; length < given.bytes.length; length++) {
      const { messages, stopped } = decodeBody(given.bytes.subarray(0, length), known)
      const whole = borders.filter((border) => border > 0 && border <= length).length
      expect(messages, `${length} bytes`).toStrictEqual(given.messages.slice(0, whole))
      expect(stopped?.reason, `${length} bytes`).toBe(borders.includes(length) ? undefined : 'malformed')
    }
  })

  test.each(vectors)('$name decodes before another message', (given) => {
    const heartbeat = vector('h')
    expect(decodeBody(join(given.bytes, heartbeat.bytes), knownFor(given))).toStrictEqual({
      messages: [...given.messages, ...heartbeat.messages],
    })
  })

  test.each(vectors)('$name decodes inside a larger buffer, of which nothing is kept', (given) => {
    const buffer = Buffer.concat([Buffer.alloc(7, 0xff), given.bytes, Buffer.alloc(7, 0xff)])
    const decoded = decodeBody(buffer.subarray(7, 7 + given.bytes.length), knownFor(given))
    buffer.fill(0xee)
    expect(decoded).toStrictEqual({ messages: given.messages })
  })
})

test('a failure ends with its text, though qpidd writes arguments after it as if it had succeeded', () => {
  const failure = '414d326d 00000028 00000007 0002 6e6f'
  const message = { op: 'm', sequence: 40, status: 7, text: 'no', arguments: [] }
  expect(decodeBody(hex(`${failure} 00000007 0005 68656c6c6f`), noneKnown)).toStrictEqual({ messages: [message] })
  expect(decodeBody(hex(`${failure} 01`), noneKnown)).toStrictEqual({ messages: [message] })
})

describe('what ends a body', () => {
  const [p] = vector('p p in one body').messages
  const first = vector('p p in one body').bytes.subarray(0, 28)
  const afterOne = (bytes: Uint8Array, known = noneKnown) => decodeBody(join(first, bytes), known)

  test.each([
    ['another magic', '414d31 68 00000000 0000000000000000', { reason: 'unknown-magic', offset: 28 }],
    ['an unknown op', '414d32 79 00000007', { reason: 'unknown-op', op: 'y', sequence: 7 }],
    ['half a header', '414d32 68 0000', { reason: 'malformed' }],
    ['a class that is of neither kind', '414d32 71 00000003 03', { reason: 'malformed', op: 'q', sequence: 3 }],
  ])('%s', (_, bytes, expected) => {
    const { messages, stopped } = afterOne(hex(bytes))
    expect(messages).toStrictEqual([p])
    expect(stopped).toMatchObject(expected)
    expect(Object.hasOwn(stopped!, 'op')).toBe('op' in expected)
  })

  test('an object of an unknown class, whose key is reported', () => {
    const { bytes, messages } = vector('g with one of two optional properties')
    const { header } = messages[0] as Extract<(typeof messages)[0], { op: 'g' }>
    expect(afterOne(bytes).stopped).toMatchObject({ reason: 'unknown-class', key: header.key, op: 'g', sequence: 5 })
    expect(afterOne(vector('e').bytes).stopped).toMatchObject({
      reason: 'unknown-class',
      key: { className: 'queueDelete' },
    })
  })

  test('an object of a class that is an event', () => {
    const event = { kind: 'event', key: schemas.at(-1)!.key, arguments: [] } as const
    const { bytes } = vector('i')
    expect(afterOne(bytes, knowing([event])).stopped).toMatchObject({ reason: 'malformed', op: 'i' })
  })

  test('a call of a method that its class does not have, and of a class that is not known', () => {
    const { bytes } = vector('M')
    const widget = schemas.find(({ key }) => key.className === 'widget')!
    const bare = knowing([{ ...widget, methods: [] } as typeof widget])
    expect(afterOne(bytes, bare).stopped).toMatchObject({ reason: 'unknown-method', op: 'M', sequence: 6 })
    expect(afterOne(bytes).stopped).toMatchObject({
      reason: 'unknown-class',
      key: { className: 'widget' },
      sequence: 6,
    })
  })

  test('a good reply to a call of which nothing is known, while a refusal needs no call', () => {
    expect(afterOne(vector('m with an argument').bytes).stopped).toMatchObject({
      reason: 'unknown-method',
      sequence: 6,
    })
    expect(afterOne(vector('m of an unknown object').bytes).messages).toHaveLength(2)
  })

  test.each([20, 22] as const)('a value of type %i', (type) => {
    const widget = { packageName: 'tc.test', className: 'widget', hash: '00112233445566778899aabbccddeeff' }
    const known = knowing([
      { kind: 'table', key: widget, properties: [], statistics: [{ name: 'hits', type }], methods: [] },
    ])
    expect(afterOne(vector('i').bytes, known)).toMatchObject({
      messages: [p],
      stopped: { reason: 'unsupported-type', op: 'i' },
    })
  })

  test('too many messages', () => {
    const x = vector('x').bytes
    const most = Buffer.alloc(x.length * MAX_MESSAGES, x)
    expect(decodeBody(most, noneKnown).messages).toHaveLength(MAX_MESSAGES)
    expect(decodeBody(most, noneKnown).stopped).toBeUndefined()
    const more = decodeBody(join(most, x), noneKnown)
    expect(more.messages).toHaveLength(MAX_MESSAGES)
    expect(more.stopped).toMatchObject({ reason: 'malformed', op: 'x' })
  })
})

describe('the text of a reply that knows no method', () => {
  const head = '414d326d0000002900000002'
  const text = (bytes: string) => {
    const [message] = decodeBody(hex(head + bytes), noneKnown).messages
    return message?.op === 'm' ? message.text : undefined
  }

  test('may be str16 or str8, also before another message', () => {
    expect(text('0002 4f4b')).toBe('OK')
    expect(text('02 4f4b')).toBe('OK')
    expect(text('02 4f4b 414d327800000000')).toBe('OK')
    expect(text('0002 4f4b 414d327800000000')).toBe('OK')
    expect(text('0000')).toBe('')
    expect(text('00')).toBe('')
  })

  test('that is neither is malformed', () => {
    expect(decodeBody(hex(`${head}0003 4f4b`), noneKnown)).toMatchObject({ messages: [], stopped: { op: 'm' } })
    expect(decodeBody(hex(head), noneKnown).stopped?.reason).toBe('malformed')
  })

  test('is str16 where we write it', () => {
    const message = { op: 'm', sequence: 41, status: 2, text: 'UnknownMethod', arguments: [] } as const
    expect(toHex(encodeMessage(message, noneKnown))).toBe(`${head}000d556e6b6e6f776e4d6574686f64`)
  })
})

test('an empty body holds nothing', () => {
  expect(decodeBody(new Uint8Array(), noneKnown)).toStrictEqual({ messages: [] })
})
