import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AmqpReader, AmqpWriter } from '../../../protocol/amqp/bytes.ts'
import { readFieldTable, writeFieldTable } from '../../../protocol/amqp/field-table.ts'
import { decodeBody, encodeMessage } from '../../../protocol/qmf/messages.ts'
import { inputsOf, outputsOf } from '../../../protocol/qmf/schema.ts'
import type { QmfMessage } from '../../../protocol/qmf/types.ts'
import { join } from '../../support/bytes.ts'
import { times } from '../../support/long.ts'
import { capturedTransfers } from '../../support/qmf/capture.ts'
import * as any from './arbitraries.ts'
import { knowing, knownFor, noneKnown, vectors } from './vectors.ts'

const known = knownFor({ called: 'echo' })

/** Messages as decoded, with everything that it takes to read them. */
const message: fc.Arbitrary<readonly [QmfMessage, ReturnType<typeof knowing>]> = fc.oneof(
  any.table.chain((table) =>
    fc
      .tuple(any.headerOf(table), any.propertiesOf(table), any.valuesOf(table.statistics))
      .chain(([header, properties, statistics]) =>
        fc.constantFrom<QmfMessage>(
          { op: 'g', sequence: 1, header, properties, statistics },
          { op: 'c', sequence: 0, header, properties },
          { op: 'i', sequence: 0, header, statistics },
        ),
      )
      .map((object) => [object, knowing([table])] as const),
  ),
  any.event.chain((event) =>
    fc.tuple(any.uint64, any.valuesOf(event.arguments)).map(([time, values]) => {
      const said: QmfMessage = { op: 'e', sequence: 0, key: event.key, time, severity: 3, arguments: values }
      return [said, knowing([event])] as const
    }),
  ),
  fc.tuple(any.method, any.table, any.objectId).chain(([method, table, id]) => {
    const schema = { ...table, methods: [method] }
    const call = any
      .valuesOf(inputsOf(method))
      .map(
        (values): QmfMessage => ({ op: 'M', sequence: 9, id, key: table.key, method: method.name, arguments: values }),
      )
    const reply = any
      .valuesOf(outputsOf(method))
      .map((values): QmfMessage => ({ op: 'm', sequence: 9, status: 0, text: 'OK', arguments: values }))
    return fc.oneof(call, reply).map((said) => [said, knowing([schema], method)] as const)
  }),
  any.schema.map((schema) => [{ op: 's', sequence: 4, schema }, noneKnown] as const),
  any.fieldTable.map((query) => [{ op: 'G', sequence: 5, query }, noneKnown] as const),
)

describe('for every schema and all values', () => {
  test('what was encoded decodes to the same', () => {
    fc.assert(
      fc.property(message, ([said, knows]) => {
        expect(decodeBody(encodeMessage(said, knows), knows)).toStrictEqual({ messages: [said] })
      }),
      { numRuns: 300 },
    )
  })

  test('a message that is cut off anywhere is reported, after the messages before it', () => {
    fc.assert(
      fc.property(message, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), ([said, knows], where) => {
        const whole = encodeMessage({ op: 'x', sequence: 7 }, knows)
        const bytes = encodeMessage(said, knows)
        const part = bytes.subarray(0, Math.floor(where * (bytes.length - 1)) + 1)
        const { messages, stopped } = decodeBody(join(whole, part), knows)
        expect(messages).toStrictEqual([{ op: 'x', sequence: 7 }, ...(part.length < bytes.length ? [] : [said])])
        expect(stopped?.reason).toBe(part.length < bytes.length ? 'malformed' : undefined)
      }),
      { numRuns: 300 },
    )
  })

  test('tables in each other come back as they were', () => {
    fc.assert(
      fc.property(any.fieldTable, (table) => {
        const writer = new AmqpWriter()
        writeFieldTable(writer, table)
        const cursor = new AmqpReader(writer.bytes())
        expect(readFieldTable(cursor)).toStrictEqual(table)
        expect(cursor.remaining).toBe(0)
      }),
    )
  })
})

describe('outside bytes never throw', () => {
  const header = fc
    .tuple(fc.constantFrom(...'BbPpQqSsGgciMmehzAax?'), fc.uint8Array({ maxLength: 400 }))
    .map(([op, rest]) => join(Buffer.from(`AM2${op}`), Uint8Array.of(0, 0, 0, 1), rest))

  test('where they are random', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 400 }), header), (bytes) => {
        const { messages, stopped } = decodeBody(bytes, known)
        expect(messages.length > 0 || stopped !== undefined || bytes.length === 0).toBe(true)
      }),
      { numRuns: times({ short: 500, long: 2_000 }) },
    )
  })

  test('where they are real ones with bytes changed', () => {
    const real = [...vectors.map(({ bytes }) => bytes), ...capturedTransfers().map(({ body }) => body)]
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(fc.constantFrom(...real), changes, (bytes, list) => {
        const spoilt = bytes.slice()
        for (const [at, value] of list) spoilt[at % spoilt.length] = value
        const { messages, stopped } = decodeBody(spoilt, known)
        expect(stopped === undefined || (stopped.offset >= 0 && stopped.offset <= spoilt.length)).toBe(true)
        expect(messages.length).toBeLessThanOrEqual(spoilt.length / 8)
      }),
      { numRuns: times({ short: 500, long: 2_000 }) },
    )
  })
})
