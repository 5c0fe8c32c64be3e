/** The recorded connection, frame by frame, and the client at the end of it that the recording has the broker for. */
import { beforeAll, describe, expect, test } from 'vitest'
import { AmqpClient } from '../../../protocol/amqp/client.ts'
import { type Assembly, encodeFrames, FrameAssembler } from '../../../protocol/amqp/frames.ts'
import {
  decodeCommand,
  decodeControl,
  decodeHeader,
  encodeCommand,
  encodeControl,
  encodeHeader,
} from '../../../protocol/amqp/methods.ts'
import type { AmqpDelivery } from '../../../protocol/amqp/session.ts'
import { join, toHex } from '../../support/bytes.ts'
import { capturedChunks, capturedTransfers } from '../../support/qmf/capture.ts'
import { Random } from '../../support/random.ts'

const HEADER_BYTES = 8
const chunks = capturedChunks()
const streamOf = (from: 'client' | 'broker') => join(...chunks.filter((c) => c.from === from).map((c) => c.bytes))
const transfers = capturedTransfers(chunks)

function assemble(stream: Uint8Array): Assembly[] {
  const assembler = new FrameAssembler(1 << 20)
  assembler.push(stream)
  const found: Assembly[] = []
  for (let next = assembler.next(); next; next = assembler.next()) found.push(next)
  return found
}

function nameOf({ isControl, method }: Assembly): string {
  const said = isControl ? decodeControl(method) : decodeCommand(method).command
  return said.name === 'unknown' ? `unknown ${said.code.toString(16)}` : said.name
}

describe.each([
  ['client', { 'exchange.bind': 3, 'message.transfer': 80, 'session.completed': 193, 'unknown 703': 2 }],
  ['broker', { 'execution.result': 2, 'message.transfer': 193, 'session.completed': 95, 'connection.close-ok': 1 }],
] as const)('what the %s sent', (from, counts) => {
  let assemblies: readonly Assembly[] = []
  const stream = streamOf(from)
  beforeAll(() => {
    assemblies = assemble(stream.subarray(HEADER_BYTES))
  })

  test('consists of frames to the last byte', () => {
    expect(toHex(join(...assemblies.map((assembly) => encodeFrames(assembly, 65_535))))).toBe(
      toHex(stream.subarray(HEADER_BYTES)),
    )
  })
  test('holds the controls and commands that were counted by hand', () => {
    const names = assemblies.map(nameOf)
    const found = Object.keys(counts).map((name) => [name, names.filter((other) => other === name).length])
    expect(Object.fromEntries(found)).toEqual(counts)
    expect(names.filter((name) => name.startsWith('unknown') && name !== 'unknown 703')).toEqual([])
  })
  test('is written again byte for byte', () => {
    const written = assemblies.map(({ isControl, method }) => {
      if (isControl) {
        const control = decodeControl(method)
        return control.name === 'unknown' ? method : encodeControl(control)
      }
      const { command, isSync } = decodeCommand(method)
      return command.name === 'unknown' ? method : encodeCommand(command, isSync)
    })
    expect(written.map(toHex)).toEqual(assemblies.map(({ method }) => toHex(method)))
  })
  test('has headers that are read, and are written byte for byte where the order is ours', () => {
    const headers = assemblies.flatMap(({ header }) => header ?? [])
    const written = headers.map((header) => encodeHeader(decodeHeader(header)))
    if (from === 'client') expect(written.map(toHex)).toEqual(headers.map(toHex))
    else expect(written.map(({ length }) => length)).toEqual(headers.map(({ length }) => length))
  })
})

interface Heard {
  readonly deliveries: AmqpDelivery[]
  readonly ends: string[]
  readonly written: Uint8Array[]
}

/** A client that hears what the recorded broker said, in chunks that end at `cuts`. */
function replay(cuts: readonly number[]): Heard {
  const heard: Heard = { deliveries: [], ends: [], written: [] }
  const client = new AmqpClient({
    virtualHost: '',
    session: 'vm.26710.1',
    maxBodyBytes: 65_536,
    write: (bytes) => heard.written.push(bytes),
    events: {
      opened: () => {},
      delivered: (message) => heard.deliveries.push(message),
      closed: (reason) => heard.ends.push(reason),
    },
  })
  client.start()
  const stream = streamOf('broker')
  let begin = 0
  for (const cut of [...cuts, stream.length]) {
    const chunk = stream.slice(begin, cut)
    client.push(chunk)
    chunk.fill(0xee)
    begin = cut
  }
  return heard
}

describe('the client of the recorded broker', () => {
  const expected = transfers.filter(({ from }) => from === 'broker')
  const length = streamOf('broker').length
  const random = new Random(7)
  const cuttings: readonly (readonly [name: string, cuts: readonly number[]])[] = [
    ['whole', []],
    ['byte by byte', Array.from({ length }, (_, i) => i)],
    ...[2, 7, 12, 13, 1000].map((size) => {
      const cuts = Array.from({ length: Math.floor(length / size) }, (_, i) => i * size)
      return [`in pieces of ${size} bytes`, cuts] as const
    }),
    ['cut anywhere', Array.from({ length: 500 }, () => random.below(length)).sort((a, b) => a - b)],
  ]

  test.each(cuttings)('is delivered every message, %s', (_, cuts) => {
    const { deliveries, ends } = replay(cuts)
    const shown = (all: readonly Pick<AmqpDelivery, 'destination' | 'exchange' | 'routingKey' | 'body'>[]) =>
      all.map(({ destination, exchange, routingKey, body }) => [destination, exchange, routingKey, toHex(body)])
    expect(shown(deliveries)).toEqual(shown(expected))
    expect(ends).toEqual(['the server detached the session (0: normal)'])
  })

  test('completes what the recorded client completed', () => {
    const completions = (assemblies: readonly Assembly[]) =>
      assemblies
        .filter(({ isControl }) => isControl)
        .map(({ method }) => decodeControl(method))
        .filter(({ name }) => name === 'session.completed')
    const ours = completions(
      assemble(join(...replay(Array.from({ length }, (_, i) => i)).written).subarray(HEADER_BYTES)),
    )
    const theirs = completions(assemble(streamOf('client').subarray(HEADER_BYTES)))
    expect(ours.at(-1)).toEqual(theirs.at(-1))
    expect(ours).toHaveLength(195)
  })
})
